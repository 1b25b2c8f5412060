"""The folder of the demo home: its store, exports, logs and settings."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from statemend.demo.writer import new_store
from statemend.formats import jsonl, logs, manifest, markdown
from statemend.formats.artifact import Kind
from statemend.store.connection import open_for_audit
from statemend.store.history import View, messages, records
from statemend.store.message import Message
from statemend.store.records import session_record


def at(text: str) -> float:
    """Epoch seconds of an ISO time in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


class DemoHome:
    """A home under construction. Every file is new, 0600, and dated by the story, not by the clock."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in (root, root / "session-exports", root / "logs"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=folder is root)
        self.store = root / "state.db"
        new_store(self.store)
        self._log: list[str] = []
        self._errors: list[str] = []
        self._logged_at = 0.0
        self._manifest: list[str] = []

    @staticmethod
    def session_id(start: float, number: int) -> str:
        """An id as the command line of Hermes makes it: start time and six hex digits."""
        digits = hashlib.sha256(f"{start} {number}".encode()).hexdigest()[:6]
        return datetime.fromtimestamp(start, UTC).strftime("%Y%m%d_%H%M%S_") + digits

    def write(self, name: str, text: str, when: float) -> Path:
        """Write a new file below the home, dated ``when``; returns its path."""
        path = self.root / name
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
        os.utime(path, (when, when))
        return path

    def log(self, when: float, level: str, session_id: str | None, logger: str, text: str) -> None:
        """Add a log line; warnings and errors are in ``errors.log`` as well."""
        clock = datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
        line = logs.render_line(clock, level, logger, text, session_id=session_id)
        self._log.append(line)
        if level != "INFO":
            self._errors.append(line)
        self._logged_at = max(self._logged_at, when)

    def export_markdown(self, session_id: str, when: float) -> None:
        """Export the live rows of a session as 0.19.0 does, archived turns left out, and note the file."""
        session, live, _ = self._session(session_id)
        text = markdown.render(session, [(session_id, live)], kind=Kind.MARKDOWN, exported_at=when)
        name = f"session-exports/{session_id}-{_slug(str(session.get('title')))}.md"
        path = self.write(name, text, when)
        line = manifest.ManifestLine(
            path=name,
            session_id=session_id,
            lineage=(session_id,),
            sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
            message_count=len(live),
            exported_at=when + 0.01,
            format="md",
            line=len(self._manifest) + 1,
        )
        self._manifest.append(manifest.render_line(line))
        self._exported_at = when

    def export_jsonl(self, session_id: str, when: float) -> None:
        """Export the live rows of a session as one JSONL line."""
        session, _, rows = self._session(session_id)
        self.write(f"session-exports/{session_id}.jsonl", "".join(jsonl.render(session, rows)), when)

    def finish(self, when: float) -> None:
        """Write the collected logs and the manifest, and date the store ``when``."""
        self.write("logs/agent.log", "".join(self._log), self._logged_at)
        self.write("logs/errors.log", "".join(self._errors), self._logged_at)
        self.write("session-exports/manifest.jsonl", "".join(self._manifest), self._exported_at)
        os.utime(self.store, (when, when))

    def _session(self, session_id: str) -> tuple[dict[str, Any], Sequence[Message], Sequence[dict[str, Any]]]:
        with open_for_audit(self.store) as store:
            session = session_record(store, session_id)
            if session is None:
                raise KeyError(session_id)
            live = list(messages(store, session_id, View.ACTIVE))
            return session, live, list(records(store, session_id, View.ACTIVE))


def _slug(title: str) -> str:
    """The part of an export's file name that comes from the title."""
    kept = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in title)
    return "-".join(part for part in kept.lower().split("-") if part)[:60] or "session"
