"""The order in which SQLite sorts values of different types."""

from __future__ import annotations

from typing import Any


def sqlite_order(value: Any) -> tuple[int, Any]:
    """A key that sorts as SQLite does: NULL, then numbers, then text by its bytes, then blobs."""
    if value is None:
        return 0, 0
    if isinstance(value, (int, float)):
        return 1, value
    if isinstance(value, str):
        return 2, value.encode("utf-8", "surrogatepass")
    return 3, bytes(value)
