"""Puts rows that were archived and came to life again back into the archive.

The archive mark is only ever set when a row leaves the model's sight, so a live row that bears it was
archived: the model reads it beside the summary that stands for it. Somebody may have brought it back on
purpose, so this is the operator's choice. The counter of messages is set with them, so that no other step
sets it to what it is now. What the messages say is not touched, and rows with flags of another kind are left
to whoever knows them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from statemend.audit.finding import Finding
from statemend.repair.cells import SqlValue
from statemend.repair.plan import Option, Source, Step, StepClass
from statemend.repair.recipe import Proposal, Recipe, RecipeContext, leave, row_of, update_of

_ALIVE_AGAIN = "SELECT id FROM messages WHERE session_id = ? AND active = 1 AND compacted = 1 ORDER BY id"
_OTHERS = """
SELECT COUNT(*)
FROM messages
WHERE session_id = ?
  AND (active NOT IN (0, 1) OR compacted NOT IN (0, 1) OR observed NOT IN (0, 1))
"""


def propose(context: RecipeContext, finding: Finding) -> Iterator[Proposal]:
    """To archive them again, or to leave them."""
    session_id = finding.subject.session or ""
    rows = [row_id for (row_id,) in context.store.rows(_ALIVE_AGAIN, (session_id,))]
    others = context.store.value(_OTHERS, (session_id,))
    session = row_of(context.store, "sessions", {"id": session_id})
    if not rows or others:
        yield leave(finding, f"nothing in the store tells what these rows were: {finding.remedy.text}")
        return
    if session is None:
        yield leave(finding, "the row of its session is missing (ORP001): plan again with it")
        return
    yield RECIPE.choice(
        finding,
        f"{len(rows):,} rows of session {session_id} were archived and are live. Is the model to "
        "read them again?",
        (
            Option(
                id="archive",
                title="no: archive them again",
                evidence=("a row gets the archive mark only when it leaves the model's sight",),
                steps=(_step(context, finding, session, rows, 1),),
            ),
            Option(
                id="live",
                title="yes: keep them live, and take the archive mark off",
                evidence=("right when somebody brought them back on purpose",),
                steps=(_step(context, finding, session, rows, 2),),
            ),
            Option(id="leave", title="leave them as they are", evidence=(finding.summary,)),
        ),
    )


def _step(
    context: RecipeContext,
    finding: Finding,
    session: Mapping[str, SqlValue],
    rows: list[int],
    number: int,
) -> Step:
    session_id = str(session["id"])
    archive = number == 1
    after: dict[str, SqlValue] = {"active": 0} if archive else {"compacted": 0}
    operations = [update_of(context.store, "messages", {"id": row_id}, after) for row_id in rows]
    (column,) = after
    sources = [Source(column=f"messages.{column}", origin="the archive mark of the row, and your choice")]
    if "message_count" in session:
        live = context.census[session_id].live - (len(rows) if archive else 0)
        operations.append(update_of(context.store, "sessions", {"id": session_id}, {"message_count": live}))
        sources.append(Source(column="sessions.message_count", origin="the live rows of the session"))
    return RECIPE.step(
        finding,
        StepClass.CHOICE,
        number,
        title=f"{'Archive' if archive else 'Keep live'} {len(rows):,} rows of session {session_id}",
        why="A row that is live and archived at once is read beside its own summary.",
        operations=tuple(operations),
        sessions=(session_id,),
        sources=tuple(sources),
    )


RECIPE = Recipe(name="rearchive", serves=("MSG002",), doc=__doc__ or "", propose=propose)
