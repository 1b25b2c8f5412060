"""A process that has children carry out plans, clean up or take it back, and kills them at a moment or in a
write.

Requests come on standard input, one JSON object a line, and answers go to standard output. A child is a fork,
so it starts at once, and there is no other thread that it could be missing.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import msgspec
from tests.repair import cleanups
from tests.repair.faults import faults
from tests.repair.plans import NOW

import statemend.repair.planner  # noqa: F401 - apply imports it late, and no child should have to
from statemend.repair import bounds, cleanup, cleanup_plan
from statemend.repair.apply import apply
from statemend.repair.cleanup_perform import CleanupFolder
from statemend.repair.cleanup_perform import perform as perform_cleanup
from statemend.repair.perform import perform
from statemend.repair.run import RunFolder
from statemend.repair.undo import undo
from statemend.store import durable

FOREVER = 600.0


class Request(msgspec.Struct, frozen=True):
    """What to do, and when to kill who does it. ``apply`` and ``cleanup`` are whole verbs, as ``undo`` is;
    ``perform`` and ``perform cleanup`` are the change alone, for which the folder of the run is there.

    ``after`` names a step, and ``delay`` the seconds from then on; without a step they count from the start.
    ``operation`` is the number of the file operation below ``folder`` that is not carried out any more, or,
    where it is a write to a file of the run, half of it.
    """

    verb: str
    plan: str
    run: str
    folder: str
    after: str = ""
    delay: float = FOREVER
    operation: int = 0


class Death(msgspec.Struct, frozen=True):
    """How it ended: the steps that were reached, each with the seconds since the start, whether the process
    was killed, and the seconds it took."""

    steps: tuple[tuple[str, float], ...]
    killed: bool
    seconds: float


def carry_out(request: Request, step: Callable[[str], None]) -> None:
    """Do what is asked, to the end."""
    run = Path(request.run)
    if request.verb == "apply":
        apply(Path(request.plan), run_dir=run, now=NOW, steps=step)
    elif request.verb == "cleanup":
        cleanup.apply(Path(request.plan), run_dir=run, now=cleanups.NOW, steps=step)
    elif request.verb == "undo":
        undo(run, now=NOW, steps=step)
    elif request.verb == "perform":
        plan = bounds.read(Path(request.plan))
        log = RunFolder(run).log(step)
        perform(plan, Path(plan.store.path), RunFolder(run), log, now=NOW)
        log.step("committed")
    else:
        doomed, folder = cleanup_plan.load(Path(request.plan)), CleanupFolder(run)
        log = folder.log(step)
        perform_cleanup(doomed, Path(doomed.store.path), folder, log, now=cleanups.NOW)
        log.step("committed")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def carry_out_until(request: Request, step: Callable[[str], None]) -> None:
    """Do what is asked, and die at the file operation that the request names."""
    with faults(Path(request.folder), 0) as counted:
        due, write = counted.due, os.write

        def deadly(what: str, path: object) -> bool:
            due(what, path)
            if counted.count == request.operation:
                die()
            return False

        def half_written(descriptor: int, data: bytes) -> None:
            due("write", os.readlink(f"/proc/self/fd/{descriptor}"))
            if counted.count == request.operation:
                write(descriptor, data[: len(data) // 2])
                die()
            write(descriptor, data)

        counted.due = deadly  # type: ignore[method-assign]
        durable._write = half_written
        carry_out(request, step)


def child(request: Request, pipe: int) -> None:
    """What a fork does. It ends by itself or is killed, and never returns."""
    code = 1
    try:
        todo = carry_out_until if request.operation else carry_out

        def reached(name: str) -> None:
            os.write(pipe, name.encode() + b"\n")

        todo(request, reached)
        code = 0
    finally:
        os._exit(code)


def watch(request: Request) -> Death:
    """Start a child and see to its end."""
    reading, writing = os.pipe()
    begun = time.monotonic()
    pid = os.fork()
    if pid == 0:
        child(request, writing)
    os.close(writing)
    steps: list[tuple[str, float]] = []
    deadline = begun + (FOREVER if request.after else request.delay)
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        while (left := deadline - time.monotonic()) > 0 and select.select([pipe], [], [], left)[0]:
            lines = os.read(reading, 4096).decode().splitlines()
            if not lines:
                break
            for name in lines:
                steps.append((name, time.monotonic() - begun))
                if name == request.after:
                    deadline = time.monotonic() + request.delay
        if request.delay < FOREVER:
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, -signal.SIGKILL):
        raise RuntimeError(f"{request.verb} ended with {code}")
    return Death(tuple(steps), code != 0, time.monotonic() - begun)


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    for line in requests:
        answers.write(msgspec.json.encode(watch(msgspec.json.decode(line, type=Request))) + b"\n")
        answers.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
