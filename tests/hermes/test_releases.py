"""The helper API itself: each release does what the proofs rely on it to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.hermes import releases
from tests.hermes.home import FORMATS, HermesError, HermesHome, assistant, user


def test_a_release_that_cannot_be_installed_fails_with_a_message(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STATEMEND_TEST_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(releases.InstallFailed, match=r"cannot install hermes-agent==0\.19\.0"):
        releases.release_folder(releases.RELEASES["0.19.0"])
    assert not list((tmp_path / "rel").glob("hermes*"))


@pytest.fixture(scope="module", params=releases.RELEASES)
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HermesHome]:
    """One home per release: each test uses sessions of its own in it."""
    with HermesHome(request.param, tmp_path_factory.mktemp(request.param)) as made:
        yield made


def states(home: HermesHome, session_id: str) -> dict[tuple[int, int], int]:
    rows = home.rows(
        "SELECT active, compacted, COUNT(*) FROM messages WHERE session_id = ? GROUP BY active, compacted",
        session_id,
    )
    return {(active, compacted): count for active, compacted, count in rows}


def test_compaction_archives_rows_under_the_same_id_or_continues_in_a_child(home: HermesHome) -> None:
    chat = home.chat("20260801_090000_aaaaaa")
    chat.turns(10)
    if home.release.at_least("0.18"):
        chat.compact()
        chat.say(user("and now?"), assistant("now this"))
        found = states(home, chat.session_id)
        assert found[0, 1] > 0
        assert found[1, 0] == len(home.messages(chat.session_id)) < 20
        prefix = home.summary_prefix()[:30]
        assert any(prefix in str(message["content"]) for message in home.messages(chat.session_id))
        chat.turns(6)
    child = chat.rotate()
    chat.say(user("and then?"), assistant("then that"))
    assert home.tip("20260801_090000_aaaaaa") == child
    assert home.session("20260801_090000_aaaaaa")["end_reason"] == "compression"
    assert home.session(child)["parent_session_id"] == "20260801_090000_aaaaaa"


def test_branch_delegate_undo_and_reset(home: HermesHome) -> None:
    chat = home.chat("20260801_090000_bbbbbb")
    chat.say(user("one"), assistant("first"), user("two"), assistant("second"))
    delegate = chat.delegate("look around")
    delegate.say(user("look around"), assistant("nothing there"))
    delegate.close()
    chat.undo()
    live = [message["content"] for message in home.messages(chat.session_id)]
    kept_in_store = [] if home.release.at_least("0.16") else ["two", "second"]
    assert live == ["one", "first", *kept_in_store]
    branch = chat.branch()
    chat.say(user("three"), assistant("third"))
    assert home.session(branch)["parent_session_id"] == "20260801_090000_bbbbbb"
    assert home.session(delegate.session_id)["parent_session_id"] == "20260801_090000_bbbbbb"
    first = home.gateway_session("42")
    assert home.gateway_session("42", reset=True) != first
    assert home.session(first)["end_reason"] == "session_reset"


def test_deletion_under_a_running_agent_loses_turns_until_the_newest_release(home: HermesHome) -> None:
    chat = home.chat("20260801_090000_cccccc")
    chat.say(user("one"), assistant("first"))
    assert home.delete(chat.session_id)
    with pytest.raises(HermesError, match="FOREIGN KEY constraint failed"):
        home.append(chat.session_id, "user", "two")
    chat.say(user("two"), assistant("second"))
    log = (home.path / "logs" / "errors.log").read_text()
    failure = (
        f"[{chat.session_id}] run_agent: Session DB append_message failed: FOREIGN KEY constraint failed"
    )
    healed = home.release.at_least("0.22")
    assert (failure in log) is not healed
    assert len(home.messages(chat.session_id)) == (4 if healed else 0)


def test_every_format_is_exported_by_the_real_command_line(home: HermesHome) -> None:
    chat = home.chat("20260801_090000_dddddd")
    chat.say(user("one"), assistant("first"))
    formats = FORMATS if home.release.at_least("0.18") else ("jsonl",)
    for fmt in formats:
        done = home.export(chat.session_id, fmt)
        assert done.code == 0, done.said
        assert [file for file in done.files if file.name != "manifest.jsonl"], done.said
        assert all(abs(file.stat().st_mtime - home.now) < 60 for file in done.files)
