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

#: The rules that have to be in the catalogue.
WANTED = (
    *(f"MSG00{number}" for number in range(1, 8)),
    *("ORP001", "ORP002", "ORP006"),
    *(f"LIN{number:03}" for number in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)),
    *(f"LIF00{number}" for number in range(1, 5)),
    *("FTS001", "FTS002", "CNT001"),
    *(f"STO00{number}" for number in range(1, 6)),
    *(f"EXP00{number}" for number in range(1, 6)),
)


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


def test_the_catalogue_has_what_it_has_to_have_in_two_releases_each() -> None:
    seen: dict[str, set[str]] = {}
    for entry in CATALOGUE:
        for rule in (entry.rule, *entry.also):
            seen.setdefault(rule, set()).update(bounds(entry))
    assert set(WANTED) - seen.keys() == set()
    assert {rule for rule, releases in seen.items() if len(releases) < 2} == set()
