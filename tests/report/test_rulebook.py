from __future__ import annotations

from statemend.audit import registry
from statemend.report import rulebook


def test_every_rule_is_known_by_its_id_and_its_family_by_the_first_letters() -> None:
    for rule in registry.all_rules():
        assert rulebook.known(rule.id) is rule
        assert rulebook.family(rule.id) == rule.family.value


def test_a_rule_of_another_version_is_not_known_and_keeps_its_letters() -> None:
    assert rulebook.known("XYZ999") is None
    assert rulebook.family("XYZ999") == "xyz"
