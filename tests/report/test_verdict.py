from __future__ import annotations

import msgspec
from tests.report.sample import STORE, finding

from statemend.audit.finding import Severity, Verdict
from statemend.report.model import RuleEntry, SkippedEntry, StoreEntry
from statemend.report.verdict import sentence

BLOCKED = RuleEntry(id="LIN004", slug="cycle", title="", status="could not run", reason="a page")
CLEAN = RuleEntry(id="LIN004", slug="cycle", title="", status="clean")


def test_a_clean_home_is_called_clean_only_when_every_rule_ran() -> None:
    assert sentence((), (CLEAN,), ()) == "No fault and no risk found."
    assert "cannot be called clean" in sentence((), (BLOCKED,), ())


def test_faults_come_with_the_worst_of_them() -> None:
    findings = (
        finding("EXP001", "a", "…", severity=Severity.CRITICAL),
        finding("EXP001", "b", "…", severity=Severity.CRITICAL),
        finding("CNT001", "c", "…", severity=Severity.LOW),
        finding("EXP010", "a", "…", verdict=Verdict.RISK),
    )
    told = sentence(findings, (BLOCKED,), ())
    assert told == "3 faults and 1 risk: in 2 sessions text is gone or about to be; 1 rule could not run."


def test_what_is_no_fault_is_not_called_one() -> None:
    leftover = finding("EXP004", "a", "…", verdict=Verdict.LEFTOVER)
    assert sentence((leftover,), (CLEAN,), ()) == "No fault and no risk; 1 smaller point to know of."


def test_an_unreadable_store_is_never_called_clean() -> None:
    store = StoreEntry(path=STORE, size=0, fault="the file is empty")
    assert sentence((), (BLOCKED,), (store,)) == (
        "The store cannot be read, so nothing is said about what it holds: the file is empty."
    )


def test_what_was_not_read_keeps_a_home_from_being_called_clean() -> None:
    store = StoreEntry(path=STORE, size=4096, unchanged=False)
    skipped = (
        SkippedEntry("/x/a.md", "could not be read", unread=True),
        SkippedEntry("/x/b.md", "could not be read", unread=True),
        SkippedEntry("/x/c.png", "not text"),
    )
    assert sentence((), (CLEAN,), (), skipped) == (
        "No fault found, but 2 files could not be read, so this home cannot be called clean."
    )
    assert sentence((), (CLEAN,), (store,), skipped[1:]) == (
        "No fault found, but 1 file could not be read and the store changed while it was read, "
        "so this home cannot be called clean."
    )
    assert sentence((), (CLEAN,), (), skipped[2:]) == "No fault and no risk found."


def test_sessions_of_one_name_in_two_stores_are_two() -> None:
    here = finding("ORP001", "a", "…")
    other = msgspec.structs.replace(here.subject, store="/srv/hermes/profiles/work/state.db")
    findings = (here, msgspec.structs.replace(here, subject=other))
    assert sentence(findings, (CLEAN,), ()).startswith("2 faults: in 2 sessions ")
