"""A repair of a store with other pages and in another encoding: the same plan, and the exact digest back."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.audit.builder import NOW, HomeBuilder
from tests.audit.damaged import damage
from tests.audit.variants import VARIANTS, copy
from tests.repair import plans

from statemend.repair.apply import apply
from statemend.repair.plan import Plan, dump
from statemend.repair.planner import make_plan
from statemend.repair.run import State
from statemend.repair.undo import undo


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> HomeBuilder:
    """A home with damage of every kind, and no lock that would stop a repair."""
    home = damage(HomeBuilder(tmp_path_factory.mktemp("damaged") / "home", "0.19.0"))
    home.sql("DELETE FROM compression_locks")
    return home


@pytest.fixture(scope="module")
def plan(damaged: HomeBuilder) -> Plan:
    return make_plan(damaged.root, now=NOW)


@pytest.mark.parametrize("variant", ["rows-shuffled", "largest-pages", "utf-16le", "utf-16be"])
def test_a_repair_is_the_same_in_every_file_and_can_be_taken_back(
    damaged: HomeBuilder, plan: Plan, tmp_path: Path, variant: str
) -> None:
    store = tmp_path / "home" / "state.db"
    store.parent.mkdir()
    copy(damaged.store, store, VARIANTS[variant])
    before = plans.digest(store)
    made = make_plan(store.parent, now=NOW)
    assert len(made.steps) > 30
    assert made.steps == plan.steps
    (tmp_path / "plan.json").write_bytes(dump(made))
    assert apply(tmp_path / "plan.json", run_dir=tmp_path / "run", now=NOW).state is State.APPLIED
    assert plans.digest(store) != before
    assert make_plan(store.parent, now=NOW).steps == ()
    assert undo(tmp_path / "run", now=NOW).state is State.UNDONE
    assert plans.digest(store) == before
