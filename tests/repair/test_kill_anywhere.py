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
from tests.repair import cleanups, plans
from tests.repair.cleanups import cleaned
from tests.repair.killing import Death, Request
from tests.repair.whole import restore, sound

from statemend.repair import bounds, cleanup, cleanup_plan
from statemend.repair.apply import apply
from statemend.repair.perform import perform
from statemend.repair.run import Run, RunFolder, State
from statemend.repair.undo import undo
from statemend.repair.verify import verify

KILLS = int(os.environ.get("STATEMEND_KILLS", "20"))
STRIDE = 1 if KILLS >= 200 else 16
OLD = {State.NOT_APPLIED, State.BEFORE_COMMIT, State.UNDONE}
NEW = {State.AFTER_COMMIT, State.APPLIED, State.FAILED}
#: Where the clock of a random moment starts: an early one falls anywhere, mostly into the rehearsal.
APPLY = ("", "rehearsal passed", "snapshot verified", "fence entered", "changed and proven")
CLEANUP = (*APPLY, "checked again", "receipt written")
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
    """A store, a plan that changes it, and the state of the store before and after. ``verb`` is what carries
    the plan out: ``apply`` or ``cleanup``."""

    def __init__(self, made: tuple[Path, Path], mode: str, verb: str = "apply") -> None:
        self.store, self.file = made
        self.folder = folder = self.file.parent
        self.mode = mode
        self.verb = verb
        with closing(apsw.Connection(str(self.store))) as plain:
            plain.pragma("journal_mode", mode)
        self.pristine = self.store.read_bytes()
        self.old = plans.digest(self.store)
        self.kept = folder / "kept"
        self.carry_out(self.kept)
        self.new = plans.digest(self.store)
        self.applied = self.store.read_bytes()
        self.number = 0

    def carry_out(self, run: Path) -> Run:
        """Carry the plan out, to the end."""
        if self.verb == "apply":
            return apply(self.file, run_dir=run, now=plans.NOW)
        done = cleanup.apply(self.file, run_dir=run, now=cleanups.NOW).run
        assert done is not None
        return done

    def begin(self, content: bytes) -> Path:
        """The store as it was, and the name of a run folder that is not there yet."""
        self.number += 1
        restore(self.store, content)
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


def doomed(folder: Path, release: str) -> tuple[Path, Path]:
    """A store with sessions that files hold, and the plan to delete them."""
    scene = cleaned(folder, release)
    return scene.store, scene.file("alpha", "beta")


@pytest.mark.parametrize(
    ("main", "release", "mode"),
    [
        ("apply", "0.22.2", "wal"),
        ("apply", "0.19.0", "wal"),
        ("apply", "0.13.0", "delete"),
        ("cleanup", "0.22.2", "wal"),
        ("cleanup", "0.19.0", "delete"),
    ],
)
def test_killed_at_a_random_moment(
    stores: Mapping[str, Path], tmp_path: Path, kill: Kill, main: str, release: str, mode: str
) -> None:
    made = large(tmp_path, stores[release]) if main == "apply" else doomed(tmp_path, release)
    case, chance, ended = Case(made, mode, main), random.Random(f"{main} {release}"), Counter[str]()
    usual = {main: kill(case.request(main, case.begin(case.pristine)))}
    usual["undo"] = kill(case.request("undo", tmp_path / "run-1"))
    assert plans.digest(case.store) == case.old
    for number in range(-(-KILLS // 5)):
        verb = "undo" if number % 3 == 2 else main
        run = case.begin(case.applied if verb == "undo" else case.pristine)
        if verb == "undo":
            shutil.copytree(case.kept, run)
        after = chance.choice({"undo": UNDO, "apply": APPLY, "cleanup": CLEANUP}[verb])
        took = usual[verb].seconds - dict(usual[verb].steps).get(after, 0.0)
        death = kill(case.request(verb, run, after=after, delay=chance.uniform(0.0, took)))
        last = death.steps[-1][0] if death.steps else "none"
        in_store = case.look(run)
        ended[f"{verb}: {last}" if death.killed else f"{verb}: not killed"] += 1
        if verb == "undo":
            assert undo(run, now=plans.NOW).state is State.UNDONE
        else:
            again = run if in_store else run.with_name(f"{run.name}-again")
            done = case.carry_out(again)
            assert done.state is State.APPLIED
            assert plans.digest(case.store) == case.new
            assert undo(Path(done.folder), now=plans.NOW).state is State.UNDONE
        assert plans.digest(case.store) == case.old
        sound(case.store, mode)
    print(f"{main} {release} {mode}: {dict(sorted(ended.items()))}")
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
        sound(case.store, mode)
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


@pytest.mark.parametrize(("release", "mode"), [("0.22.2", "wal"), ("0.19.0", "delete")])
def test_killed_in_a_file_operation_of_a_cleanup(tmp_path: Path, kill: Kill, release: str, mode: str) -> None:
    case, found = Case(doomed(tmp_path, release), mode, "cleanup"), Counter[bool]()
    made = cleanup_plan.load(case.file)
    for number in itertools.count(1, STRIDE):
        run = case.begin(case.pristine)
        RunFolder.create(run, made.envelope())
        shutil.copy(case.file, run / "cleanup.json")
        death = kill(case.request("perform cleanup", run, operation=number))
        in_store = case.look(run)
        found[in_store] += 1
        sound(case.store, mode)
        if in_store:
            assert undo(run, now=cleanups.NOW).state is State.UNDONE
            assert plans.digest(case.store) == case.old
        else:
            assert not (run / "receipt.json").exists()
        if not death.killed:
            break
    print(
        f"{release} {mode}: killed in {found.total() - 1} operations: {found[False]} old, {found[True]} new"
    )
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
        sound(case.store, mode)
        assert undo(run, now=plans.NOW).state is State.UNDONE
        assert plans.digest(case.store) == case.old
        if not death.killed:
            break
    print(f"{mode}: killed in {found.total() - 1} operations: {found[True]} new, {found[False]} old")
    assert not in_store
    assert found[True] > 100 // STRIDE
