"""Measure statemend on the benchmark store, side by side with SQLite and Hermes, in one run.

``python -m benchmarks.run`` (``make bench``) builds what is missing below the test cache, measures, and
prints a table. Every figure is the best of several runs of a process
of its own; peak memory is the highest of that process. Ratios are of processor time, which other programs on
the machine change least. Modules are compiled once, as where the program is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tests.hermes.home import HermesHome
from tests.hermes.releases import cache

from benchmarks.build import build

LARGE, SMALL, TINY = (300_000, 20_000), (30_000, 2_000), (30, 2)
EXPORTED = 2_000
RUNS = 3

QUICK_CHECK = """
import apsw, sys
flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
connection = apsw.Connection(f"file:{sys.argv[1]}?immutable=1", flags=flags)
assert connection.execute("PRAGMA quick_check").get == "ok"
"""

DIGEST_PASS = """
import apsw, hashlib, sys
flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
connection = apsw.Connection(f"file:{sys.argv[1]}?immutable=1", flags=flags)
for _, role, content, *rest in connection.execute(
    "SELECT id, role, content, timestamp, tool_call_id, tool_calls, tool_name FROM messages"
    " ORDER BY session_id, id"
):
    hashlib.sha256(repr((role, content, *rest)).encode()).digest()
"""

BARE_TYPER = """
import typer
app = typer.Typer(add_completion=False)

@app.callback(invoke_without_command=True)
def main(version: bool = typer.Option(False, "--version")) -> None:
    if version:
        print("bare 0.1.0")

app()
"""


class Cost(NamedTuple):
    """Seconds and peak resident MB of one process; ``processor`` is the seconds that it kept a core busy."""

    seconds: float
    megabytes: float
    processor: float = 0.0


def cost(command: list[str], *, expected: tuple[int, ...] = (0,)) -> Cost:
    """Run ``command`` and measure it; an exit code that is not ``expected`` ends the run."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(cache() / "bench" / "compiled")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    begun = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in expected:
        said = process.stderr.read().decode() if process.stderr else ""
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}: {said}")
    return Cost(seconds, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime)


def best(command: list[str], runs: int = RUNS, *, expected: tuple[int, ...] = (0,)) -> Cost:
    """The fastest run, and the highest peak of all runs."""
    costs = [cost(command, expected=expected) for _ in range(runs)]
    return Cost(
        min(one.seconds for one in costs),
        max(one.megabytes for one in costs),
        min(one.processor for one in costs),
    )


def home(size: tuple[int, int]) -> Path:
    """The home of the benchmark store of ``size``, built now if it is not in the cache."""
    folder = cache() / "bench" / f"{size[0]}-messages"
    if not (folder / "built").exists():
        shutil.rmtree(folder, ignore_errors=True)
        seconds = build(folder, *size)
        (folder / "built").write_text(f"{seconds:.1f}\n")
        print(f"built {size[0]:,} messages in {seconds:.0f} s", file=sys.stderr)
    return folder


def exports(folder: Path) -> tuple[Path, float]:
    """2,000 Markdown exports of the store by Hermes 0.22.2 itself: their folder, and the seconds it took."""
    target = folder.parent / "exports"
    note = target.parent / "exports.seconds"
    if not note.exists():
        shutil.rmtree(target, ignore_errors=True)
        copy = folder.parent / "exporting"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        with HermesHome("0.22.2", copy, now=1_900_000_000.0) as hermes:
            begun = time.perf_counter()
            argv = ["sessions", "export", str(target), "--format", "md", "--source", "telegram", "--yes"]
            code, said = hermes.process.command_line(argv, copy)
            seconds = time.perf_counter() - begun
        written = len(list(target.glob("*.md")))
        if code != 0 or written != EXPORTED:
            raise SystemExit(f"Hermes wrote {written} of {EXPORTED} exports: {said[-500:]}")
        shutil.rmtree(copy)
        note.write_text(f"{seconds:.2f}\n")
    return target, float(note.read_text())


def statemend(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "statemend", *arguments]


def row(name: str, measured: Cost, remark: str = "") -> None:
    """One line of the table; processor time is left out where it is not known."""
    processor = f"{measured.processor:.2f} s" if measured.processor else ""
    print(f"| {name} | {processor} | {measured.seconds:.2f} s | {measured.megabytes:.0f} MB | {remark} |")


def main() -> None:
    large, small = home(LARGE), home(SMALL)
    store = large / "state.db"
    folder, written_in = exports(large)
    print(f"store: {store.stat().st_size / 1e9:.2f} GB, {LARGE[0]:,} messages, {LARGE[1]:,} sessions")
    print("| what | processor | clock | peak memory | |\n|---|---|---|---|---|")
    quick = best([sys.executable, "-c", QUICK_CHECK, str(store)])
    row("`PRAGMA quick_check`", quick)
    row("one ordered pass with a digest", best([sys.executable, "-c", DIGEST_PASS, str(store)]))
    scan = best(statemend("scan", str(large), "--format", "json"), 5)
    row("default scan", scan, f"{scan.processor / quick.processor:.2f} of quick_check (wanted: 0.25)")
    begin = best(statemend("scan", str(home(TINY)), "--format", "json"), 9)
    row("default scan of two sessions: start-up", begin)
    little = best(statemend("scan", str(small), "--format", "json"), 9)
    ratio = (little.processor - begin.processor) / (scan.processor - begin.processor)
    row("default scan, ten times fewer rows", little, f"{ratio:.2f} of it after start-up (wanted: 0.10)")
    covered = best(statemend("scan", str(large), "--exports", str(folder), "--format", "json"))
    row(
        f"scan with {EXPORTED:,} Markdown exports",
        covered,
        f"coverage {covered.processor - scan.processor:.1f} s; Hermes wrote them in {written_in:.1f} s",
    )
    start = best(statemend("--version"), 9)
    bare = best([sys.executable, "-c", BARE_TYPER, "--version"], 9)
    row("bare typer program, `--version`", bare)
    row(
        "`statemend --version`",
        start,
        f"{start.processor / bare.processor:.2f} of bare typer (wanted: at most 1.50)",
    )


if __name__ == "__main__":
    main()
