"""Lets the substring index of 0.22 follow where a session row comes back.

Its view shows a message only while its session has a row, and that row is no machine's. An index that holds
other rows than its view shows is damage to SQLite. So a plan that makes a row rebuilds the index; where it
must not, because a message holds a NUL and releases of SQLite split such text differently, the index has to
fit as it is.
"""

from __future__ import annotations

from statemend.audit.structure import TEXT_WITH_NUL
from statemend.repair.marks import SUBSTRING_INDEX, CannotChangeError, index_after
from statemend.repair.recipe import RecipeContext
from statemend.store.content import parse_json

#: Sources whose messages the view leaves out.
MACHINES = frozenset({"cron", "subagent"})
_DELEGATE = "_delegate_from"

_IN_VIEW = "SELECT COUNT(*) FROM messages WHERE session_id = ? AND role <> 'tool'"
_INDEXED = f"""
    SELECT COUNT(*) FROM messages
    WHERE session_id = ? AND role <> 'tool'
      AND EXISTS (SELECT 1 FROM main.{SUBSTRING_INDEX}_docsize AS d WHERE d.id = messages.id)
"""


def index_with_row(
    context: RecipeContext, session_id: str, source: object, model_config: object
) -> tuple[str, ...]:
    """The index, where it must be built anew when that session gets a row; nothing where none depends on it.

    Raises ``CannotChangeError`` while the index can be neither rebuilt nor left as it is.
    """
    dependent = index_after(context, [session_id])
    if not dependent or not context.once("text with NUL", lambda: context.store.value(TEXT_WITH_NUL)):
        return dependent
    config = parse_json(model_config, None)
    delegated = isinstance(config, dict) and config.get(_DELEGATE) is not None
    shown = 0 if source in MACHINES or delegated else context.store.value(_IN_VIEW, (session_id,))
    if context.store.value(_INDEXED, (session_id,)) != shown:
        raise CannotChangeError(
            f"{SUBSTRING_INDEX} does not fit its messages, and only Hermes can index text with NULs again"
        )
    return ()
