"""Tells the story that reports and runs make together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

import statemend
from statemend.report.story.changes import changes, decisions
from statemend.report.story.model import Changed, Statement, Story, Told
from statemend.report.story.moments import moments
from statemend.report.story.sources import Audited, Cleaned, Exported, Played, Repaired, Source, of, read
from statemend.report.story.statements import Weight, findings, not_seen, recovered, weight_of
from statemend.report.text import count, iso


def gather(paths: Sequence[Path]) -> Story:
    """The story that reports and runs tell together.

    Raises ``UsageError`` for a path that is neither a report nor the folder of a run.
    """
    return tell(read(paths))


def tell(sources: Sequence[Source]) -> Story:
    """The story of what was read."""
    sources = _with_whole_homes(sources)
    audits = sorted(of(sources, Audited), key=lambda each: each.report.generated_at)
    by_weight: dict[Weight, list[Statement]] = {weight: [] for weight in Weight}
    for finding, statement in findings(audits, sources):
        by_weight[weight_of(finding)].append(statement)
    lost, endangered = by_weight[Weight.LOST], by_weight[Weight.ENDANGERED]
    changed = tuple(sorted(changes(sources), key=lambda each: each.at or ""))
    got_back = tuple(recovered(sources))
    return Story(
        tool=f"statemend {statemend.__version__}",
        headline=_headline(lost, endangered, got_back, changed),
        homes=tuple(dict.fromkeys(told.home for told in map(_told, sources))),
        told_from=tuple(map(_told, sources)),
        events=moments(sources),
        lost=tuple(lost),
        endangered=tuple(endangered),
        other=tuple(by_weight[Weight.WRONG]),
        recovered=got_back,
        unknown=(*by_weight[Weight.UNKNOWN], *not_seen(audits)),
        changed=changed,
        decisions=tuple(decisions(sources)),
    )


def _with_whole_homes(sources: Sequence[Source]) -> list[Source]:
    """The sources, with the home of a report that names it by a relative path named in whole, as another
    source does, where the path leads to that home from here. Elsewhere nothing tells which home it is."""
    whole = {told.home for told in map(_told, sources) if os.path.isabs(told.home)}
    return [
        msgspec.structs.replace(source, report=msgspec.structs.replace(source.report, home=home))
        if isinstance(source, Audited) and (home := _from_here(source.report.home)) in whole
        else source
        for source in sources
    ]


def _from_here(home: str) -> str:
    try:
        return os.path.abspath(home)
    except OSError:  # the working folder is gone
        return home


def _headline(
    lost: Sequence[Statement],
    endangered: Sequence[Statement],
    recovered: Sequence[Statement],
    changed: Sequence[Changed],
) -> str:
    gone = sum(each.ended is None for each in lost)
    near = sum(each.ended is None for each in endangered)
    parts = [
        f"Text is gone in {count(gone, 'case')}" if gone else "No text is known to be gone",
        f"{count(near, 'case')} may lose some" if near else "",
        f"{len(recovered):,} rescued" if recovered else "",
        f"statemend made {count(len(changed), 'change')}" if changed else "statemend changed nothing",
    ]
    return "; ".join(filter(None, parts)) + "."


def _told(source: Source) -> Told:
    match source:
        case Audited():
            return Told(
                what="report", path=source.path, home=source.report.home, at=source.report.generated_at
            )
        case Repaired():
            at = iso(source.run.started_at)
            return Told(what="repair", path=source.path, home=source.plan.home, at=at)
        case Cleaned():
            at = iso(source.run.started_at)
            return Told(what="cleanup", path=source.path, home=source.plan.home, at=at)
        case Exported():
            home = os.path.dirname(source.done.store)
            return Told(what="export", path=source.path, home=home, at=iso(source.at))
        case Played():
            return Told(
                what=f"playbook {source.run.playbook}",
                path=source.path,
                home=source.run.home,
                at=iso(source.run.started_at),
            )
