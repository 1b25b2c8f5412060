"""EXP010 at-risk-of-prune: archived messages that the next pruning would take."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import DATA, NOW, HomeBuilder, facts

from statemend.audit.facts import moment
from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]
COMPACTED = "20260801_120000_ffffff"
TWICE = "20260801_123000_f2f2f2"
ARCHIVED = (36, 37, 38, 39, 40, 41, 42, 43)
DAY = 86400.0


def prunes(home: HomeBuilder, text: str = "sessions:\n  auto_prune: true\n") -> None:
    home.file("config.yaml", text)


def ran(home: HomeBuilder) -> None:
    home.insert("state_meta", key="last_auto_prune", value=str(NOW - DAY))


@pytest.mark.fires("EXP010")
@pytest.mark.parametrize("version", ["0.18.2", "0.19.0", "0.20.1", "0.22.2"])
def test_a_setting_that_prunes_puts_archived_messages_at_risk(build: Build, version: str) -> None:
    home = build(version, rich=True)
    prunes(home)
    found = {finding.subject.session: finding for finding in home.findings("EXP010")}
    assert set(found) == {COMPACTED, TWICE}
    finding = found[COMPACTED]
    assert (finding.verdict, finding.severity) == (Verdict.RISK, Severity.HIGH)
    assert finding.subject.message_ids == ARCHIVED
    assert facts(finding)["days of retention"] == 90.0


@pytest.mark.parametrize("number", [1, 2])
def test_few_archived_messages_are_counted_in_words_that_fit(build: Build, number: int) -> None:
    home = build("0.19.0")
    prunes(home)
    home.chat("few", 2, started_at=NOW - 100 * DAY, ended_at=NOW - 99 * DAY, end_reason="cli_close")
    home.turns("few", number, active=0, compacted=1)
    (finding,) = home.findings("EXP010")
    assert finding.summary == (
        f"{number} archived message{(' is', 's are')[number - 1]} in no artifact, "
        "and pruning may take the session at any time."
    )


@pytest.mark.parametrize(
    ("version", "date"), [("0.19.0", "2026-10-30T09:50:18Z"), ("0.20.1", "2026-10-30T09:51:24Z")]
)
def test_the_age_counts_from_the_start_and_later_from_the_last_use(
    build: Build, version: str, date: str
) -> None:
    home = build(version, rich=True)
    prunes(home)
    finding = next(each for each in home.findings("EXP010") if each.subject.session == COMPACTED)
    assert facts(finding)["may be pruned from"] == date


def test_the_retention_of_the_configuration_counts(build: Build) -> None:
    home = build("0.19.0", rich=True)
    prunes(home, "sessions: {auto_prune: true, retention_days: 400}\n")
    finding = next(each for each in home.findings("EXP010") if each.subject.session == COMPACTED)
    assert facts(finding)["may be pruned from"] == "2027-09-05T09:50:18Z"
    assert finding.summary.endswith("takes the session from 2027-09-05T09:50:18Z on.")


def test_a_trace_that_pruning_ran_is_enough(build: Build) -> None:
    home = build("0.22.2", rich=True)
    ran(home)
    found = home.findings("EXP010")
    assert {finding.subject.session for finding in found} == {COMPACTED, TWICE}
    assert all("pruning ran last" in facts(finding)["how pruning is known"] for finding in found)


def test_a_trace_does_not_count_against_a_setting(build: Build) -> None:
    home = build("0.22.2", rich=True)
    ran(home)
    prunes(home, "sessions: {auto_prune: false}\n")
    assert home.findings("EXP010") == []


@pytest.mark.parametrize("version", ["0.19.0", "0.22.2"])
def test_a_default_alone_is_no_finding(build: Build, version: str) -> None:
    assert build(version, rich=True).findings("EXP010") == []


def test_a_session_that_never_ended_is_silent(build: Build) -> None:
    home = build("0.19.0", rich=True)
    prunes(home)
    home.sql("UPDATE sessions SET ended_at = NULL, end_reason = NULL")
    assert home.findings("EXP010") == []


@pytest.mark.near_miss("EXP010")
def test_a_pinned_session_is_silent(build: Build) -> None:
    home = build("0.22.2", rich=True)
    prunes(home)
    home.sql("UPDATE sessions SET pinned = 1")
    assert home.findings("EXP010") == []


def test_a_whole_export_takes_the_risk_away(build: Build) -> None:
    home = build("0.22.2", rich=True)
    prunes(home)
    exports = DATA / "exports" / "0.22.2" / "jsonl"
    assert (
        home.findings("EXP010", exports=[exports / f"single-C-{COMPACTED}.jsonl", exports / "all.jsonl"])
        == []
    )


def test_a_partial_export_does_not(build: Build) -> None:
    home = build("0.19.0", rich=True)
    prunes(home)
    file = DATA / "exports" / "0.19.0" / "md" / f"{COMPACTED}-compacted-in-place.md"
    finding = next(
        each for each in home.findings("EXP010", exports=[file]) if each.subject.session == COMPACTED
    )
    assert finding.subject.message_ids == ARCHIVED


def test_a_snapshot_that_hermes_deletes_in_its_turn_takes_no_risk_away(build: Build) -> None:
    home = build("0.19.0", rich=True)
    prunes(home)
    path = home.file("state-snapshots/20260801-130000/state.db", home.store.read_bytes())
    found = {finding.subject.session: finding for finding in home.findings("EXP010")}
    assert set(found) == {COMPACTED, TWICE}
    assert facts(found[COMPACTED])["other stores that have some of them"] == [str(path)]
    assert facts(found[COMPACTED])["of these Hermes deletes in turn"] == 1


def test_another_store_that_stays_does(build: Build) -> None:
    home = build("0.19.0", rich=True)
    prunes(home)
    home.file("state.db.bak", home.store.read_bytes())
    assert home.findings("EXP010") == []


@pytest.mark.parametrize("text", ["sessions: [\n", "a: b\n---\nc: d\n"])
def test_a_broken_configuration_stops_this_rule_and_its_sister_alone(build: Build, text: str) -> None:
    home = build("0.22.2", rich=True)
    ran(home)
    prunes(home, text)
    ended = {result.id: result for result in home.audit().rules}
    stopped = {id_ for id_, result in ended.items() if result.status == "could not run"}
    assert stopped == {"EXP010", "EXP012"}
    assert "config.yaml tells whether Hermes prunes, and it is not valid YAML" in ended["EXP010"].reason


def test_without_anything_to_prune_the_configuration_does_not_matter(build: Build) -> None:
    home = build("0.22.2")
    prunes(home, "sessions: [\n")
    assert home.result("EXP010").status == "clean"


def test_the_next_run_waits_for_its_interval(build: Build) -> None:
    home = build("0.22.2", rich=True)
    home.insert("state_meta", key="last_auto_prune", value=str(NOW))
    prunes(home, "sessions: {auto_prune: true, retention_days: 0, min_interval_hours: 48}\n")
    finding = home.findings("EXP010")[0]
    assert facts(finding)["may be pruned from"] == moment(NOW + 2 * DAY)


@pytest.mark.parametrize(("version", "at_risk"), [("0.20.1", True), ("0.22.2", False)])
def test_a_negative_retention_takes_all_and_later_nothing(build: Build, version: str, at_risk: bool) -> None:
    home = build(version, rich=True)
    prunes(home, "sessions: {auto_prune: true, retention_days: -1}\n")
    assert bool(home.findings("EXP010")) is at_risk


def conversation(home: HomeBuilder) -> HomeBuilder:
    """One in four parts, long over: p, a, b and c. Only a holds archived rows."""
    prunes(home)
    parent = None
    for number, session_id in enumerate("pabc"):
        at = NOW - (200 - number) * DAY
        reason = "cli_close" if session_id == "c" else "compression"
        home.session(
            session_id, parent_session_id=parent, started_at=at, ended_at=at + DAY, end_reason=reason
        )
        home.message(session_id, timestamp=at)
        parent = session_id
    home.message("a", "user", "archived", active=0, compacted=1, timestamp=NOW - 199 * DAY)
    return home


#: What else is so, and whether 0.22.2 takes a then. 0.20.1 always does.
PARTS = {
    "nothing": ("SELECT 1", True),
    "the last goes on": ("UPDATE sessions SET ended_at = NULL WHERE id = 'c'", False),
    "the last is pinned": ("UPDATE sessions SET pinned = 1 WHERE id = 'c'", False),
    "it is pinned itself": ("UPDATE sessions SET pinned = 1 WHERE id = 'a'", False),
    "what it continues is pinned": ("UPDATE sessions SET pinned = 1 WHERE id = 'p'", False),
    "another conversation is pinned": ("INSERT INTO sessions (id, source, started_at, pinned) "
                                       "VALUES ('other', 'cli', 1, 1)", True),
    "the last is a branch, and goes on": (
        "UPDATE sessions SET ended_at = NULL, model_config = '{\"_branched_from\": \"b\"}' WHERE id = 'c'",
        True,
    ),
    "they are a ring": (
        "UPDATE sessions SET parent_session_id = ifnull(parent_session_id, 'c'), end_reason = 'compression'",
        True,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "takes"), PARTS.values(), ids=PARTS)
def test_the_newest_release_takes_a_conversation_as_a_whole(build: Build, change: str, takes: bool) -> None:
    for version in ("0.20.1", "0.22.2"):
        home = conversation(build(version, name=version))
        home.sql(change)
        found = [finding.subject.session for finding in home.findings("EXP010")]
        assert found == (["a"] if takes or version == "0.20.1" else [])


def test_a_conversation_ages_with_its_last_part(build: Build) -> None:
    dates = {}
    for version in ("0.20.1", "0.22.2"):
        home = conversation(build(version, name=version))
        (finding,) = home.findings("EXP010")
        dates[version] = facts(finding)["may be pruned from"]
    assert dates == {"0.20.1": moment(NOW - 109 * DAY), "0.22.2": moment(NOW - 107 * DAY)}


def test_what_pruning_closed_ages_from_then(build: Build) -> None:
    home = build("0.22.2")
    prunes(home)
    home.session("a", started_at=NOW - 200 * DAY, ended_at=NOW - DAY, end_reason="startup_orphan_reap")
    home.message("a", "user", "archived", active=0, compacted=1, timestamp=NOW - 200 * DAY)
    home.message("a", timestamp=NOW - 200 * DAY)
    (finding,) = home.findings("EXP010")
    assert facts(finding)["may be pruned from"] == moment(NOW + 89 * DAY)
    home.sql("UPDATE sessions SET end_reason = 'cli_close'")
    (finding,) = home.findings("EXP010")
    assert facts(finding)["may be pruned from"] == moment(NOW - 110 * DAY)
