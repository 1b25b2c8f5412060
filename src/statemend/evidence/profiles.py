"""The homes of one Hermes home: its own, and those of its profiles, each with a store."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from statemend.errors import UsageError
from statemend.evidence.inventory import PROFILES, STORE_NAME, Home, find_home
from statemend.evidence.walk import Skipped

_LEADS_OUT = "a symbolic link that leads out of this home; name its target to have that audited"
_HIDDEN = "no profile: Hermes takes no name that begins so; name it to have it audited"


class Homes(msgspec.Struct, frozen=True):
    """``root`` is the folder that holds them all. ``homes`` begins with the one that was named, if it has a
    store. ``whole`` is whether these are all stores of a home, and not one that was named alone. ``skipped``
    are folders of profiles that were passed over."""

    root: str
    homes: tuple[Home, ...]
    whole: bool
    skipped: tuple[Skipped, ...] = ()


def find_homes(path: Path) -> Homes:
    """The homes at ``path``: for the folder of a home itself and its profiles', for a profile's folder or a
    store file that alone.

    Raises as ``find_home`` does; a folder with stores of profiles needs none of its own.
    """
    if not os.path.isdir(path):
        alone = find_home(path)
        return Homes(alone.root, (alone,), whole=False)
    profiles, skipped = _profiles(path)
    try:
        own = find_home(path)
    except UsageError:
        if not profiles:
            raise
        return Homes(str(path), tuple(profiles), whole=True, skipped=tuple(skipped))
    return Homes(own.root, (own, *profiles), whole=not own.place, skipped=tuple(skipped))


def _profiles(root: Path) -> tuple[list[Home], list[Skipped]]:
    """The homes of profiles in the order of their names, each store once."""
    found: list[Home] = []
    skipped: list[Skipped] = []
    own = _identity(root / STORE_NAME)
    seen = {} if own is None else {own: root / STORE_NAME}
    try:
        with os.scandir(root / PROFILES) as entries:
            names = sorted(entry.name for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return found, skipped
    except OSError as error:
        reason = f"could not be read: {error.strerror or error}"
        return found, [Skipped(str(root / PROFILES), reason, unread=True)]
    inside = os.path.realpath(root)
    for name in names:
        folder = root / PROFILES / name
        store = folder / STORE_NAME
        if not _may_have_store(folder, store):
            continue
        identity = _identity(store)
        if not Path(os.path.realpath(folder)).is_relative_to(inside):
            skipped.append(Skipped(str(folder), _LEADS_OUT))
        elif name.startswith("."):
            skipped.append(Skipped(str(folder), _HIDDEN))
        elif identity is not None and identity in seen:
            skipped.append(Skipped(str(store), f"the same file as {seen[identity]}"))
        else:
            if identity is not None:
                seen[identity] = store
            found.append(Home(str(folder), str(store)))
    return found, skipped


def _may_have_store(folder: Path, store: Path) -> bool:
    """Whether there is a store, or it cannot be told."""
    return os.path.isdir(folder) and (os.path.lexists(store) or not os.access(folder, os.X_OK))


def _identity(store: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(store)
    except OSError:
        return None
    return status.st_dev, status.st_ino
