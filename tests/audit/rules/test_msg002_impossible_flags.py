"""MSG002 impossible-flags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import EXPORTED, VERSIONS, HomeBuilder, facts
from tests.audit.unset import WITH_ARCHIVE, WITH_STATE, loosen

from statemend.audit.facts import MOST_LISTED
from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]

STATELESS = "of them neither live, nor archived, nor taken back"
ALIVE_AGAIN = "of them archived and live at once"
OVERHEARD = "of them taken for overheard through an odd mark"
HARMLESS = "of them with odd marks that have no effect now"


@pytest.mark.fires("MSG002")
@pytest.mark.parametrize("version", WITH_STATE)
@pytest.mark.parametrize("active", [2, -1, "true", b"1", 0.5])
def test_a_row_that_is_neither_live_nor_taken_back_is_hidden(
    build: Build, version: str, active: object
) -> None:
    home = build(version)
    home.chat("right", 2)
    home.chat("odd", 2)
    row = home.message("odd", active=active)

    (finding,) = home.findings("MSG002")

    assert (finding.subject.session, finding.subject.message_ids) == ("odd", (row,))
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.HIGH)
    assert facts(finding)[STATELESS] == facts(finding)["rows with impossible flags"] == 1


@pytest.mark.parametrize("version", WITH_ARCHIVE)
@pytest.mark.parametrize(
    ("flags", "label", "severity"),
    [
        ({"active": 1, "compacted": 1}, ALIVE_AGAIN, Severity.MEDIUM),
        ({"active": 0, "compacted": 2}, STATELESS, Severity.HIGH),
        ({"active": 1, "compacted": 7}, HARMLESS, Severity.LOW),
        ({"active": 0, "observed": 2}, OVERHEARD, Severity.MEDIUM),
        ({"observed": ""}, HARMLESS, Severity.LOW),
    ],
    ids=["alive again", "no state", "odd archive mark", "overheard", "empty mark"],
)
def test_what_the_flags_amount_to_is_told_apart(
    build: Build, version: str, flags: dict[str, Any], label: str, severity: Severity
) -> None:
    home = build(version)
    home.chat("odd", 2)
    row = home.message("odd", **flags)

    (finding,) = home.findings("MSG002")

    assert finding.subject.message_ids == (row,)
    assert (facts(finding)[label], finding.severity) == (1, severity)


def test_the_worst_of_a_session_decides_and_the_rows_named_are_few(build: Build) -> None:
    home = build("0.22.2")
    home.session("odd")
    home.turns("odd", MOST_LISTED + 5, compacted=1)
    home.message("odd", active=2)
    home.message("gone", active=2)

    first, orphan = sorted(home.findings("MSG002"), key=lambda one: one.subject.session == "gone")

    assert (first.severity, orphan.severity) == (Severity.HIGH, Severity.HIGH)
    assert facts(first)[ALIVE_AGAIN] == MOST_LISTED + 5
    assert (
        first.summary
        == f"{MOST_LISTED + 6} rows carry flags that no release writes, 1 of them {STATELESS[8:]}."
    )
    assert len(first.subject.message_ids) == MOST_LISTED


@pytest.mark.near_miss("MSG002")
@pytest.mark.parametrize("version", WITH_ARCHIVE)
def test_every_state_that_a_release_writes_is_lawful(build: Build, version: str) -> None:
    home = build(version)
    home.chat("lawful", 2)
    for flags in ({"compacted": 1, "active": 0}, {"active": 0}, {"observed": 1}, {"observed": None}):
        home.message("lawful", **flags)

    assert home.findings("MSG002") == []


def test_a_state_that_was_lost_is_the_matter_of_another_rule(build: Build) -> None:
    home = loosen(build("0.19.0"))
    home.session("unset")
    home.message("unset", active=None)
    home.message("unset", active=None, compacted=1)

    assert home.findings("MSG002") == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sound_store_of_each_release_is_clean(build: Build, version: str) -> None:
    assert build(version, empty=False).result("MSG002").status == "clean"


@pytest.mark.parametrize("version", EXPORTED)
def test_a_used_store_of_each_release_is_clean(build: Build, version: str) -> None:
    assert build(version, rich=True).result("MSG002").status == "clean"
