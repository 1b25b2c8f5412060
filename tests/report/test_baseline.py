from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.report import sample

from statemend.audit.finding import Verdict
from statemend.audit.outcome import FailOn
from statemend.errors import UsageError
from statemend.report import html, json, markdown, table
from statemend.report.baseline import apply_baseline, baseline_of, load_baseline, said
from statemend.report.blocks import plain
from statemend.report.model import Baseline, MessageText, Report, RuleEntry, SkippedEntry

IDS = [finding.id for finding in sample.FINDINGS]
UNREAD = SkippedEntry("/mnt/a/x.md", "permission denied", unread=True)
RAN = tuple(rule for rule in sample.RULES if rule.status != "could not run")


def determined(**changes: object) -> Report:
    """The sample without the rule that could not run."""
    return sample.report(**{"rules": RAN, "exit_code": 1, **changes})


def test_known_findings_go_and_the_rest_stays() -> None:
    hidden = apply_baseline(determined(), IDS[:2])
    assert [finding.id for finding in hidden.findings] == IDS[2:]
    assert hidden.baseline == Baseline(hidden=tuple(sorted(IDS[:2])))
    assert hidden.exit_code == 1
    counts = {rule.id: (rule.findings, rule.hidden) for rule in hidden.rules}
    assert counts["EXP001"] == (0, 1)
    assert counts["ORP001"] == (1, 0)
    assert {rule.status for rule in hidden.rules if rule.hidden} == {"findings"}


def test_only_what_is_left_decides_the_exit_code() -> None:
    faults = [finding.id for finding in sample.FINDINGS if finding.verdict is Verdict.FAULT]
    assert apply_baseline(determined(), faults).exit_code == 0
    assert apply_baseline(determined(fail_on=FailOn.RISK), faults).exit_code == 1
    assert apply_baseline(determined(fail_on=FailOn.NEVER), ()).exit_code == 0


def test_a_baseline_never_hides_what_could_not_be_determined() -> None:
    assert apply_baseline(sample.report(), IDS).exit_code == 3


def test_what_is_no_longer_found_is_gone_only_where_it_was_looked_for() -> None:
    baseline = apply_baseline(
        sample.report(), ["EXP003-0000000001", "LIN004-0000000002", "XYZ001-3"]
    ).baseline
    assert baseline == Baseline(gone=("EXP003-0000000001",), unknown=("LIN004-0000000002", "XYZ001-3"))


def test_nothing_is_gone_that_an_audit_which_looked_less_far_misses() -> None:
    damage = sample.finding("STO003", None, "An index is damaged.")
    store = sample.report().stores[0]
    whole = msgspec.structs.replace(store, deep=True)
    before = determined(findings=(damage, *sample.FINDINGS), stores=(whole,), exports=("/mnt/a",))
    known = baseline_of(before)
    ids = tuple(sorted(known.findings))
    for changes, unknown in (
        ({"stores": (whole,), "exports": ("/mnt",)}, ()),
        ({"stores": (store,), "exports": ("/mnt/a",)}, (damage.id,)),
        ({"stores": (whole,)}, ids),
        ({"stores": (whole,), "exports": ("/mnt/a",), "skipped": (UNREAD,)}, ids),
    ):
        baseline = apply_baseline(determined(**{"findings": (), "skipped": (), **changes}), known).baseline
        assert baseline is not None
        assert baseline.unknown == unknown
        assert set(baseline.gone) == set(ids) - set(unknown)


def test_what_one_baseline_could_not_tell_another_does_not_either() -> None:
    once = apply_baseline(determined(findings=(), skipped=(UNREAD,)), [IDS[0]])
    twice = apply_baseline(msgspec.structs.replace(once, skipped=()), [])
    assert twice.baseline == Baseline(unknown=(IDS[0],))


def test_a_second_baseline_adds_to_the_first() -> None:
    once = apply_baseline(determined(), [IDS[0], "EXP003-0000000001"])
    twice = apply_baseline(once, [IDS[1]])
    assert twice == apply_baseline(determined(), [IDS[0], IDS[1], "EXP003-0000000001"])


def test_a_report_under_its_own_baseline_is_empty_and_says_so() -> None:
    report = determined()
    hidden = apply_baseline(report, baseline_of(report).findings)
    assert hidden.findings == ()
    assert hidden.exit_code == 0
    assert hidden.verdict == "No new fault and no new risk found; 9 known findings hidden by the baseline."
    assert "clean" not in html.render(hidden).split("<main>")[0].split("<body>")[1]


def test_a_new_baseline_keeps_what_could_not_be_looked_for_and_drops_what_is_gone() -> None:
    hidden = apply_baseline(sample.report(), [IDS[0], "EXP003-0000000001", "LIN004-0000000002"])
    assert set(baseline_of(hidden).findings) == {*IDS, "LIN004-0000000002"}


def test_every_output_says_how_many_were_hidden_and_what_is_gone() -> None:
    hidden = apply_baseline(sample.report(), [*IDS[:3], "EXP003-0000000001", "LIN004-0000000002"])
    for shown in (plain(table.renderable(hidden), 200), markdown.render(hidden), html.render(hidden)):
        assert "3 known findings hidden by the baseline." in shown
        assert "1 known finding of the baseline no longer found: EXP003-0000000001." in shown
        assert "1 known finding of the baseline left open here: LIN004-0000000002." in shown
    assert '"baseline": {' in json.render(hidden)


def test_nothing_is_said_without_a_baseline() -> None:
    assert said(None) == ()
    assert "baseline" not in json.render(sample.report())


def test_texts_of_hidden_findings_go_too() -> None:
    findings = (
        sample.finding("ORP001", "a", "x", message_ids=(1, 2)),
        sample.finding("EXP001", "a", "x", message_ids=(2, 3)),
    )
    contents = tuple(MessageText(sample.STORE, number, "a", "user", str(number)) for number in (1, 2, 3))
    hidden = apply_baseline(determined(findings=findings, contents=contents), [findings[0].id])
    assert [text.message_id for text in hidden.contents or ()] == [2, 3]


def test_a_baseline_is_read_from_its_own_file_and_from_a_report(tmp_path: Path) -> None:
    report = apply_baseline(determined(), [IDS[0]])
    (tmp_path / "a.json").write_text(json.dump(baseline_of(report)))
    (tmp_path / "b.json").write_text(json.render(report))
    assert load_baseline(tmp_path / "a.json") == load_baseline(tmp_path / "b.json") == baseline_of(report)
    assert set(baseline_of(report).findings) == set(IDS)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "truncated"),
        (b"[]", "array"),
        (b"{}", "names no schema"),
        (b'{"schema": 7}', "Expected `str"),
        (b'{"schema": "statemend/plan/v1"}', "is 'statemend/plan/v1'"),
        (b'{"schema": "statemend/baseline/v1"}', "missing required field"),
        (b'{"schema": "statemend/report/v1"}', "missing required field"),
        (b"[" * 200_000, "array"),
        (b'{"schema": "\xff"}', "utf-8"),
    ],
)
def test_what_is_no_baseline_is_refused_in_one_line(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "b.json"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        load_baseline(path)
    assert why.lower() in str(caught.value).lower()
    assert "--write-baseline" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_rules_count_only_what_is_shown() -> None:
    rule = RuleEntry(id="EXP001", slug="x", title="", status="findings", findings=2)
    twins = (sample.finding("EXP001", "a", "x"), sample.finding("EXP001", "b", "x"))
    hidden = apply_baseline(determined(rules=(rule,), findings=twins), [twins[0].id])
    assert (hidden.rules[0].findings, hidden.rules[0].hidden) == (1, 1)
