"""The loss this project exists for, committed by the releases themselves.

Up to 0.20 every export of a session that was compacted in place leaves out the archived turns, its own check
says "verified", and ``--delete-after-verified`` then deletes them. From the fix on it does not.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.hermes.home import FORMATS, HermesHome, Oracle, assistant, user
from tests.hermes.oracles import copy_store

from statemend.audit.engine import audit
from statemend.audit.finding import Finding, Verdict

BEFORE_THE_FIX = ("0.18.2", "0.19.0", "0.20.1")
EXPORTED = "20260801_090000_aaaaaa"
DELETED = "20260801_100000_bbbbbb"
RESUMED = "20260801_110000_cccccc"

Ask = Callable[[str], Oracle]


class Loss:
    """A home in which one session was exported in every format, one exported and deleted, and one resumed
    before it was compacted and then exported."""

    def __init__(self, home: HermesHome, oracle: Ask, scratch: Path) -> None:
        self.folder = home.path
        self.release = home.release
        self.said: dict[str, str] = {}
        self._compacted(home, EXPORTED)
        self._compacted(home, DELETED)
        loaded = home.chat(RESUMED)
        loaded.say(user("  Let us write. \n\n"), assistant("Gladly. \n"))  # loading trims both
        loaded.turns(9, "essay")
        resumed = home.resume(RESUMED)
        resumed.turns(2, "more")
        resumed.compact()
        home.end(RESUMED)
        self.files: dict[str, dict[str, Path]] = {EXPORTED: {}, RESUMED: {}}
        for session_id, formats in ((EXPORTED, FORMATS), (RESUMED, ("jsonl", "md"))):
            for fmt in formats:
                done = home.export(session_id, fmt)
                (file,) = [file for file in done.files if file.name != "manifest.jsonl"]
                self.files[session_id][fmt] = file
        self.live = {sid: home.messages(sid) for sid in (EXPORTED, DELETED, RESUMED)}
        home.advance(60)
        done = home.delete_after_verified(DELETED)
        self.said["delete"] = done.said
        (self.deletion,) = [file for file in done.files if file.name != "manifest.jsonl"]
        assert home.session(DELETED) is None, done.said
        self.now = home.now
        home.stop()
        self.display = {
            sid: oracle("0.22.2").ask(
                copy_store(home.state_db, scratch), [("get_messages", [sid], {"include_compacted": True})]
            )[0]
            for sid in (EXPORTED, RESUMED)
        }

    def _compacted(self, home: HermesHome, session_id: str) -> None:
        chat = home.chat(session_id)
        chat.turns(8, f"plan {session_id[-2:]}")
        chat.tool_turn("How far are we?", "wc -l plan.md", "12 plan.md", "Twelve lines.")
        chat.turns(2, f"late {session_id[-2:]}")
        home.title(session_id, f"Plan {session_id[-2:]}")
        chat.compact()
        chat.say(user("And the end?"), assistant("The end."))
        home.end(session_id)

    def archived_only(self, session_id: str, *, prompts: bool = False) -> set[int]:
        """Ids of the messages that Hermes' own display shows and that no live row repeats."""
        live = {substance(message) for message in self.live[session_id]}
        return {
            message["id"]
            for message in self.display[session_id]
            if substance(message) not in live and (message["role"] == "user" or not prompts)
        }


def substance(message: dict[str, Any]) -> str:
    """What a message says: compaction gives the copies it keeps a new time, and may trim them."""
    names = ("role", "tool_calls", "tool_call_id", "tool_name")
    return json.dumps([str(message["content"]).strip(), *(message[name] for name in names)])


@pytest.fixture(scope="module", params=BEFORE_THE_FIX)
def loss(request, oracle: Ask, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loss]:
    folder = tmp_path_factory.mktemp(f"loss-{request.param}")
    with HermesHome(request.param, folder / "home") as home:
        yield Loss(home, oracle, folder / "copy")


def of(findings: tuple[Finding, ...], rule: str) -> list[Finding]:
    return [finding for finding in findings if finding.rule == rule]


@pytest.mark.fires("EXP001")
def test_scan_names_the_rows_that_each_export_lacks(loss: Loss) -> None:
    found = audit(loss.folder, now=loss.now)
    named = {
        (one.subject.session, one.subject.artifact): set(one.subject.message_ids)
        for one in of(found.findings, "EXP001")
    }
    expected = {
        (sid, str(file)): loss.archived_only(sid, prompts=fmt.startswith("prompts"))
        for sid, files in loss.files.items()
        for fmt, file in files.items()
    }
    assert all(expected.values())
    assert named == expected
    assert all(one.verdict is Verdict.FAULT for one in of(found.findings, "EXP001"))


@pytest.mark.fires("EXP002")
def test_scan_says_which_session_was_deleted_after_which_export(loss: Loss) -> None:
    assert f"Deleted exported session '{DELETED}'" in loss.said["delete"]
    found = audit(loss.folder, now=loss.now)
    (lost,) = of(found.findings, "EXP002")
    assert lost.subject.session == DELETED
    assert lost.subject.artifact == str(loss.deletion)
    assert lost.verdict is Verdict.FAULT


def test_exporting_again_with_the_fix_is_the_remedy(loss: Loss, tmp_path: Path) -> None:
    folder = tmp_path / "home"
    shutil.copytree(loss.folder, folder)
    with HermesHome("0.22.2", folder, now=loss.now) as home:
        for session_id in loss.files:
            done = home.export(session_id, "jsonl", name=f"{session_id}.whole.jsonl")
            assert done.files, done.said
    found = audit(folder, now=home.now)
    assert not of(found.findings, "EXP001")
    assert [one.subject.session for one in of(found.findings, "EXP002")] == [DELETED]


def test_the_command_line_says_the_same(loss: Loss) -> None:
    command = [sys.executable, "-m", "statemend", "scan", str(loss.folder), "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert report["schema"] == "statemend/report/v1"
    assert report["exit_code"] == 1
    expected = {
        (one.rule, one.id, one.subject.session, one.subject.artifact, one.subject.message_ids)
        for one in audit(loss.folder).findings
    }
    assert expected == {
        (
            one["rule"],
            one["id"],
            one["subject"]["session"],
            one["subject"].get("artifact"),
            tuple(one["subject"].get("message_ids", ())),
        )
        for one in report["findings"]
    }


def test_the_same_steps_with_the_fix_lose_nothing(oracle: Ask, tmp_path: Path) -> None:
    with HermesHome("0.22.2", tmp_path / "home") as home:
        loss = Loss(home, oracle, tmp_path / "copy")
    assert loss.archived_only(EXPORTED)
    assert f"Deleted exported session '{DELETED}'" in loss.said["delete"]
    found = audit(loss.folder, now=loss.now)
    assert not of(found.findings, "EXP001")
    assert not of(found.findings, "EXP002")
    assert not [one for one in found.findings if one.verdict in (Verdict.FAULT, Verdict.RISK)]
