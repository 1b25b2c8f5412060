"""What is told about a playbook before it runs, and what it becomes when it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from statemend.errors import UsageError
from statemend.playbook import check, source
from statemend.playbook.model import Check, Cleanup, Export, FailOn, Playbook, Report, Scan

HEAD = """schema: statemend/playbook/v1
name: trial
title: A trial
purpose: To try what is told
inputs:
  home: {type: path, help: the home}
  days: {type: number, help: how old, default: 30}
  level: {type: text, help: how bad}
  folders: {type: paths, help: where to look, default: []}
  sure: {type: boolean, help: whether, default: true}
steps:
"""
#: The line in which the first step of a playbook with this head begins.
FIRST = HEAD.count("\n") + 1


def told(steps: str, head: str = HEAD) -> list[str]:
    found = check.problems(source.parse((head + steps).encode(), "p.yaml"))
    return [f"{line - FIRST}:{column}: {text}" for line, column, text in found]


def checked(steps: str) -> Playbook:
    return check.check(source.parse((HEAD + steps).encode(), "p.yaml"))


def resolved(steps: str, **inputs: object) -> Playbook:
    given = {"home": "/h", "days": 30.0, "level": "fault", "folders": [], "sure": True, **inputs}
    run = {"name": "trial", "folder": "/r", "started": "2026-09-24T03:12:44Z"}
    return check.resolve(source.parse((HEAD + steps).encode(), "p.yaml"), given, run)


WHOLE = """
  - do: scan
    fail_on: "{{ level }}"
    exports: "{{ folders }}"
    deep: "{{ sure }}"
  - do: check
    sql: SELECT id FROM findings WHERE severity = :level
    expect: empty
    message: "Worse than {{ level }} in {{ run.folder }}"
  - do: export
    older_than: "{{ days }}"
    into: "{{ run.folder }}/{{ run.name }}"
  - do: verify
  - do: cleanup
    older_than: "{{ days }}"
  - do: report
    story: true
"""


def test_a_playbook_can_be_checked_before_its_inputs_are_known() -> None:
    assert told(WHOLE) == []
    scan = checked(WHOLE).steps[0]
    assert isinstance(scan, Scan)
    assert scan.fail_on is FailOn.NEVER  # not known yet, so the default


def test_a_path_in_a_step_is_the_same_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    steps = """
  - {do: scan, exports: [here, ~/there], baseline: last}
  - {do: scan, id: again, baseline: scan}
  - {do: scan, id: old, baseline: old.json}
  - {do: export, at_risk: true, into: ../kept}
"""
    first, again, old, export = resolved(steps).steps

    assert isinstance(first, Scan)
    assert isinstance(again, Scan)
    assert isinstance(old, Scan)
    assert isinstance(export, Export)
    assert (first.exports, first.baseline) == ((f"{tmp_path}/here", "/home/me/there"), "last")
    assert (again.baseline, old.baseline) == ("scan", f"{tmp_path}/old.json")
    assert export.into == str(tmp_path.parent / "kept")
    with pytest.raises(UsageError, match="`exports` takes a path, and this is empty"):
        resolved("  - {do: scan, exports: ['']}\n")


def test_templates_are_filled_and_keep_the_types_of_the_inputs() -> None:
    playbook = resolved(WHOLE, folders=["/x", "/y"], days=1.5)

    scan, question, export, _, cleanup, _ = playbook.steps
    assert playbook.home == "/h"
    assert isinstance(scan, Scan)
    assert (scan.fail_on, scan.exports, scan.deep) == (FailOn.FAULT, ("/x", "/y"), True)
    assert isinstance(question, Check)
    assert question.message == "Worse than fault in /r"
    assert isinstance(export, Export)
    assert isinstance(cleanup, Cleanup)
    assert (export.older_than, cleanup.older_than, export.into) == (1.5, 1.5, "/r/trial")


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"level": "worst"}, "p.yaml:14:14: 'worst' is none of fault, risk, never"),
        ({"days": -1.0}, "expected a number >= 0.0 (and 1 more)"),
        ({"folders": "/x"}, "expected a list, got text"),
    ],
    ids=["none of the values", "out of range", "another type"],
)
def test_an_input_that_does_not_fit_is_found_where_it_is_used(inputs: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        resolved(WHOLE, **inputs)

    assert said in str(raised.value)


def test_an_error_is_one_line_with_the_first_problem_and_how_many_more() -> None:
    with pytest.raises(UsageError) as raised:
        checked("  - do: scn\n  - do: scan\n    dep: true\n  - do: export\n    view: all\n")

    assert str(raised.value) == "p.yaml:12:9: no step 'scn'; did you mean 'scan'? (and 2 more)"


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ("  - do: scann\n", ["0:9: no step 'scann'; did you mean 'scan'?"]),
        ("  - scan\n", ["0:5: a step begins with `do` and what to do"]),
        ("  - do: [scan]\n", ["0:9: no step \"['scan']\"; did you mean 'scan'?"]),
        ("  []\n", ["0:3: expected a list of 1 to 100 steps"]),
        ("  - do: scan\n    depp: 1\n", ["1:5: unknown key 'depp'; did you mean 'deep'?"]),
        ("  - do: scan\n    deep: yes\n", ["1:11: expected true or false, got text"]),
        ("  - do: scan\n    rules: EXP001\n", ["1:12: expected a list, got text"]),
        ("  - do: scan\n    rules: [EXP001, 2]\n", ["1:21: expected text, got a whole number"]),
        ("  - do: scan\n    fail_on: bad\n", ["1:14: 'bad' is none of fault, risk, never"]),
        ("  - do: scan\n    id: A B\n", ["1:9: a name is made of lower-case letters, digits, `-` and `_`,"]),
        ("  - do: pause\n", ["0:5: `message` is missing; add it"]),
        ("  - do: pause\n    message: ''\n", ["1:14: expected text of length >= 1"]),
        ("  - do: pause\n    message: '{{ hom }}'\n", ["1:14: no input 'hom'; did you mean 'home'?"]),
        ("  - do: pause\n    message: |\n      a\n      b {{ 1+1 }}\n", ["3:9: it computes; a template"]),
        ('  - do: pause\n    message: "a\\0b"\n', ["1:14: a NUL character; remove it"]),
        ("  - do: scan\n    deep: '{{ level }}'\n", ["1:11: expected true or false, got text"]),
        ("  - do: scan\n    id: '{{ level }}'\n", ["1:9: `id` holds no template; write the value itself"]),
        ("  - do: '{{ level }}'\n", ["0:9: no step '{{ level }}'"]),
        (
            "  - do: check\n    sql: SELECT {{ days }}\n    expect: rows\n    message: m\n",
            ["1:10: `sql` holds no template; an input is bound in SQL as :name"],
        ),
        (
            "  - do: check\n    sql: 'SELECT {{ days }}'\n    expect: rows\n    message: m\n",
            ["1:10: `sql` holds no template; an input is bound in SQL as :name"],
        ),
    ],
    ids=lambda value: None,
)
def test_a_wrong_step_is_told_by_line_and_column(steps: str, said: list[str]) -> None:
    found = told(steps)

    assert len(found) == len(said)
    for one, start in zip(found, said, strict=True):
        assert one.startswith(start)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "statemend/playbook/v1",
            "statemend/playbook/v9",
            "'statemend/playbook/v9' is none of statemend/play",
        ),
        ("purpose: ", "purose: ", "`purpose` is missing; add it"),
        ("purpose: ", "purose: ", "unknown key 'purose'; did you mean 'purpose'?"),
        ("name: trial", "name: A", "a name is made of lower-case letters"),
        ("  home: {", "  run: {", "'run' means something else in a template; choose another name"),
        ("  home: {", "  the-home: {", "an input's name is made of lower-case letters, digits and `_`"),
        ("  home: {", "  house: {", "no input 'home'; did you mean 'house'?"),
        ("type: path,", "type: folder,", "'folder' is none of text, integer, number, boolean, path, paths"),
        ("default: 30", "default: soon", "the default is no number"),
        ("help: how bad", f"help: x, default: {'a' * 5000}", "the default is longer than 4,096 characters"),
        ("default: 30", "default: '{{ level }}'", "`default` holds no template"),
        ("default: 30", "defaut: 30", "unknown key 'defaut'; did you mean 'default'?"),
        ("help: how bad", "help: x, values: [a], default: b", "the default is none of a"),
        ("default: 30", "values: ['1']", "only an input of type text has `values`"),
        ("title: ", "home: '{{ run.folder }}'\ntitle: ", "the home is found before a run begins"),
    ],
    ids=lambda value: None,
)
def test_what_is_wrong_above_the_steps_is_told(old: str, new: str, said: str) -> None:
    assert HEAD.count(old) == 1
    found = told("  - do: scan\n", HEAD.replace(old, new))

    assert any(said in one for one in found)


def test_what_is_no_playbook_at_all_is_told() -> None:
    for text in ("[1, 2]", "just words", "null"):
        with pytest.raises(UsageError, match=r"p\.yaml:1:1: no playbook"):
            check.check(source.parse(text.encode(), "p.yaml"))


EXPORT = "  - {do: export, at_risk: true}\n"
PLAN = "  - do: plan\n"


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ("  - do: scan\n  - do: scan\n", ["1:9: a second step called 'scan'; give it an `id` of its own"]),
        (
            "  - {do: scan, needs: [scan]}\n",
            ["0:24: the step 'scan' does not come before this one; move it up"],
        ),
        ("  - {do: scan, needs: [sca]}\n", ["0:24: no step 'sca'; did you mean 'scan'?"]),
        ("  - do: apply\n", ["0:9: it needs a `plan` before it; add one"]),
        ("  - do: scan\n  - {do: apply, plan: scan}\n", ["1:23: the step 'scan' is no `plan`"]),
        (PLAN + "  - {do: apply, needs: []}\n", ["1:24: it uses 'plan' without needing it"]),
        ("  - do: report\n", ["0:9: it needs a `scan` before it; add one"]),
        ("  - {do: report, story: true}\n", []),
        (
            "  - {do: report, story: true, formats: [html, sarif]}\n",
            ["0:40: a story is told as html, md or json, not as sarif"],
        ),
        (
            "  - do: scan\n  - {do: report, formats: [html, md, html]}\n",
            ["1:38: 'html' is there twice; remove one"],
        ),
        (EXPORT + "  - {do: verify, of: [export, export]}\n", ["1:31: 'export' is there twice; remove one"]),
        ("  - do: scan\n  - {do: report, only: changes}\n", ["1:24: the scan 'scan' has no `baseline`"]),
        ("  - {do: scan, baseline: last}\n  - {do: report, only: changes}\n", []),
        ("  - do: verify\n", ["0:9: nothing to verify"]),
        (
            EXPORT + "  - {do: verify, of: [exprt]}\n",
            ["1:23: no step 'exprt'; did you mean 'export'?"],
        ),
        (PLAN + "  - {do: verify, of: [plan]}\n", ["1:23: the step 'plan' is neither an `apply` nor an"]),
        (EXPORT + "  - {do: verify, needs: []}\n", ["1:25: it verifies 'export' without needing it"]),
        (EXPORT + "  - do: verify\n  - {do: verify, id: again}\n", ["2:10: nothing to verify"]),
        ("  - do: export\n", ["0:9: say exactly one of `sessions`, `at_risk` and `older_than`"]),
        ("  - {do: export, at_risk: true, older_than: 3}\n", ["0:10: say exactly one of"]),
    ],
    ids=lambda value: None,
)
def test_steps_that_do_not_hang_together_are_told(steps: str, said: list[str]) -> None:
    found = told(steps)

    for start in said:
        assert any(one.startswith(start) for one in found), found
    assert bool(found) == bool(said)


VERIFY = "  - do: verify\n"
CLEANUP = "  - {do: cleanup, older_than: 30}\n"


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (EXPORT + VERIFY + CLEANUP, None),
        (EXPORT + VERIFY + "  - do: scan\n" + CLEANUP, None),
        (CLEANUP, "a cleanup needs a `verify` before it that it depends on"),
        (EXPORT + CLEANUP, "a cleanup needs a `verify` before it that it depends on"),
        (EXPORT + CLEANUP + VERIFY, "a cleanup needs a `verify` before it that it depends on"),
        (
            EXPORT + VERIFY + "  - {do: cleanup, older_than: 30, needs: [export]}\n",
            "a cleanup needs a `verify` before it that it depends on",
        ),
        (EXPORT + VERIFY + "  - {do: cleanup, older_than: 30, needs: []}\n", "a cleanup needs a `verify`"),
        (
            EXPORT + VERIFY + "  - {do: export, id: more, older_than: 3}\n" + CLEANUP,
            "'more' is not verified before this cleanup",
        ),
        (EXPORT + VERIFY + PLAN + "  - do: apply\n" + CLEANUP, "'apply' is not verified before this cleanup"),
        (
            PLAN + "  - do: apply\n" + EXPORT + "  - {do: verify, of: [apply]}\n" + CLEANUP,
            "'export' is not verified before this cleanup",
        ),
        (PLAN + "  - do: apply\n" + VERIFY + CLEANUP, "nothing exported before this cleanup"),
        (
            PLAN + "  - do: apply\n" + VERIFY + "  - {do: cleanup, older_than: 30, artifacts: [/x]}\n",
            None,
        ),
        (EXPORT + VERIFY + "  - do: cleanup\n", "say exactly one of `sessions` and `older_than`"),
    ],
    ids=lambda value: None,
)
def test_a_cleanup_cannot_be_reached_without_a_verify_of_everything_before_it(
    steps: str, said: str | None
) -> None:
    found = told(steps)

    assert [one for one in found if said and said in one] if said else not found, found


def test_a_gate_holds_whatever_the_inputs_are() -> None:
    """What decides the order holds no template, so an input cannot open a gate."""
    steps = EXPORT + VERIFY + "  - {do: cleanup, older_than: 30, needs: '{{ folders }}'}\n"

    assert any("`needs` holds no template" in one for one in told(steps))


def test_a_selection_that_an_input_empties_is_refused_when_it_is_known() -> None:
    steps = '  - {do: export, sessions: "{{ folders }}"}\n'

    assert told(steps) == []
    with pytest.raises(UsageError, match="say exactly one of"):
        resolved(steps, folders=[])


QUESTION = '  - {{do: check, sql: "{}", expect: {}, message: m}}\n'


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (QUESTION.format("SELECT count(*) FROM messages", "value"), "`value` is missing"),
        (QUESTION.format("SELECT 1", "rows, value: 1"), "a `value` is compared only with `expect: value`"),
        (QUESTION.format("SELECT id FROM findings", "rows"), "is what a scan found; add a `scan` before it"),
        (QUESTION.format("SELECT :hom", "rows"), "no input :hom; did you mean 'home'?"),
        (QUESTION.format("SELECT nowhere FROM sessions", "rows"), "no such column: nowhere"),
        (QUESTION.format("SELECT 1 FROM session", "rows"), "no table 'session'; did you mean sessions?"),
        (QUESTION.format("DELETE FROM sessions", "rows"), "not a SELECT"),
        (QUESTION.format("SELECT 1", "rows, rows: 0"), "expected a whole number >= 1"),
    ],
    ids=lambda value: None,
)
def test_a_question_that_cannot_be_asked_is_told_before_anything_runs(steps: str, said: str) -> None:
    (found,) = told(steps)

    assert said in found


def test_the_defaults_are_those_of_the_model() -> None:
    (scan, report) = resolved("  - do: scan\n  - do: report\n").steps

    assert (scan, report) == (Scan(), Report())
