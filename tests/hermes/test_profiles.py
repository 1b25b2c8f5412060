"""Homes with several profiles, as releases make, break and mend them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.hermes.home import HermesHome
from tests.hermes.profiles import move, served, with_profile

from statemend.audit.engine import exit_code, survey
from statemend.audit.finding import Finding, Verdict

Make = Callable[..., HermesHome]

TALK = "20260801_090000_aaaaaa"


def audited(home: HermesHome, *rules: str) -> list[Finding]:
    """The findings about profiles and orphans in all stores of the home."""
    home.stop()
    audits = survey(home.path, rules=rules or ("PRO", "ORP"), now=home.now)
    assert {exit_code(one) for one in audits} <= {0, 1}, [one.undetermined for one in audits]
    return [finding for one in audits for finding in one.findings]


def alarms(home: HermesHome) -> list[tuple[str, str]]:
    """What any rule calls wrong or in danger in any store of the home, and all that is said of profiles."""
    home.stop()
    found = [finding for one in survey(home.path, now=home.now) for finding in one.findings]
    grave = (Verdict.FAULT, Verdict.RISK)
    return [(one.rule, one.summary) for one in found if one.verdict in grave or one.rule[:3] == "PRO"]


def facts(finding: Finding) -> dict[str, Any]:
    return {fact.label: fact.value for fact in finding.evidence}


def live_a_little(home: HermesHome) -> None:
    """Chats of the command line and of a gateway that serves this profile alone."""
    chat = home.chat(TALK if home.path.parent.name != "profiles" else f"{TALK[:-1]}b")
    chat.turns(2)
    chat.branch()
    chat.turns(1)
    home.exchange(home.gateway_session("111"), 1)
    second = home.gateway_session("111", reset=True)
    home.resume(second, "telegram").turns(1)
    home.gateway_session("222")
    home.stop()


@pytest.mark.parametrize("version", ["0.13.0", "0.19.0", "0.20.1", "0.22.2"])
def test_profiles_that_each_have_a_gateway_of_their_own_are_sound(version: str, hermes_home: Make) -> None:
    """Up to 0.22 such a gateway writes the key of the default profile, whatever its own is called."""
    home = hermes_home(version)
    live_a_little(home)
    live_a_little(hermes_home(version, "home/profiles/work"))

    assert alarms(home) == []


@pytest.mark.near_miss("PRO001")
@pytest.mark.near_miss("PRO002")
@pytest.mark.near_miss("PRO003")
@pytest.mark.near_miss("PRO004")
def test_profiles_that_one_gateway_of_the_newest_release_serves_are_sound(hermes_home: Make) -> None:
    home = hermes_home("0.22.2")
    with_profile(home, "work", "--no-skills")
    home.exchange(served(home, None, "111"), 1)
    routed = served(home, "work", "222")
    home.stop()
    work = hermes_home("0.22.2", "home/profiles/work")
    work.exchange(routed, 1)
    work.stop()

    assert alarms(home) == []


@pytest.mark.fires("PRO002")
@pytest.mark.parametrize("version", ["0.19.0", "0.20.1"])
def test_what_one_gateway_kept_in_one_store_is_lost_to_the_newest_release(
    version: str, hermes_home: Make
) -> None:
    home = hermes_home(version)
    with_profile(home, "work", "--no-skills")
    home.exchange(served(home, None, "111"), 1)
    kept = served(home, "work", "222")
    home.exchange(kept, 1)
    assert served(home, "work", "222") == kept, "this release finds it where it is"

    (risk,) = audited(home)

    assert (risk.rule, risk.verdict, facts(risk)["ids"]) == ("PRO002", Verdict.RISK, [kept])

    home.upgrade("0.22.2")
    assert served(home, "work", "222") != kept, "the newest release does not find it"

    (fault,) = audited(home)

    assert (fault.id, fault.verdict, facts(fault)["messages in them"]) == (risk.id, Verdict.FAULT, 2)

    home.restart()
    assert home.hermes("sessions", "repair-profiles", "--apply", "--yes").code == 0
    assert audited(home) == [], "the release itself has settled it"


def test_a_chat_with_the_default_key_in_a_profiles_store_is_not_decided(hermes_home: Make) -> None:
    """A row that leaked is written as a gateway of that profile alone would write it."""
    home = hermes_home("0.22.2")
    with_profile(home, "work", "--no-skills")
    served(home, "work", "222")
    leaked = served(home, None, "111")
    home.stop()
    work = hermes_home("0.22.2", "home/profiles/work")
    work.create_session(leaked, "telegram", session_key="agent:main:telegram:dm:111")
    work.exchange(leaked, 1)
    work.rows("UPDATE sessions SET profile_name = NULL WHERE id = ?", leaked)
    work.stop()

    found = {finding.rule: finding for finding in audited(home)}

    assert found["PRO002"].verdict is Verdict.UNDECIDABLE
    assert facts(found["PRO002"])["of these the home's own store routes a chat to"] == 1
    assert found["PRO003"].verdict is Verdict.LEFTOVER, "the row in the home's store has no message"
    assert set(found) == {"PRO002", "PRO003"}


@pytest.mark.fires("PRO003")
def test_a_cloned_profile_has_the_same_sessions_and_goes_its_own_way(hermes_home: Make) -> None:
    """Up to 0.16 a clone of everything has the store in it."""
    home = hermes_home("0.16.0")
    for session_id in (TALK, f"{TALK[:-1]}c"):
        home.chat(session_id).turns(1)
    home.process.call("close", path=None)
    clone = with_profile(home, "work", "--clone-all")
    assert (clone / "state.db").exists()

    (copies,) = audited(home)

    assert (copies.rule, copies.verdict, facts(copies)["sessions"]) == ("PRO003", Verdict.LEFTOVER, 2)

    work = hermes_home("0.16.0", "home/profiles/work")
    work.resume(TALK).turns(1, "only here")
    work.stop()
    (longer,) = audited(home)
    assert (longer.id, longer.verdict) == (copies.id, Verdict.LEFTOVER)
    assert facts(longer)["ids of those longer here"] == [TALK]

    home.restart()
    home.resume(TALK).turns(2, "only there")
    split, rest = audited(home)
    assert (split.rule, split.verdict, split.subject.session) == ("PRO003", Verdict.UNDECIDABLE, TALK)
    told = facts(split)
    assert (told["rows that both have"], told["rows that only this store has"]) == (2, 2)
    assert told["rows that only the other has"] == 4
    assert facts(rest)["sessions"] == 1


def test_a_session_that_the_newest_release_took_over_is_a_leftover_in_the_other_store(
    hermes_home: Make,
) -> None:
    home = hermes_home("0.22.2")
    chat = home.chat(TALK)
    chat.turns(8)
    chat.compact()
    work = with_profile(home, "work", "--no-skills")
    stores = [str(home.state_db), str(work / "state.db")]
    home.process.call("function", module="driver_profiles", name="adopt", args=[TALK, *stores])
    assert home.session(TALK)["end_reason"] == "adopted_by_profile"

    (copy,) = audited(home)

    assert (copy.rule, copy.verdict) == ("PRO003", Verdict.LEFTOVER)
    assert facts(copy)["of these the same in both"] == 1


@pytest.mark.fires("PRO004")
def test_a_child_in_another_store_than_its_parent_is_told_once(hermes_home: Make) -> None:
    """A conversation that was compacted, of which the continuation lies in another profile's store."""
    home = hermes_home("0.19.0")
    chat = home.chat(TALK)
    chat.turns(8)
    tip = chat.rotate()
    home.stop()
    work = hermes_home("0.19.0", "home/profiles/work")
    work.store("session_count")
    work.stop()
    move(home.state_db, work.state_db, tip)

    found = audited(home)

    (cut,) = [finding for finding in found if finding.subject.session == tip]
    assert (cut.rule, cut.verdict) == ("PRO004", Verdict.FAULT)
    assert cut.subject.store == str(work.state_db)
    assert facts(cut)["stores that have it"] == [str(home.state_db)]
    assert facts(cut)["end reason of the parent"] == "compression"


@pytest.mark.fires("PRO005")
def test_a_clone_that_began_anew_still_has_the_routes(hermes_home: Make) -> None:
    """Up to 0.16 a clone of everything has the file of routes; its owner puts the store away."""
    home = hermes_home("0.16.0")
    routed = home.gateway_session("111")
    home.exchange(routed, 1)
    home.process.call("close", path=None)
    clone = with_profile(home, "work", "--clone-all")
    home.stop()
    for file in clone.glob("state.db*"):
        file.unlink()
    work = hermes_home("0.16.0", "home/profiles/work")
    work.create_session(TALK)
    work.stop()

    (stray,) = audited(home)

    assert (stray.rule, stray.verdict, stray.subject.session) == ("PRO005", Verdict.RISK, routed)
    assert stray.subject.store == str(work.state_db)

    work.restart()
    assert work.gateway_session("111") == routed, "it goes where the other profile's session is"
    work.resume(routed, "telegram").turns(1, "only here")
    work.stop()
    (split,) = audited(home)
    assert (split.rule, split.verdict, split.subject.session) == ("PRO003", Verdict.UNDECIDABLE, routed)


@pytest.mark.parametrize(("version", "kept"), [("0.20.1", True), ("0.22.2", False)])
def test_a_renamed_profile_leaves_its_old_name_in_the_keys(
    version: str, kept: bool, hermes_home: Make
) -> None:
    """Up to 0.20; whose they are now, the rows do not say. 0.22 renames them too."""
    home = hermes_home(version)
    with_profile(home, "work", "--no-skills")
    served(home, "work", "222")
    home.process.call("close", path=None)
    assert home.hermes("profile", "rename", "work", "job").code == 0
    assert (home.path / "profiles" / "job").is_dir()

    found = audited(home)

    assert [(one.rule, one.verdict) for one in found] == [("PRO002", Verdict.UNDECIDABLE)] * kept
    assert all("which this home does not have" in one.summary for one in found)


def test_the_label_of_a_renamed_profile_is_not_held_against_its_keys(hermes_home: Make) -> None:
    """A gateway of one profile writes agent:main: in its keys; up to 0.21 a rename leaves the labels."""
    home = hermes_home("0.21.0")
    with_profile(home, "work", "--no-skills")
    work = hermes_home("0.21.0", "home/profiles/work")
    work.exchange(work.gateway_session("111"), 1)
    work.stop()
    assert home.hermes("profile", "rename", "work", "job").code == 0

    (found,) = audited(home)

    assert (found.rule, found.verdict) == ("PRO001", Verdict.UNDECIDABLE)
    assert facts(found)["profiles that this home does not have"] == ["work"]
