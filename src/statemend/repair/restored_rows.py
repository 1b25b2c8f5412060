"""What a plan does to bring the rows of a session back: their numbers, their inserts, and where each is from.

A row gets the id that it had where this store gave that id and nothing has it now. Otherwise all of them get
new ids, in their order; no id is ever given to a second message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from statemend.audit.facts import is_time
from statemend.evidence.rows import Fidelity
from statemend.repair import digests
from statemend.repair.cells import SqlValue, encode, value_digest
from statemend.repair.counting import count_rows
from statemend.repair.marks import CannotChangeError
from statemend.repair.plan import Kind, Operation, Source
from statemend.repair.recipe import RecipeContext
from statemend.repair.salvaged import Salvaged, SalvagedRow
from statemend.repair.session_row import Rows
from statemend.repair.texts import is_text
from statemend.store.message import RowState
from statemend.store.records import table_columns

_TAKEN = "SELECT 1 FROM main.messages WHERE id = ?"
_HIGHEST = "SELECT COALESCE(MAX(id), 0) FROM main.messages"
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

Numbered = Sequence[tuple[int, SalvagedRow]]


def numbered(context: RecipeContext, lost: Salvaged, rows: Sequence[SalvagedRow]) -> Numbered:
    """The rows with the ids that they get. Raises ``CannotChangeError`` where the tail of the session is in
    the store, and they could only get ids behind it."""
    own = [row.row_id for row in rows if row.row_id is not None]
    given = _highest(context)
    if len(set(own)) == len(rows) and not any(
        each > given or each < 1 or context.store.value(_TAKEN, (each,)) for each in own
    ):
        return list(zip(own, rows, strict=True))
    stored = [number for number in range(len(lost.union.messages)) if lost.stored(number)]
    if stored and any(row.message < stored[-1] for row in rows):
        raise CannotChangeError(
            "its last messages are in the store, and no file tells ids for those before them that are free"
        )
    following: list[int] = context.once("next message", lambda: [given + 1])
    first = following[0]
    following[0] += len(rows)
    return list(enumerate(rows, first))


def inserts(context: RecipeContext, session_id: str, rows: Numbered) -> Iterator[Operation]:
    """The operations that write the rows. Raises ``CannotChangeError`` where the store's release cannot tell
    a row that is not live from one that is."""
    columns = table_columns(context.store, "messages")
    for row_id, row in rows:
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
            key={"id": row_id},
            after={name: encode(value) for name, value in values.items() if not is_text(name, value)},
            texts={name: value_digest(value) for name, value in values.items() if is_text(name, value)},
        )


def sources(context: RecipeContext, lost: Salvaged, rows: Numbered) -> Iterator[Source]:
    """Where each row comes from, and how well that shows it."""
    files: Mapping[str, str] = context.once(
        "digests of artifacts",
        lambda: {
            each.path: each.sha256 for each in (*context.inventory.artifacts, *context.inventory.stores)
        },
    )
    for row_id, row in rows:
        place, message = row.place, lost.union.messages[row.message]
        said = [_HOW[row.fidelity]]
        if not row.timed:
            said.append("its time is made up: that of the message before it")
        if message.cut:
            said.append("its end is cut off")
        if message.suspect:
            said.append("its text looks redacted, and nothing tells whether it is")
        if row.row_id is None and row.state is not RowState.LIVE and message.others:
            said.append("the row from which a compaction made the live one")
        yield Source(
            column=f"messages.{row_id}",
            origin=f"{place.kind.value}, {'; '.join(said)}",
            artifact=place.artifact,
            locator=f"byte {place.offset}, message {place.position + 1}"
            + ("" if place.row_id is None else f", row {place.row_id}"),
            digest=files.get(place.artifact) or None,
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


def _highest(context: RecipeContext) -> int:
    """The highest id that the store ever gave to a message."""
    given = digests.sequence(context.store).get("messages", 0)
    return max(given, int(context.store.value(_HIGHEST)))
