"""One incident end to end: a session goes while its agent is talking, and what the audit can tell of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.hermes.home import HOUR, HermesError, HermesHome, Oracle, assistant, user
from tests.hermes.oracles import copy_store

from statemend.audit.engine import audit
from statemend.audit.finding import Finding, Verdict

Make = Callable[..., HermesHome]

TALKING = "20260801_090000_aaaaaa"
OTHER = "20260801_100000_bbbbbb"


def talk_and_delete(home: HermesHome, how: Callable[[], object]) -> None:
    """A long chat, some of it archived where the release can; then ``how`` deletes it; then it goes on."""
    home.chat(OTHER).say(user("hello"), assistant("hi"))
    chat = home.chat(TALKING)
    chat.turns(9)
    if home.release.at_least("0.18"):
        chat.compact()
    home.advance(HOUR)
    how()
    chat.say(user("Are you still there?"), assistant("I am."), gap=60)
    home.advance(HOUR)


def found_in(home: HermesHome) -> list[Finding]:
    home.stop()
    found = audit(home.path, now=home.now)
    assert found.undetermined == ()
    return list(found.findings)


@pytest.mark.fires("ORP004")
def test_deleted_by_hermes_itself(hermes_home: Make) -> None:
    home = hermes_home("0.19.0")
    talk_and_delete(home, lambda: home.hermes("sessions", "delete", TALKING, "--yes"))
    assert home.session(TALKING) is None
    with pytest.raises(HermesError, match="FOREIGN KEY constraint failed"):
        home.append(TALKING, "user", "and now?")

    (finding,) = found_in(home)

    assert (finding.rule, finding.subject.session) == ("ORP004", TALKING)
    assert finding.verdict is Verdict.FAULT


@pytest.mark.parametrize("release", ["0.13.0", "0.19.0"])
def test_deleted_by_a_tool_that_forgets_the_messages(
    hermes_home: Make, release: str, oracle: Callable[[str], Oracle], tmp_path: Path
) -> None:
    home = hermes_home(release)

    def forgetful() -> None:
        home.rows("PRAGMA foreign_keys = OFF")
        home.rows("DELETE FROM sessions WHERE id = ?", TALKING)
        home.rows("PRAGMA foreign_keys = ON")

    talk_and_delete(home, forgetful)

    by_rule = {finding.rule: finding for finding in found_in(home)}

    assert set(by_rule) == {"ORP001", "ORP004"}
    assert {finding.subject.session for finding in by_rule.values()} == {TALKING}
    assert all(finding.verdict is Verdict.FAULT for finding in by_rule.values())
    (shown,) = oracle("0.22.2").ask(
        copy_store(home.state_db, tmp_path / "copy"),
        [("get_messages", [TALKING], {"include_compacted": True})],
    )
    assert by_rule["ORP001"].subject.message_ids == tuple(message["id"] for message in shown)


def test_the_newest_release_rebuilds_what_it_still_remembers(hermes_home: Make) -> None:
    home = hermes_home("0.22.2")
    talk_and_delete(home, lambda: home.delete(TALKING))
    assert home.messages(TALKING)[-1]["content"] == "I am."

    (finding,) = found_in(home)

    # The archived turns are gone for good, and a summary that stands for them is all that tells of it.
    assert (finding.rule, finding.verdict) == ("LIN009", Verdict.UNDECIDABLE)


def test_an_old_failure_is_still_told_after_an_upgrade(hermes_home: Make) -> None:
    home = hermes_home("0.19.0")
    talk_and_delete(home, lambda: home.delete(TALKING))
    home.upgrade("0.22.2")

    (finding,) = found_in(home)

    assert (finding.rule, finding.subject.session) == ("ORP004", TALKING)
