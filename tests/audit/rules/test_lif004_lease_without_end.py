"""LIF004 lease-without-end: a note that holds a conversation for longer than any release asks for."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

import pytest
from tests.audit.builder import NOW, VERSIONS, HomeBuilder, facts

from statemend.audit.finding import Verdict
from statemend.audit.rules.lifecycle.lease_without_end import RULE
from statemend.errors import Refused
from statemend.repair.preflight import check_leases
from statemend.store.connection import open_for_audit

pytestmark = pytest.mark.built(
    "LIF004", "no release asks for more than minutes; it takes a clock that ran ahead"
)

Build = Callable[..., HomeBuilder]
TABLES = {"compression_locks": "session_id", "session_turn_leases": "conversation_id"}
DAY = 86400.0


def note(home: HomeBuilder, table: str, expires_at: object, holder: str = "elsewhere") -> None:
    values = {TABLES[table]: "a", "holder": holder, "acquired_at": NOW, "expires_at": expires_at}
    home.insert(table, **values)


@pytest.mark.fires("LIF004")
@pytest.mark.parametrize("table", TABLES)
def test_a_note_that_lasts_for_days_is_a_fault(build: Build, table: str) -> None:
    home = build("0.22.2")
    home.chat("a", 2)
    note(home, table, NOW + 3 * DAY)
    (finding,) = home.findings("LIF004")
    assert finding.verdict is Verdict.FAULT
    assert finding.subject.session == "a"
    assert facts(finding)["until"] == "2027-01-18T08:00:00Z"


def test_a_note_that_never_ends_is_told_so(build: Build) -> None:
    home = build()
    note(home, "compression_locks", "soon")
    (finding,) = home.findings("LIF004")
    assert facts(finding)["until"] == "never"


@pytest.mark.near_miss("LIF004")
@pytest.mark.parametrize("expires_at", [0.0, NOW - 60, NOW + 60, NOW + DAY])
@pytest.mark.parametrize("table", TABLES)
def test_lawful_notes_are_silent(build: Build, table: str, expires_at: float) -> None:
    home = build("0.22.2")
    note(home, table, expires_at)
    assert home.findings("LIF004") == []


def test_a_note_of_a_process_that_is_gone_is_silent(build: Build) -> None:
    home = build("0.22.2")
    namespace = os.readlink("/proc/self/ns/pid").strip("pid:[]")
    note(home, "session_turn_leases", NOW + 3 * DAY, f"turn:pid=999999999:pidns={namespace}")
    assert home.findings("LIF004") == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_store_without_notes_is_silent(build: Build, version: str) -> None:
    home = build(version, empty=False)
    assert home.findings("LIF004") == []


@pytest.mark.parametrize("ends", ["soon", b"soon", float("inf"), 1e18])
@pytest.mark.parametrize("table", TABLES)
def test_the_statement_that_it_names_takes_the_note_away_and_no_other(
    build: Build, table: str, ends: object
) -> None:
    home = build("0.22.2")
    for other in TABLES:
        lawful = {TABLES[other]: "b", "holder": "elsewhere", "acquired_at": NOW, "expires_at": 0.0}
        home.insert(other, **lawful)
    note(home, table, ends)
    with open_for_audit(home.store) as store, pytest.raises(Refused, match="explain LIF004"):
        check_leases(store, NOW)
    (finding,) = home.findings("LIF004")
    (statement,) = re.findall(r"DELETE FROM [^;]*;", finding.remedy.text)
    assert f"`{statement}`" in RULE.sections["What to do"]
    home.sql(statement)
    assert home.findings("LIF004") == []
    assert [home.sql(f"SELECT {TABLES[each]} FROM {each}") for each in TABLES] == [[("b",)]] * 2
    with open_for_audit(home.store) as store:
        check_leases(store, NOW)
