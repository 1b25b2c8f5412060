"""The releases themselves do what the lineage rules say they do, and the rules see it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.hermes.families import FIRST, damage, forked, hijacked, rotated
from tests.hermes.home import DAY, PADDING, HermesError, HermesHome, assistant, user
from tests.hermes.judging import found, told

from statemend.audit.finding import Verdict
from statemend.store.connection import open_for_audit
from statemend.store.lineage import Graph

Homes = Callable[..., HermesHome]
REFUSING = ("0.20.1", "0.22.2")


def broken_off(home: HermesHome) -> None:
    """A conversation that a compression ended before it was to go on in a second session."""
    chat = home.chat(FIRST)
    chat.say(user("What grows in autumn?"), assistant("Asters."))
    chat.count_tokens()
    home.end(FIRST, "compression")


def test_a_lost_link_is_seen_from_both_sides(hermes_home: Homes, version: str) -> None:
    home = hermes_home(version)
    first, continuation = rotated(home)
    damage(home, "UPDATE sessions SET parent_session_id = NULL WHERE id = ?", continuation)
    assert told(home) == [("LIN001", "fault", first), ("LIN009", "fault", continuation)]


def test_a_deleted_newest_segment_is_no_fault(hermes_home: Homes, version: str) -> None:
    home = hermes_home(version)
    first, continuation = rotated(home)
    home.delete(continuation)
    assert told(home) == [("LIN001", "undecidable", first)]


@pytest.mark.fires("LIN009")
def test_a_deleted_first_segment_is_no_fault(hermes_home: Homes, version: str) -> None:
    home = hermes_home(version)
    first, continuation = rotated(home)
    home.delete(first)
    assert told(home) == [("LIN009", "undecidable", continuation)]


def test_a_branch_of_a_deleted_segment_is_not_taken_for_a_cut_continuation(hermes_home: Homes) -> None:
    """Up to 0.15 it bears no mark."""
    home = hermes_home("0.13.0")
    chat = home.chat(FIRST)
    chat.turns(10, "garden")
    segment = chat.rotate()
    chat.say(user("And the fence?"), assistant("Paint it."))
    branch = chat.branch()
    chat.say(user("Blue?"), assistant("Green."))
    home.delete(segment)
    assert told(home) == [("LIN001", "undecidable", FIRST), ("LIN009", "undecidable", branch)]


@pytest.mark.fires("LIN001")
def test_a_handoff_that_broke_off_is_a_dead_end(hermes_home: Homes, version: str) -> None:
    home = hermes_home(version)
    broken_off(home)
    if version in REFUSING:
        with pytest.raises(HermesError, match="CompressionSessionClosedError"):
            home.append(FIRST, "user", "Are you there?")
    assert told(home) == [("LIN001", "fault", FIRST)]


@pytest.mark.parametrize("path", [("0.16.0", "0.22.2"), ("0.18.2", "0.19.0")], ids="-".join)
def test_a_handoff_that_broke_off_stays_a_fault_after_an_upgrade(
    hermes_home: Homes, path: tuple[str, str]
) -> None:
    home = hermes_home(path[0])
    broken_off(home)
    home.upgrade(path[1])
    (finding,) = found(home)
    assert (finding.rule, finding.verdict) == ("LIN001", Verdict.FAULT)
    assert ["the upgrade to 0.19 or newer found its account of tokens"] in [
        fact.value for fact in finding.evidence
    ]


@pytest.mark.parametrize("path", [("0.16.0", "0.19.0"), ("0.13.0", "0.22.2")], ids="-".join)
def test_an_old_subagent_run_hijacks_resume_after_an_upgrade(
    hermes_home: Homes, path: tuple[str, ...]
) -> None:
    home = hermes_home(path[0])
    run, _ = hijacked(home, path[1])
    assert home.tip(FIRST) == run
    assert home.lineage(FIRST) == [FIRST, run]
    assert told(home) == [("LIN003", "fault", FIRST)]


@pytest.mark.parametrize("release", ["0.19.0", "0.22.2"])
def test_a_marked_subagent_beside_the_continuation_is_silent(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    chat = home.chat(FIRST)
    chat.turns(5, "garden")
    run = chat.delegate("Which birds sing at night?")
    run.say(user("Which birds sing at night?"), assistant("Nightingales do."))
    run.close()
    chat.turns(5, "shed")
    continuation = chat.rotate()
    assert home.tip(FIRST) == continuation
    assert told(home) == []


@pytest.mark.fires("LIN008")
@pytest.mark.parametrize("path", [("0.16.0", "0.19.0"), ("0.13.0", "0.22.2")], ids="-".join)
def test_the_migration_marks_the_continuation_of_a_reopened_session(
    hermes_home: Homes, path: tuple[str, ...]
) -> None:
    home = hermes_home(path[0])
    first, continuation = rotated(home)
    home.store("reopen_session", first)
    home.resume(first).say(user("Once more"), assistant("Gladly."))
    home.end(first)
    home.upgrade(path[1])
    assert told(home) == [("LIN008", "fault", continuation)]


def test_the_migration_is_right_about_a_subagent_of_which_the_first_part_was_pruned(
    hermes_home: Homes,
) -> None:
    home = hermes_home("0.16.0")
    chat = home.chat(FIRST)
    chat.say(user("Is the fence sound?"), assistant("I have it surveyed."))
    run = chat.delegate("Survey the fence.")
    run.say(user("Survey the fence."))
    for number in range(10):
        function = {"name": "terminal", "arguments": json.dumps({"command": f"look {number}"})}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        run.say(
            {"role": "assistant", "content": "", "tool_calls": [call], "finish_reason": "tool_calls"},
            {
                "role": "tool",
                "tool_call_id": call["id"],
                "tool_name": "terminal",
                "content": f"{number} {PADDING}",
            },
        )
    run.rotate()
    run.say(assistant("All posts stand."))
    run.close()
    chat.say(user("Well?"), assistant("All posts stand."))
    home.end(FIRST)
    home.advance(50 * DAY)
    home.store("prune_sessions", older_than_days=10)
    home.upgrade("0.19.0")
    assert told(home, "LIN008") == [("LIN008", "undecidable", run.session_id)]


@pytest.mark.fires("LIN014")
@pytest.mark.parametrize("release", ["0.13.0", "0.19.0"])
def test_a_compression_after_another_end_is_not_followed(hermes_home: Homes, release: str) -> None:
    """The first end keeps its reason; 0.22 refuses such a compression or clears the end first."""
    home = hermes_home(release)
    chat = home.chat(FIRST)
    chat.turns(10, "garden")
    home.end(FIRST, "tui_close")
    continuation = chat.rotate()
    chat.say(user("And the fence?"), assistant("Paint it."))
    assert home.tip(FIRST) == FIRST
    assert {row["id"] for row in home.store("list_sessions_rich")} == {FIRST}
    assert home.store("resolve_resume_session_id", FIRST) == (continuation if release > "0.18" else FIRST)
    assert told(home) == [("LIN014", "fault", continuation)]


@pytest.mark.parametrize("release", ["0.13.0", "0.16.0"])
def test_a_continuation_whose_rows_are_stored_when_the_turn_ends_is_told_too(
    hermes_home: Homes, release: str
) -> None:
    """Releases before 0.19 store what a compression hands over with the rest of the turn, however long."""
    home = hermes_home(release)
    chat = home.chat(FIRST)
    chat.turns(10, "garden")
    home.end(FIRST, "tui_close")
    home.break_next("append_message")
    continuation = chat.rotate(stored=False)
    chat.say(user("And the fence?"), assistant("Paint it."), gap=600)
    stored = min(row["timestamp"] for row in home.messages(continuation))
    assert stored - home.session(continuation)["started_at"] >= 600
    assert told(home) == [("LIN014", "fault", continuation)]


@pytest.mark.fires("LIN014")
@pytest.mark.parametrize("release", ["0.16.0", "0.22.2"])
def test_a_compressed_session_that_was_opened_again_loses_its_continuation(
    hermes_home: Homes, release: str
) -> None:
    home = hermes_home(release)
    first, continuation = rotated(home)
    home.store("reopen_session", first)
    home.resume(first).say(user("Once more"), assistant("Gladly."))
    home.end(first)
    assert {row["id"] for row in home.store("list_sessions_rich")} == {first}
    assert told(home) == [("LIN014", "fault", continuation)]


@pytest.mark.parametrize("release", ["0.13.0", "0.17.0", "0.19.0", "0.20.1", "0.21.4", "0.22.2"])
def test_what_each_release_opens_where_one_is_asked_for_by_its_id(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    places = [("compressed", "compression"), ("closed", "cli_close"), ("reset", "idle"), ("open", None)]
    for place, reason in places:
        key = {"session_key": f"key of {place}"} if home.release.at_least("0.18") else {}
        for name, rows in (("head", "full"), ("bare", "empty"), ("gone", "run")):
            first = home.create_session(f"{place}-{name}", **key)
            if name != "bare":
                home.exchange(first, 1)
            if reason:
                home.end(first, reason)
            home.advance(60)
            parent = {"parent_session_id": first}
            child = home.create_session(f"{first}-next", **key, **parent)
            home.exchange(child, 1)
            below = home.create_session(f"{first}-{rows}", parent_session_id=child)
            if rows == "full":
                home.exchange(below, 1)
            if rows == "run":
                run = {"source": "tool", "model_config": {"_delegate_from": first}}
                home.advance(60)
                home.exchange(home.create_session(f"{first}-helper", **run, **parent), 1)
    ids = home.session_ids()
    theirs = {each: home.store("resolve_resume_session_id", each) for each in ids}
    home.stop()
    with open_for_audit(home.state_db) as store:
        graph = Graph.load(store)
        ours = {each: graph.opened_by_id(each, store.schema.era) for each in ids}
    assert ours == theirs
    assert len({each for each in ids if theirs[each] != each}) >= 4


@pytest.mark.fires("LIN003")
@pytest.mark.fires("LIN002")
@pytest.mark.parametrize("release", ["0.19.0", "0.22.2"])
def test_compressing_twice_forks_and_the_walks_part(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    first, older, younger = forked(home)
    assert home.tip(first) == younger
    assert home.lineage(first) == [first, older]
    findings = found(home)
    assert [(one.rule, one.verdict) for one in findings] == [
        ("LIN002", Verdict.FAULT),
        ("LIN003", Verdict.FAULT),
    ]
    assert {one.subject.session for one in findings} == {first}


def test_a_branch_that_is_compressed_is_a_healthy_family(hermes_home: Homes, version: str) -> None:
    home = hermes_home(version)
    chat = home.chat(FIRST)
    chat.turns(4, "garden")
    home.title(FIRST, "Garden")
    chat.branch()
    chat.turns(10, "fence")
    chat.rotate()
    chat.say(user("And the gate?"), assistant("Oil it."))
    home.end(chat.session_id)
    assert told(home) == []


@pytest.mark.parametrize("release", ["0.19.0", "0.20.1", "0.22.2"])
def test_what_continues_a_deleted_branch_is_no_second_part_of_its_origin(
    hermes_home: Homes, release: str
) -> None:
    """From 0.20 on it is called like the branch was: by the next number of the title of the origin."""
    home = hermes_home(release)
    chat = home.chat(FIRST)
    chat.turns(2, "garden")
    home.title(FIRST, "Garden")
    branch = chat.branch()
    chat.turns(7, "fence")
    continuation = chat.rotate()
    home.delete(branch)
    assert told(home) == [("LIN009", "undecidable", continuation)]


def test_a_subagent_that_is_compressed_is_a_healthy_family(hermes_home: Homes, version: str) -> None:
    home = hermes_home(version)
    chat = home.chat(FIRST)
    chat.turns(4, "garden")
    helper = chat.delegate("Survey the fence.")
    helper.say(user("Survey the fence."), assistant("It is long."))
    helper.turns(10, "post")
    helper.rotate()
    helper.say(assistant("All posts stand."))
    helper.close()
    chat.say(user("Well?"), assistant("All posts stand."))
    home.end(FIRST)
    assert told(home) == []
