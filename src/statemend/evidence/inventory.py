"""What lies beside a store: its home's exports, transcripts and logs, and any extra folder with exports."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from statemend import formats
from statemend.errors import Undetermined, UsageError
from statemend.evidence import other_stores
from statemend.evidence.settings import CONFIGURATION, Settings, read_settings
from statemend.evidence.walk import Found, Skipped, status_of, walk
from statemend.formats import archives, files, stores, wrapping
from statemend.formats.artifact import Artifact, Kind, Section
from statemend.formats.logs import Log
from statemend.store.connection import Store

__all__ = ["Home", "Inventory", "Settings", "Skipped", "find_home", "nothing", "take"]

Progress = Callable[[str], None]

STORE_NAME = "state.db"
#: Why a file is skipped that is none of the kinds known here.
NOT_TEXT = "not text"
NO_KIND = "no kind of export, transcript or log that is known here"
#: Where a home keeps what Hermes exports, saves and logs.
_FOLDERS = ("session-exports", "sessions", "logs", "pending_messages")
#: Formats that are not read line by line are held in memory whole.
_LARGEST_WHOLE = 256 * 1024 * 1024
_WHOLE = frozenset({Kind.MARKDOWN, Kind.QMD, Kind.PROMPTS_MARKDOWN})


#: The folder of a home in which each profile has a home of its own.
PROFILES = "profiles"
#: What Hermes calls the profile whose home is around those of the others.
DEFAULT = "default"


class Home(msgspec.Struct, frozen=True):
    """A Hermes home. ``root`` is its folder, ``store`` the path of its store; both as given."""

    root: str
    store: str

    @property
    def place(self) -> str:
        """Where in the home around it this one lies: ``profiles/NAME``; empty for one of no profile."""
        real = Path(os.path.realpath(self.root))
        return f"{PROFILES}/{real.name}" if real.parent.name == PROFILES else ""

    @property
    def profile(self) -> str | None:
        """The profile whose home this is; ``None`` where nothing says that it is one's, and not a folder that
        a store was copied to."""
        if self.place:
            return self.place.removeprefix(f"{PROFILES}/")
        return DEFAULT if os.path.isdir(os.path.join(self.root, PROFILES)) else None


class Inventory(msgspec.Struct, frozen=True):
    """Everything that was found beside a store. Message texts are not in it, only where they are.

    ``stores`` are other stores, and archives with one, newest first. ``deep`` is whether these were, and are
    to be, looked at whatever that takes."""

    home: Home
    artifacts: tuple[Artifact, ...]
    logs: tuple[Log, ...]
    manifests: tuple[Artifact, ...]
    skipped: tuple[Skipped, ...]
    settings: Settings
    stores: tuple[Artifact, ...] = ()
    deep: bool = False

    def sections(self) -> Iterator[tuple[Artifact, Section]]:
        """Every section of every artifact."""
        for artifact in self.artifacts:
            for section in artifact.sections:
                yield artifact, section

    def by_session(self) -> dict[str, list[tuple[Artifact, Section]]]:
        """The sections that name each session; a logical export counts for every id of its lineage. Sections
        that name none are left out."""
        found: dict[str, list[tuple[Artifact, Section]]] = {}
        for artifact, section in self.sections():
            for session_id in filter(None, dict.fromkeys((*section.lineage, section.session_id))):
                found.setdefault(session_id, []).append((artifact, section))
        return found

    def stores_by_session(self) -> dict[str, list[tuple[Artifact, Section]]]:
        """What other stores have of each session that the audited one lacks or has less of, newest first."""
        found: dict[str, list[tuple[Artifact, Section]]] = {}
        for artifact in self.stores:
            for section in artifact.sections:
                if section.session_id:
                    found.setdefault(section.session_id, []).append((artifact, section))
        return found


def find_home(path: Path) -> Home:
    """The home at ``path``, a folder with a store in it or the store itself.

    Raises ``UsageError`` when there is none, ``Undetermined`` when the place may not be looked at.
    """
    if not stat.S_ISDIR(status_of(path, "a Hermes home or a store file").st_mode):
        return Home(str(path.parent), str(path))
    store = path / STORE_NAME
    if not os.path.lexists(store) and os.access(path, os.X_OK):
        raise UsageError(f"{path}: no {STORE_NAME} in this folder; name a Hermes home or a store file")
    status_of(store, "a Hermes home or a store file")
    return Home(str(path), str(store))


def nothing(home: Home) -> Inventory:
    """The inventory of a home that was not looked at."""
    return Inventory(
        home, (), (), (), (), Settings(auto_prune=None, retention_days=None, source="not looked at")
    )


def take(
    home: Home,
    extra: Sequence[Path] = (),
    progress: Progress | None = None,
    *,
    store: Store | None = None,
    deep: bool = False,
) -> Inventory:
    """Find and classify the artifacts of ``home`` and of each folder or file in ``extra``.

    Files are told by content. What is none of the kinds known here is skipped with a reason, and nothing
    is guessed. Of another store the sessions are listed of which ``store``, the audited one, lacks rows; of
    several that have them the newest, unless ``deep``. Raises ``UsageError`` for an ``extra`` path that does
    not exist, ``Undetermined`` for one that may not be looked at.
    """
    root = Path(home.root)
    for path in extra:
        status_of(path, "a folder or a file with exports")
    folders = [root / name for name in _FOLDERS if os.path.lexists(root / name)]
    beside = [*folders, *extra]
    artifacts: list[Artifact] = []
    manifests: list[Artifact] = []
    logs: list[Log] = []
    skipped: list[Skipped] = []
    candidates: list[Found] = []
    for number, found in enumerate(walk([*beside, *other_stores.places(root)], [root, *extra]), start=1):
        if progress is not None:
            progress(f"looking at file {number} beside the store")
        if isinstance(found, Skipped):
            skipped.append(found)
        elif not _is_store(found.path, home) and not other_stores.is_sidecar(found.path):
            result = _look(found, any(found.path.is_relative_to(each) for each in beside))
            if isinstance(result, Skipped):
                skipped.append(result)
            elif isinstance(result, Found):
                candidates.append(result)
            elif isinstance(result, Log):
                logs.append(result)
            elif result is not None:
                (manifests if result.kind is Kind.MANIFEST else artifacts).append(result)
    copies, passed_over = other_stores.look(candidates, store, deep=deep, progress=progress)
    artifacts.extend(each for each in copies if each.kind is Kind.RESPONSES)
    settings = read_settings(root)
    if settings.trouble is not None:
        skipped.append(Skipped(str(root / CONFIGURATION), settings.trouble, unread=settings.unread))
    return Inventory(
        home=home,
        artifacts=tuple(artifacts),
        logs=tuple(logs),
        manifests=tuple(manifests),
        skipped=(*skipped, *passed_over),
        settings=settings,
        stores=tuple(each for each in copies if each.kind is not Kind.RESPONSES),
        deep=deep,
    )


def _is_store(path: Path, home: Home) -> bool:
    """Whether the file is the audited store, or one of its sidecars: that is what everything else lies
    beside."""
    store = Path(home.store)
    names = {store.name, *(store.name + suffix for suffix in stores.SIDECARS)}
    if path.name in names and path.parent.samefile(store.parent):
        return True
    return store.exists() and path.samefile(store)


def _look(found: Found, anything: bool) -> Artifact | Skipped | Found | None:
    """The file as an artifact, or why it is none; itself, when it may be another store.

    Where other stores alone are looked for (not ``anything``), nothing is said of other files."""
    path = str(found.path)
    if not found.size and not anything:
        return other_stores.ruined(found.path)
    if not found.size:  # reading it could block: the system shows pipes of its own (/proc) as empty files
        nothing = hashlib.sha256().hexdigest()
        return Artifact(path, Kind.EMPTY, size=0, modified_at=found.modified_at, sha256=nothing)
    try:
        head = files.head(found.path)
        if stores.recognise(head) or archives.recognise(head):
            return found
        wrapped = _wrapped(head)
        if wrapped is not None and (anything or wrapped[0] is Kind.STORE):
            return Skipped(path, f"a file of the kind {wrapped[0]}, {wrapped[1]}", unread=True)
        if not anything:
            return other_stores.ruined(found.path)
        kind = formats.kind_of(head)
        if kind is Kind.UNCLASSIFIED:
            return Skipped(path, _unknown(head))
        if kind in _WHOLE and found.size > _LARGEST_WHOLE:
            return Skipped(path, f"too large to be read ({found.size:,} bytes)", unread=True)
        return formats.read(found.path, head)
    except Undetermined as error:
        return Skipped(path, str(error).removeprefix(f"{path}: "), unread=True)


def _wrapped(head: bytes) -> tuple[Kind, str] | None:
    """The kind of what lies in a wrapping that is not undone here, and what to do about that."""
    advice, inner = wrapping.unwrapped(head) or (None, b"")
    kind = formats.kind_of(inner)
    if advice is None or kind in (Kind.EMPTY, Kind.UNCLASSIFIED) or formats.kind_of(head) is Kind.LOG:
        return None
    return kind, advice


def _unknown(head: bytes) -> str:
    return NOT_TEXT if b"\0" in head else NO_KIND
