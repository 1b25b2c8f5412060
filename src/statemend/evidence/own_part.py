"""The part of one of the store's own tables that belongs to one session, or to nobody known."""

from __future__ import annotations

from typing import NamedTuple

from statemend.formats.artifact import Section


class Part(NamedTuple):
    """``size`` is that of the texts in characters. Where ``section`` names no session, ``candidates`` are
    those that it may be of, and ``reason`` says why it is none of them."""

    section: Section
    size: int
    candidates: tuple[str, ...] = ()
    reason: str = ""
