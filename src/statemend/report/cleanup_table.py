"""A cleanup plan, or what became of one, for a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from statemend.repair.cleanup import Cleanup
from statemend.repair.cleanup_plan import CleanupPlan, Collapse, Entry, Kept, Rows
from statemend.report import blocks, text
from statemend.report.cleanup_words import copies, deleted

#: So many of each are shown; the plan and the receipt have them all.
_MOST = 40


def of_plan(plan: CleanupPlan, file: str) -> RenderableType:
    """A cleanup plan for a ``rich`` console; nothing in it is read as markup."""
    parts: list[RenderableType] = [Text(_planned(plan), style="bold")]
    for entry in plan.entries[:_MOST]:
        parts += [Text(text.clip(entry.session, 200), style="bold"), blocks.facts(_of_entry(entry))]
    parts += _more(len(plan.entries))
    for collapse in plan.collapses[:_MOST]:
        parts += [Text(text.clip(collapse.session, 200), style="bold"), blocks.facts(_of_collapse(collapse))]
    parts += _more(len(plan.collapses))
    parts += _kept(plan.kept)
    if plan.entries or plan.collapses:
        command = f"statemend cleanup apply {shlex.quote(file)}"
        parts.append(blocks.next_step(command))
    return Group(*parts)


def of_cleanup(done: Cleanup) -> RenderableType:
    """How a cleanup ended, for a ``rich`` console; nothing in it is read as markup."""
    if done.run is None or done.receipt is None:
        heading = Text("Nothing was deleted.", style="bold red")
        return Group(heading, *_kept(done.kept))
    receipt = done.receipt
    gone = [
        (each.session, f"{_rows(each.rows)}; held by {each.preserved.path}")
        for each in receipt.deleted[:_MOST]
    ]
    collapsed = [
        (each.session, f"{copies(each.copies)} of {text.count(each.messages, 'row')}")
        for each in receipt.collapsed[:_MOST]
    ]
    facts = [
        ("store", receipt.store),
        ("run", done.run.folder),
        ("rows", ", ".join(f"{count:,} of {table}" for table, count in receipt.rows.items())),
        *(("detached", f"{child} (from {parent})") for child, parent in receipt.detached.items()),
        *(("note", note) for note in done.run.notes),
    ]
    return Group(
        Text(f"{deleted(receipt)} and verified.", style="bold"),
        blocks.facts(gone),
        *_more(len(receipt.deleted)),
        blocks.facts(collapsed),
        *_more(len(receipt.collapsed)),
        blocks.facts(facts),
        *_kept(done.kept),
        blocks.next_step(done.run.advice, style=""),
    )


def _planned(plan: CleanupPlan) -> str:
    going = sum(len(entry.members) for entry in plan.entries)
    if plan.collapses:
        number = copies(sum(len(each.copies) for each in plan.collapses))
        sessions = text.count(len(plan.collapses), "session")
        return f"{number} of rows in {sessions} would be deleted, {len(plan.kept):,} kept."
    if not going:
        return "No session may be deleted." if plan.kept else "There is nothing to delete."
    return f"{text.count(going, 'session')} would be deleted, {len(plan.kept):,} kept."


def _of_entry(entry: Entry) -> Iterator[tuple[str, str]]:
    for number, member in enumerate(entry.members):
        if number:
            yield "with it", f"{member.session}, a subagent"
        yield "rows", _rows(member.rows)
        yield "held by", f"{member.preserved.path} (sha256 {member.preserved.sha256})"
    for child in entry.detached:
        yield "detached", f"{child} stays, and loses its parent link"
    for ancestor in entry.ancestors:
        yield "above it", f"{ancestor.session}: {ancestor.effect}"
    for table, count in entry.besides.items():
        yield "besides", f"{text.count(count, 'row')} of {table}"


def _of_collapse(collapse: Collapse) -> Iterator[tuple[str, str]]:
    yield "rows", _rows(collapse.rows)
    told = f"{copies(len(collapse.copies))} of {text.count(collapse.messages, 'row')}"
    yield "deleted", f"{told}, {collapse.size:,} bytes"
    for reason, count in collapse.left.items():
        yield "stays", f"{copies(count)}: {reason}"


def _rows(rows: Rows) -> str:
    states = {
        "live": rows.live,
        "archived": rows.archived,
        "rewound": rows.rewound,
        "of no state": rows.unset,
    }
    counted = ", ".join(f"{count:,} {state}" for state, count in states.items() if count)
    return f"{counted}, ids {rows.first_id} to {rows.last_id}" if counted else "none"


def _kept(kept: Sequence[Kept]) -> list[RenderableType]:
    if not kept:
        return []
    table = blocks.facts([(each.session, each.reason) for each in kept[:_MOST]])
    return [Text("Kept", style="bold"), table, *_more(len(kept))]


def _more(total: int) -> list[RenderableType]:
    return [Text(f"  {total - _MOST:,} more", style="dim")] if total > _MOST else []
