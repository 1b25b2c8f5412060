"""Choices files: written as a template, read back, and matched to a plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from statemend.errors import UsageError
from statemend.playbook import choices
from statemend.playbook.model import Answer
from statemend.repair.plan import Choice, Left, Option, Plan, StoreIdentity

ODD = 'continue: "a" #\n\u202e\\ é'


def choice(name: str, finding: str, *options: str, chosen: str | None = None) -> Choice:
    made = tuple(Option(id=one, title=f"Take\n{one}", evidence=(f"why {one}",) * 8) for one in options)
    return Choice(id=name, finding=finding, question=f"Which of\n{name}?", options=made, chosen=chosen)


@pytest.fixture
def plan() -> Plan:
    return Plan(
        id="p1",
        made_at="2026-09-24T03:12:44Z",
        tool="statemend",
        home="/home/x",
        store=StoreIdentity(path="/home/x/state.db", schema_digest="0"),
        choices=(
            choice("LIN002-1/fork", "LIN002-1", "continue:a", ODD, "leave"),
            choice("LIN003-2/untag", "LIN003-2", "yes", "leave"),
            choice("LIN003-2/other", "LIN003-2", "yes", "leave"),
            choice("ORP002-3/parents", "ORP002-3", "yes", "leave", chosen="leave"),
        ),
        left=(Left(id="EXP001-9", rule="EXP001", reason="no file holds it"),),
    )


def written(folder: Path, text: str) -> Path:
    path = folder / "choices.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_template_lists_what_is_open_and_reads_back_as_unanswered(plan: Plan, tmp_path: Path) -> None:
    text = choices.template(plan)
    answers = choices.load(written(tmp_path, text))

    assert [answer.choice for answer in answers] == ["LIN002-1/fork", "LIN003-2/untag", "LIN003-2/other"]
    assert all(answer.option is None and not answer.skip for answer in answers)
    assert [one.id for one in choices.match(plan, answers).unanswered] == [one.choice for one in answers]
    assert "  # Which of␊LIN002-1/fork?\n" in text
    assert '  #   "continue:a": Take␊continue:a\n' in text
    assert "  #       and 2 more\n" in text


def test_an_option_can_be_copied_from_the_template_whatever_its_id_is(plan: Plan, tmp_path: Path) -> None:
    text = choices.template(plan)
    line = next(line for line in text.splitlines() if "continue: " in line)
    copied = line.strip("# ").rpartition(": Take")[0]
    assert yaml.safe_load(copied) == ODD

    answers = choices.load(written(tmp_path, text.replace("option: null", f"option: {copied}", 1)))
    matched = choices.match(plan, answers)
    assert matched.plan.choices[0].chosen == ODD


def test_a_template_of_a_plan_without_choices_is_a_choices_file(plan: Plan, tmp_path: Path) -> None:
    import msgspec

    settled = msgspec.structs.replace(plan, choices=())

    assert choices.load(written(tmp_path, choices.template(settled))) == ()


def test_answers_name_a_choice_or_the_finding_it_is_about(plan: Plan) -> None:
    matched = choices.match(
        plan,
        [
            Answer(choice="LIN002-1", option="continue:a"),
            Answer(choice="LIN003-2/untag", skip=True, why="not now"),
            Answer(choice="ORP002-3/parents", option="yes"),
        ],
    )

    assert [one.chosen for one in matched.plan.choices] == ["continue:a", None, None, "yes"]
    assert [one.id for one in matched.unanswered] == ["LIN003-2/other"]
    assert [one.id for one in matched.skipped] == ["LIN003-2/untag"]
    assert plan.choices[0].chosen is None


def test_what_the_plan_has_chosen_stays_unless_it_is_answered(plan: Plan) -> None:
    assert choices.match(plan, []).plan == plan
    skipped = choices.match(plan, [Answer(choice="ORP002-3", skip=True)])
    assert skipped.plan.choices[3].chosen is None


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (
            [Answer(choice="LIN002-8/fork", option="leave")],
            "LIN002-8/fork: no such choice in the plan; did you",
        ),
        ([Answer(choice="nonsense", option="leave")], "it may be stale: plan anew"),
        (
            [Answer(choice="LIN003-2", option="yes")],
            "LIN003-2: 2 choices are about it; name one of LIN003-2/untag",
        ),
        ([Answer(choice="EXP001-9", option="x")], "leaves nothing to choose there: no file holds it"),
        (
            [Answer(choice="LIN002-1", option="Leave")],
            "choice LIN002-1/fork: no option 'Leave'; there are cont",
        ),
        ([Answer(choice="LIN002-1", option="leave", skip=True)], "skipped, and answered"),
        (
            [Answer(choice="LIN002-1", option="leave"), Answer(choice="LIN002-1/fork", option="continue:a")],
            "two answers that differ",
        ),
    ],
    ids=lambda value: None,
)
def test_an_answer_that_fits_nothing_is_refused_by_name(plan: Plan, answers: list[Answer], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        choices.match(plan, answers)

    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_choices_file_may_be_json(tmp_path: Path) -> None:
    document = {"schema": choices.SCHEMA, "choices": [{"choice": "a", "option": "é", "why": "because"}]}

    assert choices.load(written(tmp_path, json.dumps(document, indent=2))) == (
        Answer(choice="a", option="é", why="because"),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("schema: statemend/choices/v2\n", "1:9: 'statemend/choices/v2' is none of statemend/choices/v1"),
        ("choices: []\n", "1:1: `schema` is missing; add it"),
        ("{schema: statemend/choices/v1, choices: {}}", "1:41: expected a list, got a mapping"),
        ("{schema: statemend/choices/v1, choices: [{option: x}]}", "1:42: `choice` is missing; add it"),
        ("{schema: statemend/choices/v1, choices: [{choice: x, opt: y}]}", "1:42: unknown key `opt`"),
        (
            "{schema: statemend/choices/v1, choices: [{choice: x, option: y, skip: true}]}",
            "skipped, and answ",
        ),
        ("{schema: statemend/choices/v1, choices: [{choice: '{{ x }}'}]}", "`choice` holds no template"),
        ("[]", "1:1: expected a mapping"),
    ],
    ids=lambda value: None,
)
def test_what_is_no_choices_file_is_refused_by_line_and_column(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError) as raised:
        choices.load(path)

    assert str(raised.value).startswith(f"{path}:1:")
    assert said in str(raised.value)
