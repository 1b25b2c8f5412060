"""MSG005 impossible-times."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import EXPORTED, START, VERSIONS, HomeBuilder, facts

from statemend.audit.facts import MOST_LISTED
from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]

#: The first schema, one between, and the newest.
SCHEMAS = ["0.13.0", "0.19.0", "0.22.2"]


@pytest.mark.fires("MSG005")
@pytest.mark.parametrize("version", SCHEMAS)
@pytest.mark.parametrize(
    ("time", "label"),
    [
        ("2026-08-01T09:00:00", "no number"),
        (b"\x41\xd9", "no number"),
        (float("inf"), "not finite"),
        (float("-inf"), "not finite"),
        (-0.001, "before 1970"),
        (4_200_000_001.0, "after 2103"),
        (8.4e252, "after 2103"),
        (START * 1000, "a time if read as milliseconds"),
        (START * 1_000_000, "after 2103"),
    ],
    ids=["text", "blob", "inf", "-inf", "negative", "2103", "garbage", "milliseconds", "microseconds"],
)
def test_a_time_that_no_clock_shows_is_a_fault(build: Build, version: str, time: object, label: str) -> None:
    home = build(version)
    home.chat("right", 2)
    home.chat("odd", 2)
    row = home.message("odd", timestamp=time)

    (finding,) = home.findings("MSG005")

    assert (finding.subject.session, finding.subject.message_ids) == ("odd", (row,))
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.MEDIUM)
    assert facts(finding) == {"rows with impossible times": 1, f"of them {label}": 1}


def test_rows_that_have_no_time_at_all_are_told_of(build: Build) -> None:
    home = build("0.19.0")
    home.sql(
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET sql = replace(sql, 'timestamp REAL NOT NULL', 'timestamp REAL') "
        "WHERE name = 'messages'",
    )
    home.session("odd")
    row = home.message("odd", timestamp=None)

    (finding,) = home.findings("MSG005")

    assert finding.subject.message_ids == (row,)


def test_many_rows_are_counted_and_few_are_named(build: Build) -> None:
    home = build("0.22.2")
    home.session("odd")
    home.turns("odd", MOST_LISTED + 5, timestamp=-1.0)
    home.message("gone", timestamp=-1.0)

    odd, orphan = sorted(home.findings("MSG005"), key=lambda one: one.subject.session == "gone")

    assert facts(odd)["of them before 1970"] == MOST_LISTED + 5
    assert len(odd.subject.message_ids) == MOST_LISTED
    assert orphan.summary == "1 row has a time that no clock shows."


@pytest.mark.near_miss("MSG005")
@pytest.mark.parametrize("version", SCHEMAS[::2])
@pytest.mark.parametrize(
    "time",
    [0.0, 12.5, START - 400 * 86400, 1_790_000_000, "1790000000.25", 4_200_000_000.0],
    ids=["epoch", "no clock", "carried", "whole", "numeric text", "last"],
)
def test_a_time_that_is_only_odd_is_lawful(build: Build, version: str, time: object) -> None:
    home = build(version)
    home.chat("odd", 2)
    home.message("odd", timestamp=time)

    assert home.findings("MSG005") == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sound_store_of_each_release_is_clean(build: Build, version: str) -> None:
    assert build(version, empty=False).result("MSG005").status == "clean"


@pytest.mark.parametrize("version", EXPORTED)
def test_a_used_store_of_each_release_is_clean(build: Build, version: str) -> None:
    assert build(version, rich=True).result("MSG005").status == "clean"
