"""What happened, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, get_args

import msgspec

from statemend.repair.export_result import State as ExportState
from statemend.report import text
from statemend.report.cleanup_words import deleted
from statemend.report.model import Event, Report
from statemend.report.story.commands import again, command, export_again, show
from statemend.report.story.model import Moment, MomentKind
from statemend.report.story.sources import CHANGED, Audited, Cleaned, Exported, Played, Repaired, Source, of
from statemend.report.text import count, iso, seconds


def moments(sources: Sequence[Source]) -> tuple[Moment, ...]:
    """Everything that reports and runs tell of, oldest first. A log's clock is sorted as if it were UTC."""
    return tuple(sorted(_moments(sources), key=_order))


def _moments(sources: Sequence[Source]) -> Iterator[Moment]:
    seen: set[bytes] = set()
    for audit in of(sources, Audited):
        for event in audit.report.timeline:
            key = msgspec.json.encode(msgspec.structs.replace(event, count=1, until=None))
            if key not in seen:
                seen.add(key)
                yield _event(event, audit.report)
        yield Moment(
            kind="audited",
            at=audit.report.generated_at,
            detail=audit.report.verdict,
            source=audit.path,
            command=again(audit.report),
        )
    for source in sources:
        yield from _done(source)


def _event(event: Event, report: Report) -> Moment:
    return Moment(
        kind=event.kind,
        at=event.at,
        clock=event.clock,
        until=event.until,
        session=event.session,
        count=event.count,
        detail=event.detail,
        source=event.source,
        command=show(report, event.session),
    )


def _done(source: Source) -> Iterator[Moment]:
    match source:
        case Repaired(path=path, plan=plan, run=run):
            if run.state in CHANGED:
                rows = count(len(plan.work().operations), "row")
                yield Moment(
                    kind="repaired",
                    at=iso(source.steps.get("committed", run.started_at)),
                    detail=f"{rows} changed for {text.listed(run.served)}; {run.state.value}",
                    source=path,
                    command=command("verify", path),
                )
        case Cleaned(path=path, run=run, receipt=receipt):
            if receipt is not None:
                yield Moment(
                    kind="cleaned up",
                    at=iso(receipt.deleted_at),
                    detail=f"{deleted(receipt)}; {run.state.value}",
                    source=path,
                    command=command("verify", path),
                )
        case Exported(path=path, done=done):
            complete = [file for file in done.files if file.state is ExportState.COMPLETE]
            yield Moment(
                kind="preserved",
                at=iso(source.at),
                count=len(complete),
                detail=f"{count(len(complete), 'session')} written whole as {done.format.value}",
                source=path,
                command=export_again(done.store, [file.session for file in complete], done.format.value),
            )
        case Played(path=path, run=run):
            yield Moment(
                kind="played",
                at=iso(run.started_at),
                until=iso(run.finished_at),
                detail=f"{run.playbook}: {run.state.value}, exit code {run.exit_code}",
                source=path,
                command=command("report", path),
            )
    if isinstance(source, Repaired | Cleaned) and source.undone:
        yield Moment(
            kind="undone",
            at=iso(source.steps["undone"]),
            detail="taken back",
            source=source.path,
            command=command("verify", source.path),
        )


#: What comes first of two things of the same moment.
_RANK: Final = {kind: rank for rank, kind in enumerate(get_args(MomentKind))}


def _order(moment: Moment) -> tuple[float, int, str]:
    at = seconds(moment.at or moment.clock or "")
    return (float("inf") if at is None else at, _RANK[moment.kind], moment.session or "")
