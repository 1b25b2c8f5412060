"""Marks by which a test says what it shows of a rule, and the proof that it does.

``@pytest.mark.fires("LIN001")``: a damage that the rule reports. In ``tests/hermes`` a real release does it.
``@pytest.mark.near_miss("LIN001")``: something alike that is lawful, and the rule has looked and is silent.
``@pytest.mark.built("LIN001", "why")``: no release of the tests does this damage, and why; the rows of
``fires`` are then made by hand. With ``only=…`` a mark speaks of these parameters alone.
``tests/audit/test_rule_book.py`` counts the marks: no rule goes without.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest

from statemend.audit import engine
from statemend.audit.context import Context
from statemend.audit.finding import Finding
from statemend.audit.outcome import RuleResult, Status
from statemend.audit.rule import Rule

#: What a mark promises of an audit that its test makes.
PROMISES = {"fires": Status.FINDINGS, "near_miss": Status.CLEAN}


def _parameters(item: pytest.Item) -> set[object]:
    """The values that a test was made with."""
    made = getattr(item, "callspec", None)
    return set() if made is None else {value for value in made.params.values() if isinstance(value, str)}


@contextmanager
def kept(item: pytest.Item) -> Iterator[None]:
    """Fail when none of the audits made meanwhile ends a rule as a mark of ``item`` promises."""
    promised = {
        (str(mark.args[0]), status)
        for name, status in PROMISES.items()
        for mark in item.iter_markers(name)
        if "only" not in mark.kwargs or _parameters(item) & set(mark.kwargs["only"])
    }
    if not promised:
        yield
        return
    seen: set[tuple[str, Status]] = set()
    original = engine.run

    def run(rules: Iterable[Rule], context: Context) -> tuple[tuple[Finding, ...], tuple[RuleResult, ...]]:
        findings, results = original(rules, context)
        seen.update((result.id, result.status) for result in results)
        return findings, results

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "run", run)
        yield
    broken = sorted(f"{rule} never ended as {status.value!r}" for rule, status in promised - seen)
    assert not broken, f"{item.name} does not show what its marks say: {'; '.join(broken)}"
