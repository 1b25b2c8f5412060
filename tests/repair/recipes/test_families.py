"""Whatever a lineage recipe offers, in whatever family: it serves its finding and makes no other."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.audit.builder import START, HomeBuilder
from tests.repair.lineage import SUMMARY, mend
from tests.repair.planning import plan_of

from statemend.repair.plan import Step

Build = Callable[..., HomeBuilder]
VERSIONS = ["0.13.0", "0.17.0", "0.19.0", "0.20.1", "0.22.2", "0.22.2", "0.19.0"]
REASONS = ["compression", "compression", "compression", None, None, "cli_close", "branched", "session_reset"]
SOURCES = ["cli", "cli", "cli", "cli", "telegram", "subagent", "tool"]
MARKS = ("_branched_from", "_delegate_from", "_reset_from")
RECIPES = {"relink", "untag", "fork", "dead-end", "markers", "cycle", "late-turns", "branch-mark"}
#: Families of which each had, while these recipes were written, an option that made another fault.
SEEDS = [74, 1035, 1171, 1180, 1231, 1269, 1296, 1357, 1402, 1415]


def family(home: HomeBuilder, draw: random.Random) -> None:
    """Sessions whose links, marks, ends and openings know nothing of each other."""
    ids: list[str] = []
    for number in range(draw.randint(2, 7)):
        session_id = f"s{number}"
        parent = draw.choice([*ids, ids[-1]]) if ids and draw.random() < 0.85 else None
        start = START + number * draw.choice([1, 50, 100])
        reason = draw.choice(REASONS)
        end = start + draw.choice([1, 20, 60, 150]) if reason else None
        marks = {}
        for key in MARKS:
            if draw.random() < 0.12:
                named = [parent or "__orphaned__", "elsewhere", "__orphaned__", draw.choice([*ids, "x"])]
                marks[key] = draw.choice(named)
        config = None
        if marks or draw.random() >= 0.8:
            config = json.dumps({**({"cwd": "/x"} if draw.random() < 0.5 else {}), **marks})
        home.session(
            session_id,
            parent_session_id=parent,
            started_at=start,
            ended_at=end,
            end_reason=reason,
            model_config=config,
            source=draw.choice(SOURCES),
            title=draw.choice([None, f"T{number}"]),
            session_key=draw.choice([None, None, "k"]),
        )
        rows = draw.choice([0, 2, 2, 2])
        for row in range(rows):
            text = SUMMARY if row == 0 and draw.random() < 0.6 else f"text {row} {session_id}"
            finish = "stop" if row else None
            home.message(
                session_id, ("user", "assistant")[row % 2], text, timestamp=start + row, finish_reason=finish
            )
        home.sql("UPDATE sessions SET message_count = ? WHERE id = ?", bindings=(rows, session_id))
        ids.append(session_id)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_step_and_every_option_keeps_its_promise(build: Build, seed: int) -> None:
    draw = random.Random(seed)
    home = build(draw.choice(VERSIONS))
    family(home, draw)
    plan = plan_of(home)
    ways: list[tuple[Step, ...]] = [(step,) for step in plan.steps]
    ways += [option.steps for choice in plan.choices for option in choice.options]
    ways = [steps for steps in ways if steps and steps[0].recipe in RECIPES]
    assert ways
    before = home.store.read_bytes()
    for steps in ways:
        for name in ("state.db-wal", "state.db-shm"):
            Path(home.root, name).unlink(missing_ok=True)
        home.store.write_bytes(before)
        mend(home, steps)
