"""The findings depend on the rows alone: not on how they lie in the file, nor on the process that reads."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

import apsw
import msgspec
import pytest
from tests.audit.builder import NOW, HomeBuilder
from tests.audit.damaged import damage
from tests.audit.variants import VARIANTS, copy

from statemend.audit.engine import audit
from statemend.demo.build import AUDITED_AT
from statemend.demo.build import build as build_demo

HOMES = ("demo", "healthy", "0.16.0", "0.19.0", "0.22.2")
TREE = Path(__file__).resolve().parents[2]
Told = Mapping[str, str]


class Subject:
    """A home, and what an audit of it as it was made says."""

    def __init__(self, name: str, root: Path) -> None:
        self.root, self.name = root, name
        if name == "demo":
            build_demo(root)
        else:
            home = HomeBuilder(root, "0.22.2" if name == "healthy" else name, rich=True)
            if name != "healthy":
                damage(home)
        self.told = told(root, name)


def told(root: Path, name: str) -> Told:
    """What an audit says, but for where the home lies: each finding by its id, their order, and how each rule
    ended."""
    outcome = audit(root, now=AUDITED_AT if name == "demo" else NOW, deep=True)
    said = {one.id: msgspec.json.encode(one).decode() for one in outcome.findings}
    said["order"] = " ".join(said)
    said |= {rule.id: f"{rule.status} {rule.reason}" for rule in outcome.rules}
    return {name: text.replace(str(root), "HOME") for name, text in said.items()}


@pytest.fixture(scope="module")
def subject_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Subject]:
    """The home of a name in ``HOMES``, built once."""
    return cache(lambda name: Subject(name, tmp_path_factory.mktemp(name) / "home"))


@pytest.mark.parametrize("name", HOMES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_findings_do_not_depend_on_how_rows_are_stored(
    subject_of: Callable[[str], Subject], tmp_path: Path, name: str, variant: str
) -> None:
    subject, root = subject_of(name), tmp_path / "home"
    shutil.copytree(subject.root, root, ignore=shutil.ignore_patterns("state.db*"))
    copy(subject.root / "state.db", root / "state.db", VARIANTS[variant])
    assert told(root, name) == subject.told


@pytest.fixture
def unordered_rows_reversed() -> Iterator[None]:
    """Rows come in reverse wherever a statement does not order them."""

    def reverse(connection: apsw.Connection) -> None:
        connection.pragma("reverse_unordered_selects", True)

    apsw.connection_hooks.append(reverse)
    yield
    apsw.connection_hooks.remove(reverse)


@pytest.mark.parametrize("name", HOMES)
def test_findings_do_not_depend_on_an_order_that_no_statement_asks_for(
    subject_of: Callable[[str], Subject], request: pytest.FixtureRequest, name: str
) -> None:
    subject = subject_of(name)
    request.getfixturevalue("unordered_rows_reversed")
    assert told(subject.root, name) == subject.told


PROCESSES = (
    {"TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "1"},
    {"TZ": "America/Los_Angeles", "PYTHONHASHSEED": "2", "LC_ALL": "C", "PYTHONUTF8": "0"},
)


@pytest.mark.parametrize("name", ["0.19.0"])
def test_findings_do_not_depend_on_the_process(subject_of: Callable[[str], Subject], name: str) -> None:
    subject = subject_of(name)
    script = (
        "import json, sys; from pathlib import Path; from tests.audit.test_independence import told; "
        "print(json.dumps(told(Path(sys.argv[1]), sys.argv[2])))"
    )
    command = [sys.executable, "-c", script, str(subject.root), name]
    for changed in PROCESSES:
        process = subprocess.run(command, env={**os.environ, **changed}, cwd=TREE, capture_output=True)
        assert json.loads(process.stdout) == subject.told
