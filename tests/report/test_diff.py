from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence

import msgspec
import pytest
from tests.report import sample

from statemend.audit import registry
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.outcome import FailOn
from statemend.report import sight
from statemend.report.baseline import apply_baseline
from statemend.report.diff import Diff, Difference, FieldChange, diff, exit_code
from statemend.report.model import ArtifactEntry, Report, RuleEntry, SkippedEntry, StoreEntry, Tool

RULES = tuple(msgspec.structs.replace(rule, status="clean", reason="", findings=0) for rule in sample.RULES)
STORE = StoreEntry(path=sample.STORE, size=1, unchanged=True)
LOST, ARCHIVED, ORPHAN, *_ = sample.FINDINGS
LOG = ArtifactEntry(path="/srv/hermes/logs/agent.log", kind="log", size=1, sha256="0" * 64)


def report(*findings: Finding, **changes: object) -> Report:
    """A report in which every rule ran, with these findings."""
    values: dict[str, object] = {
        "findings": findings,
        "rules": RULES,
        "stores": (STORE,),
        "skipped": (),
        "exit_code": int(bool(findings)),
        **changes,
    }
    return sample.report(**values)


def ended(rule: str, status: str, reason: str = "") -> tuple[RuleEntry, ...]:
    """All rules, with ``rule`` ended so."""
    return tuple(
        msgspec.structs.replace(each, status=status, reason=reason) if each.id == rule else each
        for each in RULES
    )


def ids(differences: Sequence[Difference]) -> list[str]:
    return [each.finding.id for each in differences]


def test_a_report_and_itself_have_no_difference() -> None:
    found = diff(sample.report(), sample.report())
    assert (found.new, found.gone, found.changed, found.rules, found.caveats) == ((), (), (), (), ())
    assert found.unchanged == len(sample.FINDINGS)
    assert found.verdict == "Nothing new, nothing gone, nothing changed."
    assert exit_code(diff(report(), report())) == 0


def test_new_and_gone_are_told_by_id() -> None:
    found = diff(report(LOST, ARCHIVED), report(ARCHIVED, ORPHAN))
    assert (ids(found.new), ids(found.gone), found.unchanged) == ([ORPHAN.id], [LOST.id], 1)
    assert found.verdict == "1 new finding, 1 gone, 0 changed."
    assert exit_code(found) == 1
    assert exit_code(found, FailOn.NEVER) == 0


@pytest.mark.parametrize(
    ("verdict", "fail_on", "code"),
    [
        (Verdict.FAULT, FailOn.FAULT, 1),
        (Verdict.RISK, FailOn.FAULT, 0),
        (Verdict.RISK, FailOn.RISK, 1),
        (Verdict.UNDECIDABLE, FailOn.RISK, 0),
        (Verdict.FAULT, FailOn.NEVER, 0),
    ],
)
def test_the_exit_code_follows_what_is_new(verdict: Verdict, fail_on: FailOn, code: int) -> None:
    new = msgspec.structs.replace(ORPHAN, verdict=verdict)
    assert exit_code(diff(report(), report(new)), fail_on) == code


def test_what_a_finding_says_differently_is_named() -> None:
    now = sample.finding(
        "EXP001",
        ARCHIVED.subject.session,
        "81 archived messages of this session are in no export.",
        artifact=ARCHIVED.subject.artifact,
        severity=Severity.HIGH,
        verdict=Verdict.RISK,
        message_ids=(*ARCHIVED.subject.message_ids, 92),
        evidence={
            "display messages": 123,
            "in no artifact": 81,
            "view of the export": "active",
            "era": "0.19",
        },
    )
    (change,) = diff(report(ARCHIVED), report(now)).changed
    assert change.finding == now
    assert change.fields == (
        FieldChange("verdict", "fault", "risk"),
        FieldChange("severity", "critical", "high"),
        FieldChange("summary", ARCHIVED.summary, now.summary),
        FieldChange("messages", "12–91", "12–92"),
        FieldChange("evidence: display messages", 122, 123),
        FieldChange("evidence: held by the export", 42, None),
        FieldChange("evidence: in no artifact", 80, 81),
        FieldChange("evidence: written by", "0.19.0 or older", None),
        FieldChange("evidence: era", None, "0.19"),
    )


def test_a_finding_that_has_become_a_fault_fails_as_a_new_one_does() -> None:
    risk = msgspec.structs.replace(ARCHIVED, verdict=Verdict.RISK)
    assert exit_code(diff(report(risk), report(ARCHIVED))) == 1
    assert exit_code(diff(report(risk), report(ARCHIVED)), FailOn.RISK) == 0
    assert exit_code(diff(report(ARCHIVED), report(risk)), FailOn.RISK) == 0


def test_rules_that_ended_otherwise_are_named() -> None:
    after = ended("LIN004", "not applicable", "no table")[:-1]
    told = [
        (each.id, each.before, each.after, each.reason) for each in diff(report(), report(rules=after)).rules
    ]
    assert told == [("CNT001", "clean", None, ""), ("LIN004", "clean", "not applicable", "no table")]


class TestWhatCouldNotBeSeen:
    """A finding that the second report lacks is not gone where it could not have been seen."""

    @staticmethod
    def blind(found: Diff, why: str) -> None:
        assert found.gone == ()
        ((_, reason),) = ((each.finding, each.reason) for each in found.unknown)
        assert why in reason
        assert exit_code(found, FailOn.NEVER) == 3

    def test_its_rule_could_not_run(self) -> None:
        after = report(rules=ended("ORP001", "could not run", "a torn page"))
        found = diff(report(ORPHAN), after)
        self.blind(found, "its rule could not run: a torn page")
        assert found.undetermined == ("ORP001 messages-without-session could not run: a torn page",)
        assert found.verdict == "0 new findings, 0 gone, 0 changed; 1 could not be looked for again."

    def test_its_rule_was_not_chosen(self) -> None:
        after = report(rules=tuple(rule for rule in RULES if rule.id != "ORP001"))
        self.blind(diff(report(ORPHAN), after), "its rule was not run")

    def test_the_store_changed_meanwhile(self) -> None:
        after = report(stores=(msgspec.structs.replace(STORE, unchanged=False),))
        self.blind(diff(report(ORPHAN), after), "changed while it was read")

    def test_it_was_found_with_deep(self) -> None:
        damage = sample.finding("STO003", None, "An index is damaged.")
        before = report(damage, stores=(msgspec.structs.replace(STORE, deep=True),))
        found = diff(before, report())
        self.blind(found, "--deep")
        assert found.caveats == ("only the first audit checked the whole store (--deep)",)
        assert ids(diff(report(damage), report()).gone) == [damage.id]

    @pytest.mark.parametrize("named", [True, False], ids=["the finding names it", "it holds the session"])
    def test_its_file_lies_in_a_folder_that_was_not_looked_at(self, named: bool) -> None:
        path = "/mnt/exports/a.md"
        found = sample.finding("EXP003", "s", "altered", artifact=path if named else None)
        file = ArtifactEntry(path=path, kind="markdown", size=1, sha256="0" * 64, sessions=("s",))
        before = report(found, exports=("/mnt/exports",), artifacts=(file,))
        after = report(artifacts=())
        self.blind(diff(before, after), "/mnt/exports was not looked at")
        for seen in ("/mnt/exports", "/mnt/exports/", "/mnt"):
            assert ids(diff(before, report(artifacts=(), exports=(seen,))).gone) == [found.id]

    def test_its_file_could_not_be_read(self) -> None:
        after = report(
            artifacts=(), skipped=(SkippedEntry(sample.LOST_EXPORT, "permission denied", unread=True),)
        )
        self.blind(diff(report(LOST), after), "could not be read: permission denied")

    def test_a_folder_above_its_file_could_not_be_read(self) -> None:
        folder = SkippedEntry("/srv/hermes/session-exports", "permission denied", unread=True)
        self.blind(diff(report(LOST), report(artifacts=(), skipped=(folder,))), "could not be read")

    def test_its_file_could_not_be_read_in_a_home_that_moved(self) -> None:
        lost = SkippedEntry(sample.LOST_EXPORT.replace("/srv/hermes", "/new"), "denied", unread=True)
        after = report(home="/new", artifacts=(), skipped=(lost,))
        found = diff(report(LOST), after)
        self.blind(found, "denied")
        assert found.caveats == ("the homes are named differently: /srv/hermes and /new",)

    def test_a_file_that_no_rule_looks_at_hides_nothing(self) -> None:
        after = report(skipped=(SkippedEntry("/srv/hermes/session-exports/x.png", "not text"),))
        assert ids(diff(report(LOST), after).gone) == [LOST.id]


def test_a_finding_whose_file_is_gone_was_not_mended() -> None:
    failures = sample.FINDINGS[3]
    found = diff(report(failures, artifacts=(LOG,)), report(artifacts=()))
    (gone,) = found.gone
    assert gone.reason == f"the file that told of it is no longer there: {LOG.path}"
    assert exit_code(found) == 0
    (mended,) = diff(report(failures, artifacts=(LOG,)), report(artifacts=(LOG,))).gone
    assert mended.reason == ""


def test_what_the_first_report_could_not_see_may_not_be_new_and_says_so() -> None:
    before = report(rules=ended("ORP001", "could not run", "a torn page"))
    found = diff(before, report(ORPHAN))
    assert [each.reason for each in found.new] == [
        "the first report could not have shown it: its rule could not run: a torn page"
    ]
    assert exit_code(found) == 1


def test_an_undetermined_second_report_is_never_called_unchanged() -> None:
    after = report(rules=ended("LIN004", "could not run", "a page"))
    found = diff(report(), after)
    assert (found.new, found.gone, found.unknown) == ((), (), ())
    assert exit_code(found, FailOn.NEVER) == 3


def test_what_a_baseline_hides_is_there_all_the_same() -> None:
    shown = report(LOST, ARCHIVED)
    hidden = apply_baseline(shown, [LOST.id])
    for a, b in ((shown, hidden), (hidden, shown), (hidden, hidden)):
        found = diff(a, b)
        assert (found.new, found.gone, found.unknown, found.unchanged) == ((), (), (), 2)
    assert diff(hidden, shown).before.hidden == 1


def test_two_audits_that_differ_are_told_apart() -> None:
    before = report(generated_at="2026-10-02T00:00:00Z", exports=("/a", "/b"))
    after = report(tool=Tool(name="statemend", version="9.0", sqlite="3"), exports=("/b", "/c"))
    assert diff(before, after).caveats == (
        "the first report is newer than the second; are they the wrong way round?",
        "another version made each: 0.1.0 and 9.0; rules may differ",
        "only the first audit looked at /a",
        "only the second audit looked at /c",
    )


def test_the_rules_that_look_deeper_are_those_that_ask_for_it() -> None:
    asking = {
        rule.id
        for rule in registry.all_rules()
        if "--deep" in rule.doc or "context.deep" in inspect.getsource(sys.modules[rule.check.__module__])
    }
    asking.remove("EXP001")  # it looks at more copies then, and finds fewer
    assert asking == sight.DEEPER, "name in sight.DEEPER what finds more with --deep"
