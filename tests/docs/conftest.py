"""A machine for the commands of a page: a damaged home at ``~/.hermes``, and more of them in ``~/homes``."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from statemend.cli.app import run
from statemend.demo.build import COMPACTED, build

Statemend = Callable[[list[str]], tuple[int, str]]


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A damaged home. Not to be changed."""
    return build(tmp_path_factory.mktemp("demo") / "home")


@pytest.fixture
def sandbox(demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that commands run in. The user's home is beside it."""
    home = tmp_path / "user"
    for place in (".hermes", "homes/first", "homes/second"):
        shutil.copytree(demo, home / place, copy_function=shutil.copy2)
    (home / "exports").mkdir()
    (home / "my-exports").mkdir()
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def statemend(capfd: pytest.CaptureFixture[str]) -> Statemend:
    """Runs one command line in this process; gives its exit code and its output."""

    def call(words: list[str]) -> tuple[int, str]:
        capfd.readouterr()
        code = run(words)
        return code, capfd.readouterr().out

    return call


def named(text: str) -> str:
    """``text`` with the names that stand for something: ``RUN`` is the last run, ``SESSION`` a session."""
    home = Path(os.environ["HOME"])
    text = text.replace(" SESSION", f" {COMPACTED}")
    if " RUN" in text:
        runs = [
            *home.glob(".hermes.statemend/2*/run.json"),
            *home.glob(".hermes.statemend/playbooks/*/run.json"),
        ]
        text = text.replace(" RUN", f" {max(runs, key=lambda path: path.stat().st_mtime_ns).parent}")
    return text
