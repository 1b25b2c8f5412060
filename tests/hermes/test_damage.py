"""Each damage of the catalogue, done in the oldest and the newest release that can have it: the right rule
tells of it and names the right rows, and no other rule claims what is not so."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.hermes.damage import CATALOGUE, Damage, memory, strike, wrongs
from tests.hermes.home import HermesHome
from tests.hermes.releases import RELEASES

from statemend.audit.finding import Verdict
from statemend.audit.registry import all_rules

#: The rules that are in no damage, and why not.
EXCEPTIONS = {"STO006": "a process that holds the store while it is audited is no damage to it"}


def bounds(entry: Damage) -> set[str]:
    """The oldest and the newest release in which it can be done."""
    fitting = [version for version, release in RELEASES.items() if entry.suits(release)]
    return {fitting[0], fitting[-1]}


@pytest.mark.parametrize("release", RELEASES)
def test_the_right_rule_tells_of_each_damage(release: str) -> None:
    found = {}
    with TemporaryDirectory(dir=memory()) as folder, HermesHome(release, Path(folder) / "home") as home:
        for entry in (entry for entry in CATALOGUE if release in bounds(entry)):
            home.clear()
            before, after, told = strike(home, entry)
            early = [one.rule for one in before.findings if one.verdict in (Verdict.FAULT, Verdict.RISK)]
            found[entry.name] = [f"told before: {early}"] if early else wrongs(entry, before, after, told)
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_each_rule_of_the_book_has_a_damage_in_two_releases_or_a_reason_why_not() -> None:
    seen: dict[str, set[str]] = {rule.id: set() for rule in all_rules() if rule.id not in EXCEPTIONS}
    for entry in CATALOGUE:
        for rule in (entry.rule, *entry.also):
            seen[rule].update(bounds(entry))
    assert {rule for rule, releases in seen.items() if len(releases) < 2} == set()


def test_each_damage_is_in_the_module_of_the_family_that_tells_of_it() -> None:
    families = {rule.id: rule.family.value for rule in all_rules()}
    strays = {
        entry.name for entry in CATALOGUE if entry.act.__module__.rpartition(".")[2] != families[entry.rule]
    }
    assert strays == set()
