from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.report.sample import STORE, finding

from statemend.audit import registry
from statemend.audit.finding import Finding
from statemend.audit.rule import Family
from statemend.evidence.coverage import ArtifactCoverage, Cause, Missing, Scope, SessionCoverage
from statemend.formats.artifact import Kind
from statemend.report.checklist import Evidence, checklist
from statemend.report.model import ArtifactEntry, RuleEntry, SkippedEntry, StoreEntry

LINEAGE = [rule.id for rule in registry.all_rules() if rule.family is Family.LINEAGE]
RULES = [
    "STO004",
    "EXP001",
    "EXP002",
    "EXP003",
    "EXP005",
    "EXP007",
    "EXP008",
    "EXP009",
    *LINEAGE,
    "ORP001",
    "ORP002",
    "ORP004",
    "ORP005",
    "PRO004",
]
EXPORT = ArtifactEntry(path="/x/a.md", kind="markdown", size=1, sha256="0" * 64, sessions=("a",))


def cover(
    *,
    exact: int = 0,
    lossy: int = 0,
    changed: tuple[int, ...] = (),
    missing: tuple[Missing, ...] = (),
    scope: Scope = Scope.DISPLAY,
) -> SessionCoverage:
    artifact = ArtifactCoverage(
        artifact="/x/a.md",
        kind=Kind.MARKDOWN,
        session_id="a",
        scope=scope,
        reason="",
        exact=exact,
        lossy=lossy,
        masked=0,
        changed=changed,
        missing=missing,
        extra=0,
        drops=(),
    )
    return SessionCoverage("a", True, 4, 0, (artifact,), tuple(each.message_id for each in missing))


def answers(
    *,
    findings: Sequence[Finding] = (),
    blocked: Sequence[str] = (),
    absent: Sequence[str] = (),
    coverage: Sequence[SessionCoverage] = (),
    artifacts: Sequence[ArtifactEntry] = (),
    skipped: Sequence[SkippedEntry] = (),
    archived: int = 0,
    unchanged: bool | None = True,
    era: str | None = "0.22",
) -> dict[str, str]:
    named = {each.rule for each in findings}
    rules = [
        RuleEntry(
            id=rule,
            slug="",
            title="",
            status="could not run" if rule in blocked else "findings" if rule in named else "clean",
            reason="a page" if rule in blocked else "",
        )
        for rule in RULES
        if rule not in absent
    ]
    store = StoreEntry(path=STORE, size=1, era=era, unchanged=unchanged, archived=archived)
    evidence = Evidence(
        stores=(store,),
        artifacts=artifacts,
        rules=rules,
        findings=findings,
        coverage=coverage,
        skipped=skipped,
    )
    return {check.title: check.answer for check in checklist(evidence)}


def test_there_are_twelve_questions_in_the_order_of_the_review() -> None:
    assert list(answers()) == [
        "View named",
        "Compacted history accounted for",
        "Destructive formats explicit",
        "Content identity",
        "Rewrites detected",
        "One fence",
        "Fail closed",
        "Both sides kept",
        "Lineage explicit",
        "Partial never whole",
        "Regression evidence",
        "Version scope",
    ]


def test_without_an_export_nothing_is_claimed_about_exports() -> None:
    told = answers(archived=5)
    assert told["View named"] == "unknown"
    assert told["Compacted history accounted for"] == "unknown"
    assert told["Content identity"] == "unknown"
    assert told["Partial never whole"] == "unknown"
    assert told["One fence"] == "unknown"


def test_a_whole_and_equal_export_is_a_yes() -> None:
    told = answers(coverage=[cover(exact=4)], artifacts=[EXPORT], archived=5)
    assert {title for title, answer in told.items() if answer != "yes"} == {"One fence"}


def test_a_rule_that_could_not_run_never_gives_a_yes() -> None:
    told = answers(blocked=RULES, coverage=[cover(exact=4)], artifacts=[EXPORT])
    for title in (
        "Compacted history accounted for",
        "Destructive formats explicit",
        "Rewrites detected",
        "Both sides kept",
        "Lineage explicit",
    ):
        assert told[title] == "unknown"
    assert told["Fail closed"] == "no"


def test_a_rule_that_was_left_out_never_gives_a_yes() -> None:
    assert answers(absent=["LIN003"])["Lineage explicit"] == "unknown"


def test_a_live_rows_export_hides_its_view() -> None:
    lost = (Missing(1, Cause.ARCHIVED),)
    told = answers(
        findings=[finding("EXP001", "a", "…")],
        coverage=[cover(lossy=3, missing=lost, scope=Scope.ACTIVE)],
        artifacts=[EXPORT],
        archived=1,
    )
    assert told["View named"] == "no"
    assert told["Compacted history accounted for"] == "no"
    assert told["Content identity"] == "unknown"
    assert told["Destructive formats explicit"] == "yes"


def test_changed_text_is_no_identity() -> None:
    assert answers(coverage=[cover(exact=3, changed=(7,))], artifacts=[EXPORT])["Content identity"] == "no"


def test_a_loss_answers_every_question_that_it_bears_on() -> None:
    told = answers(findings=[finding("EXP002", "a", "…")], coverage=[cover(exact=4)], artifacts=[EXPORT])
    assert {title for title, answer in told.items() if answer == "no"} == {
        "Compacted history accounted for",
        "Destructive formats explicit",
        "One fence",
        "Both sides kept",
        "Partial never whole",
    }


def test_what_was_skipped_or_changed_meanwhile_is_admitted() -> None:
    assert answers(skipped=[SkippedEntry("/x/b", "could not be read", unread=True)])["Fail closed"] == "no"
    assert answers(skipped=[SkippedEntry("/x/b", "not text")])["Fail closed"] == "yes"
    assert answers(unchanged=False)["Regression evidence"] == "no"
    assert answers(unchanged=None)["Regression evidence"] == "unknown"
    assert answers(era=None)["Version scope"] == "unknown"
    assert answers(findings=[finding("STO004", None, "…")])["Version scope"] == "no"


def test_a_part_that_reads_as_the_whole_is_a_partial_export() -> None:
    for rule in ("EXP007", "EXP008", "EXP009"):
        told = answers(findings=[finding(rule, "a", "…")], coverage=[cover(exact=4)], artifacts=[EXPORT])
        assert {title for title, answer in told.items() if answer == "no"} == {"Partial never whole"}


def test_a_ghost_row_tells_of_a_session_that_went_while_it_was_written_to() -> None:
    told = answers(findings=[finding("ORP005", "a", "…")], coverage=[cover(exact=4)], artifacts=[EXPORT])
    assert told["One fence"] == "no"


@pytest.mark.parametrize("rule", LINEAGE)
def test_every_rule_about_lineage_is_asked(rule: str) -> None:
    assert answers()["Lineage explicit"] == "yes"
    assert answers(findings=[finding(rule, "a", "a line that is not plain")])["Lineage explicit"] == "no"
    assert answers(blocked=[rule])["Lineage explicit"] == "unknown"
    assert answers(absent=[rule])["Lineage explicit"] == "unknown"
