"""What lies beside a store, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from statemend.formats.artifact import OWN_TABLES, Kind
from statemend.report import blocks, text
from statemend.report.artifact_list import ArtifactList, ListedFile, ListedSession

#: So many sessions of one file are shown; the data has all.
_SHOWN = 8
#: What a part of one of the store's own tables holds.
_UNITS = {Kind.INDEX: "text", Kind.DELEGATIONS: "text", Kind.REPLIES: "reply"}
_TABLES = frozenset(kind.value for kind in OWN_TABLES)


def renderable(found: ArtifactList) -> RenderableType:
    """The list for a ``rich`` console; nothing in it is read as markup."""
    return Group(*_parts(found))


def _parts(found: ArtifactList) -> Iterator[RenderableType]:
    if found.fault is not None:
        yield Text(f"The store was not asked: {text.clip(found.fault, 400)}", overflow="fold")
        yield Text()
    for file in found.files:
        yield Text(text.clip(file.path, 400), style="bold", overflow="fold")
        yield blocks.facts(_facts(file), limit=None)
        yield Text()
    if found.skipped:
        yield Text("Not among them", style="bold")
        for skipped in found.skipped:
            begins = f"; it begins as {skipped.begins_as}" if skipped.begins_as else ""
            yield Text(f"  {text.clip(skipped.path, 400)}", overflow="fold")
            yield Text(f"    {text.clip(skipped.reason, 400)}{begins}", style="dim", overflow="fold")
        yield Text()
    yield Text(_verdict(found), style="bold")


def _facts(file: ListedFile) -> Iterator[tuple[str, str]]:
    view = f", {file.view}" if file.view else ""
    yield "kind", f"{file.kind}, {text.size(file.size)}{view}"
    if file.releases:
        yield "written by", file.releases
    if file.left_out:
        yield "left out", ", ".join(file.left_out)
    unit = _UNITS.get(Kind(file.kind), "message")
    for number, session in enumerate(file.sessions[:_SHOWN]):
        yield "" if number else "sessions", _told(session, unit)
        yield from (("text", text.visible(each)) for each in session.texts or ())
    if len(file.sessions) > _SHOWN:
        yield "", f"and {len(file.sessions) - _SHOWN:,} more"
    if file.damage:
        yield "damage", text.clip(file.damage, 400)


def _told(session: ListedSession, unit: str) -> str:
    parts = [text.clip(session.id, 200) if session.id else "a session that is not named"]
    if session.messages is not None:
        parts.append(text.count(session.messages, unit, "replies" if unit == "reply" else None))
    if session.present is False:
        parts.append("not in the store")
    if session.damage:
        parts.append(text.clip(session.damage, 200))
    if session.reason:
        fitting = text.listed((text.clip(each, 100) for each in session.candidates), 3)
        parts.append(f"{session.reason}{f': {fitting}' if fitting else ''}")
    return "; ".join(parts)


def _verdict(found: ArtifactList) -> str:
    if not found.files:
        return "Nothing lies beside the store; name other folders with --exports."
    sessions = {session.id for file in found.files for session in file.sessions if session.id}
    unnamed = sum(session.id is None for file in found.files for session in file.sessions)
    tables = sum(file.kind in _TABLES for file in found.files)
    beside = text.count(len(found.files) - tables, "file")
    own = f" and {text.count(tables, 'table')} of the store" if tables else ""
    said = f"{beside}{own}, {text.count(len(sessions), 'session')}"
    told = (
        f"; whose {text.count(unnamed, 'transcript')} is, is not told"
        if unnamed == 1
        else (f"; whose {unnamed:,} transcripts are, is not told" if unnamed else "")
    )
    damaged = sum(file.damage is not None for file in found.files)
    return f"{said}{told}{f'; {damaged:,} damaged' if damaged else ''}."
