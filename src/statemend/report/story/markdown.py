"""A story as Markdown, for an issue or a post-mortem document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from statemend.report.markdown import code, escape
from statemend.report.story.model import SCHEMA, Changed, Decision, Moment, Statement, Story

#: First line of every story in Markdown; tells one from any other file.
MARK = f"<!-- {SCHEMA} -->"
#: Moments and statements of one kind that are written out; the JSON form has every one.
MOST = 300


def render(story: Story) -> str:
    """The whole document, ending in one newline."""
    return "\n".join(_blocks(story)).rstrip("\n") + "\n"


def _blocks(story: Story) -> Iterator[str]:
    yield MARK
    yield f"# {escape(story.headline)}"
    yield ""
    yield f"Told by {escape(story.tool)} of {', '.join(map(code, story.homes)) or 'no home'}."
    yield from _heading("Told from")
    for told in story.told_from:
        yield f"- {escape(told.what)} of {told.at or 'an unknown time'}: {code(told.path)}"
    yield from _heading("What happened")
    yield from _moments(story.events)
    yield from _statements("What was lost", story.lost, "Nothing is known to be lost.")
    yield from _statements("What is about to be lost", story.endangered, "Nothing is known to be in danger.")
    yield from _statements("What else was wrong", story.other, "Nothing.")
    yield from _statements("What was had back or preserved", story.recovered, "Nothing.")
    yield from _statements(
        "What remains unknown", story.unknown, "Everything that was asked could be determined."
    )
    yield from _heading("What statemend changed")
    if not story.changed:
        yield "Nothing."
    for changed in story.changed:
        yield from _changed(changed)
    yield from _heading("What the operator decided")
    if not story.decisions:
        yield "Nothing was asked."
    for decision in story.decisions:
        yield from _decision(decision)


def _heading(text: str) -> Iterator[str]:
    yield ""
    yield f"## {text}"
    yield ""


def _moments(moments: Sequence[Moment]) -> Iterator[str]:
    if not moments:
        yield "No report tells of anything that happened."
        return
    yield "| when | what | session | detail | shown by |"
    yield "|---|---|---|---|---|"
    for moment in moments[:MOST]:
        when = moment.at or f"{moment.clock} (local)" if moment.at or moment.clock else "unknown"
        until = f" to {moment.until}" if moment.until else ""
        times = f" × {moment.count:,}" if moment.count > 1 else ""
        session = code(moment.session, cell=True) if moment.session else ""
        yield (
            f"| {escape(when + until)} | {escape(moment.kind)}{times} | {session} | "
            f"{escape(moment.detail)} | {code(moment.command, 400, cell=True)} |"
        )
    yield from _more(len(moments))


def _statements(title: str, statements: Sequence[Statement], none: str) -> Iterator[str]:
    yield from _heading(title)
    if not statements:
        yield none
    for each in statements[:MOST]:
        about = " ".join(code(part) for part in (each.session, each.finding) if part)
        until = f" to {each.last}" if each.last != each.first else ""
        seen = f" Seen {each.first}{until}." if each.first else ""
        ended = f" Ended by {code(each.ended)}." if each.ended else ""
        yield f"- {escape(each.text)} {about}{seen}{ended}"
        for source in each.sources:
            yield f"  - from {escape(source)}"
        yield f"  - {code(each.command, 400)}"
    yield from _more(len(statements))


def _changed(changed: Changed) -> Iterator[str]:
    rows = ", ".join(f"{number:,} of {table}" for table, number in changed.rows.items())
    at = changed.at or "an unknown time"
    yield f"- {changed.what} at {at}, {escape(changed.state)}: rows {escape(rows)}"
    yield f"  - store {code(changed.store)}, run {code(changed.run)}"
    yield f"  - digest before {code(changed.digest_before or 'unknown')}"
    yield f"  - digest after {code(changed.digest_after or 'unknown')}"
    yield f"  - snapshot {code(changed.snapshot or 'unknown')}"
    if changed.sessions:
        yield f"  - sessions {', '.join(code(sid) for sid in changed.sessions[:MOST])}"
    for note in changed.notes:
        yield f"  - {escape(note)}"
    yield f"  - taken back by {code(changed.command, 400)}"


def _decision(decision: Decision) -> Iterator[str]:
    why = f" ({escape(decision.why)})" if decision.why else ""
    yield f"- {escape(decision.question)} **{escape(decision.answer)}**{why}"
    for fact in decision.evidence[:MOST]:
        yield f"  - {escape(fact)}"
    yield f"  - {code(decision.command, 400)}"


def _more(total: int) -> Iterator[str]:
    if total > MOST:
        yield ""
        yield f"{total - MOST:,} more in the JSON form."
