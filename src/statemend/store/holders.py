"""Who is using a store: processes that have its files open, and the leases and locks that its rows record."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import psutil

from statemend.store.bundle import Bundle

if TYPE_CHECKING:
    from statemend.store.connection import Store

_PROC = Path("/proc")
_COMMAND_LENGTH = 120


class Holder(msgspec.Struct, frozen=True):
    """A process other than this one that may write to the store. ``files`` are the paths it holds, as the
    system
    names them: one that ends in `` (deleted)`` is a file that was replaced under the process."""

    pid: int
    name: str
    command: str
    files: tuple[str, ...]

    @property
    def holds_deleted(self) -> bool:
        """Whether it writes into a file that is no longer in the folder, so that its rows will be lost."""
        return any(file.endswith(" (deleted)") for file in self.files)

    def __str__(self) -> str:
        return (
            f"{self.name} (pid {self.pid}: {self.command})"
            if self.command
            else f"{self.name} (pid {self.pid})"
        )


class Lease(msgspec.Struct, frozen=True):
    """A claim on a session that a row of the store records. Times are epoch seconds, as the cells hold them.

    ``live`` is ``False`` when it expired or its process is provably gone, ``True`` when the process is there,
    and ``None`` when that cannot be told (another machine, another PID namespace, an unreadable holder).
    """

    kind: Literal["turn lease", "compression lock"]
    key: str
    holder: str
    acquired_at: float
    expires_at: float
    live: bool | None


def find_holders(bundle: Bundle) -> tuple[Holder, ...]:
    """The processes that have a file of the bundle open for writing, by pid. This process is left out, and so
    is who merely reads a file: a backup, another audit.

    On Linux from the descriptors in ``/proc``, by device and inode, and from the kernel's table of file
    locks, which also shows the processes of other users. Elsewhere from psutil, by path, as far as this user
    may look.
    """
    identities = {(file.device, file.inode): file.path for file in bundle.files}
    if (_PROC / "self" / "fd").is_dir():
        found = _open_descriptors(bundle, identities)
        for pid, path in _locked_files(identities):
            found.setdefault(pid, set()).add(path)
    else:
        found = _open_files(bundle)
    found.pop(os.getpid(), None)
    return tuple(_describe(pid, files) for pid, files in sorted(found.items()))


def leases(store: Store, now: float) -> Iterator[Lease]:
    """Every turn lease and compression lock that the store records, judged at ``now`` (epoch seconds)."""
    if store.schema.has("compression_locks"):
        locks = store.rows(
            "SELECT session_id, holder, acquired_at, expires_at FROM main.compression_locks "
            "ORDER BY session_id"
        )
        for key, holder, acquired, expires in locks:
            yield _lease("compression lock", key, holder, acquired, expires, now)
    if store.schema.has("session_turn_leases"):
        turns = store.rows(
            "SELECT conversation_id, holder, acquired_at, expires_at FROM main.session_turn_leases "
            "ORDER BY conversation_id"
        )
        for key, holder, acquired, expires in turns:
            yield _lease("turn lease", key, holder, acquired, expires, now)


def _open_descriptors(bundle: Bundle, identities: dict[tuple[int, int], str]) -> dict[int, set[str]]:
    """Paths held open, by pid, from ``/proc/*/fd``. What this user may not look into is left out."""
    deleted = {f"{bundle.main.path}{suffix} (deleted)" for suffix in ("", "-wal", "-shm", "-journal")}
    found: dict[int, set[str]] = {}
    for pid in _numbers(_PROC):
        folder = f"/proc/{pid}/fd"
        for descriptor in _numbers(folder):
            link = f"{folder}/{descriptor}"
            try:
                target = os.readlink(link)
                if not target.startswith("/"):  # a socket, a pipe, an anonymous inode
                    continue
                facts = os.stat(link)
            except OSError:  # closed meanwhile, or of another user
                continue
            concerns = (facts.st_dev, facts.st_ino) in identities or target in deleted
            if concerns and not _is_read_only(f"/proc/{pid}/fdinfo/{descriptor}"):
                found.setdefault(pid, set()).add(target)
    return found


def _is_read_only(descriptor_facts: str) -> bool:
    """Whether a descriptor was opened for reading only (proc_pid_fdinfo(5)); ``False`` where unknown."""
    try:
        with open(descriptor_facts, encoding="ascii") as source:
            flags = re.search(r"^flags:\s*([0-7]+)$", source.read(), re.MULTILINE)
    except OSError:
        return False
    return flags is not None and int(flags.group(1), 8) & os.O_ACCMODE == os.O_RDONLY


def _numbers(folder: str | Path) -> list[int]:
    try:
        return [int(name) for name in os.listdir(folder) if name.isdigit()]
    except OSError:  # gone meanwhile, or of another user
        return []


def _locked_files(identities: dict[tuple[int, int], str]) -> Iterator[tuple[int, str]]:
    """Pid and path of every lock on a file of the bundle, from ``/proc/locks`` (see proc_locks(5))."""
    try:
        table = (_PROC / "locks").read_text(encoding="ascii", errors="replace")
    except OSError:
        return
    numbers = {
        (os.major(device), os.minor(device), inode): path for (device, inode), path in identities.items()
    }
    for match in re.finditer(r" (\d+) ([0-9a-f]+):([0-9a-f]+):(\d+) \d+ (?:\d+|EOF)$", table, re.MULTILINE):
        pid, major, minor, inode = match.groups()
        path = numbers.get((int(major, 16), int(minor, 16), int(inode)))
        if path is not None and int(pid) > 0:
            yield int(pid), path


def _open_files(bundle: Bundle) -> dict[int, set[str]]:
    """Paths held open, by pid, as psutil tells."""
    paths = {file.path for file in bundle.files}
    found: dict[int, set[str]] = {}
    for process in psutil.process_iter():
        try:
            held = {file.path for file in process.open_files()} & paths
        except (psutil.Error, OSError):  # gone meanwhile, or of another user
            continue
        if held:
            found[process.pid] = held
    return found


def _describe(pid: int, files: set[str]) -> Holder:
    name, command = "a process", ""
    try:
        process = psutil.Process(pid)
        name = process.name()
        command = " ".join(process.cmdline())
    except (psutil.Error, OSError):
        command = ""
    shown = command if len(command) <= _COMMAND_LENGTH else command[: _COMMAND_LENGTH - 1] + "…"
    return Holder(pid=pid, name=name, command=" ".join(shown.split()), files=tuple(sorted(files)))


def _lease(
    kind: Literal["turn lease", "compression lock"],
    key: Any,
    holder: Any,
    acquired: Any,
    expires: Any,
    now: float,
) -> Lease:
    ends = _seconds(expires)
    return Lease(
        kind=kind,
        key=str(key),
        holder=str(holder),
        acquired_at=_seconds(acquired),
        expires_at=ends,
        live=False if ends <= now else _holder_lives(str(holder)),
    )


def _seconds(value: Any) -> float:
    """A time cell as a number. What is no number never expires by itself: it counts as the end of time."""
    return float(value) if isinstance(value, int | float) else float("inf")


def _holder_lives(holder: str) -> bool | None:
    """Whether the process that a holder string names is there: ``pid=N``, with ``pidns=N`` if known."""
    pid = re.search(r"(?:^|:)pid=(\d{1,10})(?::|$)", holder)
    namespace = re.search(r"(?:^|:)pidns=(\d+)(?::|$)", holder)
    if pid is None:
        return None
    if sys.platform == "linux":
        here = _pid_namespace()
        if here is None or namespace is None or namespace.group(1) != here:
            return None
    return psutil.pid_exists(int(pid.group(1)))


def _pid_namespace() -> str | None:
    try:
        inside = re.search(r"\[(\d+)\]", os.readlink("/proc/self/ns/pid"))
    except OSError:
        return None
    return inside.group(1) if inside else None
