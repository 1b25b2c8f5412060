"""No rule ships without what every rule owes: tests that it fires and when not, its words, and its id."""

from __future__ import annotations

import ast
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.audit.builder import DATA, EXPORTED, NOW, VERSIONS

from statemend.audit.engine import survey
from statemend.audit.finding import Verdict
from statemend.audit.outcome import Status
from statemend.audit.registry import all_rules
from statemend.audit.rule import SECTIONS, Rule

TESTS = Path(__file__).resolve().parent.parent
IDS = Path(__file__).parent / "rules" / "ids.txt"
MARKS = ("fires", "near_miss", "built")
RULES = pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)


class Mark(NamedTuple):
    """What one test, or all of one file, says of a rule."""

    name: str
    file: Path
    why: str

    @property
    def by_a_release(self) -> bool:
        return (TESTS / "hermes") in self.file.parents


@cache
def marks() -> dict[str, list[Mark]]:
    """Every mark of the tests of rules, by rule."""
    found: dict[str, list[Mark]] = defaultdict(list)
    for folder in (TESTS / "audit" / "rules", TESTS / "hermes"):
        for file in sorted(folder.glob("test_*.py")):
            for name, arguments in _marks(ast.parse(file.read_text("utf-8"))):
                found[arguments[0]].append(Mark(name, file, " ".join(arguments[1:])))
    return found


def _marks(module: ast.Module) -> Iterator[tuple[str, list[str]]]:
    for node in module.body:
        holders: list[ast.expr] = []
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            holders = node.decorator_list
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            holders = [node.value]
        for call in (each for holder in holders for each in ast.walk(holder)):
            if isinstance(call, ast.Call) and ast.unparse(call.func).startswith("pytest.mark."):
                name = ast.unparse(call.func).rpartition(".")[2]
                if name in MARKS:
                    yield name, [ast.literal_eval(argument) for argument in call.args]


def of(rule: Rule, name: str) -> list[Mark]:
    return [mark for mark in marks().get(rule.id, ()) if mark.name == name]


@RULES
def test_a_rule_fires_on_a_damage(rule: Rule) -> None:
    assert of(rule, "fires"), f'mark a test of {rule.id} with @pytest.mark.fires("{rule.id}")'


@RULES
def test_a_release_does_the_damage_or_it_is_said_why_none_does(rule: Rule) -> None:
    by_release = [mark for mark in of(rule, "fires") if mark.by_a_release]
    built = of(rule, "built")
    assert bool(by_release) != bool(built), (by_release, built)
    assert all(len(mark.why.split()) >= 4 for mark in built)


@RULES
def test_a_rule_is_silent_on_something_alike(rule: Rule) -> None:
    assert of(rule, "near_miss"), f'mark a test of {rule.id} with @pytest.mark.near_miss("{rule.id}")'


def test_no_mark_names_a_rule_that_is_not_there() -> None:
    assert marks().keys() - {rule.id for rule in all_rules()} == set()


def test_every_id_is_on_record_with_its_slug_for_good() -> None:
    """A line of the record never changes and never goes: reports, baselines and configurations rest on it."""
    recorded = [line.split() for line in IDS.read_text("utf-8").splitlines()]

    assert recorded == sorted(recorded)
    assert recorded == sorted([rule.id, rule.slug] for rule in all_rules())


@RULES
def test_the_words_are_there_and_say_who_does_it(rule: Rule) -> None:
    assert tuple(rule.sections) == SECTIONS
    happens = rule.sections["How it happens"]
    assert re.search(r"\b0\.\d{1,2}\b|#\d{4,}|[Nn]o release", happens), happens


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[Status]]:
    """How each rule ended on sound and on used stores of every release, alone and as the profiles of one
    home. Nothing of it may be a fault or a risk."""
    ended: dict[str, set[Status]] = defaultdict(set)
    sources = [DATA / "stores" / f"{version}.db" for version in VERSIONS]
    sources += [DATA / "exports" / version / "state.db" for version in EXPORTED]
    home = tmp_path_factory.mktemp("healthy")
    for number, source in enumerate(sources):
        alone = home.parent / f"{home.name}-{number}"
        alone.mkdir()
        shutil.copyfile(source, alone / "state.db")
        _look(alone, ended)
    shutil.copyfile(DATA / "stores" / "0.19.0.db", home / "state.db")
    profile = home / "profiles" / "work"
    profile.mkdir(parents=True)
    shutil.copyfile(DATA / "exports" / "0.22.2" / "state.db", profile / "state.db")
    _look(home, ended)
    return ended


def _look(home: Path, ended: dict[str, set[Status]]) -> None:
    for found in survey(home, now=NOW):
        assert found.undetermined == ()
        alarms = [one for one in found.findings if one.verdict in (Verdict.FAULT, Verdict.RISK)]
        assert [(one.rule, one.summary) for one in alarms] == []
        for result in found.rules:
            ended[result.id].add(result.status)


@RULES
def test_a_rule_looks_at_healthy_stores_and_is_silent(rule: Rule, healthy: dict[str, set[Status]]) -> None:
    assert Status.CLEAN in healthy[rule.id]
