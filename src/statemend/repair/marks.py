"""Sets and clears the lineage marks of a session, and lets the search index follow where it must.

Marks are keys of ``sessions.model_config``. From 0.22 on the substring index leaves out what a delegate
wrote: its view asks for the mark, and a row that the view shows and the index lacks is damage to SQLite. So a
step that sets or clears that mark rebuilds the index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from statemend.repair.cells import SqlValue
from statemend.repair.model_config import NotEditableError, with_key, without
from statemend.repair.plan import Operation
from statemend.repair.recipe import RecipeContext, row_of, update_of
from statemend.store.connection import Store

BRANCH, DELEGATE, RESET = "_branched_from", "_delegate_from", "_reset_from"
#: The field of a node that each mark is read into.
FIELDS = {BRANCH: "branched_from", DELEGATE: "delegate_from", RESET: "reset_from"}
SUBSTRING_INDEX = "messages_fts_trigram"

_VIEW_ASKS_FOR_THE_MARK = """
SELECT 1
FROM main.sqlite_master
WHERE type = 'view' AND name = 'messages_fts_trigram_src' AND instr(sql, '_delegate_from') > 0
"""
_REBUILD_UNDER_WAY = "SELECT 1 FROM state_meta WHERE key = 'fts_rebuild_high_water'"
_HOLDS_INDEXED_ROWS = "SELECT 1 FROM messages WHERE session_id = ? AND role <> 'tool' LIMIT 1"


class CannotChangeError(Exception):
    """Why the row of a session cannot be changed, as a clause."""


def remark(
    context: RecipeContext,
    session_id: str,
    marks: Mapping[str, str | None],
    also: Mapping[str, SqlValue] | None = None,
) -> Operation:
    """The update that gives a session ``marks``, each naming a session; ``None`` clears one. ``also`` are
    other columns that it sets. Raises ``CannotChangeError``."""
    row = row_of(context.store, "sessions", {"id": session_id})
    config = None if row is None else row.get("model_config", b"")
    if row is None or not isinstance(config, str | None):
        raise CannotChangeError(f"{session_id} has no model_config that is text")
    try:
        changed = without(config, [key for key, value in marks.items() if value is None])
        for key, value in marks.items():
            if value is not None:
                changed = with_key(changed, key, value)
    except NotEditableError as error:
        raise CannotChangeError(f"the model_config of {session_id} cannot be edited: {error}") from error
    return update_session(context, session_id, {"model_config": changed, **(also or {})})


def update_session(context: RecipeContext, session_id: str, after: Mapping[str, SqlValue]) -> Operation:
    """The update of a session's row. Raises ``CannotChangeError`` for a session that its id does not lead to
    (an id that is not valid text)."""
    try:
        return update_of(context.store, "sessions", {"id": session_id}, after)
    except LookupError as error:
        raise CannotChangeError(f"no row can be named by the id {session_id!a}") from error


def index_after(context: RecipeContext, sessions: Iterable[str]) -> tuple[str, ...]:
    """The index that must be built anew when delegate marks of ``sessions`` change; nothing where it does
    not depend on them. Raises ``CannotChangeError`` while Hermes itself is rebuilding it: ours
    would add rows that its own then adds again."""
    store = context.store
    if not store.value(_VIEW_ASKS_FOR_THE_MARK) or not any(_indexed(store, each) for each in sessions):
        return ()
    if store.table_exists("state_meta") and store.value(_REBUILD_UNDER_WAY):
        raise CannotChangeError("Hermes is still rebuilding the search index; let it finish first")
    return (SUBSTRING_INDEX,)


def _indexed(store: Store, session_id: str) -> bool:
    return store.value(_HOLDS_INDEXED_ROWS, (session_id,)) is not None
