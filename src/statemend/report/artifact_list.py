"""Everything that lies beside a store, file by file, and what the store keeps beside its messages:
``statemend/artifacts/v1``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from statemend.errors import Undetermined
from statemend.evidence.attribution import attribute
from statemend.evidence.drops import left_out
from statemend.evidence.inventory import NO_KIND, NOT_TEXT, Inventory, Skipped
from statemend.evidence.own_tables import own_tables, records
from statemend.formats import files, manifest, routing_file
from statemend.formats.artifact import FILTERED, IN_MEMORY, OWN_TABLES, Artifact, Kind, Section
from statemend.formats.describe import describe
from statemend.formats.era import releases
from statemend.report import text
from statemend.report.content import shown
from statemend.store.connection import Store

SCHEMA: Literal["statemend/artifacts/v1"] = "statemend/artifacts/v1"
_PRESENT = (
    "SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ?1) "
    "OR EXISTS (SELECT 1 FROM messages WHERE session_id = ?1)"
)


class ListedSession(msgspec.Struct, frozen=True, kw_only=True):
    """What a file has of one session. ``id`` is ``None`` where the file names none and its texts do not tell;
    ``found_by`` says how the id is known, ``candidates`` are sessions that fit, ``reason`` says why it is one
    or none of them. ``messages`` counts what the file holds (``None`` where it only names the session),
    ``declared`` what it says it holds. ``present`` is whether the store has the session, ``None`` where it
    cannot be read. ``texts`` are those that a table of the store keeps, where they were asked for."""

    id: str | None
    title: str | None = None
    messages: int | None = None
    declared: int | None = None
    exported_at: str | None = None
    present: bool | None = None
    found_by: Literal["name", "texts"] | None = None
    candidates: tuple[str, ...] = ()
    reason: str | None = None
    damage: str | None = None
    texts: tuple[str, ...] | None = None


class ListedFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file, or one table of the store (``STORE!TABLE``, without digest). ``releases`` are those that can
    have written it, ``view`` is what it can show at best, ``left_out`` what its format has not of a message,
    ``damage`` what is wrong with it."""

    path: str
    kind: str
    size: int
    sha256: str
    modified_at: str | None = None
    releases: str | None = None
    view: str | None = None
    left_out: tuple[str, ...] = ()
    sessions: tuple[ListedSession, ...] = ()
    damage: str | None = None


class SkippedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is none of the kinds known, or was not read, and why. ``begins_as`` describes its first
    bytes."""

    path: str
    reason: str
    unread: bool = False
    begins_as: str | None = None


class ArtifactList(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, by path. ``fault`` says why the store could not be asked, or is ``None``."""

    schema: Literal["statemend/artifacts/v1"] = SCHEMA
    home: str
    store: str
    fault: str | None = None
    files: tuple[ListedFile, ...]
    skipped: tuple[SkippedFile, ...]


def collect(
    inventory: Inventory, store: Store | None, fault: str | None = None, *, with_content: bool = False
) -> ArtifactList:
    """List what ``inventory`` has. Without ``store`` it is not told whether a session is there, nor whose a
    file is that names none. ``with_content`` adds the texts that the store itself keeps beside its messages.
    Raises ``StoreUnreadable``."""
    listing = _Listing(inventory, store, with_content=with_content)
    return ArtifactList(
        home=inventory.home.root,
        store=inventory.home.store,
        fault=fault,
        files=tuple(sorted(listing.files(), key=lambda each: each.path)),
        skipped=tuple(_skipped(each) for each in sorted(inventory.skipped, key=lambda each: each.path)),
    )


class _Listing:
    def __init__(self, inventory: Inventory, store: Store | None, *, with_content: bool) -> None:
        self._inventory = inventory
        self._store = store
        self._with_content = with_content
        own = list(own_tables(store, inventory)) if store is not None else []
        known = (*inventory.artifacts, *inventory.manifests, *inventory.logs, *inventory.stores)
        self._artifacts = (*known, *(each.artifact for each in own))
        found = [*(attribute(store, inventory) if store is not None else ())]
        found += [doubt for each in own for doubt in each.open_questions]
        self._whose = {(each.artifact.path, each.section.offset): each for each in found}

    def files(self) -> Iterator[ListedFile]:
        return map(self._listed, self._artifacts)

    def _listed(self, artifact: Artifact) -> ListedFile:
        damage, written_by = artifact.damage, None
        sessions: tuple[ListedSession, ...] = ()
        try:
            sessions = tuple(self._sessions(artifact))
            written_by = releases(artifact)
        except Undetermined as error:
            damage = damage or str(error).removeprefix(f"{artifact.path}: ")
        return ListedFile(
            path=artifact.path,
            kind=artifact.kind.value,
            size=artifact.size,
            sha256=artifact.sha256,
            modified_at=text.iso(artifact.modified_at or None),
            releases=written_by,
            view=_view(artifact.kind),
            left_out=left_out(artifact.kind),
            sessions=sessions,
            damage=damage,
        )

    def _sessions(self, artifact: Artifact) -> Iterator[ListedSession]:
        for section in artifact.sections:
            found = self._whose.get((artifact.path, section.offset))
            by_texts = found.session_id if found is not None else None
            session_id = section.session_id or by_texts
            yield ListedSession(
                id=session_id,
                title=section.title,
                messages=section.declared if section.held is None else section.held,
                declared=section.declared,
                exported_at=text.iso(section.exported_at),
                present=self._present(session_id) if session_id else None,
                found_by="name" if section.session_id else "texts" if by_texts else None,
                candidates=found.candidates if found is not None else (),
                reason=found.reason if found is not None else None,
                damage=section.damage,
                texts=self._texts(artifact, section),
            )
        named: Iterator[str] = iter(())
        if artifact.kind is Kind.ROUTING:
            named = (entry.session_id for entry in routing_file.entries(Path(artifact.path)))
        elif artifact.kind is Kind.MANIFEST:
            named = (line.session_id for line in manifest.lines(Path(artifact.path)))
        for session_id in dict.fromkeys(named):
            yield ListedSession(id=session_id, present=self._present(session_id), found_by="name")

    def _texts(self, artifact: Artifact, section: Section) -> tuple[str, ...] | None:
        if not self._with_content or self._store is None or artifact.kind not in OWN_TABLES:
            return None
        found = records(self._store, self._inventory, artifact, section)
        return tuple(shown(record.content) for record in found)

    def _present(self, session_id: str) -> bool | None:
        return None if self._store is None else bool(self._store.value(_PRESENT, (session_id,)))


def _view(kind: Kind) -> str | None:
    """What a file of this kind can show at best."""
    if kind in FILTERED:
        return "the user's messages"
    if kind is Kind.TRACE:
        return "live messages"
    if kind in IN_MEMORY:
        return "what an agent held in memory"
    if kind in _SINGLE:
        return _SINGLE[kind]
    if kind in _SILENT:
        return None
    return "whole sessions"


#: Kinds that show no messages.
_SILENT = frozenset({Kind.MANIFEST, Kind.LOG, Kind.ROUTING, Kind.ROUTES, Kind.EMPTY, Kind.UNCLASSIFIED})
#: Kinds that show single texts of a session.
_SINGLE = {
    Kind.DELEGATIONS: "tasks of subagents and their results",
    Kind.REPLIES: "replies to chats",
    Kind.INDEX: "texts of messages that are gone",
}


def _skipped(skipped: Skipped) -> SkippedFile:
    begins_as = None
    if skipped.reason in (NO_KIND, NOT_TEXT):
        try:
            begins_as = describe(files.head(Path(skipped.path)))
        except Undetermined:
            begins_as = "could not be read again"
    return SkippedFile(path=skipped.path, reason=skipped.reason, unread=skipped.unread, begins_as=begins_as)
