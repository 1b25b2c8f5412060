"""Where output goes: standard output, or a file that never replaces what is not a report."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import typer

from statemend.errors import Refused, StatemendError, UsageError

#: Every kind of report has one of these within its first bytes, a baseline has its own.
REPORT = (b'"statemend/report/', b"<!-- statemend/report/", b'content="statemend ')
BASELINE = (b'"statemend/baseline/',)
#: The verbs that write plans: what such a file has within its first bytes, and the verb that carries it out.
_PLANS = {
    "plan": (b'"statemend/plan/', "apply"),
    "cleanup plan": (b'"statemend/cleanup/', "cleanup apply"),
}
#: What a report for a terminal begins with.
_TABLE = b"statemend "
_HEAD = 400
_LONGEST_LINE = 1000
#: Folders of a home: what lies in them is evidence.
_EVIDENCE = ("session-exports", "sessions", "logs", "state-snapshots", "backups", "profiles")


def complain(message: str, exit_code: int) -> int:
    """Say what went wrong in one line on standard error; returns ``exit_code``."""
    from statemend.report.text import visible

    line = visible(" ".join(message.split()))
    if len(line) > _LONGEST_LINE:  # an absurd path; what to do stands at the end
        line = f"{line[: _LONGEST_LINE // 2]}…{line[-_LONGEST_LINE // 2 :]}"
    with suppress(OSError):
        print(f"statemend: {line}", file=sys.stderr)
    return exit_code


def only_help(context: typer.Context) -> None:
    """What a group of verbs does when none of them is named: show its help. The exit code says usage."""
    if context.invoked_subcommand is None:
        emit(f"{context.get_help()}\n")
        raise typer.Exit(UsageError.exit_code)


def open_streams() -> None:
    """Open each standard stream that is closed (``>&-``) to nothing: the next file that is opened would take
    its place, and get what is printed."""
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != descriptor:
                os.dup2(null, descriptor)
                os.close(null)
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))


def emit(text: str) -> None:
    """Write ``text`` to standard output. A reader that has gone away (``| head``) is no error; raises
    ``StatemendError`` when it cannot be written."""
    with _writing():
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
        sys.stdout.flush()


def settle() -> None:
    """Flush standard output. Raises ``StatemendError`` when it cannot be written."""
    with _writing():
        sys.stdout.flush()


@contextmanager
def _writing() -> Iterator[None]:
    """After a failure nothing more goes to standard output, so that it is not told a second time at the
    end."""
    try:
        yield
    except BrokenPipeError:
        _discard()
    except OSError as error:
        _discard()
        raise StatemendError(
            f"standard output: {error.strerror or error}; write the report to a file with -o"
        ) from error


def _discard() -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def check_plan(path: Path, maker: str) -> None:
    """Refuse a path where no file lies, and a plan of another kind than the verb ``maker`` writes: a
    ``UsageError``. Whatever else is wrong with it is told by whoever reads it."""
    what = f"name a plan that `statemend {maker}` wrote"
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe could be read only once
            raise UsageError(f"{path}: not a regular file; {what}")
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError(f"{path}: no such file; {what}") from error
    except OSError:
        return
    for other, (mark, verb) in _PLANS.items():
        if other != maker and mark in head:
            raise UsageError(f"{path}: a plan of `statemend {other}`; carry it out with `statemend {verb}`")


def check_target(
    target: Path, home: Path, *stores: Path, force: bool, own: tuple[bytes, ...] = REPORT
) -> None:
    """Refuse a target before any work is done. ``stores`` are those of the home and of its profiles; ``own``
    are the marks of the files that may be replaced.

    Raises ``UsageError`` when its folder does not exist or it is no regular file, ``Refused`` when it lies
    beside the audited store or among the evidence, or would replace a file that is not a report.
    """
    try:
        _check_place(target)
        _check_outside(target, home, *stores)
        if target.exists() and not force and not _is_own(target, own):
            what = "report" if own is REPORT else "baseline"
            raise Refused(
                f"{target}: exists and is not a {what} of statemend; choose another name, or say --force"
            )
    except OSError as error:
        raise UsageError(f"{target}: {error.strerror or error}; choose another name") from error


def check_run_folder(folder: Path | None, home: Path, store: Path) -> None:
    """Refuse to keep a run beside its store or among the evidence, where it would go with the home."""
    if folder is not None:
        _check_outside(folder, home, store)


def _check_outside(target: Path, home: Path, *stores: Path) -> None:
    real = Path(os.path.realpath(target))
    roots = {Path(os.path.realpath(home)), *(Path(os.path.realpath(store)).parent for store in stores)}
    evidence = (root / name for root in roots for name in _EVIDENCE)
    if real.parent in roots or any(real.is_relative_to(folder) for folder in evidence):
        raise Refused(
            f"{target}: lies in the audited home, where nothing is written; choose a folder outside {home}"
        )


def _check_place(target: Path) -> None:
    if str(target) == "-":
        raise UsageError("-: no name for a file; leave -o out and the answer goes to standard output")
    folder = target.parent
    if not folder.is_dir():
        raise UsageError(f"{target}: the folder {folder} does not exist; create it first")
    if target.exists() and not target.is_file():
        raise UsageError(f"{target}: not a regular file; leave -o out and redirect the output instead")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{target}: this user may not write in {folder}; choose another folder")


def _is_own(path: Path, marks: tuple[bytes, ...]) -> bool:
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if not head or any(mark in head for mark in marks):
        return True
    return marks is REPORT and head.startswith(_TABLE)


def write(target: Path, text: str) -> None:
    """Write ``text`` to ``target`` in one step: it is there whole, readable by its owner alone, or not at
    all."""
    real = Path(os.path.realpath(target))
    temporary = real.with_name(f".{real.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text.encode("utf-8", "backslashreplace"))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(real)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StatemendError(f"{target}: {error.strerror}; nothing was written") from error
