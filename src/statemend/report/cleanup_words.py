"""How a cleanup is worded, whatever tells it. Nothing here is escaped."""

from __future__ import annotations

from statemend.repair.receipt import Receipt
from statemend.report.text import count


def deleted(receipt: Receipt) -> str:
    """What went: sessions, copies of rows, or both."""
    sessions = f"{count(len(receipt.deleted), 'session')} deleted"
    if not receipt.collapsed:
        return sessions
    number = copies(sum(each.copies for each in receipt.collapsed))
    collapsed = f"{number} in {count(len(receipt.collapsed), 'session')} deleted"
    return f"{count(len(receipt.deleted), 'session')} and {collapsed}" if receipt.deleted else collapsed


def copies(number: int) -> str:
    """``1 copy``, ``193 copies``."""
    return count(number, "copy", "copies")
