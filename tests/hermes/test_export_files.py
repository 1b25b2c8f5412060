"""What becomes of real exports in people's hands, and what the rules about exports then say."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.hermes.home import HOUR, HermesHome, assistant, user

from statemend.audit.engine import audit
from statemend.audit.finding import Finding, Verdict

Make = Callable[..., HermesHome]
FIRST, SECOND, THIRD = "20260801_090000_aaaaaa", "20260801_100000_bbbbbb", "20260801_110000_cccccc"
OPEN = "20260801_093000_dddddd"


def found(home: HermesHome, *rules: str) -> list[Finding]:
    home.stop()
    outcome = audit(home.path, rules=rules, now=home.now)
    assert outcome.undetermined == ()
    return list(outcome.findings)


@pytest.mark.fires("EXP002")
def test_one_deleted_after_its_export_that_began_where_another_was_compressed(hermes_home: Make) -> None:
    """The other one's continuation is here, so the deleted one was compacted in place."""
    home = hermes_home("0.19.0")
    other = home.chat(FIRST)
    other.turns(9)
    other.rotate()
    chat = home.chat(SECOND)
    chat.turns(9)
    chat.compact()
    chat.say(user("And the end?"), assistant("The end."))
    home.end(SECOND)
    home.advance(HOUR)
    done = home.delete_after_verified(SECOND)
    assert home.session(SECOND) is None, done.said

    (finding,) = found(home, "EXP002")

    assert (finding.subject.session, finding.verdict) == (SECOND, Verdict.UNDECIDABLE)


def test_exports_of_single_sessions_that_were_joined_are_no_sure_bulk_export(hermes_home: Make) -> None:
    home = hermes_home("0.22.2")
    for session_id in (FIRST, OPEN, SECOND, THIRD):
        home.create_session(session_id)
        home.exchange(session_id, 1)
        if session_id != OPEN:
            home.end(session_id)
        home.advance(HOUR)
    files: dict[str, list[Path]] = {}
    for fmt in ("jsonl", "html"):
        files[fmt] = [home.export(each, fmt).files[0] for each in (FIRST, SECOND, THIRD)]
    filtered = home.export(None, "jsonl", "--source", "cli", "--yes", name="filtered.jsonl").files[0]

    assert joined(home, files["jsonl"]).read_bytes() == filtered.read_bytes()
    filtered.unlink()
    assert [finding.verdict for finding in found(home, "EXP009")] == [Verdict.UNDECIDABLE]
    joined(home, files["jsonl"][::-1])
    assert found(home, "EXP009") == []
    joined(home, [*files["jsonl"], *files["jsonl"][:1]])
    assert found(home, "EXP009") == []
    joined(home, files["html"])
    assert found(home, "EXP009") == []


def joined(home: HermesHome, files: Sequence[Path]) -> Path:
    """One file with what several hold, in a folder in which nothing else is."""
    folder = home.path / "session-exports" / "joined"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    file = folder / f"all{files[0].suffix}"
    file.write_bytes(b"".join(each.read_bytes() for each in files))
    os.utime(file, (home.now, home.now))
    return file
