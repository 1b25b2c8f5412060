"""What a finding tells of each candidate of an ambiguous family: enough to decide by, never a decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import START, VERSIONS, HomeBuilder, facts
from tests.audit.routes import KEY, route

from statemend.audit import candidates
from statemend.audit.finding import Finding
from statemend.evidence.inventory import find_home, take
from statemend.report import session
from statemend.store.connection import open_for_audit

Build = Callable[..., HomeBuilder]
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."
END = START + 100


def child(home: HomeBuilder, session_id: str, after: float, parent: str = "old", **values: Any) -> None:
    home.session(session_id, **{"parent_session_id": parent, "started_at": END + after, **values})
    home.message(session_id, "user", SUMMARY, timestamp=END + after)
    home.message(session_id, "assistant", "And so on.", timestamp=END + after + 1)


def fork(home: HomeBuilder) -> None:
    """Two continuations of one session; the older has ended, a subagent worked for the younger."""
    home.chat("old", 6, title="Taxes", ended_at=END, end_reason="compression")
    child(home, "one", 1, title="Taxes #2", ended_at=END + 50, end_reason="agent_close")
    child(home, "two", 2, source="telegram", session_key=KEY)
    for number in (4, 5):
        role = ("user", "assistant")[number % 2]
        home.message("two", role, f"turn {number} of old", timestamp=END + 10 + number)
    mark = {"_delegate_from": "two"}
    home.chat("run", 2, parent_session_id="two", source="subagent", model_config=mark)
    home.chat("aside", 2, parent_session_id="two", model_config={"_branched_from": "two"})


def told(finding: Finding) -> dict[str, tuple[str, ...]]:
    return dict(candidates.of(finding))


@pytest.mark.parametrize("version", VERSIONS)
def test_each_candidate_of_a_fork_is_told(build: Build, version: str) -> None:
    home = build(version)
    fork(home)
    (finding,) = home.findings("LIN002")
    lines = told(finding)
    assert list(lines) == ["one", "two"]
    one, two = lines.values()
    assert one[0].startswith("started 2026-09-21T14:15:01Z, ended 2026-09-21T14:15:50Z (agent_close), 2 rows")
    assert one[1] == "title: Taxes #2; source: cli"
    assert one[2].startswith("first message: user, 2026-09-21T14:15:01Z, digest ")
    assert one[2].endswith(", a compaction summary")
    assert "0 of its first 2 rows stand among the last of old" in one
    assert "2 of its first 4 rows stand among the last of old" in two
    assert "marks: none" in two
    assert one[-1] == "deleting it takes no other session (0.13 to 0.22)"
    assert two[-2:] == (
        "deleting it takes no other session and cuts aside, run off (0.13 to 0.15)",
        "deleting it takes run with it and cuts aside off (0.16 to 0.22)",
    )
    assert "turn 4" not in repr(finding)


def test_what_each_release_would_choose_is_told(build: Build) -> None:
    home = build("0.22.2")
    fork(home)
    (finding,) = home.findings("LIN002")
    assert facts(finding)["resume goes to, by release"] == ["0.13 to 0.22: two"]
    assert facts(finding)["export goes on with, by release"] == [
        "0.13 to 0.17: these have no export by lineage",
        "0.18 to 0.22: one",
    ]
    lines = told(finding)
    assert "chosen by export of 0.18 to 0.22" in lines["one"]
    assert "chosen by resume of 0.13 to 0.22" in lines["two"]


def test_releases_that_differ_are_told_apart(build: Build) -> None:
    home = build("0.22.2")
    home.chat("old", 6, ended_at=END, end_reason="compression")
    child(home, "one", 1)
    child(
        home, "two", 2, model_config={"_reset_from": "elsewhere"}, ended_at=END + 9, end_reason="compression"
    )
    (finding,) = home.findings("LIN002")
    assert facts(finding)["resume goes to, by release"] == ["0.13 to 0.21.0: two", "0.21.3 to 0.22: one"]
    assert "chosen by resume of 0.13 to 0.21.0" in told(finding)["two"]
    assert "marks: _reset_from names elsewhere" in told(finding)["two"]


def test_routing_is_told(build: Build) -> None:
    home = build("0.22.2")
    fork(home)
    route(home, "two")
    (finding,) = home.findings("LIN002")
    assert f"routing: the key {KEY}, led to by the route of {KEY}" in told(finding)["two"]
    assert "routing: none" in told(finding)["one"]


def test_the_two_ways_from_a_parting_are_told(build: Build) -> None:
    home = build("0.22.2")
    fork(home)
    (finding,) = home.findings("LIN003")
    assert list(told(finding)) == ["one", "two"]


def test_what_fits_a_dead_end_is_told_from_both_sides(build: Build) -> None:
    home = build("0.19.0")
    home.chat("old", 6, ended_at=END, end_reason="compression")
    child(home, "new", 1, parent_session_id=None)
    (dead,) = home.findings("LIN001")
    assert "0 of its first 2 rows stand among the last of old" in told(dead)["new"]
    (cut,) = home.findings("LIN009")
    assert told(cut)["old"][0].startswith("started 2026-09-21T14:13:20Z, ended 2026-09-21T14:15:00Z")


def test_of_very_many_the_first_are_told_and_all_are_counted(build: Build) -> None:
    home = build("0.22.2")
    home.chat("old", 6, ended_at=END, end_reason="compression")
    for number in range(25):
        child(home, f"c{number:02}", 1 + number)
    (finding,) = home.findings("LIN002")
    assert facts(finding)["candidates"] == 25
    assert list(told(finding)) == [f"c{number:02}" for number in range(candidates.MOST_TOLD)]


def test_the_order_of_the_rows_makes_no_difference(build: Build) -> None:
    found = []
    for name in ("home", "other"):
        home = build("0.22.2", name=name)
        fork(home)
        if name == "other":
            columns = ", ".join(f'"{column}"' for column in sorted(home.columns("sessions")))
            home.sql(
                "CREATE TABLE kept AS SELECT * FROM sessions",
                "DELETE FROM sessions",
                f"INSERT INTO sessions ({columns}) SELECT {columns} FROM kept ORDER BY id DESC",
                "DROP TABLE kept",
            )
        (finding,) = home.findings("LIN002")
        found.append(finding.evidence)
    assert found[0] == found[1]


def test_a_single_session_tells_what_each_release_would_do_with_it(build: Build) -> None:
    home = build("0.22.2")
    fork(home)
    with open_for_audit(home.store) as store:
        shown = session.read(store, take(find_home(home.root), ()), "two").lineage.by_release
    assert shown == (
        "resume goes to, 0.13 to 0.22: two",
        "resume by its id goes to, 0.13 to 0.22: two",
        "export goes on with, 0.13 to 0.17: these have no export by lineage",
        "export goes on with, 0.18 to 0.22: nothing",
        "deleting it takes no other session and cuts aside, run off (0.13 to 0.15)",
        "deleting it takes run with it and cuts aside off (0.16 to 0.22)",
    )


def test_all_that_is_known_of_one_session_is_told(build: Build) -> None:
    home = build("0.22.2")
    marks = {"_branched_from": "a", "_delegate_from": "b", "_reset_from": "c"}
    home.chat("x", 2, model_config=marks)
    home.message("x", "user", "archived", active=0, compacted=1)
    for number in range(6):
        mark = {"_delegate_from": "x"}
        home.session(f"run{number}", parent_session_id="x", source="subagent", model_config=mark)
    shown: list[list[str]] = []

    home.audit(
        "STO001",
        observe=lambda context, _: shown.extend(
            list(candidates.lines(context, each, None)) for each in ("x", "run0", "nobody")
        ),
    )

    x, run, nobody = shown
    runs = "run0, run1, run2, run3, run4 and 1 more"
    assert x[0] == ("started 2026-09-21T14:13:20Z, open, 3 rows, last activity 2026-09-21T14:13:22Z")
    assert x[1] == "title: none; source: cli"
    assert x[3:5] == [
        "marks: _branched_from names a, _delegate_from names b, _reset_from names c",
        "routing: none",
    ]
    assert x[5:] == [
        f"deleting it takes no other session and cuts {runs} off (0.13 to 0.15)",
        f"deleting it takes {runs} with it (0.16 to 0.22)",
    ]
    assert run[0] == "started 2026-09-21T14:13:20Z, open, 0 rows, last activity unknown"
    assert run[2] == "first message: none"
    assert nobody == ["it has no row"]


def test_of_competing_ones_the_last_activity_is_what_0_22_goes_by(build: Build) -> None:
    home = build("0.22.2")
    fork(home)
    home.sql("UPDATE sessions SET last_activity_at = ? WHERE id = 'one'", bindings=(END + 400,))
    (finding,) = home.findings("LIN002")
    assert told(finding)["one"][0].endswith("last activity 2026-09-21T14:21:40Z")
