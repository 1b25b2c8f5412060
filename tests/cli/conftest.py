"""Running command lines, and homes to run them on."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest

from statemend.cli.app import run
from statemend.demo.build import build


class Outcome(msgspec.Struct, frozen=True):
    """What a command line gave."""

    code: int
    out: str
    err: str


@pytest.fixture
def statemend(capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Runs one command line in this process."""

    def call(*arguments: object) -> Outcome:
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A damaged home. Not to be changed."""
    return build(tmp_path_factory.mktemp("demo") / "home")


@pytest.fixture
def sound(tmp_path: Path, stores: Mapping[str, Path]) -> Path:
    """A home with a sound store of 0.19.0."""
    home = tmp_path / "sound"
    home.mkdir()
    shutil.copyfile(stores["0.19.0"], home / "state.db")
    return home


def snapshot(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Every file below ``folder``: size, time of change, digest."""
    return {
        str(path.relative_to(folder)): (
            path.stat().st_size,
            path.stat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in sorted(folder.rglob("*"))
    }
