"""Long chains, rings, broad families and many damaged ones cost the lineage rules a step for each session.

No clock is asked: what is counted are the calls of functions (each row that a query yields is one) and the
statements, at one size and at twice that size.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import apsw
import pytest
from tests.audit.builder import NOW, START, HomeBuilder

from statemend.audit.engine import audit

SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."
#: Twice as much to look at costs at most so many times the steps; a square would cost four times.
LINEAR = 2.6
SIZE = 120

#: id, parent, begin and end (seconds after ``START``), end reason, configuration, title, and the first text
Session = tuple[str, str | None, float, float | None, str | None, str | None, str | None, str]


def session(
    session_id: str,
    parent: str | None = None,
    begin: float = 0.0,
    end: float | None = None,
    reason: str | None = None,
    config: str | None = None,
    title: str | None = None,
    first: str = SUMMARY,
) -> Session:
    return (session_id, parent, begin, end, reason, config, title, first)


def chain(size: int) -> Iterator[Session]:
    for n in range(size):
        yield session(f"s{n}", f"s{n - 1}" if n else None, n * 5000, n * 5000 + 4999, "compression")


def ring(size: int) -> Iterator[Session]:
    for n in range(size):
        yield session(f"s{n}", f"s{(n - 1) % size}", n * 5000, n * 5000 + 4999, "compression")


def rings(size: int) -> Iterator[Session]:
    for n in range(size):
        yield session(f"s{n}", f"s{n ^ 1}", n * 5000)


def forked_chain(size: int) -> Iterator[Session]:
    yield from chain(size)
    for n in range(size - 1):
        yield session(f"f{n}", f"s{n}", n * 5000 + 5000)


def marked_chain(size: int) -> Iterator[Session]:
    for n in range(size):
        config = f'{{"_delegate_from": "s{n * 7 % size}"}}'
        yield session(f"s{n}", f"s{n - 1}" if n else None, n * 5000, n * 5000 + 4999, "compression", config)


def broad(size: int) -> Iterator[Session]:
    yield session("p", None, 0, 100, "compression", first="hello")
    for n in range(size):
        yield session(f"c{n}", "p", 101 + n)


def broad_and_marked(size: int) -> Iterator[Session]:
    yield session("p", None, 0, 100, "compression", first="hello")
    for n in range(size):
        yield session(f"c{n}", "p", 101 + n, config='{"_branched_from": "p", "_delegate_from": "p"}')


def broad_and_ended(size: int) -> Iterator[Session]:
    yield session("p", None, 0, 100, "compression", first="hello")
    for n in range(size):
        yield session(f"c{n}", "p", 101 + n, 200 + n, "compression")


def branches(size: int) -> Iterator[Session]:
    yield session("p", first="hello")
    for n in range(size):
        yield session(f"c{n}", "p", 101 + n, first="hello")


def forks(size: int) -> Iterator[Session]:
    for n in range(size):
        yield session(f"p{n}", None, n * 5000, n * 5000 + 100, "compression", first=f"hello {n}")
        yield session(f"a{n}", f"p{n}", n * 5000 + 101)
        yield session(f"b{n}", f"p{n}", n * 5000 + 102)


def cuts(size: int) -> Iterator[Session]:
    for n in range(size):
        yield session(f"p{n}", None, n * 5000, n * 5000 + 100, "compression", first=f"hello {n}")
        yield session(f"a{n}", None, n * 5000 + 101)


def unlinked(size: int) -> Iterator[Session]:
    for n in range(size):
        title = f"T #{n + 1}" if n else "T"
        yield session(f"s{n}", None, n * 5000, n * 5000 + 4999, "cli_close", title=title)


def fill(home: HomeBuilder, sessions: Iterator[Session]) -> None:
    connection = apsw.Connection(str(home.store))
    connection.execute("PRAGMA foreign_keys = OFF")
    with connection:
        for session_id, parent, begin, end, reason, config, title, first in sessions:
            ended = None if end is None else START + end
            connection.execute(
                "INSERT INTO sessions (id, source, parent_session_id, started_at, ended_at, end_reason, "
                "model_config, title) VALUES (?, 'cli', ?, ?, ?, ?, ?, ?)",
                (session_id, parent, START + begin, ended, reason, config, title),
            )
            for place, text in enumerate((first, "Noted.", f"{session_id} goes on")):
                connection.execute(
                    "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, ?, ?, ?)",
                    (session_id, ("user", "assistant")[place % 2], text, START + begin + place),
                )
    connection.close()


def steps(root: Path) -> int:
    """The calls of functions in one audit."""
    count = 0

    def called(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        found = audit(root, rules=["LIN"], now=NOW)
    finally:
        sys.setprofile(before)
    assert found.undetermined == ()
    return count


@pytest.mark.parametrize(
    "shape",
    [
        chain,
        ring,
        rings,
        forked_chain,
        marked_chain,
        broad,
        broad_and_marked,
        broad_and_ended,
        branches,
        forks,
        cuts,
        unlinked,
    ],
    ids=lambda shape: shape.__name__,
)
def test_twice_as_many_sessions_cost_twice_the_steps(
    shape: Callable[[int], Iterator[Session]], tmp_path: Path
) -> None:
    counted = []
    for number, size in enumerate((2, 2, SIZE, 2 * SIZE)):  # the first also imports and parses
        home = HomeBuilder(tmp_path / str(number), "0.22.2")
        fill(home, shape(size))
        counted.append(steps(home.root))
    _, nothing, once, twice = counted
    assert twice - nothing <= LINEAR * (once - nothing)
