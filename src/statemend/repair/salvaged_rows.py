"""One row of a lost session that is to be written again, and where each part of it comes from."""

from __future__ import annotations

import msgspec

from statemend.evidence.rows import Fidelity
from statemend.evidence.salvage import Place
from statemend.repair.cells import SqlValue
from statemend.store.message import RowState


class Filled(msgspec.Struct, frozen=True):
    """One column of a row that the source of the row drops. ``how`` says in words why it is this value,
    ``place`` where it stands, if it stands anywhere."""

    column: str
    value: SqlValue
    how: str
    place: Place | None = None


class SalvagedRow(msgspec.Struct, frozen=True):
    """One row to be written. ``row_id`` is the one it had, where that is known. ``values`` are its columns
    but for id, session and state; ``place`` is where they come from, but for those that are ``filled``.
    ``message`` is its number in the union. ``timed`` is whether a source tells its time."""

    message: int
    place: Place
    state: RowState
    row_id: int | None
    values: dict[str, SqlValue]
    fidelity: Fidelity
    timed: bool = True
    filled: tuple[Filled, ...] = ()

    def with_column(self, filled: Filled) -> SalvagedRow:
        """The row with one more column, or with another value of one."""
        others = tuple(each for each in self.filled if each.column != filled.column)
        return msgspec.structs.replace(
            self, values=self.values | {filled.column: filled.value}, filled=(*others, filled)
        )
