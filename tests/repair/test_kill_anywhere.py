"""A process that is killed anywhere, in any write, leaves the old store or the new one, and a run that tells.

``test_kill`` kills at named steps; here it happens at random moments, ``STATEMEND_KILLS`` of them (20 by
default), and in each ninth file operation, or in every one where 200 or more moments are asked for.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import apsw
import msgspec
import pytest
from tests.repair import plans
from tests.repair.killing import Death, Request

from statemend.repair import bounds
from statemend.repair.apply import apply
from statemend.repair.perform import perform
from statemend.repair.run import RunFolder, State
from statemend.repair.undo import undo
from statemend.repair.verify import verify

KILLS = int(os.environ.get("STATEMEND_KILLS", "20"))
STRIDE = 1 if KILLS >= 200 else 9
OLD = {State.NOT_APPLIED, State.BEFORE_COMMIT, State.UNDONE}
NEW = {State.AFTER_COMMIT, State.APPLIED, State.FAILED}
#: Where the clock of a random moment starts: an early one falls anywhere, mostly into the rehearsal.
APPLY = ("", "rehearsal passed", "snapshot verified", "fence entered", "changed and proven")
UNDO = ("", "undo begun", "undo snapshot verified", "undo fence entered", "undo proven")

Kill = Callable[[Request], Death]


@pytest.fixture(scope="module")
def kill() -> Iterator[Kill]:
    """The process that has its children killed."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.repair.killing"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        requests, answers = process.stdin, process.stdout

        def ask(request: Request) -> Death:
            requests.write(msgspec.json.encode(request) + b"\n")
            requests.flush()
            return msgspec.json.decode(answers.readline(), type=Death)

        yield ask
        requests.close()


class Case:
    """A store with a fault, the plan that mends it, and the state of the store before and after."""

    def __init__(self, made: tuple[Path, Path], mode: str) -> None:
        self.store, self.file = made
        self.folder = folder = self.file.parent
        self.mode = mode
        with closing(apsw.Connection(str(self.store))) as plain:
            plain.pragma("journal_mode", mode)
        self.pristine = self.store.read_bytes()
        self.old = plans.digest(self.store)
        self.kept = folder / "kept"
        apply(self.file, run_dir=self.kept, now=plans.NOW)
        self.new = plans.digest(self.store)
        self.applied = self.store.read_bytes()
        self.number = 0

    def begin(self, content: bytes) -> Path:
        """The store as it was, and the name of a run folder that is not there yet."""
        self.number += 1
        for suffix in ("-wal", "-shm", "-journal", ".statemend-lock"):
            self.store.with_name(self.store.name + suffix).unlink(missing_ok=True)
        self.store.write_bytes(content)
        return self.folder / f"run-{self.number}"

    def request(self, verb: str, run: Path, **when: object) -> Request:
        folder = str(self.folder.resolve())
        return msgspec.convert(
            {"verb": verb, "plan": str(self.file), "run": str(run), "folder": folder, **when}, Request
        )

    def look(self, run: Path) -> bool:
        """Whether the change is in the store, which is whole; and ``verify`` says so too."""
        digest = plans.digest(self.store)
        assert digest in (self.old, self.new)
        if (run / "plan.json").exists() and (run / "plan.json").stat().st_size:
            told = verify(run, now=plans.NOW)
            assert told.state in (OLD if digest == self.old else NEW)
            assert "statemend " in told.advice
        else:
            assert digest == self.old
        return digest == self.new

    def check(self) -> None:
        """What any program that opens the store next finds."""
        with closing(apsw.Connection(str(self.store))) as plain:
            for table in ("sessions", "messages", "state_meta"):
                assert plain.execute(f"PRAGMA main.quick_check({table})").get == "ok"
            plain.execute("INSERT INTO messages_fts(messages_fts, rank) VALUES ('integrity-check', 1)")
            assert plain.pragma("journal_mode") == self.mode


def large(folder: Path, release: Path) -> tuple[Path, Path]:
    """A store whose session lost its row, with a plan that puts it back and writes a megabyte beside it: what
    takes longer is met more often."""
    store, file = plans.mixed(folder, release)
    made = bounds.read(file)
    notes = [
        plans.insert("state_meta", "key", {"key": f"note {number}", "value": f"{number} " * 800})
        for number in range(300)
    ]
    (step,) = made.steps
    whole = msgspec.structs.replace(step, operations=(*step.operations, *notes))
    return store, plans.write(plans.plan(store, whole), file)


@pytest.mark.parametrize(("release", "mode"), [("0.22.2", "wal"), ("0.19.0", "wal"), ("0.13.0", "delete")])
def test_killed_at_a_random_moment(
    stores: Mapping[str, Path], tmp_path: Path, kill: Kill, release: str, mode: str
) -> None:
    case, chance, ended = Case(large(tmp_path, stores[release]), mode), random.Random(release), Counter[str]()
    usual = {"apply": kill(case.request("apply", case.begin(case.pristine)))}
    usual["undo"] = kill(case.request("undo", tmp_path / "run-1"))
    assert plans.digest(case.store) == case.old
    for number in range(-(-KILLS // 3)):
        verb = "undo" if number % 3 == 2 else "apply"
        run = case.begin(case.applied if verb == "undo" else case.pristine)
        if verb == "undo":
            shutil.copytree(case.kept, run)
        after = chance.choice(UNDO if verb == "undo" else APPLY)
        took = usual[verb].seconds - dict(usual[verb].steps).get(after, 0.0)
        death = kill(case.request(verb, run, after=after, delay=chance.uniform(0.0, took)))
        last = death.steps[-1][0] if death.steps else "none"
        in_store = case.look(run)
        ended[f"{verb}: {last}" if death.killed else f"{verb}: not killed"] += 1
        if verb == "undo":
            assert undo(run, now=plans.NOW).state is State.UNDONE
        else:
            again = run if in_store else run.with_name(f"{run.name}-again")
            done = apply(case.file, run_dir=again, now=plans.NOW)
            assert done.state is State.APPLIED
            assert plans.digest(case.store) == case.new
            assert undo(Path(done.folder), now=plans.NOW).state is State.UNDONE
        assert plans.digest(case.store) == case.old
        case.check()
    print(f"{release} {mode}: {dict(sorted(ended.items()))}")
    assert any(not where.endswith("not killed") for where in ended)


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_killed_in_a_file_operation_of_a_change(
    stores: Mapping[str, Path], tmp_path: Path, kill: Kill, mode: str
) -> None:
    case, found = Case(plans.mixed(tmp_path, stores["0.22.2"]), mode), Counter[bool]()
    made = bounds.read(case.file)
    for number in itertools.count(1, STRIDE):
        run = case.begin(case.pristine)
        RunFolder.create(run, made)
        death = kill(case.request("perform", run, operation=number))
        in_store = case.look(run)
        found[in_store] += 1
        case.check()
        if not in_store:
            folder = RunFolder.create(run.with_name(f"{run.name}-again"), made)
            perform(made, case.store, folder, folder.log(), now=plans.NOW)
            folder.log().step("committed")
            run = folder.path
            assert plans.digest(case.store) == case.new
        assert undo(run, now=plans.NOW).state is State.UNDONE
        assert plans.digest(case.store) == case.old
        if not death.killed:
            break
    print(f"{mode}: killed in {found.total() - 1} operations: {found[False]} old, {found[True]} new")
    assert in_store
    assert found[False] > 100 // STRIDE


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_killed_in_a_file_operation_of_an_undo(
    stores: Mapping[str, Path], tmp_path: Path, kill: Kill, mode: str
) -> None:
    case, found = Case(plans.mixed(tmp_path, stores["0.22.2"]), mode), Counter[bool]()
    for number in itertools.count(1, STRIDE):
        run = case.begin(case.applied)
        shutil.copytree(case.kept, run)
        death = kill(case.request("undo", run, operation=number))
        in_store = case.look(run)
        found[in_store] += 1
        case.check()
        assert undo(run, now=plans.NOW).state is State.UNDONE
        assert plans.digest(case.store) == case.old
        if not death.killed:
            break
    print(f"{mode}: killed in {found.total() - 1} operations: {found[True]} new, {found[False]} old")
    assert not in_store
    assert found[True] > 100 // STRIDE
