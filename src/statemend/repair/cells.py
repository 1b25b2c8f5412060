"""SQLite values in a plan file: readable where they can be, exact always.

A plan is JSON that a person reviews, so text, integers and NULL stand as they are. A real keeps the digits
that give it back exactly, a blob is hexadecimal, and text that is no valid UTF-8 is kept by its bytes.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping

import msgspec

#: What a cell is in a plan file.
Cell = None | int | str | dict[str, str]
#: What SQLite gives and takes.
SqlValue = None | int | float | str | bytes


def encode(value: SqlValue) -> Cell:
    """A value as a plan file holds it. Raises ``TypeError`` for what SQLite cannot store."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, float):
        return {"real": repr(value)}
    if isinstance(value, bytes):
        return {"blob": value.hex()}
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            return {"text": value.encode("utf-8", "surrogatepass").hex()}
        return value
    raise TypeError(f"{type(value).__name__} is no SQLite value")


def decode(cell: Cell) -> SqlValue:
    """The value of a cell. Raises ``ValueError`` for a cell that ``encode`` cannot have made."""
    if not isinstance(cell, dict):
        if isinstance(cell, bool):
            raise ValueError("a cell is never true or false")
        return cell
    if len(cell) != 1:
        raise ValueError(f"a cell has one member, this one has {len(cell)}")
    kind, text = next(iter(cell.items()))
    if kind == "real":
        number = float(text)
        if math.isnan(number) or repr(number) != text:
            raise ValueError(f"{text!r} is not how a real is written")
        return number
    if kind == "blob":
        return bytes.fromhex(text)
    if kind == "text":
        return bytes.fromhex(text).decode("utf-8", "surrogatepass")
    raise ValueError(f"a cell cannot be {kind!r}")


def value_digest(value: SqlValue) -> str:
    """sha256 (hex) of one value with its type."""
    typed = [type(value).__name__, encode(value)]
    return hashlib.sha256(msgspec.json.encode(typed, order="deterministic")).hexdigest()


def row_digest(row: Mapping[str, SqlValue]) -> str:
    """sha256 (hex) of a row: every column with its type and exact value, whatever the order of columns."""
    cells = {name: encode(value) for name, value in row.items()}
    typed = {name: [type(row[name]).__name__, cell] for name, cell in cells.items()}
    return hashlib.sha256(msgspec.json.encode(typed, order="deterministic")).hexdigest()
