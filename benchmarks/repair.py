"""Measure a repair of 1,000 sessions that lost their rows, with 100,000 messages, and a snapshot.

``python -m benchmarks.repair`` builds the store below the test cache if it is missing, and prints a table.
The phases come from the journal of the run. Beside them stand what SQLite takes to insert the same rows into
an empty store of the same release, its triggers at work, and what a copy of the file takes.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
from tests.hermes.home import HermesHome
from tests.hermes.releases import cache

from benchmarks.build import build
from benchmarks.run import Cost, cost, row, statemend
from statemend.repair import journal
from statemend.store import durable, snapshot
from statemend.store.connection import open_for_audit
from statemend.store.identity import store_digest
from statemend.store.writing import open_for_repair

MESSAGES, SESSIONS = 100_000, 1_000
RUNS = 5


def whole() -> Path:
    """The home of the store, built now if it is not in the cache."""
    folder = cache() / "bench" / f"repair-{MESSAGES}-messages"
    if not (folder / "built").exists():
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "built").write_text(f"{build(folder, MESSAGES, SESSIONS):.1f}\n")
    return folder


def orphaned(home: Path, folder: Path) -> Path:
    """A copy of the home in which every session lost its row, as a program without foreign keys does it."""
    folder.mkdir()
    shutil.copy(home / "state.db", folder / "state.db")
    with closing(apsw.Connection(str(folder / "state.db"))) as connection:
        connection.execute("DELETE FROM sessions")
    return folder


def bare_inserts(home: Path, folder: Path) -> float:
    """Seconds for the rows of the home to go into an empty store of the release, in one transaction."""
    with HermesHome("0.22.2", folder) as empty:
        empty.store("session_count")
    with closing(apsw.Connection(str(folder / "state.db"))) as connection:
        connection.pragma("synchronous", 2)
        connection.execute("ATTACH ? AS origin", (str(home / "state.db"),))
        begun = time.perf_counter()
        with connection:
            for table in ("sessions", "messages"):
                connection.execute(f"INSERT INTO main.{table} SELECT * FROM origin.{table}")
        return time.perf_counter() - begun


def fastest(work: Callable[[Path], object], folder: Path, name: str) -> float:
    """The best of several runs, each with a target file of its own."""
    seconds = []
    for number in range(RUNS):
        target = folder / f"{name}-{number}"
        begun = time.perf_counter()
        work(target)
        seconds.append(time.perf_counter() - begun)
        target.unlink()
    return min(seconds)


def copy(source: Path) -> Callable[[Path], object]:
    """What a copy of the file takes, on the disk."""

    def work(target: Path) -> None:
        with open(source, "rb") as reader, open(target, "xb") as writer:
            shutil.copyfileobj(reader, writer, 1 << 20)
        durable.sync_file(target)
        durable.sync_folder(target.parent)

    return work


def backup(source: Path) -> Callable[[Path], object]:
    """What the copy that a snapshot makes takes, on the disk, without any proof of it."""

    def work(target: Path) -> None:
        durable.create(target)
        with open_for_repair(source) as origin:
            origin.raw.execute("BEGIN")
            snapshot.write_copy(origin.raw, origin.store, target)
            origin.raw.execute("ROLLBACK")
        durable.sync_file(target)
        durable.sync_folder(target.parent)

    return work


def digest(source: Path) -> float:
    """Seconds for one digest of every row."""
    begun = time.perf_counter()
    with open_for_audit(source) as store:
        store_digest(store)
    return time.perf_counter() - begun


def phases(run: Path, begun: float) -> list[tuple[str, float]]:
    """Each step of the journal with the seconds since the one before."""
    found, last = [], begun
    for entry in journal.read(run / "journal.jsonl"):
        found.append((entry.step, entry.at - last))
        last = entry.at
    return found


def line(name: str, seconds: float, remark: str = "") -> None:
    print(f"| {name} | | {seconds:.2f} s | | {remark} |")


def main() -> None:
    home = whole()
    store = home / "state.db"
    with tempfile.TemporaryDirectory(prefix="repair-", dir=cache() / "bench") as name:
        folder = Path(name)
        size = store.stat().st_size / 1e9
        print(f"store: {size:.2f} GB, {MESSAGES:,} messages, {SESSIONS:,} sessions without a row")
        print("| what | processor | clock | peak memory | |\n|---|---|---|---|---|")
        inserts = bare_inserts(home, folder / "bare")
        line("bare inserts of the rows, triggers on", inserts)
        broken, plan, run = orphaned(home, folder / "home"), folder / "plan.json", folder / "run"
        made = cost(statemend("plan", str(broken), "-o", str(plan), "--format", "json"), expected=(0, 1))
        row("`statemend plan`", made)
        row("`statemend rehearse`", cost(statemend("rehearse", str(plan), "--format", "json")))
        begun = time.time()
        applied = cost(statemend("apply", str(plan), "--run-dir", str(run), "--format", "json"))
        rehearsed = report_phases(run, begun)
        alone = Cost(applied.seconds - rehearsed, applied.megabytes)
        row("`statemend apply`, rehearsal and rescan included", applied)
        row("the same without its rehearsal", alone, share(alone.seconds, inserts, 2.0, "the inserts"))
        row("`statemend undo`", cost(statemend("undo", str(run), "--format", "json")))
        report_snapshot(store, folder)


def report_phases(run: Path, begun: float) -> float:
    """Print the steps of an apply, and how long it locked the store. Returns the seconds of the rehearsal."""
    steps = phases(run, begun)
    for step, seconds in steps:
        line(f"apply, until “{step}”", seconds)
    names = [step for step, _ in steps]
    first, last = names.index("fence entered"), names.index("committed")
    line("the store is locked", sum(seconds for _, seconds in steps[first + 1 : last + 1]))
    return steps[0][1]


def report_snapshot(store: Path, folder: Path) -> None:
    """Print what a snapshot takes beside a copy, and of what that consists."""
    copied = fastest(copy(store), folder, "copy")
    line("copy of the file, synced", copied)
    bare = fastest(backup(store), folder, "backup")
    line("the copy of a snapshot, synced", bare, share(bare, copied, 1.5, "the copy"))
    taken = fastest(lambda target: snapshot.take(store, target), folder, "snapshot")
    line("snapshot with its proof", taken, share(taken, copied, 1.5, "the copy"))
    read = min(digest(store) for _ in range(RUNS))
    line("of which the digests of every row, that undo needs too", read)
    line("of which the proof: every byte read back, every table checked", taken - bare - read)


def share(seconds: float, other: float, wanted: float, name: str) -> str:
    return f"{seconds / other:.2f} of {name} (wanted: at most {wanted:.2f})"


if __name__ == "__main__":
    main()
