"""Whether Hermes deletes sessions of a home by itself, and from when.

Read in 0.13.0 to 0.22.2: `sessions.auto_prune` is off by default up to 0.21.0 and on from 0.21.3 on, which is
where rows got their display order. Ended sessions go, archived ones (the flag) too; from 0.20 on pinned ones
stay. The age counts from the start of a session up to 0.19, and from its last use since.
"""

from __future__ import annotations

from typing import NamedTuple

from statemend.audit.context import Context
from statemend.audit.facts import is_time, moment
from statemend.errors import Undetermined
from statemend.evidence.settings import CONFIGURATION
from statemend.store.schema import Era

DEFAULT_RETENTION_DAYS = 90.0
DEFAULT_INTERVAL_HOURS = 24.0
_DAY, _HOUR = 86400.0, 3600.0

LAST_RUN = "SELECT value FROM state_meta WHERE key = 'last_auto_prune'"
PRUNABLE = """
SELECT s.id, s.title, s.started_at, s.ended_at, s.last_activity_at,
       (SELECT MAX(m.timestamp) FROM messages AS m WHERE m.session_id = s.id),
       EXISTS (
         SELECT 1 FROM messages AS m WHERE m.session_id = s.id AND m.active = 0 AND m.compacted = 1
       )
FROM sessions AS s
WHERE s.ended_at IS NOT NULL
  AND typeof(s.id) = 'text'
  AND COALESCE(s.pinned, 0) = 0
  AND EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = s.id)
ORDER BY s.id
"""


class Prunable(NamedTuple):
    """A session that pruning takes when it is old enough: a row of ``PRUNABLE``. Times are epoch seconds."""

    id: str
    title: str | None
    started_at: float
    ended_at: float
    last_activity_at: float | None
    last_message_at: float | None
    has_archived: int


class Pruning(NamedTuple):
    """Pruning of one home. ``told`` says how it is known, ``certain`` is false where only the default of the
    release tells; ``not_before`` is when it may run next (epoch seconds), ``days`` the retention."""

    told: str
    certain: bool
    days: float
    not_before: float
    era: Era

    def takes_from(self, session: Prunable) -> float | None:
        """From when on pruning may take a session (epoch seconds); ``None`` for one without a time."""
        if self.era < Era.V20:
            used = [session.started_at] if is_time(session.started_at) else []
        else:
            times = (session.last_activity_at, session.last_message_at)
            used = [at for at in times if at is not None and is_time(at)]
            used = used or ([session.started_at] if is_time(session.started_at) else [])
        return max(max(used) + self.days * _DAY, self.not_before) if used else None


def prunable(context: Context) -> list[Prunable]:
    """Every session that pruning takes when it is old enough, ordered by id."""
    return [Prunable(*values) for values in context.store.rows(PRUNABLE)]


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
    return Pruning(told, certain, days, 0.0 if ran_at is None else ran_at + hours * _HOUR, era)


def _time(value: object) -> float | None:
    try:
        at = float(str(value))
    except ValueError:
        return None
    return at if is_time(at) else None
