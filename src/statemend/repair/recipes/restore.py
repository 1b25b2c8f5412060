"""Restore a session that is gone from the store, or of which only a part is left.

Its rows are put together from everything that still shows them: exports, transcripts, snapshots, other
stores. Each message comes back once, in its order, with its own time, live or archived as the newest
transcript shows it, and names the file that it comes from. A source that drops or masks something fills only
what no better one holds. What nothing holds is counted, and stays lost. A tail that is in the store already
stays as it is; the rows before it are put in front. What a format dropped that pairs a tool call with its
result is told by another file or by the place of the result; a call that nothing answers is named.

Nothing in a store tells whether somebody deleted a session on purpose. So this is always the operator's
choice, with one option for each way in which sources that contradict each other can be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

from statemend.audit.finding import Finding, Verdict
from statemend.evidence.salvage import Salvager
from statemend.repair import restored_ids, restored_rows
from statemend.repair.marks import CannotChangeError
from statemend.repair.plan import Choice, Option, Step, StepClass
from statemend.repair.recipe import Proposal, Recipe, RecipeContext, leave, row_of
from statemend.repair.restored_evidence import evidence_of, messages_of
from statemend.repair.restored_session import session_row
from statemend.repair.salvaged import Calls, Salvaged, SalvagedRow, Way, salvaged
from statemend.repair.session_traces import read_logs

Made = TypeVar("Made", Choice, Step)

_KNOWN = """
SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ?1) OR EXISTS (SELECT 1 FROM messages WHERE session_id = ?1)
"""
#: Its finding stays where the session is back: what was said since never was in it.
_UNSTORED = "ORP004"
#: Its sessions come back only where they are asked for: little is left of them.
_FILTERED = "EXP008"


def propose(context: RecipeContext, finding: Finding) -> Iterator[Proposal]:
    """For each session that the finding is about, the choice whether it comes back, or why it is not put."""
    session_id = finding.subject.session
    if finding.rule == _FILTERED and not (session_id in context.asked and _is_gone(context, session_id)):
        yield leave(finding, f"nothing is restored from such files unasked: {finding.remedy.text}")
    elif session_id is not None:
        if finding.rule != _UNSTORED or _is_gone(context, session_id):
            context.wanted.discard(session_id)
            yield from _offer(context, finding, session_id)
    elif finding.verdict is Verdict.LEFTOVER:
        taken = sorted(each for each in context.wanted if _is_gone(context, each))
        context.wanted.difference_update(taken)
        for session_id in taken:
            yield from _offer(context, finding, session_id)
        if not taken:
            yield leave(
                finding, f"lawful as it is: {finding.summary} `statemend plan --restore ID` plans its return."
            )


def _is_gone(context: RecipeContext, session_id: str | None) -> bool:
    """Whether the store has nothing of a session and something else shows messages of it."""
    if context.store.value(_KNOWN, (session_id,)):
        return False
    return any(
        session_id in sections()
        for sections in (context.inventory.by_session, context.inventory.stores_by_session)
    )


def _offer(context: RecipeContext, finding: Finding, session_id: str) -> Iterator[Proposal]:
    """The choice whether one session comes back."""
    salvager = context.once("salvager", lambda: Salvager(context.store, context.inventory))
    lost = salvaged(context.store, salvager, session_id)
    try:
        options = [
            _option(context, finding, lost, way, number) for number, way in enumerate(lost.ways, start=1)
        ]
    except CannotChangeError as obstacle:
        yield leave(finding, f"it cannot be restored into this store: {obstacle}")
        return
    if not all(option.steps for option in options):
        yield leave(finding, "no file shows a message of it that the store lacks")
        return
    choice = RECIPE.choice(
        finding,
        f"Session {session_id} may have been deleted on purpose. Shall it be restored?"
        if row_of(context.store, "sessions", {"id": session_id}) is None
        else f"Only a part of session {session_id} is left. Shall the rest be restored?",
        (
            *options,
            Option(id="leave", title="leave it as it is", evidence=_deleted(context, session_id)),
        ),
    )
    yield _apart(choice, finding, session_id)


def _option(context: RecipeContext, finding: Finding, lost: Salvaged, way: Way, number: int) -> Option:
    rows, calls = lost.put_together(way)
    several = len(lost.ways) > 1
    title = f"restore {messages_of(rows)} of it"
    if several:
        title += " with every reading" if way.artifact is None else f" as {way.artifact} has it"
    evidence = tuple(evidence_of(lost, rows, calls))
    steps = (_step(context, finding, lost, (rows, calls), evidence, number),) if rows else ()
    return Option(
        id=f"restore-{number}" if several else "restore",
        title=title,
        evidence=evidence,
        steps=steps,
    )


def _step(
    context: RecipeContext,
    finding: Finding,
    lost: Salvaged,
    found: tuple[Sequence[SalvagedRow], Calls],
    evidence: Sequence[str],
    number: int,
) -> Step:
    session_id = lost.union.session_id
    rows, calls = found
    placed = restored_ids.numbered(context, lost, rows)
    rebuilt = session_row(context, finding.id, session_id, rows)
    step = RECIPE.step(
        finding,
        StepClass.CHOICE,
        number,
        title=f"Restore {messages_of(rows)} of session {session_id}",
        why=f"{finding.summary} {' '.join(evidence)}",
        operations=(*rebuilt.operations, *restored_rows.inserts(context, session_id, placed)),
        reindex=rebuilt.reindex,
        sessions=(session_id,),
        sources=(*rebuilt.sources, *restored_rows.sources(context, lost, placed, calls)),
    )
    return _apart(step, finding, session_id)


def _deleted(context: RecipeContext, session_id: str) -> tuple[str, ...]:
    """What shows that somebody deleted it."""
    line = context.once("logged", lambda: read_logs(context.inventory)).deletions.get(session_id)
    if line is None:
        return ()
    return (f"{line.path}, line {line.number}: the gateway saw it deleted at {line.clock}",)


def _apart(made: Made, finding: Finding, session_id: str) -> Made:
    """The choice or the step; where the finding is about several sessions, with an id of this one."""
    if finding.subject.session == session_id:
        return made
    return msgspec.structs.replace(made, id=f"{made.id}/{session_id}")


RECIPE = Recipe(
    name="restore",
    serves=("EXP002", _FILTERED, "ORP003", _UNSTORED, "ORP005"),
    doc=__doc__ or "",
    propose=propose,
)
