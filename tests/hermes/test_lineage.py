"""Conversations whose links went wrong, each broken by a release's own code, and what the rules say of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.hermes.home import HOUR, HermesHome, assistant, user
from tests.hermes.profiles import served, with_profile

from statemend.audit.engine import audit, survey
from statemend.audit.finding import Verdict
from statemend.audit.outcome import Audit

Make = Callable[..., HermesHome]

PARENT = "20260801_090000_aaaaaa"


def alarms(home: HermesHome) -> set[tuple[str, str | None]]:
    """Rule and session of each finding that is wrong now or about to lose something."""
    return {
        (one.rule, one.subject.session)
        for one in audited(home).findings
        if one.verdict in (Verdict.FAULT, Verdict.RISK)
    }


def audited(home: HermesHome) -> Audit:
    home.stop()
    found = audit(home.path, now=home.now)
    assert found.undetermined == ()
    return found


def test_a_reaped_and_a_living_continuation(hermes_home: Make) -> None:
    """Export follows the older child, resume the living one."""
    home = hermes_home("0.19.0")
    chat = home.chat(PARENT)
    chat.turns(8)
    reaped = chat.rotate()
    chat.say(user("still there?"), assistant("yes"))
    home.end(reaped, "ws_orphan_reap")
    home.advance(600)
    home.store("reopen_session", PARENT)
    again = home.resume(PARENT)
    again.turns(2)
    living = again.rotate()
    again.say(user("go on"), assistant("gladly"))
    assert home.tip(PARENT) == living
    assert home.lineage(PARENT) == [PARENT, reaped]

    found = audited(home)

    (disagreement,) = [one for one in found.findings if one.rule == "LIN003"]
    assert disagreement.subject.session == PARENT
    assert disagreement.verdict is Verdict.FAULT
    told = [str(fact.value) for fact in disagreement.evidence]
    assert any(reaped in value for value in told)
    assert any(living in value for value in told)
    others = {(one.rule, one.subject.session) for one in found.findings if one.rule != "LIN003"}
    assert others <= {("LIN002", PARENT)}


@pytest.mark.parametrize("release", ["0.18.2", "0.19.0", "0.22.2"])
@pytest.mark.parametrize("origin", ["0.13.0", "0.16.0"])
def test_what_the_migration_of_old_stores_takes_for_delegates(
    hermes_home: Make, origin: str, release: str
) -> None:
    home = hermes_home(origin)
    chat = home.chat(PARENT)
    chat.turns(8)
    home.title(PARENT, "Garden")
    continuation = chat.rotate()
    chat.say(user("and the fence?"), assistant("Paint it."))
    home.store("reopen_session", PARENT)  # what `--resume` of these releases does to its target
    home.resume(PARENT).say(user("One more thing"), assistant("Yes?"))
    home.end(PARENT, "cli_close")
    real = home.chat("20260801_120000_bbbbbb")
    real.say(user("ask around"), assistant("I will"))
    home.title(real.session_id, "Real")
    delegate = real.delegate("who sings?")
    delegate.say(user("who sings?"), assistant("Birds."))
    home.end(real.session_id)
    short = home.chat("20260801_130000_cccccc")
    short.tool_turn("Disk?", "df", "95%", "Nearly full.")
    short.tool_turn("And now?", "df", "96%", "Fuller.")
    home.end(short.session_id)

    home.upgrade(release)

    marks = dict(home.rows("SELECT id, json_extract(model_config, '$._delegate_from') FROM sessions"))
    assert marks == {
        PARENT: None,
        continuation: PARENT,
        real.session_id: None,
        delegate.session_id: real.session_id,
        short.session_id: "__orphaned__",
    }
    assert alarms(home) == {("LIN008", continuation), ("LIN008", short.session_id)}


@pytest.mark.parametrize("release", ["0.13.0", "0.16.0", "0.18.2", "0.19.0"])
def test_a_crash_between_ending_and_continuing(hermes_home: Make, release: str) -> None:
    """Up to 0.19 a rotation ends the old session first and makes the new one afterwards."""
    home = hermes_home(release)
    chat = home.chat(PARENT)
    chat.turns(8)
    home.break_next("create_session", "crash")
    with pytest.raises(RuntimeError, match="ended during 'compact'"):
        chat.rotate()
    home.restart()
    assert home.session(PARENT)["end_reason"] == "compression"
    assert home.session_ids() == [PARENT]

    home.advance(HOUR)  # the lock of the process that died has run out
    assert alarms(home) == {("LIN001", PARENT)}


@pytest.mark.parametrize("release", ["0.13.0", "0.16.0"])
def test_a_continuation_that_could_not_be_stored(hermes_home: Make, release: str) -> None:
    """The agent goes on under a new id, whose row is made later, without the parent and the first turns."""
    home = hermes_home(release)
    chat = home.chat(PARENT)
    chat.turns(8)
    home.break_next("create_session")
    assert chat.rotate(stored=False) != PARENT
    child = chat.say(user("are you there?"), assistant("I am"))
    assert home.session(child)["parent_session_id"] is None
    assert [message["content"] for message in home.messages(child)] == ["are you there?", "I am"]

    assert ("LIN001", PARENT) in alarms(home)


@pytest.mark.parametrize("release", ["0.18.2", "0.19.0"])
def test_a_rotation_that_was_rolled_back(hermes_home: Make, release: str) -> None:
    home = hermes_home(release)
    chat = home.chat(PARENT)
    chat.turns(8)
    home.break_next("create_session")
    assert chat.rotate(stored=False) == PARENT
    chat.say(user("are you there?"), assistant("I am"))

    assert alarms(home) == set()


def test_a_session_that_the_newest_release_moved_to_its_profile_is_an_open_question(
    hermes_home: Make,
) -> None:
    """What a compression made of it has no key, and so stays where one gateway kept both."""
    home = hermes_home("0.19.0")
    profile = with_profile(home, "work", "--no-skills")
    chat = home.resume(served(home, "work", "222"), "telegram")
    first = chat.session_id
    chat.turns(8)
    chat.count_tokens()
    second = chat.rotate()
    chat.say(user("And the fence?"), assistant("Paint it."))
    home.upgrade("0.22.2")
    assert home.hermes("sessions", "repair-profiles", "--apply", "--yes").code == 0
    home.stop()

    findings = [one for found in survey(home.path, now=home.now) for one in found.findings]

    told = {(one.rule, one.verdict, one.subject.session) for one in findings}
    assert told == {("LIN001", Verdict.UNDECIDABLE, first), ("LIN009", Verdict.UNDECIDABLE, second)}
    (dead_end,) = [one for one in findings if one.rule == "LIN001"]
    assert [f"{second}: {home.state_db}"] in [fact.value for fact in dead_end.evidence]
    (alone,) = audit(profile / "state.db", now=home.now).findings
    assert alone.verdict is Verdict.UNDECIDABLE


def test_a_continuation_stored_when_a_long_turn_ended_is_not_said_to_have_been_rewritten(
    hermes_home: Make,
) -> None:
    """Nothing was replaced: its parent was deleted."""
    home = hermes_home("0.16.0")
    chat = home.chat(PARENT)
    chat.turns(8)
    home.break_next("append_message")
    continuation = chat.rotate(stored=False)
    chat.say(user("are you there?"), assistant("I am"), gap=900)
    home.delete(PARENT)
    (found,) = [one for one in audited(home).findings if one.rule == "LIN009"]
    assert (found.verdict, found.subject.session) == (Verdict.LEFTOVER, continuation)
    assert "was replaced, or deleted" in found.summary


def test_a_ring_of_parents_made_by_another_tool(hermes_home: Make) -> None:
    home = hermes_home("0.19.0")
    first, second = home.create_session(PARENT), home.create_session("20260801_100000_bbbbbb")
    for session_id, parent in ((first, second), (second, first)):
        home.exchange(session_id, 1)
        home.end(session_id, "compression")
        home.rows("UPDATE sessions SET parent_session_id = ? WHERE id = ?", parent, session_id)
    home.stop()

    found = audit(home.path, rules=["LIN004"], now=home.now)

    assert [(one.rule, one.subject.session) for one in found.findings] == [("LIN004", first)]
