"""Real releases for every test below this folder: all of them carry the marker ``hermes``."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.hermes.home import HermesHome, Oracle
from tests.hermes.releases import RELEASES
from tests.hermes.scenes import Scene, live_in, own

HERE = Path(__file__).parent
#: Where the home in use of each release stands: exports of pages and logs carry local time.
ZONES = {
    "0.13.0": "Asia/Tokyo",
    "0.16.0": "UTC",
    "0.18.2": "America/New_York",
    "0.19.0": "Asia/Kolkata",
    "0.20.1": "Europe/Berlin",
    "0.22.2": "America/Los_Angeles",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.hermes)


@pytest.fixture
def hermes_home(tmp_path: Path) -> Iterator[Callable[..., HermesHome]]:
    """Make homes below the test's folder: ``hermes_home("0.19.0")``. Their processes end with the test."""
    made: list[HermesHome] = []

    def make(version: str, name: str = "home", **options: object) -> HermesHome:
        home = HermesHome(version, tmp_path / name, **options)
        made.append(home)
        return home

    yield make
    for home in made:
        home.stop()


@pytest.fixture(scope="session")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Oracle]]:
    """Releases to ask about copies of stores, one process each for the whole run."""
    running: dict[str, Oracle] = {}

    def ask(version: str) -> Oracle:
        if version not in running:
            running[version] = Oracle(version, tmp_path_factory.mktemp(f"oracle-{version}"))
        return running[version]

    yield ask
    for process in running.values():
        process.stop()


@pytest.fixture(scope="session")
def lived_in_once(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Callable[[str], Scene]:
    """The home that ``live_in`` made with a release, made once for all test workers: only to be copied, since
    an audit refuses a store that another worker has open."""
    shared = tmp_path_factory.getbasetemp()
    shared = shared if worker_id == "master" else shared.parent

    def scene(version: str) -> Scene:
        note = shared / f"lived-in-{version}.json"
        with (shared / f"lived-in-{version}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not note.exists():
                with HermesHome(version, shared / f"lived-in-{version}", zone=ZONES[version]) as home:
                    made = live_in(home)
                note.write_text(json.dumps(asdict(made), default=str))
        facts = json.loads(note.read_text())
        return Scene(**{**facts, "home": Path(facts["home"])})

    return scene


@pytest.fixture
def lived_in(lived_in_once: Callable[[str], Scene], tmp_path: Path) -> Callable[[str], Scene]:
    """A test's own copy of the home that ``live_in`` made with a release."""
    return lambda version: own(lived_in_once(version), tmp_path / f"lived-in-{version}")


@pytest.fixture(scope="session", params=RELEASES)
def version(request: pytest.FixtureRequest) -> str:
    """Each release in turn, oldest first."""
    return request.param
