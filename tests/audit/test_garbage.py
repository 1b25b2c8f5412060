"""Damaged bytes and impossible cells: a rule finds, or could not run and says why, and never breaks."""

from __future__ import annotations

import random
from collections.abc import Callable

import apsw
import pytest
from tests.audit.builder import EXPORTED, HomeBuilder

from statemend.audit.engine import Status
from statemend.audit.outcome import Audit

Build = Callable[..., HomeBuilder]

CELLS = (
    None,
    "",
    "text",
    "\0json:{bad",
    "[1, 2",
    "x" * 100_000,
    b"\xff\xfe\0",
    b"abc",
    8e252,
    float("inf"),
    2**62,
    -5,
    3.5,
)


def broken(outcome: Audit) -> list[str]:
    """What rules say of themselves when they failed in a way nobody foresaw."""
    return [result.reason for result in outcome.rules if "the rule itself failed" in result.reason]


@pytest.mark.parametrize("deep", [False, True], ids=["default", "deep"])
@pytest.mark.parametrize("seed", range(6))
def test_flipped_bytes_never_break_a_rule(build: Build, seed: int, deep: bool) -> None:
    draw = random.Random(seed)
    home = build(draw.choice(EXPORTED), rich=True)
    data = bytearray(home.store.read_bytes())
    for _ in range(1 + seed * 3):
        page = draw.randrange(len(data) // 4096)
        data[page * 4096 + draw.choice([draw.randrange(12), draw.randrange(4096)])] = draw.randrange(256)
    home.store.write_bytes(bytes(data))

    outcome = home.audit(deep=deep)

    assert broken(outcome) == []


@pytest.mark.parametrize("seed", range(8))
def test_impossible_cells_never_break_a_rule(build: Build, seed: int) -> None:
    draw = random.Random(seed)
    home = build(draw.choice(EXPORTED), rich=True)
    drop = "SELECT 'DROP TRIGGER \"' || name || '\"' FROM sqlite_master WHERE type = 'trigger'"
    home.sql(*(statement for (statement,) in home.sql(drop)))
    home.sql(
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '') WHERE name IN ('messages', 'sessions')",
    )
    for _ in range(40):
        table = draw.choice(["messages", "sessions"])
        column = draw.choice(sorted(home.columns(table)))
        row = f"SELECT rowid FROM {table} ORDER BY rowid LIMIT 1 OFFSET {draw.randrange(14)}"
        try:
            home.sql(
                f'UPDATE {table} SET "{column}" = ? WHERE rowid = ({row})', bindings=(draw.choice(CELLS),)
            )
        except (apsw.ConstraintError, apsw.MismatchError):
            continue

    outcome = home.audit()

    assert broken(outcome) == []
    assert not any(result.status is Status.COULD_NOT_RUN for result in outcome.rules)
