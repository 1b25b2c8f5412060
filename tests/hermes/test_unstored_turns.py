"""A session deleted under a running agent: what each release then does, and what the rules say of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.hermes.home import HermesError, HermesHome, assistant, user

from statemend.audit.engine import audit
from statemend.audit.finding import Verdict

MakeHome = Callable[..., HermesHome]
GONE = "20260801_181000_bbbbbb"


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
