"""The events of an incident in order: exports, compactions, deletions, appends that failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from statemend.audit.finding import Finding
from statemend.evidence.inventory import Inventory
from statemend.formats import logs
from statemend.formats.artifact import AUTOMATIC
from statemend.report.model import Event
from statemend.report.text import iso, seconds
from statemend.store.history import Census

#: Failures of one session are one event as long as no more than this many seconds lie between them.
_SAME_BURST = 60.0


def events(
    inventory: Inventory,
    findings: Iterable[Finding],
    rows: Mapping[str, Census],
    compactions: Iterable[Event],
) -> tuple[Event, ...]:
    """Every event that this store and the files beside it tell of, oldest first. A log's clock is sorted as
    if it were UTC."""
    found = [
        *_exports(inventory),
        *_failures(inventory),
        *compactions,
        *_deletions(inventory, findings, rows),
    ]
    return tuple(sorted(found, key=_order))


def of_all(told: Iterable[Iterable[Event]]) -> tuple[Event, ...]:
    """The events of several stores in order; what a file beside more than one tells of is in it once."""
    found: list[Event] = []
    for each in told:
        known = set(found)
        found += (event for event in each if event not in known)
    return tuple(sorted(found, key=_order))


def _order(event: Event) -> tuple[float, str, str, str]:
    moment = seconds(event.at or event.clock or "")
    return (
        float("inf") if moment is None else moment,
        event.kind,
        event.session or "",
        event.source,
    )


def _exports(inventory: Inventory) -> Iterator[Event]:
    """One event for each time at which a file says sessions were exported; else the file's own time. What a
    running agent writes for itself is no export."""
    for artifact in inventory.artifacts:
        if artifact.kind in AUTOMATIC:
            continue
        by_time: dict[float | None, list[str]] = {}
        for section in artifact.sections:
            by_time.setdefault(section.exported_at, []).append(section.session_id)
        for exported_at, sessions in by_time.items():
            yield Event(
                kind="exported",
                at=iso(artifact.modified_at if exported_at is None else exported_at),
                session=(sessions[0] or None) if len(sessions) == 1 else None,
                count=len(sessions),
                source=artifact.path,
                detail=f"as {artifact.kind.value}"
                + (", by the file's own time" if exported_at is None else ""),
            )


def _failures(inventory: Inventory) -> Iterator[Event]:
    """Failed appends, each burst of a session as one event."""
    open_: dict[tuple[str | None, str, str], list[logs.AppendFailure]] = {}
    for failure in logs.distinct(one for log in inventory.logs for one in log.failures):
        key = (failure.session_id, failure.operation, failure.error)
        burst = open_.get(key)
        if burst is not None and (failure.at or 0) - (burst[-1].at or 0) > _SAME_BURST:
            yield _burst(burst)
            burst = None
        if burst is None:
            open_[key] = [failure]
        else:
            burst.append(failure)
    for burst in open_.values():
        yield _burst(burst)


def _burst(burst: list[logs.AppendFailure]) -> Event:
    first, last = burst[0], burst[-1]
    return Event(
        kind="append-failed",
        clock=first.clock,
        until=last.clock if last.clock != first.clock else None,
        session=first.session_id,
        count=len(burst),
        source=first.file,
        detail=first.error or first.operation,
    )


def _deletions(
    inventory: Inventory, findings: Iterable[Finding], rows: Mapping[str, Census]
) -> Iterator[Event]:
    """Deletions leave no time. Told is the last moment at which the session is known to have been there."""
    by_session = inventory.by_session()
    for sid, rule in sorted({(finding.subject.session or "", finding.rule) for finding in findings}):
        if rule == "ORP001" and sid in rows:
            yield Event(
                kind="deleted",
                at=iso(rows[sid].last_at),
                session=sid,
                source="messages",
                detail="its row went at some time after its last message here",
            )
        if rule == "EXP002":
            for artifact, section in by_session.get(sid, [])[-1:]:
                yield Event(
                    kind="deleted",
                    at=iso(artifact.modified_at if section.exported_at is None else section.exported_at),
                    session=sid,
                    source=artifact.path,
                    detail="gone at some time after this export",
                )
