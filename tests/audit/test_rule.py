"""What a rule is, and what every rule that ships owes its reader."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import pytest
import sqlglot

from statemend.audit.context import Context
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.registry import all_rules
from statemend.audit.rule import SECTIONS, Family, Level, Rule

DOC = """Something is not as it should be.

What it means
It means this.
And that.

What to do
Nothing.
"""


def nothing(context: Context) -> Iterator[Finding]:
    yield from ()


def make(**changes: object) -> Rule:
    rule = Rule(
        id="ABC001",
        slug="some-slug",
        family=Family.STORE,
        level=Level.VALUES,
        severity=Severity.LOW,
        verdict=Verdict.FAULT,
        doc=DOC,
        check=nothing,
    )
    return msgspec.structs.replace(rule, **changes)


def test_the_title_is_the_first_line() -> None:
    assert make().title == "Something is not as it should be."


def test_sections_are_what_stands_under_their_headings() -> None:
    assert make().sections == {"What it means": "It means this.\nAnd that.", "What to do": "Nothing."}


@pytest.mark.parametrize("wrong", ["ABC01", "abc001", "ABC0011", "ABCD001"])
def test_an_id_is_three_letters_and_three_digits(wrong: str) -> None:
    with pytest.raises(ValueError, match=re.escape(wrong)):
        Rule(**{**msgspec.structs.asdict(make()), "id": wrong})


@pytest.mark.parametrize("wrong", ["Some", "some_slug", "some--slug", "-some", ""])
def test_a_slug_is_words_joined_by_hyphens(wrong: str) -> None:
    with pytest.raises(ValueError, match="words joined by hyphens"):
        Rule(**{**msgspec.structs.asdict(make()), "slug": wrong})


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_every_docstring_has_a_title_and_the_five_sections(rule: Rule) -> None:
    assert rule.title.endswith(".")
    assert len(rule.title) <= 110
    assert tuple(rule.sections) == SECTIONS
    assert all(rule.sections.values())


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_every_statement_a_rule_names_is_one_query(rule: Rule) -> None:
    for statement in rule.reads:
        (tree,) = sqlglot.parse(statement, dialect="sqlite")
        assert isinstance(tree, sqlglot.exp.Query)


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_a_rule_stands_in_the_file_and_the_folder_that_bear_its_name(rule: Rule) -> None:
    *_, folder, module = rule.check.__module__.split(".")

    assert module == rule.slug.replace("-", "_")
    assert folder == rule.family.value
