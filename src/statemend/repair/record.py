"""The undo record of a run: what each changed row was and became, and what else must hold after an undo."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from statemend.errors import Undetermined
from statemend.repair.cells import Cell, SqlValue, decode, encode, row_digest
from statemend.repair.changes import Change
from statemend.repair.digests import Broken, primary_key, row_of
from statemend.repair.plan import Kind
from statemend.store.connection import Store

SCHEMA: Final = "statemend/undo/v1"


class TouchedRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row that a run changed: the digest of the whole row before and after, ``None`` where there was
    none."""

    table: str
    key: dict[str, Cell]
    before: str | None
    after: str | None


class UndoRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What an undo needs beside the changeset, whose sha256 is ``changeset``. ``digest_before`` and
    ``digest_after`` are of the whole store. ``sequence`` holds the highest ids given, ``broken`` the
    references that were broken before, ``search`` the health before of those search indexes that the change
    could have made worse, ``settings`` what the file keeps. ``reindexed`` names the search
    indexes that were built anew."""

    schema: Literal["statemend/undo/v1"] = SCHEMA
    plan: str
    changeset: str
    digest_before: str
    digest_after: str
    rows: tuple[TouchedRow, ...]
    sequence: dict[str, int]
    broken: tuple[tuple[str, int | None, str, int], ...]
    search: dict[str, str]
    settings: dict[str, str]
    reindexed: tuple[str, ...] = ()

    def broken_before(self) -> Counter[Broken]:
        """The references that were broken before."""
        return Counter(self.broken)


def touched_rows(store: Store, changes: Sequence[Change]) -> tuple[TouchedRow, ...]:
    """The rows of ``changes`` as ``store`` has them now, and as they were before."""
    found = []
    for change in changes:
        key = key_of(store, change)
        now = row_of(store, change.table, key)
        was = None if change.kind is Kind.INSERT else row_digest({**(now or {}), **change.old})
        found.append(
            TouchedRow(
                table=change.table,
                key={name: encode(value) for name, value in key.items()},
                before=was,
                after=None if now is None else row_digest(now),
            )
        )
    return tuple(found)


def key_of(store: Store, change: Change) -> dict[str, SqlValue]:
    """The primary key of a changed row, by column."""
    return dict(zip(primary_key(store, change.table), change.key, strict=True))


def key_values(row: TouchedRow) -> dict[str, SqlValue]:
    """The primary key of a recorded row, as values."""
    return {name: decode(cell) for name, cell in row.key.items()}


def load(path: Path, changeset: Path) -> tuple[UndoRecord, bytes]:
    """Read an undo record and its changeset. Raises ``Undetermined`` when one is missing or altered."""
    try:
        record: UndoRecord = _decode(path.read_bytes(), path)
        recorded = changeset.read_bytes()
    except OSError as error:
        raise Undetermined(f"{error.filename}: cannot be read ({error.strerror})") from error
    if hashlib.sha256(recorded).hexdigest() != record.changeset:
        raise Undetermined(f"{changeset}: was altered since it was written; restore from the snapshot")
    return record, recorded


def _decode(data: bytes, path: Path) -> Any:
    try:
        return msgspec.json.decode(data, type=UndoRecord)
    except msgspec.DecodeError as error:
        raise Undetermined(f"{path}: not an undo record ({error}); restore from the snapshot") from error
