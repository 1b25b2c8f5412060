"""What survives of one session, as a value: its messages, where they stand, what is known to be missing."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from statemend.evidence.rows import Fidelity
from statemend.formats.artifact import Kind, Record
from statemend.store.history import RowState


class Place(msgspec.Struct, frozen=True):
    """Where a record stands: the artifact, the section by its first byte, the record by its place in the
    section (from 0); ``row_id`` where the format names the row; and how well it holds the message."""

    artifact: str
    kind: Kind
    offset: int
    position: int
    fidelity: Fidelity
    row_id: int | None = None


class Saved(msgspec.Struct, frozen=True):
    """One message that survives.

    ``record`` is it, from the source that keeps most of it; ``place`` says where that stands, ``others``
    where else the message is shown. ``at`` is epoch seconds, to the second where only such sources show it,
    ``None`` where no source tells. ``state`` is that of its row in the newest source that has the flags.
    ``cut``: every source that shows it ends inside it. ``suspect``: its text looks redacted, and no source
    tells whether it is.
    """

    record: Record
    fidelity: Fidelity
    at: float | None
    state: RowState | None
    place: Place
    others: tuple[Place, ...] = ()
    cut: bool = False
    suspect: bool = False


class Conflict(msgspec.Struct, frozen=True):
    """Sources that do not agree. ``messages`` are numbers of messages in the union. With one number, the row
    that it is has another text in ``variants``; with two, both are of one role and one moment and no source
    shows both, so that they are one message with two texts, or two."""

    messages: tuple[int, ...]
    variants: tuple[Place, ...] = ()


class Lack(StrEnum):
    """How it is known that something is missing."""

    CUT = "cut"  # an artifact ends before its end
    COMPACTED = "compacted"  # a summary stands for turns that nothing shows
    FILTERED = "filtered"  # only the user's messages are left


class Gap(msgspec.Struct, frozen=True):
    """Messages that the session had and that no source holds. ``count`` is how many there are at least,
    ``None`` where nothing tells; ``first_at`` and ``last_at`` (epoch seconds) enclose them, as far as that is
    known. ``artifact`` tells of it."""

    lack: Lack
    artifact: str
    count: int | None = None
    first_at: float | None = None
    last_at: float | None = None


class Used(msgspec.Struct, frozen=True):
    """A source of the union: how many records it shows, how many of them another source shows too,
    and how many it is the best source of. ``alike``: another source shows a message with the words of one of
    its own, at another time, as compaction copies them. A page whose clock is of no known zone is not
    ``dated``."""

    artifact: str
    kind: Kind
    records: int
    shared: int
    best: int
    dated: bool = True
    alike: bool = False


class Salvage(msgspec.Struct, frozen=True):
    """What survives of one session: ``messages`` in their order, and what is to be known about them."""

    session_id: str
    messages: tuple[Saved, ...]
    sources: tuple[Used, ...]
    conflicts: tuple[Conflict, ...]
    gaps: tuple[Gap, ...]

    def count(self, fidelity: Fidelity) -> int:
        """How many messages survive so well."""
        return sum(each.fidelity is fidelity for each in self.messages)

    @property
    def lost(self) -> int:
        """How many messages are surely lost, at least."""
        return sum(gap.count or 0 for gap in self.gaps)

    @property
    def strangers(self) -> tuple[Used, ...]:
        """The sources that share no message with any other: they may be of another store, or of another
        stretch of the session."""
        shown = [each for each in self.sources if each.records]
        return tuple(each for each in shown if not (each.shared or each.alike) and len(shown) > 1)
