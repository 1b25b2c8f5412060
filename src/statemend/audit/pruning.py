"""Whether Hermes deletes sessions of a home by itself, which, and from when.

Read in 0.13.0 to 0.22.2: `sessions.auto_prune` is off by default up to 0.21.0 and on from 0.21.3 on, which is
where rows got their display order. Ended sessions go, archived ones (the flag) too; from 0.20.6 on pinned
ones stay. The age counts from the start of a session up to 0.19, from its last message in 0.20, and from its
last sign of activity since 0.21.3, which also closes what was left open and lets that age from then. 0.22.2
takes a conversation as a whole: a part that compression ended stays while a later part does, and what
continues a pinned part is pinned too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import NamedTuple

from statemend.audit.context import Context
from statemend.audit.facts import is_time, moment
from statemend.errors import Undetermined
from statemend.evidence.settings import CONFIGURATION
from statemend.store.relations import is_candidate
from statemend.store.schema import Era

DEFAULT_RETENTION_DAYS = 90.0
DEFAULT_INTERVAL_HOURS = 24.0
_DAY, _HOUR = 86400.0, 3600.0
#: Columns that came with a release, and so tell what it does: 0.20.6 and 0.22.2.
_SPARES_PINNED, _TAKES_WHOLE = ("messages", "_compressed_summary"), ("sessions", "auto_archived")
#: The end that pruning itself gives to what was left open.
_CLOSED_BY_PRUNING = "startup_orphan_reap"

LAST_RUN = "SELECT value FROM state_meta WHERE key = 'last_auto_prune'"
PRUNABLE = """
SELECT s.id, s.title, s.started_at, s.ended_at, s.end_reason, s.last_activity_at,
       (SELECT MAX(m.timestamp) FROM messages AS m WHERE m.session_id = s.id),
       EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = s.id),
       EXISTS (
         SELECT 1 FROM messages AS m WHERE m.session_id = s.id AND m.active = 0 AND m.compacted = 1
       )
FROM sessions AS s
WHERE s.ended_at IS NOT NULL
  AND typeof(s.id) = 'text'
  AND (COALESCE(s.pinned, 0) = 0 OR NOT :spares_pinned)
ORDER BY s.id
"""
PINNED = "SELECT id FROM sessions WHERE COALESCE(pinned, 0) <> 0"


class Prunable(NamedTuple):
    """A session that pruning takes when it is old enough: a row of ``PRUNABLE``. Times are epoch seconds."""

    id: str
    title: str | None
    started_at: float
    ended_at: float
    end_reason: str | None
    last_activity_at: float | None
    last_message_at: float | None
    has_messages: int
    has_archived: int

    def used_at(self, era: Era) -> float | None:
        """When a session was last used, as a release of ``era`` sees it; ``None`` where nothing tells."""
        started, messaged, active = map(
            _known, (self.started_at, self.last_message_at, self.last_activity_at)
        )
        if era < Era.V20:
            return started
        if era < Era.V22:
            return started if messaged is None else messaged
        closed = _known(self.ended_at) if self.end_reason == _CLOSED_BY_PRUNING else None
        signs = [at for at in (messaged, active, closed) if at is not None]
        return max(signs, default=started)


class Pruning(NamedTuple):
    """Pruning of one home. ``told`` says how it is known, ``certain`` is false where only the default of the
    release tells; ``not_before`` is when it may run next (epoch seconds), ``days`` the retention."""

    told: str
    certain: bool
    days: float
    not_before: float


def prunable(context: Context) -> tuple[Prunable, ...]:
    """Every session that pruning takes when it and, where that counts, what continues it are old enough,
    ordered by id."""
    wanted = {"spares_pinned": context.store.schema.has(*_SPARES_PINNED)}
    return context.once(
        "prunable", lambda: tuple(Prunable(*values) for values in context.store.rows(PRUNABLE, wanted))
    )


def schedule(context: Context, plan: Pruning, rows: Iterable[Prunable]) -> dict[str, float]:
    """From when on pruning may take each of all the ``prunable`` sessions (epoch seconds). One that stays as
    long as nothing changes is left out."""
    era = context.store.schema.era
    used = {row.id: at for row in rows if (at := row.used_at(era)) is not None}
    if context.store.schema.has(*_TAKES_WHOLE):
        used = _as_wholes(context, used)
    return {session_id: max(at + plan.days * _DAY, plan.not_before) for session_id, at in used.items()}


def pruning(context: Context) -> Pruning | None:
    """How Hermes prunes this home; ``None`` when it does not.

    Raises ``Undetermined`` when the configuration is there and cannot be read.
    """
    settings, era = context.inventory.settings, context.store.schema.era
    if settings.trouble is not None:
        raise Undetermined(f"{CONFIGURATION} tells whether Hermes prunes, and it is {settings.trouble}")
    days = DEFAULT_RETENTION_DAYS if settings.retention_days is None else settings.retention_days
    if settings.auto_prune is False or (days < 0 and era >= Era.V22):
        return None
    run = context.store.value(LAST_RUN)
    ran_at = _time(run)
    hours = DEFAULT_INTERVAL_HOURS if settings.interval_hours is None else settings.interval_hours
    if settings.auto_prune:
        told, certain = f"{settings.source} says auto_prune: true", True
    elif run is not None:
        when = "before" if ran_at is None else f"last at {moment(ran_at)}"
        told, certain = f"pruning ran {when}, and nothing turns it off", True
    elif era >= Era.V22:
        told, certain = f"{settings.source}; releases from 0.21.3 on prune unless it is turned off", False
    else:
        return None
    return Pruning(told, certain, days, 0.0 if ran_at is None else ran_at + hours * _HOUR)


def _as_wholes(context: Context, used: Mapping[str, float]) -> dict[str, float]:
    """When each conversation was last used, for each of its parts that may go; time in proportion to its
    parts, whatever their order."""
    nodes = context.graph.nodes
    parents = {
        child.id: child.parent_id
        for child in nodes.values()
        if child.parent_id is not None
        and child.parent_id in nodes
        and is_candidate(nodes[child.parent_id], child)
    }
    pinned = {session_id for (session_id,) in context.store.rows(PINNED)} & nodes.keys()
    spared = _below(pinned, parents)
    latest = {**dict.fromkeys(nodes, inf), **used, **dict.fromkeys(spared, inf)}
    for session_id in sorted(latest, key=lambda each: latest[each], reverse=True):
        above = parents.get(session_id)
        while above is not None and latest[above] < latest[session_id]:
            latest[above] = latest[session_id]
            above = parents.get(above)
    return {session_id: latest[session_id] for session_id in used if latest[session_id] < inf}


def _below(tops: Iterable[str], parents: Mapping[str, str]) -> set[str]:
    """The sessions that continue ``tops``, however far, and these."""
    children: dict[str, list[str]] = {}
    for child, parent in parents.items():
        children.setdefault(parent, []).append(child)
    found: set[str] = set()
    waiting = list(tops)
    while waiting:
        session_id = waiting.pop()
        if session_id not in found:
            found.add(session_id)
            waiting += children.get(session_id, ())
    return found


def _known(at: object) -> float | None:
    return at if isinstance(at, int | float) and is_time(at) else None


def _time(value: object) -> float | None:
    try:
        at = float(str(value))
    except ValueError:
        return None
    return _known(at)
