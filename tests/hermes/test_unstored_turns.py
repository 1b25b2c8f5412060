"""A session deleted under a running agent: what each release then does, and what the rules say of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import facts
from tests.hermes.home import HOUR, HermesError, HermesHome, assistant, user

from statemend.audit.engine import audit
from statemend.audit.finding import Verdict
from statemend.formats import logs
from statemend.formats.artifact import Kind

MakeHome = Callable[..., HermesHome]
GONE, OTHER = "20260801_181000_bbbbbb", "20260801_182000_cccccc"


def delete_under_a_running_agent(home: HermesHome) -> None:
    home.chat("20260801_180000_aaaaaa").turns(1)
    chat = home.chat(GONE)
    chat.turns(1)
    home.delete(GONE)
    chat.say(user("Are you still there?"), assistant("I am."))


def test_the_turns_after_it_are_lost_and_told_from_the_logs(hermes_home: MakeHome, version: str) -> None:
    home = hermes_home(version, zone="Asia/Tokyo")
    delete_under_a_running_agent(home)
    home.stop()
    check_lines(home)

    found = audit(home.path, rules=["ORP004"], now=home.now)

    assert found.undetermined == ()
    if version == "0.22.2":  # it rebuilds the row and stores the whole transcript again
        assert found.findings == ()
        return
    (finding,) = found.findings
    evidence = {fact.label: fact.value for fact in finding.evidence}
    assert finding.subject.session == GONE
    assert finding.verdict is Verdict.FAULT
    assert evidence["failures"] == 2
    assert evidence["causes"] == ["FOREIGN KEY constraint failed"]
    assert str(evidence["first, local time of the log"]).startswith("2026-08-01 18:")


def check_lines(home: HermesHome) -> None:
    """Every file of the log is told, and the lines of a failure are the ones that are written here."""
    for path in (home.path / "logs").glob("*.log*"):
        lines = path.read_bytes().splitlines(keepends=True)
        assert not lines or logs.recognise(b"".join(lines)) is Kind.LOG
        for one in logs.read(path).failures:
            parts = one.clock, one.level, "run_agent", f"Session DB append_message failed: {one.error}"
            assert lines[one.line - 1].decode() == logs.render_line(*parts, one.session_id)


def test_two_agents_that_write_one_log_lose_each_their_own_turns(hermes_home: MakeHome) -> None:
    homes = [hermes_home("0.19.0"), hermes_home("0.19.0")]
    chats = [home.chat(session_id) for home, session_id in zip(homes, (GONE, OTHER), strict=True)]
    for chat in chats:
        chat.turns(1)
    homes[0].delete(GONE)
    homes[0].delete(OTHER)
    for number in range(3):
        for home, chat in zip(homes, chats, strict=True):
            home.process.now = max(each.now for each in homes)
            chat.say(user(f"question {number}"))
    for home in homes:
        home.stop()

    found = audit(homes[0].path, rules=["ORP004"], now=homes[0].now)

    assert {each.subject.session: facts(each)["failures"] for each in found.findings} == {GONE: 3, OTHER: 3}


def test_messages_left_behind_are_orphans_that_refuse_each_append(
    hermes_home: MakeHome, version: str
) -> None:
    """What a tool without foreign keys leaves, as the release sees it and as the rule does."""
    home = hermes_home(version)
    home.create_session(GONE)
    home.exchange(GONE, 1)
    home.rows("PRAGMA foreign_keys = OFF")
    home.rows("DELETE FROM sessions WHERE id = ?", GONE)
    home.rows("PRAGMA foreign_keys = ON")
    with pytest.raises(HermesError, match="FOREIGN KEY constraint failed"):
        home.append(GONE, "user", "one more")
    home.stop()

    (finding,) = audit(home.path, rules=["ORP001"], now=home.now).findings

    assert finding.subject.session == GONE
    assert len(finding.subject.message_ids) == 2


def test_a_gateway_in_utc_beside_a_command_line_in_local_time(hermes_home: MakeHome) -> None:
    """Most sessions tell the zone of the one, and the turn that is lost was the other's."""
    shell = hermes_home("0.19.0", zone="Asia/Kolkata")
    for minute in range(3):
        shell.chat(f"20260801_143{minute}00_aaaaaa").turns(1)
    gateway = hermes_home("0.19.0", zone="UTC", now=shell.now)
    chat = gateway.resume(gateway.gateway_session("1"), "telegram")
    chat.turns(1)
    gateway.advance(2 * HOUR)
    gateway.break_next("append_message")
    chat.say(user("Is this kept?"))
    for home in (shell, gateway):
        home.stop()

    (finding,) = audit(gateway.path, rules=["ORP004"], now=gateway.now).findings

    assert finding.subject.session == chat.session_id
    assert finding.verdict is Verdict.UNDECIDABLE
    assert facts(finding)["local time ahead of UTC in hours"] == "0 or 5.5"
