"""Compares the findings of a rule's tests with those that were kept whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import pytest
from tests.audit import golden

from statemend.audit import engine
from statemend.audit.context import Context
from statemend.audit.finding import Finding
from statemend.audit.outcome import RuleResult
from statemend.audit.rule import Rule

_SEEN: dict[str, dict[str, list[golden.Told]]] = {}


@pytest.fixture(autouse=True)
def _as_kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    named = re.match(r"test_([a-z]{3}\d{3})_", request.path.name)
    test, rule = request.node.name, named[1].upper() if named else ""
    kept = golden.load(rule).get(test)
    if not rule or (kept is None and not golden.WRITING):
        yield
        return
    heard: list[golden.Told] = []
    original, folder = engine.run, request.getfixturevalue("tmp_path")

    def run(rules: Iterable[Rule], context: Context) -> tuple[tuple[Finding, ...], tuple[RuleResult, ...]]:
        findings, results = original(rules, context)
        heard.append(golden.plain((one for one in findings if one.rule == rule), context.home.root, folder))
        return findings, results

    monkeypatch.setattr(engine, "run", run)
    yield
    if golden.WRITING:
        _SEEN.setdefault(rule, {})[test] = heard
    else:
        assert heard == kept


def pytest_sessionfinish() -> None:
    for rule, seen in _SEEN.items():
        golden.write(rule, seen)
