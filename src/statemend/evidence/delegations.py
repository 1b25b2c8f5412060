"""``async_delegations``: the tasks that an agent handed to subagents, and what came back.

A row names the session that handed the task out. It outlives that session by up to two weeks, and may have
the only text of a result that was never delivered. What the subagent said on the way is not in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from statemend.evidence.own_part import Part
from statemend.formats.artifact import Record, Section
from statemend.formats.clock import finite
from statemend.store.connection import Store
from statemend.store.content import parse_json

TABLE = "async_delegations"
_ROWS = """
SELECT CASE WHEN typeof(parent_session_id) = 'text' AND parent_session_id <> '' THEN parent_session_id
            WHEN typeof(origin_session_id) = 'text' THEN origin_session_id ELSE '' END AS session_id,
       task_json, event_json, result_json, dispatched_at, completed_at
FROM async_delegations
ORDER BY session_id, dispatched_at, delegation_id
"""
_TASK, _RESULT = "task", "result"


def sections(store: Store) -> Iterator[Part]:
    """One section for each session that handed tasks out, ``held`` counting the texts of tasks and results.
    Raises ``StoreUnreadable``."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    if not store.table_exists(TABLE):
        return
    for session_id, task, event, result, dispatched_at, completed_at in store.rows(_ROWS):
        texts = list(_texts(task, event, result))
        size = sum(len(text) for _, text in texts)
        found.setdefault(session_id, []).append(
            (len(texts), size, finite(dispatched_at), finite(completed_at))
        )
    for session_id, rows in found.items():
        times = [at for *_, first, last in rows for at in (first, last) if at is not None]
        yield Part(
            Section(
                session_id,
                0,
                0,
                held=sum(texts for texts, *_ in rows),
                first_at=min(times, default=None),
                last_at=max(times, default=None),
            ),
            size=sum(size for _, size, *_ in rows),
            reason="the task does not say which session handed it out",
        )


def records(store: Store, section: Section) -> Iterator[Record]:
    """Each text that a session handed to a subagent (role ``task``) or got back (``result``)."""
    position = 0
    for session_id, task, event, result, dispatched_at, completed_at in store.rows(_ROWS):
        if session_id != section.session_id:
            continue
        for role, text in _texts(task, event, result):
            at = dispatched_at if role == _TASK else completed_at
            yield Record(position, role, text, timestamp=finite(at))
            position += 1


def _texts(task: Any, event: Any, result: Any) -> Iterator[tuple[str, str]]:
    """The result is kept twice: as the agent got it, and within what its parent was told."""
    handed, told, got = (_object(cell) for cell in (task, event, result))
    goals = handed.get("goals")
    for goal in goals if isinstance(goals, list) and goals else [handed.get("goal")]:
        if isinstance(goal, str) and goal:
            yield _TASK, goal
    for summary in _summaries(got) or _summaries(told):
        yield _RESULT, summary


def _summaries(result: dict[str, Any]) -> list[str]:
    each = result.get("results")
    parts = each if isinstance(each, list) and each else [result]
    found = [part.get("summary") for part in parts if isinstance(part, dict)]
    return [summary for summary in found if isinstance(summary, str) and summary]


def _object(cell: Any) -> dict[str, Any]:
    value = parse_json(cell, None)
    return value if isinstance(value, dict) else {}
