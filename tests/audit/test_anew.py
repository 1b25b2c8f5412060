"""What a store can have had, by its oldest time and its row ids, and which evidence is held against it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.audit.builder import DATA, START, HomeBuilder, facts
from tests.audit.houses import House

Build = Callable[..., HomeBuilder]
DAY = 86_400.0
TURN = (
    "2026-09-21 10:00:00,000 INFO agent.conversation_loop: conversation turn: "
    "session={} model=m provider=p platform=cli history=0"
)


def snapshot(home: HomeBuilder, name: str = "20260801-090000") -> Path:
    path = home.root / "state-snapshots" / name / "state.db"
    path.parent.mkdir(parents=True)
    shutil.copyfile(home.store, path)
    return path


def exported(home: HomeBuilder, *sessions: str) -> Path:
    """An export of sessions that were begun at ``START`` and have one row each."""
    lines = [
        {"id": each, "source": "cli", "started_at": START, "messages": [message(each)]} for each in sessions
    ]
    return home.file("session-exports/old.jsonl", "".join(json.dumps(line) + "\n" for line in lines))


def message(session_id: str) -> dict[str, Any]:
    return {"id": 900, "session_id": session_id, "role": "user", "content": "text", "timestamp": START + 1}


def begin_anew(
    home: HomeBuilder, *, rows: int = 3, started: float = 30 * DAY, first: float = 30 * DAY
) -> None:
    """A new store: its one session began, and its first row was written, so many seconds after ``START``."""
    home.sql("DELETE FROM messages", "DELETE FROM sessions", "DELETE FROM sqlite_sequence")
    home.session("new", started_at=START + started)
    for number in range(rows):
        home.message("new", timestamp=START + first + number)


@pytest.mark.parametrize(("started", "first"), [(10.0, 30 * DAY), (30 * DAY, 10.0)], ids=["session", "row"])
def test_the_oldest_time_is_of_a_session_or_of_a_row(build: Build, started: float, first: float) -> None:
    home = build()
    home.chat("old", 20)
    snapshot(home)
    begin_anew(home, started=started, first=first)
    assert home.findings("STO005") == []
    begin_anew(home, started=started + 20, first=first + 20)
    (finding,) = home.findings("STO005")
    assert facts(finding)["oldest time in the store"] == "2026-09-21T14:13:50Z"


def test_ids_that_another_session_has_cannot_have_been_its_own(build: Build) -> None:
    home = build()
    home.chat("old", 2)
    snapshot(home)
    begin_anew(home, rows=5)
    (finding,) = home.findings("STO005")
    assert facts(finding)["row ids of theirs that this store cannot have had"] == 2


def test_an_empty_store_never_gave_an_id(build: Build) -> None:
    home = build()
    home.chat("old", 1)
    snapshot(home)
    home.sql("DELETE FROM messages", "DELETE FROM sessions", "DELETE FROM sqlite_sequence")
    (finding,) = home.findings("STO005")
    assert facts(finding)["row ids of theirs that this store cannot have had"] == 1
    assert facts(finding)["highest row id it ever gave"] == 0


def test_what_is_there_again_is_not_missed_whatever_its_times_are_now(build: Build) -> None:
    home = build()
    home.chat("old")
    snapshot(home)
    exported(home, "old")
    begin_anew(home)
    assert [finding.rule for finding in home.findings("STO005")] == ["STO005"]
    home.session("old", started_at=START + 40 * DAY)
    assert home.findings("STO005") == []


def test_what_another_store_of_the_home_has_is_not_missed(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.root.chat("old")
    house["work"].chat("old")
    snapshot(house.root)
    house.root.log([TURN.format("old")])
    begin_anew(house.root)
    assert house.findings("STO005") == []
    house["work"].sql("DELETE FROM messages", "DELETE FROM sessions")
    assert [finding.subject.store for finding in house.findings("STO005")] == [str(house.root.store)]


def test_each_export_and_each_log_of_the_home_is_looked_at(build: Build) -> None:
    """The first of them is none that could tell."""
    home, other = build(), build(name="other")
    page = next((DATA / "exports" / "0.22.2").glob("md/*.md"))
    home.file("session-exports/a.md", page.read_bytes())
    undated = {"id": "undated", "source": "cli", "messages": [message("undated")]}
    tip = {
        "id": "tip",
        "started_at": START,
        "lineage_session_ids": ["first", "tip"],
        "messages": [message("tip")],
    }
    later = {**message("on"), "timestamp": START + 40 * DAY}
    going_on = {"id": "on", "started_at": START, "messages": [message("on"), later]}
    empty = {"id": "empty", "started_at": START, "messages": []}
    lines = [json.dumps(line) + "\n" for line in (undated, tip, going_on, empty)]
    home.file("session-exports/b.jsonl", "".join(lines))
    exported(home, "old", "older")
    foreign = other.log([TURN.format("theirs")])
    own = home.log([TURN.format("talk")])
    begin_anew(home)

    (finding,) = home.findings("STO005", exports=[foreign.parent])

    assert facts(finding)["their ids"] == ["old", "older", "talk"]
    assert facts(finding)["logs that tell of their turns"] == [str(own)]


def test_of_very_many_sessions_the_rows_are_not_all_read_and_none_is_left_out(build: Build) -> None:
    home = build()
    with home.opened():
        for number in range(52):
            home.session(f"old{number:02}")
            home.message(f"old{number:02}", timestamp=START + number)
    path = snapshot(home)
    begin_anew(home)

    (finding,) = home.findings("STO005")

    told = facts(finding)
    assert told["older sessions that it lacks"] == 52
    assert told["last of their times"] == "2026-09-21T14:14:11Z"
    assert told["row ids of theirs that this store cannot have had"] == 50
    assert told["other stores that have them"] == [str(path)]


def test_a_copy_without_older_sessions_hides_no_other(build: Build) -> None:
    home = build()
    home.chat("old")
    path = snapshot(home, "20260801-090000")
    begin_anew(home)
    for name in ("20260701-090000", "20260901-090000"):
        snapshot(home, name)
    (finding,) = home.findings("STO005")
    assert facts(finding)["other stores that have them"] == [str(path)]
