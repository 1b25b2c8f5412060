"""Completes or clears half an end: a session with an end and no reason, or with a reason and no end.

Nothing in the store tells which half is right, so both ways are the operator's choice. A time that is missing
is that of the last message; a reason that is missing is made up, and its name says so. Where the reason tells
where a conversation goes on (compression, a branch), changing the end changes what resume follows: that is
left to whoever knows the conversation.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.facts import is_time, moment
from statemend.audit.finding import Finding
from statemend.audit.rules.lifecycle.half_stamped_end import LEADING
from statemend.repair.cells import SqlValue
from statemend.repair.marks import CannotChangeError, update_session
from statemend.repair.plan import Option, Source, StepClass
from statemend.repair.recipe import Proposal, Recipe, RecipeContext, leave

#: The reason that is written where none is known. No release writes or reads it.
MADE_UP = "ended_by_repair"
_OPTIONS = ("complete", "clear")
_ROW = "SELECT end_reason, started_at FROM sessions WHERE id = ?"


def propose(context: RecipeContext, finding: Finding) -> Iterator[Proposal]:
    """To complete the end, to clear it, or to leave it."""
    session = finding.subject.session or ""
    row = context.store.one(_ROW, (session,))
    if row is None:
        yield leave(finding, "its row cannot be named: the id is not valid text")
        return
    reason, started_at = row
    if reason in LEADING:
        yield leave(
            finding, f"its reason, {reason}, decides where the conversation goes on: settle it by hand"
        )
        return
    last = context.census[session].last_at if session in context.census else None
    options = [_clear(context, finding, session)]
    at = next((one for one in (last, started_at) if is_time(one)), None)
    if reason is None:
        options.insert(
            0, _complete(context, finding, session, "end_reason", MADE_UP, "made up: no reason is known")
        )
    elif at is not None:
        told = "its last message" if is_time(last) else "its start: it has no message"
        options.insert(0, _complete(context, finding, session, "ended_at", at, f"the time of {told}"))
    yield RECIPE.choice(
        finding,
        f"Is the conversation of {session} over?",
        (
            *(option for option in options if option is not None),
            Option(id="leave", title="Leave it half ended", evidence=(finding.summary,)),
        ),
    )


def _complete(
    context: RecipeContext, finding: Finding, session: str, column: str, value: SqlValue, origin: str
) -> Option | None:
    shown = moment(value) if column == "ended_at" else str(value)
    return _option(
        context,
        finding,
        session,
        "complete",
        f"It is over: set {column} to {shown}",
        {column: value},
        origin,
        "right when nobody goes on with it; a prune may then take it when it is old enough",
    )


def _clear(context: RecipeContext, finding: Finding, session: str) -> Option | None:
    return _option(
        context,
        finding,
        session,
        "clear",
        "It goes on: clear what is there of its end",
        {"ended_at": None, "end_reason": None},
        "cleared, as Hermes does when a session is resumed",
        "right when somebody goes on with it; the next end of it is then written whole",
    )


def _option(
    context: RecipeContext,
    finding: Finding,
    session: str,
    name: str,
    title: str,
    after: dict[str, SqlValue],
    origin: str,
    evidence: str,
) -> Option | None:
    try:
        operation = update_session(context, session, after)
    except CannotChangeError:
        return None
    step = RECIPE.step(
        finding,
        StepClass.CHOICE,
        1 + _OPTIONS.index(name),
        title=f"{title} ({session})",
        why="Half an end misleads Hermes: one part of it takes the session for open, another for over.",
        operations=(operation,),
        sessions=(session,),
        sources=tuple(Source(column=f"sessions.{column}", origin=origin) for column in after),
    )
    return Option(id=name, title=title, evidence=(finding.summary, evidence), steps=(step,))


RECIPE = Recipe(name="half-end", serves=("LIF001",), doc=__doc__ or "", propose=propose)
