"""Of every rule some findings are kept whole, and of tests that are there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.audit import golden

from statemend.audit.registry import all_rules


@pytest.mark.parametrize("rule", [rule.id for rule in all_rules()])
def test_findings_of_every_rule_are_kept(rule: str) -> None:
    kept = golden.load(rule)
    (file,) = (Path(__file__).parent / "rules").glob(f"test_{rule.lower()}_*.py")
    text = file.read_text("utf-8")
    assert any(audits for audits in kept.values())
    assert [test for test in kept if f"def {test.partition('[')[0]}(" not in text] == []
