"""Finding rules by place, and choosing them by name."""

from __future__ import annotations

import re

import msgspec
import pytest

from statemend.audit.registry import all_rules, arrange, discover, get, select, without
from statemend.errors import UsageError


def test_every_rule_is_found_once_in_running_order() -> None:
    rules = all_rules()

    assert sorted(rule.id for rule in discover()) == sorted(rule.id for rule in rules)
    assert [(rule.level, rule.id) for rule in rules] == sorted((rule.level, rule.id) for rule in rules)


def test_the_bytes_are_looked_at_before_everything_else() -> None:
    assert [rule.id for rule in all_rules()[:3]] == ["STO001", "STO002", "STO003"]


def test_two_rules_with_one_id_are_an_error() -> None:
    first, second, *_ = all_rules()

    with pytest.raises(ValueError, match=first.id):
        arrange([first, msgspec.structs.replace(second, id=first.id)])


def test_two_rules_with_one_slug_are_an_error() -> None:
    first, second, *_ = all_rules()

    with pytest.raises(ValueError, match=first.slug):
        arrange([first, msgspec.structs.replace(second, slug=first.slug)])


@pytest.mark.parametrize("name", ["CNT001", "cnt001", " message-count-drift ", "Message-Count-Drift"])
def test_a_rule_is_found_by_id_or_slug(name: str) -> None:
    assert get(name).id == "CNT001"


@pytest.mark.parametrize("name", ["", "CNT", "CNT999", "message"])
def test_a_name_without_a_rule_is_a_usage_error(name: str) -> None:
    with pytest.raises(UsageError, match=re.escape(repr(name))):
        get(name)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("lnx", "nearest are LIN; "),
        ("cnt002", "nearest are CNT001, STO002, LIN002; "),
        ("messages-drift", "nearest are message-count-drift, messages; "),
        ("zzz", ""),
    ],
)
def test_a_name_without_a_rule_is_answered_with_the_nearest(name: str, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        select([name])
    assert str(refused.value) == f"there is no rule {name!r}: {told}`statemend rules` lists them"


def test_no_choice_means_all() -> None:
    assert select(None) == all_rules()


@pytest.mark.parametrize("name", ["STO", "sto", "store"])
def test_a_family_is_chosen_by_name_or_letters(name: str) -> None:
    assert {rule.id for rule in select([name])} == {rule.id for rule in all_rules() if rule.id[:3] == "STO"}


def test_choices_add_up_and_keep_the_running_order() -> None:
    assert [rule.id for rule in select(["CNT001", "STO", "invalid-header"])] == [
        "STO001",
        "STO002",
        "STO003",
        "STO006",
        "STO004",
        "STO005",
        "CNT001",
    ]


@pytest.mark.parametrize("names", [[], ["STO001", "nonsense"], [""]])
def test_a_choice_that_names_nothing_is_a_usage_error(names: list[str]) -> None:
    with pytest.raises(UsageError):
        select(names)


def test_what_is_ignored_is_left_out_and_told_with_who_asked() -> None:
    chosen = select(["STO", "CNT001"])

    kept, left_out = without(chosen, {"STO003": "the settings", "cnt001": "the request", "LIN": "another"})

    assert [rule.id for rule in kept] == ["STO001", "STO002", "STO006", "STO004", "STO005"]
    assert left_out == {"STO003": "the settings", "CNT001": "the request"}
    assert without(chosen, ["CNT"])[1] == {"CNT001": "the request"}


def test_a_choice_that_leaves_nothing_says_so() -> None:
    with pytest.raises(UsageError, match=r"^no rule is named: leave the choice out to run them all$"):
        select([])
    with pytest.raises(UsageError, match=r"^every chosen rule is ignored: nothing is left to look for$"):
        without(select(["CNT001"]), ["CNT"])
