"""What a plan does to bring the rows of a session back: their inserts, and where each part of one is from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from statemend.audit.facts import is_time
from statemend.evidence.rows import Fidelity
from statemend.evidence.salvage import Place
from statemend.repair.cells import SqlValue, encode, value_digest
from statemend.repair.counting import count_rows
from statemend.repair.marks import CannotChangeError
from statemend.repair.plan import Kind, Operation, Source
from statemend.repair.recipe import RecipeContext
from statemend.repair.restored_ids import Numbered
from statemend.repair.salvaged import Calls, Salvaged, SalvagedRow
from statemend.repair.search import foreign_index
from statemend.repair.session_row import Rows
from statemend.repair.texts import is_text
from statemend.store.message import RowState
from statemend.store.records import table_columns

_STORED = """
    SELECT CASE WHEN active = 1 THEN 'live' WHEN active IS NULL THEN 'unset'
                WHEN compacted = 1 THEN 'archived' ELSE 'rewound' END,
           tool_calls, timestamp
    FROM messages
    WHERE session_id = ?
"""
_HOW = {
    Fidelity.EXACT: "exact",
    Fidelity.LOSSY: "lossy: its format drops some of a message",
    Fidelity.MASKED: "masked: secrets in it were redacted",
}


def inserts(context: RecipeContext, session_id: str, rows: Sequence[Numbered]) -> Iterator[Operation]:
    """The operations that write the rows. Raises ``CannotChangeError`` where the store's release cannot tell
    a row that is not live from one that is."""
    columns = table_columns(context.store, "messages")
    if index := foreign_index(context.store, "insert"):
        raise CannotChangeError(f"{index} takes in each message, and needs a tokenizer that is not here")
    for each in rows:
        row = each.row
        if row.state is not RowState.LIVE and "active" not in columns:
            raise CannotChangeError("some of its messages were taken back, which its release cannot tell")
        state: dict[str, SqlValue] = {
            "active": int(row.state is RowState.LIVE),
            "compacted": int(row.state is RowState.ARCHIVED),
        }
        values = {"session_id": session_id} | {k: v for k, v in state.items() if k in columns} | row.values
        yield Operation(
            kind=Kind.INSERT,
            table="messages",
            key={"id": each.row_id},
            after={name: encode(value) for name, value in values.items() if not is_text(name, value)},
            texts={name: value_digest(value) for name, value in values.items() if is_text(name, value)},
        )


def sources(
    context: RecipeContext, lost: Salvaged, rows: Sequence[Numbered], calls: Calls
) -> Iterator[Source]:
    """Where each row comes from, and how well that shows it."""
    files: Mapping[str, str] = context.once(
        "digests of artifacts",
        lambda: {
            each.path: each.sha256 for each in (*context.inventory.artifacts, *context.inventory.stores)
        },
    )
    for each in rows:
        row = each.row
        message = lost.union.messages[row.message]
        said = [_HOW[row.fidelity]]
        if each.how is not None:
            said.append(each.how)
        if not row.timed:
            said.append("its time is made up: that of the message before it")
        if message.cut:
            said.append("its end is cut off")
        if message.suspect:
            said.append("its text looks redacted, and nothing tells whether it is")
        if row.message in calls.unanswered:
            said.append("no file holds the result of a tool that it calls")
        if row.message in calls.unasked:
            said.append("no file holds the call that it answers")
        if row.row_id is None and row.state is not RowState.LIVE and message.others:
            said.append("the row from which a compaction made the live one")
        column = f"messages.{each.row_id}"
        yield _from(row.place, column, f"{row.place.kind.value}, {'; '.join(said)}", files)
        for filled in row.filled:
            if filled.place is None:
                yield Source(column=f"{column}.{filled.column}", origin=filled.how)
            else:
                yield _from(filled.place, f"{column}.{filled.column}", filled.how, files)


def _from(place: Place, column: str, origin: str, digests: Mapping[str, str]) -> Source:
    named = "" if place.row_id is None else f", row {place.row_id}"
    return Source(
        column=column,
        origin=origin,
        artifact=place.artifact,
        locator=f"byte {place.offset}, message {place.position + 1}{named}",
        digest=digests.get(place.artifact) or None,
    )


def facts(context: RecipeContext, session_id: str, rows: Sequence[SalvagedRow]) -> Rows:
    """What the session will hold: these rows, and those that the store has."""
    found: list[tuple[Any, Any, Any]] = list(context.store.rows(_STORED, (session_id,)))
    found += [(row.state, row.values.get("tool_calls"), row.values.get("timestamp")) for row in rows]
    times = [at for _, _, at in found if is_time(at)]
    return Rows(
        first_at=min(times, default=None),
        last_at=max(times, default=None),
        counted=count_rows(context.store.schema.era, ((state, calls) for state, calls, _ in found)),
    )
