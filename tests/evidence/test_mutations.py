"""Flip, cut or repeat any bytes of a file of any kind: it never holds more than before, and nothing fails."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.formats.corpus import EXPORTS
from tests.formats.test_response_store import put

from statemend.evidence.coverage import ArtifactCoverage, assess
from statemend.evidence.inventory import find_home, take
from statemend.formats.artifact import Kind
from statemend.store.connection import open_for_audit
from statemend.store.history import View, messages

SAVES = EXPORTS.parent / "saves"
#: So many mutations of each file; the full count is meant for a night.
MUTATIONS = int(os.environ.get("STATEMEND_MUTATIONS", "12"))
TALK = "20260801_090000_aaaaaa"
#: Real files of each kind, with the release whose store they are of.
REAL = {
    Kind.JSONL: ("0.22.2", EXPORTS, "jsonl/single-C-*.jsonl"),
    Kind.MARKDOWN: ("0.22.2", EXPORTS, "md/*ffffff*.md"),
    Kind.QMD: ("0.20.1", EXPORTS, "qmd/*cccccc*.qmd"),
    Kind.HTML: ("0.19.0", EXPORTS, "html/single-T-*.html"),
    Kind.PROMPTS_JSONL: ("0.20.1", EXPORTS, "only-user-prompts/single-P-*.jsonl"),
    Kind.PROMPTS_MARKDOWN: ("0.20.1", EXPORTS, "only-user-prompts/single-P-*.md"),
    Kind.SAVE_JSON: ("0.13.0", SAVES, "save-cli/cli-T-*.json"),
    Kind.SAVE_MARKDOWN: ("0.20.1", SAVES, "save-cli/cli-T-*.md"),
    Kind.DESKTOP_JSON: ("0.20.1", SAVES, "misc/desktop-reconstructed/*C*.json"),
    Kind.TRACE: ("0.22.2", SAVES, "trace/noredact-T.jsonl"),
    Kind.TRAJECTORY: ("0.13.0", SAVES, "misc/trajectory/*.jsonl"),
    Kind.SNAPSHOT_JSON: ("0.13.0", SAVES, "misc/session-json-snapshot/*.json"),
    Kind.TRANSCRIPT_JSONL: ("0.13.0", SAVES, "misc/gateway-transcript-jsonl/*.jsonl"),
}


def _history(version: str) -> list[dict[str, Any]]:
    with open_for_audit(EXPORTS / version / "state.db") as store:
        rows = messages(store, TALK, View.RAW)
        return [{"role": row.role, "content": row.content, "timestamp": row.timestamp} for row in rows]


def _request_dump(path: Path) -> None:
    body = {"model": "m", "messages": _history("0.20.1")}
    request = {"method": "POST", "url": "x", "headers": {}, "body": body}
    told = {
        "timestamp": "2026-08-01T10:00:00",
        "session_id": TALK,
        "reason": "max_retries",
        "request": request,
    }
    path.write_text(json.dumps(told, indent=2))


def _pending(path: Path) -> None:
    kept = _history("0.20.1")
    told = {"reason": "shutdown", "issue": "#1", "session_id": TALK, "count": len(kept), "messages": kept}
    path.write_text(json.dumps(told))


def _rescue(path: Path) -> None:
    lines = [{**each, "_compressed_summary": False} for each in _history("0.20.1")]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _responses(path: Path) -> None:
    put(path, {"conversation_history": _history("0.20.1"), "session_id": TALK}).close()


def _store(path: Path) -> None:
    shutil.copyfile(EXPORTS / "0.20.1" / "state.db", path)


def _backup(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(EXPORTS / "0.20.1" / "state.db", "state.db")


#: Kinds of which no real file is kept.
MADE: dict[str, tuple[str, Callable[[Path], None]]] = {
    Kind.REQUEST_DUMP: ("dump.json", _request_dump),
    Kind.PENDING: ("pending-1.json", _pending),
    Kind.RESCUE_JSONL: (f"{TALK}.jsonl", _rescue),
    Kind.RESPONSES: ("response_store.db", _responses),
    Kind.STORE: ("copy.db", _store),
    Kind.ARCHIVE: ("backup.zip", _backup),
}


class Sample(NamedTuple):
    version: str
    name: str
    content: bytes


@cache
def sample(kind: Kind, folder: Path) -> Sample:
    if kind in REAL:
        version, root, pattern = REAL[kind]
        path = min((root / version).glob(pattern))
        return Sample(version, path.name, path.read_bytes())
    name, make = MADE[kind]
    make(folder / name)
    return Sample("0.20.1", name, (folder / name).read_bytes())


def mutated(content: bytes, dice: random.Random) -> bytes:
    """One range of it flipped, cut out, repeated, moved, or everything behind it cut off."""
    start = dice.randrange(len(content))
    end = min(len(content), start + dice.choice((1, 3, 20, 400, 4000)))
    piece = content[start:end]
    how = dice.randrange(5)
    if how == 0:
        return content[:start] + bytes(each ^ (1 << dice.randrange(8)) for each in piece) + content[end:]
    if how == 1:
        return content[:start] + content[end:]
    if how == 2:
        return content[:end] + piece + content[end:]
    if how == 3:
        place = dice.randrange(len(content))
        return content[:place] + piece + content[place:]
    return content[:start]


def covered(home: Path) -> Iterator[ArtifactCoverage]:
    with open_for_audit(home / "state.db") as store:
        for session in assess(store, take(find_home(home), store=store, deep=True)):
            yield from (*session.artifacts, *session.copies)


def lacking(found: list[ArtifactCoverage], session_id: str) -> list[set[int]]:
    """For each artifact of a session the messages that it has not."""
    of = [each for each in found if each.session_id == session_id]
    return [{each.message_id for each in one.missing} | set(one.changed) for one in of]


def held(found: list[ArtifactCoverage]) -> int:
    return sum(each.exact + each.lossy + each.masked for each in found)


def _forget_one(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        last = "SELECT MAX(id) FROM messages WHERE session_id = ?"
        connection.execute(f"DELETE FROM messages WHERE id = ({last})", (TALK,))
    connection.close()


@pytest.mark.parametrize("kind", [*REAL, *MADE])
def test_a_spoilt_file_never_holds_more(kind: Kind, tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()
    version, name, content = sample(kind, made)
    home = tmp_path / "home"
    home.mkdir()
    shutil.copyfile(EXPORTS / version / "state.db", home / "state.db")
    if kind in (Kind.STORE, Kind.ARCHIVE):
        _forget_one(home / "state.db")  # a store that has no more than the audited one is not listed
    folder = "" if kind is Kind.RESPONSES else "backups" if kind in (Kind.STORE, Kind.ARCHIVE) else "sessions"
    path = home / folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    whole = list(covered(home))
    assert whole
    assert held(whole) > 0
    for seed in range(MUTATIONS):
        path.write_bytes(mutated(content, random.Random(f"{kind} {seed}")))
        spoilt = list(covered(home))
        if kind in (Kind.STORE, Kind.ARCHIVE):  # one that changed may be listed for more sessions
            spoilt = [each for each in spoilt if each.session_id == TALK]
        for session_id in {each.session_id for each in spoilt}:
            before = lacking(whole, session_id)
            assert before, f"{seed}: it holds nothing of {session_id}"
            most = set.intersection(*before)
            for each in lacking(spoilt, session_id):
                assert each >= most, seed
        assert all(held([each]) <= held(whole) for each in spoilt), seed
