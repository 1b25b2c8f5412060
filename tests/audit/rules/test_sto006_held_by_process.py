"""STO006 held-by-process: who has the store open while it is audited."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from tests.audit.builder import HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict
from statemend.store.holders import Holder

pytestmark = pytest.mark.built(
    "STO006", "any process that has the file open shows it, and quicker than a release"
)
Build = Callable[..., HomeBuilder]
HOLD = "import sys; file = open(sys.argv[1], 'rb+'); print('open', flush=True); sys.stdin.read()"


@pytest.fixture
def held(build: Build) -> Iterator[tuple[HomeBuilder, int]]:
    home = build()
    home.chat("a")
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home.store)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        yield home, holder.pid
        holder.communicate()


@pytest.mark.fires("STO006")
def test_a_process_that_holds_the_store_is_named(held: tuple[HomeBuilder, int]) -> None:
    home, pid = held
    (finding,) = home.findings("STO006", live=True)
    assert (finding.verdict, finding.severity) == (Verdict.LEFTOVER, Severity.INFO)
    assert facts(finding)["processes"] == 1
    assert f"pid {pid}" in facts(finding)["which"][0]


@pytest.mark.near_miss("STO006")
@pytest.mark.parametrize("live", [False, True])
def test_a_store_that_nobody_holds_is_silent(build: Build, live: bool) -> None:
    home = build()
    home.chat("a")
    assert home.findings("STO006", live=live) == []


def test_all_that_hold_it_are_one_finding(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    home = build()
    gone = Holder(pid=11, name="hermes", command="hermes gateway", files=(f"{home.store} (deleted)",))
    there = Holder(pid=12, name="hermes", command="hermes", files=(str(home.store),))
    monkeypatch.setattr("statemend.store.connection.find_holders", lambda _: (gone, there))
    (finding,) = home.findings("STO006", live=True)
    assert finding.summary.startswith("2 processes hold the store;")
    assert facts(finding)["write into a file that was replaced"] == 1
