"""Hermes is the oracle: what we say a session shows, and where we say it goes on, is what Hermes says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.hermes.home import HermesHome, Oracle
from tests.hermes.operations import Family, Life, families
from tests.hermes.oracles import (
    RELEASE_OF_ERA,
    check_active,
    check_display,
    check_lineage,
    copy_store,
    eras,
)
from tests.hermes.scenes import Scene

from statemend.store.connection import open_for_audit

DATA = Path(__file__).parent.parent / "data"
STORES = sorted((DATA / "stores").glob("*.db")) + sorted((DATA / "exports").glob("*/state.db"))

Ask = Callable[[str], Oracle]


def name(path: Path) -> str:
    return str(path.relative_to(DATA)).replace("/state.db", "")


@pytest.mark.parametrize("store", STORES, ids=name)
def test_views_of_stores_that_releases_made(store: Path, oracle: Ask, tmp_path: Path) -> None:
    check_everything(copy_store(store, tmp_path / "ours"), oracle, tmp_path)


def test_views_of_a_home_in_use(lived_in: Callable[[str], Scene], version: str, oracle: Ask, tmp_path: Path):
    scene = lived_in(version)
    check_everything(copy_store(scene.home / "state.db", tmp_path / "ours"), oracle, tmp_path)


@pytest.fixture(scope="module", params=["0.19.0", "0.22.2"])
def generator(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """A release to make stores with, one store per example."""
    with HermesHome(request.param, tmp_path_factory.mktemp("generated")) as home:
        yield Life(home)


@settings(
    derandomize=True,
    deadline=None,
    max_examples=3,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(lives=families(12))
def test_views_of_generated_stores(
    lives: list[Family], generator: Life, oracle: Ask, tmp_path_factory
) -> None:
    folder = tmp_path_factory.mktemp("example")
    made = generator.run(lives, folder / "made" / "state.db")
    check_everything(copy_store(made, folder / "ours"), oracle, folder)


def check_everything(store: Path, oracle: Ask, scratch: Path) -> None:
    with open_for_audit(store) as opened:
        own = RELEASE_OF_ERA[opened.schema.era]
    check_active(store, oracle(own), scratch / "active")
    check_display(store, oracle("0.22.2"), scratch / "display")
    for release, era in eras(store):
        check_lineage(store, oracle(release), era, scratch / f"lineage-{release}")
