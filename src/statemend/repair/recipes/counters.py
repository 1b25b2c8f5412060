"""Recompute the counters of a session from its rows.

``message_count`` becomes what this release would hold: every row up to 0.15, the live rows later.
``tool_call_count`` is set too where no release would hold it; where turns were taken back it may lawfully be
higher than the live rows say, and then it stays. No message is touched.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.finding import Finding
from statemend.repair.cells import SqlValue
from statemend.repair.counting import count
from statemend.repair.plan import Source, StepClass
from statemend.repair.recipe import Proposal, Recipe, RecipeContext, leave, row_of, update_of


def propose(context: RecipeContext, finding: Finding) -> Iterator[Proposal]:
    """The counters that its rows give, or why they cannot be set."""
    session_id = finding.subject.session
    key = {"id": session_id}
    row = row_of(context.store, "sessions", key)
    if session_id is None or row is None:
        yield leave(finding, "the id of the session is not valid text; set the counter by hand")
        return
    counted = count(context.store, session_id)
    after: dict[str, SqlValue] = {"message_count": counted.messages}
    calls = row.get("tool_call_count")
    lawful = isinstance(calls, int) and counted.calls <= calls <= counted.most_calls
    if "tool_call_count" in row and not lawful:
        after["tool_call_count"] = counted.calls
    yield RECIPE.step(
        finding,
        StepClass.SAFE,
        title=f"Set the counters of session {session_id} to its rows",
        why="Lists and clean-ups go by these numbers; the messages themselves are not touched.",
        operations=(update_of(context.store, "sessions", key, after),),
        sessions=(session_id,),
        sources=tuple(
            Source(column=f"sessions.{name}", origin="the rows of the session, by the rule of this release")
            for name in after
        ),
    )


RECIPE = Recipe(name="counters", serves=("CNT001",), doc=__doc__ or "", propose=propose)
