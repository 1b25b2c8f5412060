"""Runs of subagents whose rows were made again without their parent, and the sessions that asked for them.

What an agent asks of a subagent is the first message of the run, to the letter. So the call that asked for it
names the run, although nothing in the run's row does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from statemend.audit.context import Context
from statemend.audit.facts import is_time
from statemend.store.content import decode_tool_calls, parse_json, plain_text
from statemend.store.history import first_row

#: Rows that an account of tokens made: nobody said where they come from, and nothing was configured.
BARE = """
SELECT id, started_at, title
FROM sessions
WHERE source = 'unknown' AND parent_session_id IS NULL AND model_config IS NULL AND typeof(id) = 'text'
ORDER BY id
"""
USER_ROWS = "SELECT COUNT(*) FROM messages WHERE session_id = ? AND role = 'user'"
CALLS = """
SELECT session_id, tool_calls, timestamp
FROM messages
WHERE role = 'assistant' AND tool_calls IS NOT NULL AND instr(tool_calls, 'delegate_task') > 0
ORDER BY id
"""
#: What a rule that uses this module reads.
READS = (BARE, USER_ROWS, CALLS)

#: Up to 0.17 the row of a call was stored when the turn ended, after the run (seconds).
_AROUND = 3600.0


class Run(NamedTuple):
    """A session that may be a subagent's run: when it began and ended talking (epoch seconds), how many of
    its rows are a user's, and its first row."""

    id: str
    started_at: object
    title: str | None
    first_id: int
    first_at: float
    last_at: float
    user_rows: int
    task: str


class Caller(NamedTuple):
    """A session that asked a subagent for exactly this, and when (epoch seconds)."""

    id: str
    at: float


def bare_runs(context: Context) -> Iterator[Run]:
    """The bare sessions that begin with a user's row, by id."""
    for session_id, started_at, title in context.store.rows(BARE):
        counted = context.census.get(session_id)
        if counted is None or counted.first_at is None or counted.last_at is None:
            continue
        first = first_row(context.store, session_id)
        if first is None or first.role != "user" or first.summary or not is_time(first.timestamp):
            continue
        yield Run(
            id=session_id,
            started_at=started_at,
            title=title,
            first_id=first.id,
            first_at=counted.first_at,
            last_at=counted.last_at,
            user_rows=context.store.value(USER_ROWS, (session_id,)),
            task=plain_text(first.content).strip(),
        )


def callers(context: Context, runs: list[Run]) -> Mapping[str, tuple[Caller, ...]]:
    """For each run the sessions that asked for it about then, in the order in which they asked."""
    wanted: dict[str, list[Run]] = {}
    for run in runs:
        if run.task:
            wanted.setdefault(run.task, []).append(run)
    found: dict[str, dict[str, Caller]] = {}
    for session_id, calls, at in context.store.rows(CALLS) if wanted else ():
        for task in _tasks(calls) if is_time(at) else ():
            for run in wanted.get(task, ()):
                if session_id != run.id and run.first_at - _AROUND <= at <= run.last_at + _AROUND:
                    found.setdefault(run.id, {}).setdefault(session_id, Caller(session_id, at))
    return {run: tuple(by_session.values()) for run, by_session in found.items()}


def _tasks(cell: Any) -> Iterator[str]:
    """What the calls of one row ask of subagents, one task or several."""
    calls = decode_tool_calls(cell)
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or function.get("name") != "delegate_task":
            continue
        given = function.get("arguments")
        given = parse_json(given, None) if isinstance(given, str) else given
        if isinstance(given, dict):
            several = given.get("tasks")
            for task in (given, *(several if isinstance(several, list) else ())):
                goal = task.get("goal") if isinstance(task, dict) else None
                if isinstance(goal, str) and goal.strip():
                    yield goal.strip()
