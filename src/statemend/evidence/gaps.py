"""What a session had and no source holds: told from what the sources say of themselves and of each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from statemend.evidence.saved import Gap, Lack, Saved
from statemend.evidence.shown import Source
from statemend.evidence.union import Union
from statemend.evidence.wording import text_of
from statemend.formats.artifact import AUTOMATIC, FILTERED, Kind, Record
from statemend.store.content import is_summary_text

#: Compaction keeps so many first messages before its summary.
_KEPT_HEAD = 3
#: Kinds that may begin in the middle of a conversation: what could not be stored of it.
_FRAGMENTS = frozenset({Kind.PENDING, Kind.RESCUE_JSONL})
#: A session that is not older than its summary by more (seconds) was begun with it.
_BEGUN_WITH = 60.0


def gaps_of(union: Union, sources: Sequence[Source], messages: Sequence[Saved]) -> Iterator[Gap]:
    """Where it is known that messages are missing."""
    shown: dict[int, list[int]] = {source.number: [] for source in sources}
    for place, number in enumerate(union.order):
        entry = union.entries[number]
        for source in {each.source.number for each in (*entry.sightings, *entry.variants)}:
            shown[source].append(place)
    transcripts = [each for each in sources if each.kind not in FILTERED and shown[each.number]]
    if messages and not transcripts:
        yield _filtered(sources, shown, messages)
    yield from _cut(sources, shown, messages)
    yield from _compacted(transcripts, shown, messages)


def _filtered(
    sources: Sequence[Source], shown: Mapping[int, Sequence[int]], messages: Sequence[Saved]
) -> Gap:
    fullest = max(sources, key=lambda each: (len(shown[each.number]), -each.number))
    times = [each.at for each in messages if each.at is not None]
    return Gap(Lack.FILTERED, fullest.artifact, None, min(times, default=None), max(times, default=None))


def _cut(
    sources: Sequence[Source], shown: Mapping[int, Sequence[int]], messages: Sequence[Saved]
) -> Iterator[Gap]:
    """The end of an artifact that is cut off, where no other source goes on from there. What the artifact
    says it holds and the whole union does not is surely lost."""
    worst: Gap | None = None
    for source in sources:
        places, section = shown[source.number], source.section
        declared = section.declared or 0
        if source.kind in FILTERED or source.kind is Kind.STORE:
            continue
        if section.damage is None and declared <= len(places):
            continue
        last = max(places, default=-1)
        goes_on = any(
            other.number != source.number
            and other.section.damage is None
            and other.kind not in FILTERED
            and last in shown[other.number]
            and len(shown[other.number]) >= (other.section.declared or 0)
            for other in sources
        )
        count = max(declared - len(messages), 0)
        if count or not (goes_on or declared):
            at = messages[last].at if places else section.started_at
            gap = Gap(Lack.CUT, source.artifact, count or None, at, section.exported_at)
            worst = gap if worst is None or (gap.count or 0) > (worst.count or 0) else worst
    if worst is not None:
        yield worst


def _compacted(
    transcripts: Sequence[Source], shown: Mapping[int, Sequence[int]], messages: Sequence[Saved]
) -> Iterator[Gap]:
    """A summary with which every transcript that shows it begins, and that stands for turns of this very
    session that no other transcript leads up to."""
    summaries = [place for place, each in enumerate(messages) if _is_summary(each.record)]
    if not summaries:
        return
    first = summaries[0]
    after = [each for each in transcripts if first in shown[each.number] and each.kind not in AUTOMATIC]
    whole = [each for each in transcripts if each.kind not in _FRAGMENTS]
    if not after or any(
        _leads_up(shown[each.number], first) for each in whole if first in shown[each.number]
    ):
        return
    before = [each for each in whole if first not in shown[each.number]]
    # One that was made before the compaction, and reaches as far as the turns that it kept. Compaction may
    # have given these another time, so that they are other messages with the same words.
    kept = {_words(messages[place].record) for each in after for place in shown[each.number] if place > first}
    if any(_words(messages[place].record) in kept for each in before for place in shown[each.number]):
        return
    section = after[0].section
    started_at = next((each.section.started_at for each in after if each.section.started_at), None)
    at = messages[first].at
    begun = started_at is not None and at is not None and at - started_at < _BEGUN_WITH
    follows = any(each.section.parent_id is not None for each in after) or (
        section.session_id in section.lineage[1:]
    )
    if not (begun or follows):
        last = max((each.at for each in messages[:first] if each.at is not None), default=started_at)
        yield Gap(Lack.COMPACTED, after[0].artifact, None, last, at)


def _words(record: Record) -> tuple[str, str]:
    return record.role, text_of(record)


def _leads_up(places: Sequence[int], summary: int) -> bool:
    """Whether a transcript shows more before the summary than compaction keeps there."""
    return sum(place < summary for place in places) > _KEPT_HEAD


def _is_summary(record: Record) -> bool:
    return record.summary or is_summary_text(record.content)
