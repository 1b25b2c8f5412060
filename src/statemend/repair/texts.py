"""Texts that a plan names and does not hold: found again in the artifacts when it is carried out.

A plan is a file that people read and pass on, so the text of a message never goes into it. What an operation
is to store is named by its digest, and comes from the files that showed it. A file that no longer holds it is
no source any more, and then nothing is changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from statemend.errors import Refused
from statemend.evidence.inventory import Home, take
from statemend.evidence.salvage import Salvager
from statemend.repair.cells import SqlValue, encode, value_digest
from statemend.repair.plan import Operation, Plan
from statemend.repair.salvaged import salvaged
from statemend.store.connection import open_for_audit

#: Values by their digest.
Texts = Mapping[str, SqlValue]

#: Columns of a message that a plan shows: what links, names and marks a row. Everything else is text of
#: somebody, or may be.
_SHOWN = frozenset(
    {
        "display_kind",
        "effect_disposition",
        "finish_reason",
        "message_uid",
        "platform_message_id",
        "role",
        "session_id",
        "tool_call_id",
        "tool_call_uid",
        "tool_name",
    }
)
_LONGEST_SHOWN = 200


def is_text(column: str, value: SqlValue) -> bool:
    """Whether a value of a message stays out of plans."""
    if not isinstance(value, str | bytes):
        return False
    return column not in _SHOWN or len(value) > _LONGEST_SHOWN


def with_texts(operation: Operation, texts: Texts) -> Operation:
    """The operation with its texts in it."""
    if not operation.withheld:
        return operation
    put_in = {name: encode(texts[digest]) for name, digest in operation.withheld.items()}
    return msgspec.structs.replace(operation, after=operation.after | put_in, texts=msgspec.UNSET)


def find(plan: Plan, path: Path) -> Texts:
    """Every text that the chosen steps name, for the plan's store or a copy of it at ``path``.

    Raises ``Refused`` when one is nowhere any more, ``Undetermined`` and ``StoreUnreadable`` when it cannot
    be looked for.
    """
    wanted: dict[str, set[str]] = {}
    for step in plan.selected():
        for operation in step.operations:
            for session_id in step.sessions if operation.withheld else ():
                wanted.setdefault(session_id, set()).update(operation.withheld.values())
    if not wanted:
        return {}
    found: dict[str, SqlValue] = {}
    with open_for_audit(path) as store:
        beside = [Path(each) for each in plan.exports]
        salvager = Salvager(store, take(Home(plan.home, str(path)), beside, store=store, deep=plan.deep))
        for session_id, digests in wanted.items():
            for row in salvaged(store, salvager, session_id).every_row():
                for value in row.values():
                    if isinstance(value, str | bytes) and (digest := value_digest(value)) in digests:
                        found[digest] = value
            lost = len(digests - found.keys())
            if lost:
                number = "1 text" if lost == 1 else f"{lost:,} texts"
                raise Refused(
                    f"{plan.store.path}: the plan is stale: {number} of session {session_id} can no longer "
                    "be found in the files that it was made from; make it anew with `statemend plan`"
                )
    return found
