from __future__ import annotations

from tests.report import sample

from statemend.report import html, markdown
from statemend.report.families import ABOUT_LINES
from statemend.report.gaps import Gap, gaps, in_files
from statemend.report.model import RuleEntry, SessionEntry, StoreEntry


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


def test_a_session_without_a_file_is_told_from_one_whose_files_were_not_compared() -> None:
    alone, half = SessionEntry(id="alone", live=5), SessionEntry(id="half", live=4, display=4, held=2)
    gone = SessionEntry(id="gone", present=False)
    ran = RuleEntry(id="EXP004", slug="", title="", status="clean")
    compared = sample.report(rules=(ran,), sessions=(alone, half, gone))
    unread = sample.report(rules=(blocked("EXP004", "a page"),), sessions=(alone, half, gone))
    assert [in_files(compared, each) for each in compared.sessions] == ["none", "2 of 4", "–"]
    assert [in_files(unread, each) for each in unread.sessions] == ["–", "2 of 4", "–"]
    assert 'in a file">none</td>' in html.render(compared)
    assert "| none |" in markdown.render(compared)
    assert 'in a file">none</td>' not in html.render(unread)
    assert "| none |" not in markdown.render(unread)
