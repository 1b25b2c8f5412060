"""A home with one store, exported from at will, and compared with its exports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any

from tests.store.rows import Rows

from statemend.evidence.coverage import ArtifactCoverage, Cause, SessionCoverage, assess
from statemend.evidence.inventory import find_home, take
from statemend.formats import html, jsonl, markdown, prompts
from statemend.formats.artifact import Kind
from statemend.store.connection import Store, open_for_audit
from statemend.store.history import Message, View, messages, records, session_record

SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were summarized."
#: Transcripts and prompts: every kind of export.
KINDS = (
    Kind.JSONL,
    Kind.MARKDOWN,
    Kind.QMD,
    Kind.HTML,
    Kind.PROMPTS_JSONL,
    Kind.PROMPTS_MARKDOWN,
)
TRANSCRIPTS = KINDS[:4]


class Scene:
    """``rows`` is the store. Times are epoch seconds from ``start`` on."""

    start = 1785574800.0

    def __init__(self, folder: Path, release: str = "0.19.0") -> None:
        self.root = folder
        self.rows = Rows(folder, release)
        self.exports = folder / "session-exports"
        self.exports.mkdir()

    def session(self, session_id: str = "s1", **columns: Any) -> Scene:
        self.rows.session(session_id, **{"started_at": self.start, "title": f"On {session_id}", **columns})
        return self

    def say(self, text: Any, at: float, session_id: str = "s1", role: str = "user", **columns: Any) -> Scene:
        self.rows.message(session_id, text, at=self.start + at, role=role, **columns)
        return self

    def change(self, sql: str, *bindings: Any) -> None:
        self.rows.run(sql, bindings=bindings)

    def compact(self, *kept: tuple[str, str, float], at: float, session_id: str = "s1") -> None:
        """Archive all live rows; write a summary and the ``kept`` rows (role, text, time) as live ones."""
        self.change(
            "UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ? AND active = 1", session_id
        )
        self.say(SUMMARY, at, session_id)
        for role, text, time in kept:
            self.say(text, time, session_id, role)

    def export(
        self,
        kind: Kind,
        *session_ids: str,
        view: View = View.ACTIVE,
        at: float = 100_000.0,
        zone: tzinfo = UTC,
        name: str | None = None,
        lineage: Sequence[str] = (),
    ) -> Path:
        """Write an export of the store as it is now."""
        ids = session_ids or ("s1",)
        path = self.exports / (name or f"{'-'.join(ids)}-{view}.{kind}")
        with self._opened() as store:
            text = "".join(_rendered(store, kind, ids, view, self.start + at, zone, lineage))
        path.write_bytes(text.encode())
        return path

    def sessions(self, *extra: Path) -> dict[str, SessionCoverage]:
        inventory = take(find_home(self.root), extra)
        with self._opened() as store:
            return {each.session_id: each for each in assess(store, inventory)}

    def session_coverage(self, session_id: str = "s1") -> SessionCoverage:
        return self.sessions()[session_id]

    def coverage(self, session_id: str = "s1") -> ArtifactCoverage:
        """The coverage by the one artifact there is."""
        (only,) = self.session_coverage(session_id).artifacts
        return only

    def _opened(self) -> Any:
        return open_for_audit(self.rows.path)


def _rendered(
    store: Store,
    kind: Kind,
    ids: Sequence[str],
    view: View,
    exported_at: float,
    zone: tzinfo,
    lineage: Sequence[str],
) -> Iterator[str]:
    named = {each: session_record(store, each) or {"id": each} for each in ids}
    sessions = [(record, _messages(store, each, view)) for each, record in named.items()]
    if kind in (Kind.MARKDOWN, Kind.QMD):
        segments = [(each, _messages(store, each, view)) for each in lineage or ids]
        yield markdown.render(sessions[-1][0], segments, kind=kind, exported_at=exported_at, lineage=lineage)
    elif kind is Kind.HTML:
        yield from html.render(sessions, generated_at="now", zone=zone)
    elif kind is Kind.JSONL:
        for each in ids:
            yield from jsonl.render(
                session_record(store, each) or {"id": each}, list(records(store, each, view))
            )
    elif kind is Kind.PROMPTS_JSONL:
        for each in ids:
            yield from prompts.render_jsonl(each, _messages(store, each, view))
    else:
        yield prompts.render_markdown(sessions)


def _messages(store: Store, session_id: str, view: View) -> list[Message]:
    return list(messages(store, session_id, view))


def causes(coverage: ArtifactCoverage) -> dict[int, Cause]:
    return {each.message_id: each.cause for each in coverage.missing}
