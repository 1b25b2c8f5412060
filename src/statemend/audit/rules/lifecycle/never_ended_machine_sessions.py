"""Sessions that no person will return to were never ended, and pile up.

What it means
A prune, by hand or automatic, takes ended sessions only, and so does a bulk export. Runs of cron jobs,
subagents and programs that stay open for ever are neither removed nor exported, and lists grow long. Nothing
is lost or wrong.

How it happens
Early releases did not end their cron runs (#2998), and several still leave sessions of the API, of webhooks
and of tools open. A crash leaves the run open that it cut off. A row that was made only to count tokens
(source unknown) is ended by nobody.

How we know
The source of the session is one that only programs use, it is not pinned, it has no end, and nothing
happened in it for a week; nor does a process hold it. Ten or more of one source are told, fewer are left to
chance.

What to do
Nothing, or end them (`hermes sessions archive` and prune act on ended sessions only). 0.22 ends such sessions
of tui, desktop and subagents when it starts.

When it is a false alarm
A program that comes back to its session after more than a week: ending it does no harm there either, since
it is reopened or goes on as ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from statemend.audit.context import Context
from statemend.audit.facts import is_time, listed, moment, words
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import READS_MESSAGES, Family, Level, Rule
from statemend.store.holders import leases

OPEN = """
    SELECT source, id, started_at, last_activity_at
    FROM sessions
    WHERE ended_at IS NULL
      AND end_reason IS NULL
      AND pinned = 0
      AND source IN ('cron', 'subagent', 'tool', 'acp', 'api_server', 'webhook', 'kanban', 'oneshot',
                     'unknown')
      AND typeof(id) = 'text'
"""
#: So long nothing happened in a session that is told of (seconds), and so many of a source at least.
_IDLE, _MANY = 7 * 86400.0, 10


def check(context: Context) -> Iterator[Finding]:
    """One finding for each source of which many sessions stay open."""
    idle: dict[str, list[tuple[str, float]]] = {}
    for source, session_id, *times in context.store.rows(OPEN):
        last = _last(context, session_id, times)
        if last is not None and context.now - last > _IDLE:
            idle.setdefault(source, []).append((session_id, last))
    if not any(len(sessions) >= _MANY for sessions in idle.values()):
        return
    held = {lease.key for lease in leases(context.store, context.now) if lease.live is not False}
    for source, sessions in idle.items():
        free = sorted((session_id, last) for session_id, last in sessions if session_id not in held)
        if len(free) >= _MANY:
            yield _finding(context, source, free)


def _last(context: Context, session_id: str, times: list[Any]) -> float | None:
    """When something last happened in a session; ``None`` where no time tells."""
    rows = context.census.get(session_id)
    told = [*times, rows.last_at if rows else None]
    return max((float(time) for time in told if is_time(time)), default=None)


def _finding(context: Context, source: str, sessions: list[tuple[str, float]]) -> Finding:
    counted = (context.census.get(session_id) for session_id, _ in sessions)
    empty = sum(rows is None for rows in counted)
    times = [last for _, last in sessions]
    return RULE.finding(
        context,
        key=source,
        summary=f"{len(sessions):,} {words(source, 40)} sessions were never ended, and rest for over a week.",
        evidence=(
            ("source", words(source, 40)),
            ("sessions", len(sessions)),
            ("of them without messages", empty),
            ("first to rest", moment(min(times))),
            ("last to rest", moment(max(times))),
            ("ids", listed(session_id for session_id, _ in sessions)),
        ),
        remedy="Nothing, or end them so that a prune or an export can take them.",
    )


RULE = Rule(
    id="LIF002",
    slug="never-ended-machine-sessions",
    family=Family.LIFECYCLE,
    level=Level.HOUSEKEEPING,
    severity=Severity.LOW,
    verdict=Verdict.LEFTOVER,
    doc=__doc__ or "",
    check=check,
    reads=(OPEN, READS_MESSAGES),
)
