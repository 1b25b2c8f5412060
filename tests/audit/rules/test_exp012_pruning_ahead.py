"""EXP012 pruning-ahead: what automatic pruning takes that no file holds, and when."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import DATA, NOW, START, HomeBuilder, facts

from statemend.audit.facts import moment
from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]
DAY = 86400.0


def ended(home: HomeBuilder, session_id: str, **values: object) -> None:
    home.chat(session_id, 2, ended_at=START + 60, end_reason="cli_close", **values)


def prunes(home: HomeBuilder, text: str = "sessions: {auto_prune: true}\n") -> None:
    home.file("config.yaml", text)


@pytest.mark.parametrize("version", ["0.13.0", "0.16.0", "0.19.0", "0.20.1", "0.22.2"])
def test_what_pruning_takes_is_told_with_its_date(build: Build, version: str) -> None:
    home = build(version)
    prunes(home)
    ended(home, "old", started_at=START - 100 * DAY)
    ended(home, "new")
    home.chat("open", 2)
    (finding,) = home.findings("EXP012")
    assert (finding.verdict, finding.severity) == (Verdict.LEFTOVER, Severity.INFO)
    assert finding.subject.session is None
    assert facts(finding)["sessions"] == 2
    if version < "0.20":
        old = moment(START - 10 * DAY)
        assert facts(finding)["which, and from when"] == [
            f"old from {old}",
            f"new from {moment(START + 90 * DAY)}",
        ]
    else:
        assert facts(finding)["which, and from when"] == [
            f"old from {moment(START + 1 + 90 * DAY)}",
            f"new from {moment(START + 3 + 90 * DAY)}",
        ]
    assert facts(finding)["of these old enough now"] == sum(
        date <= moment(NOW)
        for date in (entry.split()[-1] for entry in facts(finding)["which, and from when"])
    )


def test_the_default_of_the_newest_is_told_too(build: Build) -> None:
    home = build("0.22.2")
    ended(home, "old")
    (finding,) = home.findings("EXP012", now=START + 61 * DAY)
    assert facts(finding)["how pruning is known"] == (
        "no config.yaml; releases from 0.21.3 on prune unless it is turned off"
    )
    assert finding.summary.endswith(f"the first from {moment(START + 1 + 90 * DAY)} on.")


@pytest.mark.near_miss("EXP012")
@pytest.mark.parametrize("version", ["0.13.0", "0.19.0", "0.20.1"])
def test_the_default_of_older_releases_takes_nothing(build: Build, version: str) -> None:
    home = build(version)
    ended(home, "old")
    assert home.findings("EXP012") == []


@pytest.mark.near_miss("EXP012")
@pytest.mark.parametrize(
    "text", ["sessions: {auto_prune: false}\n", "sessions: {auto_prune: true, retention_days: x}\n"]
)
def test_a_home_that_does_not_prune_is_silent(build: Build, text: str) -> None:
    home = build("0.22.2")
    prunes(home, text)
    ended(home, "old")
    assert home.findings("EXP012") == []


@pytest.mark.near_miss("EXP012")
def test_what_stays_or_has_nothing_to_lose_is_silent(build: Build) -> None:
    home = build("0.22.2")
    prunes(home)
    ended(home, "pinned", pinned=1)
    home.chat("open", 2)
    home.session("empty", ended_at=START, end_reason="cli_close")
    assert home.findings("EXP012") == []


def test_an_export_that_holds_a_session_takes_it_off_the_list(build: Build) -> None:
    home = build("0.22.2", rich=True)
    (before,) = home.findings("EXP012")
    folder = DATA / "exports" / "0.22.2" / "jsonl"
    (after,) = home.findings("EXP012", exports=sorted(folder.glob("single-C-*.jsonl")))
    assert after.id == before.id
    assert facts(after)["sessions"] < facts(before)["sessions"]
    assert home.findings("EXP012", exports=[folder / "all.jsonl"]) == []


def test_a_broken_configuration_leaves_it_open(build: Build) -> None:
    home = build("0.22.2")
    prunes(home, "sessions: [\n")
    ended(home, "old")
    assert home.result("EXP012").status == "could not run"


@pytest.mark.near_miss("EXP012")
def test_what_goes_later_than_soon_is_only_counted(build: Build) -> None:
    home = build("0.22.2")
    ended(home, "old")
    assert home.findings("EXP012", now=START + 59 * DAY) == []
    assert len(home.findings("EXP012", now=START + 1 + 60 * DAY)) == 1
    (due,) = home.findings("EXP012", now=START + 1 + 90 * DAY)
    assert facts(due)["of these old enough now"] == 1
    ended(home, "older", last_activity_at=START - DAY)
    home.sql("UPDATE messages SET timestamp = 1 WHERE session_id = 'older'")
    home.file("state-snapshots/20260801-130000/state.db", home.store.read_bytes())
    (finding,) = home.findings("EXP012", now=START + 59.5 * DAY)
    assert (facts(finding)["sessions"], facts(finding)["sessions that go later"]) == (1, 1)
