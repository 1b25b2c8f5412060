"""MSG001 active-unset."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import EXPORTED, VERSIONS, HomeBuilder, facts
from tests.audit.unset import HEALING, WITH_STATE, loosen

from statemend.audit.facts import MOST_LISTED
from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]


@pytest.mark.fires("MSG001")
@pytest.mark.parametrize("version", WITH_STATE)
def test_rows_without_a_state_are_hidden_where_hermes_does_not_heal_them(build: Build, version: str) -> None:
    home = loosen(build(version))
    home.chat("right", 2)
    home.chat("hidden", 2)
    lost = home.turns("hidden", 2, active=None)

    (finding,) = home.findings("MSG001")

    healed = version in HEALING
    assert finding.subject.session == "hidden"
    assert finding.subject.message_ids == tuple(lost)
    assert (finding.verdict, finding.severity) == (
        (Verdict.LEFTOVER, Severity.LOW) if healed else (Verdict.FAULT, Severity.HIGH)
    )
    assert facts(finding)["rows with no state"] == facts(finding)["of them live"] == 2
    assert facts(finding)["a new row gets a state by default"] is False
    assert "2 rows have no state" in finding.summary


@pytest.mark.parametrize("version", HEALING)
@pytest.mark.parametrize(
    ("state", "label"),
    [
        ({"active": 0, "compacted": 1}, "of them older than an archived row"),
        ({"active": None, "compacted": 1}, "of them archived"),
    ],
    ids=["passed over", "archived"],
)
def test_an_archived_row_that_hermes_would_make_live_is_a_risk(
    build: Build, version: str, state: dict[str, int | None], label: str
) -> None:
    home = loosen(build(version))
    home.session("compacted", message_count=2)
    home.message("compacted", active=None)
    home.message("compacted", **state)
    home.turns("compacted", 0)

    (finding,) = home.findings("MSG001")

    assert (finding.verdict, finding.severity) == (Verdict.RISK, Severity.MEDIUM)
    assert facts(finding)[label] == 1


def test_a_row_behind_one_that_was_taken_back_is_undecided(build: Build) -> None:
    home = loosen(build("0.19.0"))
    home.chat("undone", 2)
    home.message("undone", active=None)
    home.message("undone", active=0)
    home.message("undone", active=None)

    (finding,) = home.findings("MSG001")

    assert finding.verdict is Verdict.RISK
    assert facts(finding)["of them younger than a row taken back"] == 1
    assert facts(finding)["of them live"] == 1


def test_many_rows_are_counted_and_few_are_named(build: Build) -> None:
    home = loosen(build("0.16.0"))
    home.session("long")
    home.turns("long", MOST_LISTED + 15, active=None)

    (finding,) = home.findings("MSG001")

    assert facts(finding)["of them live"] == MOST_LISTED + 15
    assert len(finding.subject.message_ids) == MOST_LISTED


def test_an_orphan_and_a_session_whose_id_is_no_valid_text_are_told_of(build: Build) -> None:
    home = loosen(build("0.16.0"))
    home.message("gone", active=None)
    home.message("odd", active=None)
    home.sql("UPDATE messages SET session_id = CAST(x'61ff' AS TEXT) WHERE session_id = 'odd'")

    assert len(home.findings("MSG001")) == 2


@pytest.mark.near_miss("MSG001")
def test_a_column_that_may_be_unset_and_never_is_is_lawful(build: Build) -> None:
    home = loosen(build("0.16.0"))
    home.chat("right", 4)
    home.turns("right", 1, active=0)

    assert home.findings("MSG001") == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sound_store_of_each_release_is_clean(build: Build, version: str) -> None:
    assert build(version, empty=False).result("MSG001").status == "clean"


@pytest.mark.parametrize("version", EXPORTED)
def test_a_used_store_of_each_release_is_clean(build: Build, version: str) -> None:
    assert build(version, rich=True).result("MSG001").status == "clean"
