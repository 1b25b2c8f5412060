from __future__ import annotations

from tests.report import sample

from statemend.report import html, markdown
from statemend.report.families import ABOUT_LINES
from statemend.report.gaps import Gap, gaps
from statemend.report.model import RuleEntry, StoreEntry


def blocked(rule: str, reason: str) -> RuleEntry:
    return RuleEntry(id=rule, slug="", title="", status="could not run", reason=reason)


def test_rules_with_one_reason_are_one_gap() -> None:
    rules = (
        blocked("EXP001", "a page"),
        blocked("LIN001", "a page"),
        blocked("ORP001", "another"),
        RuleEntry(id="CNT001", slug="", title="", status="clean"),
    )
    assert gaps(sample.report(rules=rules)) == (
        Gap("EXP001 and LIN001", "a page", ("EXP001", "LIN001")),
        Gap("ORP001", "another", ("ORP001",)),
    )


def test_an_unreadable_store_is_said_once() -> None:
    store = StoreEntry(path=sample.STORE, size=0, fault="it is empty")
    rules = (blocked("EXP001", "it is empty"), blocked("LIN001", "it is empty"))
    assert gaps(sample.report(rules=rules, stores=(store,))) == (
        Gap("the store", "it is empty"),
        Gap("2 rules", "they need the store"),
    )


def test_a_whole_audit_has_no_gap() -> None:
    assert gaps(sample.clean_report()) == ()


def test_nothing_is_called_plain_or_absent_that_was_not_looked_at() -> None:
    store = StoreEntry(path=sample.STORE, size=0, fault="it is empty")
    ran = tuple(RuleEntry(id=rule, slug="", title="", status="clean") for rule in sorted(ABOUT_LINES))
    counted = sample.report().stores
    for shown in (html.render, markdown.render):
        unread = shown(sample.clean_report_of(stores=(store,), rules=()))
        partly = shown(sample.clean_report_of(stores=counted, rules=ran[1:]))
        whole = shown(sample.clean_report_of(stores=counted, rules=ran))
        assert "No family of sessions is ambiguous" not in unread + partly
        assert "No session has" not in unread
        assert "Nothing in this home tells" not in unread
        assert "No family of sessions is ambiguous" in whole
        assert "No session has" in whole
