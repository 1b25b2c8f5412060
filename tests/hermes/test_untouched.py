"""An audit leaves a real home as it was, whatever state Hermes left it in."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.hermes.home import HermesHome, assistant, user
from tests.hermes.scenes import Scene

from statemend.audit.engine import audit
from statemend.errors import StoreHeld

Make = Callable[..., HermesHome]
SESSION = "20260801_090000_aaaaaa"


def photograph(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Name, time, mode and bytes of everything below a folder, the folders themselves included."""
    found = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (status.st_mtime_ns, status.st_mode, content)
    return found


def scan(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "statemend", "scan", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_closed_home(lived_in: Callable[[str], Scene], version: str) -> None:
    scene = lived_in(version)
    before = photograph(scene.home)
    found = audit(scene.home, now=scene.now)
    assert photograph(scene.home) == before
    assert found.store.unchanged


@pytest.mark.parametrize("release", ["0.13.0", "0.19.0"])
def test_a_home_whose_process_died_with_rows_in_the_wal(hermes_home: Make, release: str) -> None:
    home = hermes_home(release)
    home.chat(SESSION).say(user("one"), assistant("first"))
    last = home.append(SESSION, "user", "still in the log")
    home.process.kill()
    assert os.path.getsize(f"{home.state_db}-wal") > 0
    before = photograph(home.path)

    found = audit(home.path, now=home.now)

    assert photograph(home.path) == before
    assert found.store.messages == last == 3
    assert found.store.access == "private copy"


@pytest.mark.parametrize("release", ["0.19.0", "0.22.2"])
def test_a_home_in_use(hermes_home: Make, release: str) -> None:
    home = hermes_home(release)
    home.chat(SESSION).say(user("one"), assistant("first"))
    before = photograph(home.path)

    with pytest.raises(StoreHeld, match=str(home.process.pid)):
        audit(home.path, now=home.now)
    refused = scan(home.path)
    copied = scan(home.path, "--live", "--format", "json")

    assert photograph(home.path) == before
    assert refused.returncode == 4
    assert str(home.process.pid) in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1
    assert copied.returncode == 0, copied.stderr
    assert home.append(SESSION, "user", "and on it goes") == 3
