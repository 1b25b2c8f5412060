from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.cli.conftest import Outcome

from statemend.audit.registry import all_rules
from statemend.audit.rule import SECTIONS, Rule

Run = Callable[..., Outcome]


def test_every_rule_is_listed(statemend: Run) -> None:
    told = statemend("rules")
    assert told.code == 0
    for rule in all_rules():
        assert rule.id in told.out
        assert f"({rule.slug})" in told.out.replace("\n" + " " * 38, " ")


def test_the_list_is_data_too(statemend: Run) -> None:
    document = json.loads(statemend("rules", "--format", "json").out)
    assert document["schema"] == "statemend/rules/v1"
    assert [entry["id"] for entry in document["rules"]] == [rule.id for rule in all_rules()]


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_a_rule_is_explained_by_id_and_by_name(statemend: Run, rule: Rule) -> None:
    told = statemend("explain", rule.id)
    assert told.code == 0
    assert told.out.startswith(f"{rule.id} {rule.slug}\n")
    assert [line for line in told.out.splitlines() if line in SECTIONS] == list(SECTIONS)
    assert statemend("explain", rule.slug).out == told.out
    assert statemend("explain", f"{rule.id}-37d5ac0a3e").out == told.out, "the id of a finding"
    (entry,) = json.loads(statemend("explain", rule.id.lower(), "--format", "json").out)["rules"]
    assert list(entry["sections"]) == list(SECTIONS)
