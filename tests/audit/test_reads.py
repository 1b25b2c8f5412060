"""Which tables a rule reads: what the engine asks before a rule runs on a store that lacks or broke some."""

from __future__ import annotations

import pytest

from statemend.audit.reads import tables_read
from statemend.audit.registry import all_rules
from statemend.audit.rule import Rule
from statemend.store.schema import CATALOGUE


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_every_statement_of_a_rule_tells_its_tables(rule: Rule) -> None:
    for statement in rule.reads:
        assert tables_read([statement], [*CATALOGUE, "sqlite_schema", "sqlite_sequence"]), statement
