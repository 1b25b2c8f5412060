"""A store inside an archive, and the limits that hold for it."""

from __future__ import annotations

import re

import msgspec

from statemend.errors import Undetermined

STORE_NAME = "state.db"

#: A store of more bytes than this is not unpacked.
LARGEST_STORE = 64 * 1024**3
#: No store packs this well. A page of zeros does, and so does a bomb, so it counts from a size on.
HIGHEST_RATIO = 200
RATIO_COUNTS_FROM = 64 * 1024**2

_LEADS_OUT = re.compile(r"\A[/\\]|\A[A-Za-z]:|(?:\A|[/\\])\.\.(?:[/\\]|\Z)|\0")


class ArchiveFault(Undetermined):
    """Why a store in an archive is not read. ``broken``: the archive is damaged, not merely refused."""

    def __init__(self, reason: str, *, broken: bool = False) -> None:
        super().__init__(reason)
        self.broken = broken


class Member(msgspec.Struct, frozen=True):
    """A store in an archive. ``name`` is the archive's own, ``size`` its bytes when unpacked. ``packed`` is
    its size in a zip file, ``None`` in a tar, which is packed as a whole."""

    name: str
    size: int
    packed: int | None = None


def is_store_name(name: str) -> bool:
    """Whether an entry is named like a store, wherever it pretends to lie."""
    return re.split(r"[/\\]", name)[-1] == STORE_NAME


def depth(name: str) -> tuple[bool, int, str]:
    """How far from the top an entry lies; what lies in a folder of profiles is another home's."""
    parts = name.split("/")
    return "profiles" in parts[:-1], len(parts), name


def check_name(name: str) -> None:
    """Raise ``ArchiveFault`` for a name that leads out of the archive."""
    if _LEADS_OUT.search(name):
        raise ArchiveFault(f"the name of its {STORE_NAME} leads out of the archive")


def check_size(size: int, packed: int) -> None:
    """Raise ``ArchiveFault`` for a store that is too large, or packed as only a bomb is."""
    if size > LARGEST_STORE:
        raise ArchiveFault(f"its {STORE_NAME} unpacks to more than {LARGEST_STORE >> 30} GiB")
    if size > RATIO_COUNTS_FROM and size > HIGHEST_RATIO * max(packed, 1):
        raise ArchiveFault(f"its {STORE_NAME} is packed {size // max(packed, 1)} to 1, as only a bomb is")
