"""Build what the measures of evidence read: a home with 10,000 exports, and one with 1 GB of logs.

``python -m benchmarks.evidence_build`` builds what is missing below the test cache, in a process of its own,
so that its memory is not taken for that of a measured one.
"""

from __future__ import annotations

import gzip
import os
import random
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import msgspec
from tests.hermes.home import HermesHome
from tests.hermes.releases import cache

from benchmarks.build import Texts, build
from statemend.formats import html, jsonl, logs, markdown_writer
from statemend.formats.artifact import Kind
from statemend.store.connection import Store, open_for_audit
from statemend.store.history import View, messages, records, session_record

#: 3,334 sessions of 112 messages, each in three formats: 10,002 files of 0.2 MB on average.
MESSAGES, SESSIONS = 375_000, 3_334
FORMATS = ("md", "jsonl", "html")
#: Hermes writes the sessions of this source in every format; that is one session in ten.
SAMPLED = "telegram"
NOW = 1_900_000_000.0

#: Bytes of each log once it is unpacked, newest first.
LOGS = {"agent.log": 300, "agent.log.1": 300, "agent.log.2.gz": 200, "agent.log.3.gz": 200}
#: One entry in so many is a failed append, one a turn, one a traceback.
_FAILED, _TURN, _TRACED = 2_000, 200, 500


class Written(msgspec.Struct, frozen=True):
    """A folder of exports. ``seconds`` is the processor time that Hermes takes to write ``sampled`` of the
    sessions in every format."""

    files: int
    size: int
    seconds: float
    sampled: int

    @property
    def hermes_seconds(self) -> float:
        """What Hermes needs to write all of them, by the sample."""
        return self.seconds * SESSIONS / self.sampled


class Place(NamedTuple):
    """Where a measured home and what lies beside it are."""

    home: Path
    exports: Path
    note: Path


def exported() -> Place:
    """The home whose sessions are exported."""
    folder = cache() / "bench" / f"exported-{MESSAGES}-messages"
    return Place(folder / "home", folder / "exports", folder / "written.json")


def logged() -> Path:
    """The home with long logs."""
    return cache() / "bench" / "logged"


def written() -> Written:
    """What is known of the folder of exports that was built."""
    return msgspec.json.decode(exported().note.read_bytes(), type=Written)


def build_exports(place: Place) -> Written:
    shutil.rmtree(place.home.parent, ignore_errors=True)
    build(place.home, MESSAGES, SESSIONS)
    place.exports.mkdir(parents=True)
    with open_for_audit(place.home / "state.db") as store:
        for (session_id,) in list(store.rows("SELECT id FROM sessions ORDER BY id")):
            _export(store, session_id, place.exports)
    found = [file.stat().st_size for file in place.exports.iterdir()]
    return Written(len(found), sum(found), *_by_hermes(place))


def _export(store: Store, session_id: str, folder: Path) -> None:
    """One session in every format, in the release's own bytes."""
    session = session_record(store, session_id) or {}
    shown = list(messages(store, session_id, View.DISPLAY))
    pieces: dict[str, Iterable[bytes]] = {
        "md": markdown_writer.pieces(session, shown, count=len(shown), kind=Kind.MARKDOWN, exported_at=NOW),
        "jsonl": (each.encode() for each in jsonl.render(session, records(store, session_id, View.DISPLAY))),
        "html": (each.encode() for each in html.render([(session, shown)], generated_at="2030-03-17")),
    }
    for name in FORMATS:
        with open(folder / f"{session_id}.{name}", "wb") as file:
            file.writelines(pieces[name])


def _by_hermes(place: Place) -> tuple[float, int]:
    """Processor seconds that the release takes to export a tenth of the sessions in every format, and how
    many these are: all in one command for each format, which is its fastest way."""
    copy = place.home.parent / "sample"
    shutil.copytree(place.home, copy)
    with HermesHome("0.22.2", copy, now=NOW) as hermes:
        sampled = hermes.value("SELECT COUNT(*) FROM sessions WHERE source = ?", [SAMPLED])
        begun = _processor_seconds(hermes.process.pid)
        for name in FORMATS:
            target = copy / "md" if name == "md" else copy / f"all.{name}"
            argv = ["sessions", "export", str(target), "--format", name, "--source", SAMPLED, "--yes"]
            code, said = hermes.process.command_line(argv, copy)
            if code != 0:
                raise SystemExit(f"Hermes could not export as {name}: {said[-500:]}")
        seconds = _processor_seconds(hermes.process.pid) - begun
    shutil.rmtree(copy)
    return seconds, sampled


def _processor_seconds(pid: int) -> float:
    """How long a process, its children, and the children of these that ended have kept a core busy."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    used = [Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split() for each in (pid, *children)]
    return sum(int(ticks) for each in used for ticks in each[11:15]) / os.sysconf("SC_CLK_TCK")


def build_logs(home: Path) -> None:
    """1 GB of log in four files, oldest last, by two processes that write at once; and a small store."""
    shutil.rmtree(home, ignore_errors=True)
    build(home, 30, 2)
    folder = home / "logs"
    folder.mkdir(exist_ok=True)
    lines = iter(_Lines())
    for name, megabytes in reversed(LOGS.items()):
        with _opened(folder / name) as file:
            size = 0
            while size < megabytes * 1_000_000:
                size += file.write("".join(islice(lines, 4000)).encode())


def _opened(path: Path) -> BinaryIO:
    return (
        cast(BinaryIO, gzip.open(path, "wb", compresslevel=6)) if path.suffix == ".gz" else open(path, "wb")
    )


class _Lines:
    """Lines of two processes in turn, without end. A traceback of one is cut by a line of the other."""

    def __init__(self) -> None:
        self._random = random.Random(5)
        self._texts = Texts(self._random)
        self._number = 0

    def __iter__(self) -> Iterator[str]:
        while True:
            self._number += 1
            number = self._number
            at = time.gmtime(1_790_000_000 + number // 20)
            clock = f"{time.strftime('%Y-%m-%d %H:%M:%S', at)},{number % 1000:03d}"
            session = f"20260923_{number // 100_000 % 24:02d}0000_{number % 2:06x}"
            yield from self._entry(number, clock, session)

    def _entry(self, number: int, clock: str, session: str) -> Iterator[str]:
        if number % _FAILED == 0:
            failed = "Session DB append_message failed: FOREIGN KEY constraint failed"
            yield logs.render_line(clock, "WARNING", "run_agent", failed, session)
        elif number % _TURN == 0:
            begun = (
                f"conversation turn: session={session} model=gpt-4o provider=x platform=cli history=4 msg='x'"
            )
            yield logs.render_line(clock, "INFO", "agent.turn", begun, session)
        elif number % _TRACED == 1:
            yield logs.render_line(clock, "ERROR", "agent.tools", "a tool failed", session)
            yield "Traceback (most recent call last):\n"
            for depth in range(6):
                yield f'  File "/opt/tools/m{depth}.py", line {number % 900}, in call\n    return call()\n'
                if depth == 3:
                    yield logs.render_line(clock, "INFO", "gateway.run", "another process goes on")
            yield "ValueError: no such thing\n"
        else:
            words = self._texts.take(self._random.randint(20, 160))
            yield logs.render_line(clock, "INFO", "agent.loop", words, session)


def main() -> None:
    place = exported()
    if not place.note.exists():
        print("building 10,000 exports", file=sys.stderr)
        place.note.write_bytes(msgspec.json.encode(build_exports(place)))
    mark = logged() / "built"
    if not mark.exists():
        print("building 1 GB of logs", file=sys.stderr)
        build_logs(logged())
        mark.touch()


if __name__ == "__main__":
    main()
