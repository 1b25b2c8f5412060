"""Judges the tests of the rules: mutmut writes mutants of the code, each with one small change, and for each
a test has to fail.

mutmut's own run starts pytest for each mutant; of ten thousand that takes days. Here the tests are collected
once, and each mutant runs in a fork, with the tests that reach it, until one fails::

    python -m tests.mutants                        # all mutants: hours
    python -m tests.mutants --sample 500           # so many of them, by chance
    python -m tests.mutants rules.lineage.fork     # those whose name contains this
    python -m tests.mutants --seconds 4            # the nearest tests alone: more seem to survive

What was found goes into ``mutants/judged.jsonl``, a line for each mutant; of code that did not change since,
only those that survived are run again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate, groupby
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from tests import mutant_kinds

#: Where mutmut puts the mutants and a copy of the tests, which are run there.
WORK = Path("mutants")
JUDGED = Path("judged.jsonl")
#: Where a fork leaves word of the test that noticed its mutant.
NOTICED = "noticed"
ACTIVE = "MUTANT_UNDER_TEST"
#: Seconds of processor time after which a mutant is taken for one that never ends.
_PATIENCE = 60


def main() -> None:
    parser = argparse.ArgumentParser(description="Judge the tests by mutants of the rules.")
    parser.add_argument("names", nargs="*", help="parts of the names of mutants; none: all")
    parser.add_argument("--sample", type=int, help="take so many by chance")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="of tests at most for each mutant, nearest first"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    if ACTIVE not in os.environ:
        write_mutants()
        environment = {**os.environ, "PYTHONPATH": "src", ACTIVE: ""}
        command = [sys.executable, "-m", "tests.mutants", *sys.argv[1:]]
        sys.exit(subprocess.run(command, cwd=WORK, env=environment, check=False).returncode)
    hashes = {name: own for name, own in written() if all_in(name, options.names)}
    chosen = sorted(hashes)
    random.Random(options.seed).shuffle(chosen)
    chosen = chosen[: options.sample]
    dead = {(line["name"], line["hash"]) for line in judged() if line["ended"] != "survived"}
    judge = Judge(
        {name: hashes[name] for name in chosen if (name, hashes[name]) not in dead},
        options.workers,
        options.seconds,
    )
    quiet = ("--assert=plain", "--tb=no", "--capture=no", "-q")
    without = ("randomly", "cacheprovider", "xdist", "logging")
    arguments = [*quiet, *(f"-pno:{name}" for name in without), *selection()]
    if (code := pytest.main(arguments, plugins=[judge])) != 0:
        sys.exit(code)
    tell(chosen)


def write_mutants() -> None:
    """Have mutmut write the mutants beside a copy of the tests."""
    from mutmut import __main__ as mutmut

    WORK.mkdir(exist_ok=True)
    for folder in ("src", "tests"):
        shutil.rmtree(WORK / folder, ignore_errors=True)
    mutmut.copy_src_dir()
    mutmut.copy_also_copy_files()
    mutmut.create_mutants(os.cpu_count() or 1)


def selection() -> list[str]:
    from mutmut.configuration import config

    return list(config().pytest_add_cli_args_test_selection)


def written() -> Iterator[tuple[str, str]]:
    """Each mutant, and a hash of the function that it is of."""
    for path in Path("src").rglob("*.py.meta"):
        facts = json.loads(path.read_text("utf-8"))
        for name in facts["exit_code_by_key"]:
            function = name.rpartition("__mutmut_")[0].rpartition(".")[2]
            yield name, facts["hash_by_function_name"][function]


def judged() -> Iterator[dict[str, str]]:
    """What was found, in the order in which it was."""
    lines = JUDGED.read_text("utf-8").splitlines() if JUDGED.exists() else []
    yield from map(json.loads, lines)


def all_in(name: str, parts: Sequence[str]) -> bool:
    return not parts or any(part in name for part in parts)


def function_of(mutant: str) -> str:
    return mutant.rpartition("__mutmut_")[0]


def plain(function: str) -> str:
    """The name of a function, or of a method with its class, as it stands in the source."""
    return function.rpartition(".")[2].removeprefix("x").lstrip("_\u01c1").replace("\u01c1", ".")


def module_of(mutant: str) -> str:
    return mutant.rpartition(".")[0].removeprefix("statemend.")


def tell(chosen: Sequence[str]) -> None:
    """How each module fared, and which mutants no test noticed: of what kinds, and each by module, function
    and number."""
    ended = {line["name"]: line["ended"] for line in judged()}
    by_module: dict[str, Counter[str]] = defaultdict(Counter)
    for name in chosen:
        by_module[module_of(name)][ended[name]] += 1
    print("| module | mutants | died | share |", "|---|---|---|---|", sep="\n")
    for module, counts in sorted(by_module.items()):
        print(f"| `{module}` {_died(counts)}")
    print(f"| all {_died(sum(by_module.values(), Counter()))}", end="\n\n")
    survived = sorted(name for name in chosen if ended[name] == "survived")
    kinds = Counter(_kind(name) for name in survived)
    print(*(f"- {count:,}: {what}" for what, count in kinds.most_common()), sep="\n", end="\n\n")
    for module, names in groupby(survived, module_of):
        by_function: dict[str, list[int]] = defaultdict(list)
        for name in names:
            by_function[plain(function_of(name))].append(int(name.rpartition("_")[2]))
        told = (f"{name} {' '.join(map(str, sorted(own)))}" for name, own in by_function.items())
        print(f"- `{module}`: {'; '.join(told)}")


def _died(counts: Counter[str]) -> str:
    total, survived = counts.total(), counts["survived"]
    return f"| {total:,} | {total - survived:,} | {1 - survived / max(1, total):.1%} |"


_functions = cache(mutant_kinds.functions)


def _kind(mutant: str) -> str:
    module, _, function = mutant.rpartition(".")
    place = Path("src", *module.split("."))
    file = place.with_suffix(".py")
    forms = _functions(file if file.exists() else place / "__init__.py")
    return mutant_kinds.kind(forms[f"{function_of(function)}__mutmut_orig"], forms[function])


class Judge:
    """A plugin of pytest that, in place of the tests, runs the mutants."""

    def __init__(self, mutants: Mapping[str, str], workers: int, seconds: float) -> None:
        self.mutants, self.workers, self.seconds = mutants, workers, seconds
        self.running: dict[int, tuple[str, Path]] = {}
        #: The tests that noticed a mutant of a function, the last one first.
        self.noticed: dict[str, list[int]] = defaultdict(list)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        reach = self.reach(session) if self.mutants else {}
        for number, mutant in enumerate(self.mutants, 1):
            while len(self.running) >= self.workers:
                self.reap()
            self.start(session, mutant, self.tests_for(function_of(mutant), reach))
            print(f"\r{number}/{len(self.mutants)}", end="", file=sys.stderr)
        while self.running:
            self.reap()
        print(file=sys.stderr)
        return True

    def reach(self, session: pytest.Session) -> dict[str, list[int]]:
        """The tests that run each function, first those that run few others."""
        from mutmut.state import state

        reach: dict[str, list[tuple[int, float, int]]] = defaultdict(list)
        os.environ[ACTIVE] = "stats"
        for place, item in enumerate(session.items):
            hit = state()._stats
            hit.clear()
            started = time.process_time()
            if failed(item):
                print(f"set aside, for it fails without a mutant: {item.nodeid}", file=sys.stderr)
                continue
            for function in hit:
                reach[function].append((len(hit), time.process_time() - started, place))
        os.environ[ACTIVE] = ""
        return {function: self.affordable(sorted(tests)) for function, tests in reach.items()}

    def affordable(self, tests: Sequence[tuple[int, float, int]]) -> list[int]:
        """So many of the tests as fit into the time that a mutant may have, but one at least."""
        spent = accumulate((taken for _, taken, _ in tests), initial=0.0)
        return [place for (*_, place), before in zip(tests, spent, strict=False) if before < self.seconds]

    def tests_for(self, function: str, reach: Mapping[str, Sequence[int]]) -> list[int]:
        """First those that noticed another mutant of the function: most often they notice this one too."""
        likely = self.noticed[function]
        return [*likely, *(place for place in reach.get(function, ()) if place not in likely)]

    def start(self, session: pytest.Session, mutant: str, tests: Sequence[int]) -> None:
        folder = Path(tempfile.mkdtemp(prefix="mutant-"))
        pid = os.fork()
        if pid:
            self.running[pid] = mutant, folder
            return
        died = True
        try:
            os.environ[ACTIVE] = mutant
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            limit = int(time.process_time()) + _PATIENCE
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            signal.alarm(20 * _PATIENCE)
            session.config._tmp_path_factory._basetemp = folder  # type: ignore[attr-defined]
            noticed = next((place for place in tests if failed(session.items[place])), None)
            died = noticed is not None
            if died:
                (folder / NOTICED).write_text(str(noticed), "utf-8")
        finally:
            os._exit(died)

    def reap(self) -> None:
        pid, status = os.wait()
        mutant, folder = self.running.pop(pid)
        ended = "timeout" if os.WIFSIGNALED(status) else ("survived", "killed")[os.WEXITSTATUS(status) == 1]
        if (word := folder / NOTICED).exists():
            function, test = function_of(mutant), int(word.read_text("utf-8"))
            self.noticed[function] = [test, *(each for each in self.noticed[function] if each != test)]
        shutil.rmtree(folder, ignore_errors=True)
        with JUDGED.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"name": mutant, "hash": self.mutants[mutant], "ended": ended}) + "\n")


def failed(item: pytest.Item) -> bool:
    return any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))


if __name__ == "__main__":
    main()
