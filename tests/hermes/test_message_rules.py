"""The releases themselves do what the rules about single messages say they do, and the rules see it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import pytest
from tests.hermes.home import HermesHome, assistant, user
from tests.hermes.scenes import Scene

from statemend.audit.engine import audit
from statemend.audit.finding import Finding, Verdict

Homes = Callable[..., HermesHome]

SESSION = "20260801_090000_aaaaaa"
OTHER = "20260801_080000_bbbbbb"


def found(home: HermesHome) -> list[Finding]:
    """Every finding that is a fault or a risk; the running release is stopped first."""
    now = home.now
    home.stop()
    outcome = audit(home.path, now=now)
    assert outcome.undetermined == ()
    return [one for one in outcome.findings if one.verdict in (Verdict.FAULT, Verdict.RISK)]


def change(home: HermesHome, statement: str, *bindings: object) -> None:
    """What another program does while no release runs."""
    home.stop()
    connection = sqlite3.connect(home.state_db)
    try:
        with connection:
            connection.execute(statement, bindings)
    finally:
        connection.close()
    home.restart()


def contents(home: HermesHome) -> list[object]:
    return [message["content"] for message in home.messages(SESSION)]


@pytest.mark.fires("MSG002")
@pytest.mark.parametrize("version", ["0.18.2", "0.20.1"])
def test_archived_rows_come_to_life_through_a_release_and_are_read_beside_their_summary(
    hermes_home: Homes, version: str
) -> None:
    home = hermes_home(version)
    chat = home.chat(SESSION)
    chat.turns(10, "garden")
    chat.compact()
    live = len(contents(home))
    first = home.value("SELECT MIN(id) FROM messages WHERE compacted = 1", [])
    restored = home.store("restore_rewound", SESSION, first)
    assert restored > 0
    assert len(contents(home)) == live + restored

    (finding,) = [one for one in found(home) if one.rule == "MSG002"]

    assert (finding.verdict, finding.subject.session) == (Verdict.FAULT, SESSION)
    assert first in finding.subject.message_ids
    assert f"{restored} rows carry flags" in finding.summary


@pytest.mark.parametrize("version", ["0.16.0", "0.19.0", "0.22.2"])
def test_a_row_without_a_state_of_this_world_is_shown_by_no_release(hermes_home: Homes, version: str) -> None:
    home = hermes_home(version)
    home.create_session(SESSION)
    home.exchange(SESSION, 1)
    change(home, "UPDATE messages SET active = 'true' WHERE content = 'question 1'")
    assert contents(home) == ["answer 1"]
    options = {"include_compacted": True} if home.release.at_least("0.22") else {}
    assert len(home.store("get_messages", SESSION, **options)) == 1

    assert "MSG002" in [one.rule for one in found(home)]


@pytest.mark.fires("MSG005")
@pytest.mark.parametrize("time", [8.4e252, 1.79e12], ids=["garbage", "milliseconds"])
def test_a_time_that_an_old_release_stores_ends_its_exports_and_not_those_of_a_new_one(
    hermes_home: Homes, time: float
) -> None:
    home = hermes_home("0.19.0")
    home.create_session(SESSION)
    home.exchange(SESSION, 1)
    row = home.append(SESSION, "user", "odd", timestamp=time)
    for broken in (home.export(SESSION, "md"), home.export(SESSION, "html")):
        assert (broken.code, broken.files) == (1, ())

    (finding,) = found(home)

    assert (finding.rule, finding.subject.message_ids) == ("MSG005", (row,))
    home.upgrade("0.22.2")
    assert home.export(SESSION, "md").code == 0


def test_a_new_release_stores_the_time_of_its_clock_instead(hermes_home: Homes) -> None:
    home = hermes_home("0.22.2")
    home.create_session(SESSION)
    home.exchange(SESSION, 1)
    home.append(SESSION, "user", "odd", timestamp=8.4e252)

    assert found(home) == []


@pytest.mark.parametrize("version", ["0.13.0", "0.22.2"])
def test_cells_that_a_release_cannot_decode_spoil_what_it_reads(hermes_home: Homes, version: str) -> None:
    home = hermes_home(version)
    home.create_session(SESSION)
    call = {"id": "call_1", "type": "function", "function": {"name": "sh", "arguments": "{}"}}
    home.append(SESSION, "user", [{"type": "text", "text": "What is this?"}])
    home.append(SESSION, "assistant", "Running.", tool_calls=[call])
    home.append(SESSION, "tool", "ok", tool_call_id="call_1", tool_name="sh")
    cut = "UPDATE messages SET {0} = CAST(substr(CAST({0} AS BLOB), 1, 30) AS TEXT) WHERE {0} IS NOT NULL"
    change(home, cut.format("tool_calls"))
    change(home, cut.format("content") + " AND role = 'user'")
    assert contents(home)[0].startswith("\0json:[")
    assert home.messages(SESSION)[1]["tool_calls"] == []

    assert [(one.rule, len(one.subject.message_ids)) for one in found(home)] == [("MSG006", 2)]


@pytest.mark.parametrize("version", ["0.13.0", "0.22.2"])
@pytest.mark.parametrize("cell", ["x'61ff'", "CAST(x'61ff' AS TEXT)"], ids=["bytes", "invalid text"])
def test_what_is_no_text_ends_the_exports_of_a_release(hermes_home: Homes, version: str, cell: str) -> None:
    home = hermes_home(version)
    home.create_session(SESSION)
    home.exchange(SESSION, 1)
    change(home, f"UPDATE messages SET content = {cell} WHERE role = 'assistant'")
    assert home.export(SESSION, "jsonl").code == 1
    home.stop()

    outcome = audit(home.path, rules=("MSG006",), now=home.now, deep=True)

    assert [one.severity.value for one in outcome.findings] == ["high"]


@pytest.mark.fires("MSG007")
@pytest.mark.parametrize("version", ["0.13.0", "0.22.2"])
def test_a_tool_that_was_cut_off_is_residue_and_a_lost_call_is_undecided(
    hermes_home: Homes, version: str
) -> None:
    home = hermes_home(version)
    home.chat(OTHER).tool_turn("What is here?", "ls", "README.md", "A readme.")
    call = {"id": "call_cut", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}
    chat = home.chat(SESSION)
    chat.say(user("And now?"), {"role": "assistant", "content": "Running.", "tool_calls": [call]})
    home.restart()
    home.resume(SESSION).say(user("Are you there?"), assistant("Yes."))
    change(home, "DELETE FROM messages WHERE content = 'Let me look.'")
    home.stop()

    outcome = audit(home.path, rules=("MSG007",), now=home.now)

    told = {one.subject.session: one.verdict for one in outcome.findings}
    assert told == {SESSION: Verdict.LEFTOVER, OTHER: Verdict.UNDECIDABLE}


def test_a_home_in_use_has_no_odd_message(lived_in: Callable[[str], Scene], version: str) -> None:
    scene = lived_in(version)

    outcome = audit(scene.home, rules=("MSG",), now=scene.now, deep=True)

    assert [(one.rule, one.summary) for one in outcome.findings] == []
