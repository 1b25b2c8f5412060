"""After a cleanup the releases themselves agree: the session is gone, the others are as they were, and after
an undo it is read again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.hermes.home import DAY, HermesHome, assistant, user
from tests.hermes.judging import digest

from statemend.audit.engine import audit
from statemend.repair import cleanup_plan
from statemend.repair.cleanup import Cleanup, apply
from statemend.repair.cleanup_planner import make_cleanup_plan
from statemend.repair.export_result import State as Written
from statemend.repair.reexport import reexport
from statemend.repair.run import State
from statemend.repair.undo import undo

Homes = Callable[..., HermesHome]
CHAT = "20260801_090000_aaaaaa"
OTHER = "20260801_100000_bbbbbb"
RELEASES = ["0.19.0", "0.22.2"]


def lived(home: HermesHome) -> str:
    """A conversation with tools, compacted, undone, with a subagent, ended; and another beside it. Returns
    the id of the subagent."""
    chat = home.chat(CHAT)
    chat.turns(6, "plan")
    chat.tool_turn("How far are we?", "wc -l plan.md", "12 plan.md", "Twelve lines.")
    worker = chat.delegate("Count the lines.")
    worker.say(user("Count the lines."), assistant("Twelve."))
    worker.close()
    chat.compact()
    chat.say(user("Forget this."), assistant("Forgotten."))
    chat.undo()
    chat.say(user("And the end?"), assistant("The end."))
    home.title(CHAT, "Plan")
    other = home.chat(OTHER)
    other.turns(2, "other")
    other.say(user("find the pineapple"), assistant("Here is the pineapple."))
    for session_id in (CHAT, worker.session_id, OTHER):
        home.end(session_id)
    return worker.session_id


def cleaned(home: HermesHome, folder: Path, *exported: str) -> Cleanup:
    """Export, plan and clean up the conversation; the release runs again afterwards."""
    home.stop()
    exports = folder / "exports"
    done = reexport(home.path, exported, exports, now=home.now)
    assert {file.state for file in done.files} == {Written.COMPLETE}
    plan = make_cleanup_plan(home.path, sessions=[CHAT], artifacts=[exports], now=home.now + DAY)
    assert plan.kept == ()
    file = folder / "cleanup.json"
    file.write_bytes(cleanup_plan.dump(plan))
    outcome = apply(file, run_dir=folder / "run", now=home.now + DAY)
    home.restart()
    return outcome


def seen(home: HermesHome, session_id: str) -> dict[str, Any]:
    """All that the release shows of a session, whatever it is."""
    options: list[dict[str, Any]] = [{}, {"include_inactive": True}]
    return {
        "row": home.session(session_id),
        "messages": [home.store("get_messages", session_id, **each) for each in options],
        "export": home.store("export_session", session_id),
    }


@pytest.mark.parametrize("version", RELEASES)
def test_a_session_is_gone_for_the_release_and_comes_back(
    hermes_home: Homes, tmp_path: Path, version: str
) -> None:
    with hermes_home(version) as home:
        worker = lived(home)
        home.stop()
        home.restart()
        before = {each: seen(home, each) for each in (CHAT, worker, OTHER)}
        found = {word: home.store("search_messages", word) for word in ("pineapple", "Twelve")}
        assert all(found.values())
        old = digest(home)
        home.restart()

        done = cleaned(home, tmp_path, CHAT, worker, OTHER)

        assert done.run is not None
        assert done.receipt is not None
        assert (done.run.state, done.exit_code) == (State.APPLIED, 0)
        assert {each.session for each in done.receipt.deleted} == {CHAT, worker}
        assert home.session_ids() == [OTHER]
        assert [row["id"] for row in home.store("list_sessions_rich", limit=100)] == [OTHER]
        assert home.session(CHAT) is None
        assert home.messages(CHAT) == []
        assert seen(home, OTHER) == before[OTHER]
        assert home.store("search_messages", "pineapple") == found["pineapple"]
        assert home.store("search_messages", "Twelve") == []
        highest = home.value("SELECT MAX(id) FROM messages", [])
        assert home.append(OTHER, "user", "go on") > max(each["id"] for each in before[CHAT]["messages"][1])
        assert home.value("SELECT MAX(id) FROM messages", []) > highest
        home.rows("DELETE FROM messages WHERE content = 'go on'")
        home.rows("UPDATE sessions SET message_count = message_count - 1 WHERE id = ?", OTHER)
        home.stop()

        undone = undo(tmp_path / "run", now=home.now + DAY)

        assert undone.state is State.UNDONE
        if version == "0.19.0":  # a later release also notes the time of the last turn
            assert digest(home) == old
        home.restart()
        for session_id in (CHAT, worker):
            assert seen(home, session_id) == before[session_id]
        assert home.store("search_messages", "Twelve") == found["Twelve"]
        assert home.append(CHAT, "user", "still here?") > 0
        assert home.delete(CHAT)
        assert home.session_ids() == [OTHER]


@pytest.mark.parametrize("version", RELEASES)
def test_what_the_release_writes_meanwhile_keeps_the_session(
    hermes_home: Homes, tmp_path: Path, version: str
) -> None:
    """An append after the plan, as a person who goes on with the conversation makes it."""
    with hermes_home(version) as home:
        worker = lived(home)
        home.stop()
        reexport(home.path, [CHAT, worker], tmp_path / "exports", now=home.now)
        plan = make_cleanup_plan(home.path, sessions=[CHAT], artifacts=[tmp_path / "exports"], now=home.now)
        file = tmp_path / "cleanup.json"
        file.write_bytes(cleanup_plan.dump(plan))
        home.restart()
        home.append(CHAT, "user", "one more thing")
        old = digest(home)

        done = apply(file, run_dir=tmp_path / "run", now=home.now + DAY)

        assert done.receipt is None
        assert [each.session for each in done.kept] == [CHAT]
        assert digest(home) == old


def test_the_release_s_own_export_of_the_live_rows_licenses_nothing(
    hermes_home: Homes, tmp_path: Path
) -> None:
    """What 0.19.0 exports, in the formats that its own deletion trusted or not."""
    with hermes_home("0.19.0") as home:
        worker = lived(home)
        for form in ("jsonl", "md", "html"):
            home.export(CHAT, form)
        home.stop()
        reexport(home.path, [worker], tmp_path / "exports", now=home.now)
        beside = [home.path / "session-exports", tmp_path / "exports"]
        plan = make_cleanup_plan(home.path, sessions=[CHAT], artifacts=beside, now=home.now + DAY)
        assert plan.entries == ()
        ((kept),) = plan.kept
        assert "no file holds every row of it" in kept.reason


@pytest.mark.parametrize("version", RELEASES)
def test_a_cleanup_leaves_no_new_finding(hermes_home: Homes, tmp_path: Path, version: str) -> None:
    with hermes_home(version) as home:
        worker = lived(home)
        home.stop()
        before = {one.id for one in audit(home.path, now=home.now + DAY).findings}
        home.restart()
        cleaned(home, tmp_path, CHAT, worker)
        home.stop()
        assert {one.id for one in audit(home.path, now=home.now + DAY).findings} <= before
