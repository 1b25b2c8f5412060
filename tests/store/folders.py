"""Folders as they lie, stores to damage in them, and a process that holds one."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

#: A program that opens a store for writing, runs the statements it is given, and holds it until told to end.
_HOLDER = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
for statement in sys.argv[2:]:
    connection.execute(statement).fetchall()
print("ready", flush=True)
sys.stdin.read()
"""


def snapshot(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Mode, modification time in ns and digest of everything in a folder, itself included."""
    facts = {".": (folder.stat().st_mode, folder.stat().st_mtime_ns, "")}
    for path in folder.rglob("*"):
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        facts[str(path.relative_to(folder))] = (path.stat().st_mode, path.stat().st_mtime_ns, digest)
    return facts


def copied(store: Path, folder: Path) -> Path:
    """A copy of ``store`` as ``state.db`` in ``folder``, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copyfile(store, folder / "state.db"))


def changed(store: Path, *statements: str, bindings: Sequence[Any] = ()) -> Path:
    """Run statements on a store and leave it closed, with no sidecar. The last one gets the bindings."""
    connection = apsw.Connection(str(store))
    try:
        for statement in statements[:-1]:
            connection.execute(statement)
        connection.execute(statements[-1], bindings)
    finally:
        connection.close()
    return store


def filled(store: Path, messages: int, *, size: int = 300) -> Path:
    """Add a session ``many`` with that many messages of about ``size``."""
    return changed(
        store,
        "INSERT INTO sessions (id, source, started_at) VALUES ('many', 'cli', 1000.0)",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) "
        "INSERT INTO messages (session_id, role, content, timestamp) "
        "SELECT 'many', 'user', printf('%d %s', i, hex(zeroblob(?2))), 1000.0 + i FROM n",
        bindings=(messages, size // 2),
    )


def crashed(store: Path, folder: Path, *statements: str, sidecars: Sequence[str] = ("-wal",)) -> Path:
    """The store as a process leaves it that ran ``statements`` and died: a copy of it while open."""
    folder.mkdir(parents=True, exist_ok=True)
    connection = apsw.Connection(str(store))
    try:
        for statement in statements:
            connection.execute(statement).fetchall()
        for suffix in ("", *sidecars):
            shutil.copyfile(f"{store}{suffix}", folder / f"state.db{suffix}")
    finally:
        connection.close()
    return folder / "state.db"


@contextmanager
def held(store: Path, *statements: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that has run ``statements`` on the store and still has it open."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(store), *statements],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.communicate()


def pages_of(store: Path, name: str) -> list[tuple[int, str]]:
    """Page number and kind (``leaf``, ``internal``, ``overflow``) of the pages of a table or an index."""
    connection = apsw.Connection(
        f"file:{store}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    )
    try:
        return list(
            connection.execute("SELECT pageno, pagetype FROM dbstat WHERE name = ? ORDER BY pageno", (name,))
        )
    finally:
        connection.close()


def flip(store: Path, offset: int) -> None:
    """Invert one byte."""
    with open(store, "r+b") as file:
        byte = os.pread(file.fileno(), 1, offset)[0]
        os.pwrite(file.fileno(), bytes([byte ^ 0xFF]), offset)
