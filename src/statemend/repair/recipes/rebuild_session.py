"""Rebuild the session row that orphaned messages name.

The messages stay as they are; the row that they point to is made again, from an export of the session, its
route in the gateway, its id, logs, accounts of tokens, its children and the messages themselves. Each column
names its source, and the row is marked as rebuilt. With the row the session can be listed, read, exported and
written to again.

Where something shows that the session was deleted on purpose, it is the operator's choice.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.facts import is_time, moment
from statemend.audit.finding import Finding
from statemend.evidence.coverage import ArtifactCoverage, assess_session
from statemend.formats.artifact import TRANSCRIPTS
from statemend.repair.marks import CannotChangeError
from statemend.repair.plan import Option, Step, StepClass
from statemend.repair.recipe import Proposal, Recipe, RecipeContext, leave
from statemend.repair.session_row import SessionRow
from statemend.repair.session_traces import read_logs

_ORPHAN = """
    SELECT 1 FROM messages
    WHERE session_id = ? AND typeof(session_id) = 'text'
      AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = messages.session_id)
    LIMIT 1
"""


def propose(context: RecipeContext, finding: Finding) -> Iterator[Proposal]:
    """The row, the choice whether to make it, or why it cannot be made."""
    session_id = finding.subject.session
    if session_id is None:
        yield leave(finding, f"these messages name no session: {finding.remedy.text}")
        return
    if context.store.value(_ORPHAN, (session_id,)) is None:
        yield leave(finding, f"the id of the session is not valid text: {finding.remedy.text}")
        return
    reasons = _deleted_on_purpose(context, session_id)
    try:
        step = _step(context, finding, session_id, StepClass.CHOICE if reasons else StepClass.SAFE)
    except CannotChangeError as error:
        yield leave(finding, f"its row cannot be made now: {error}")
        return
    if not reasons:
        yield step
        return
    yield RECIPE.choice(
        finding,
        f"Session {session_id} may have been deleted on purpose. Shall its row be rebuilt?",
        (
            Option(
                id="rebuild",
                title="rebuild the row: the session is there again, with the messages that are left",
                evidence=(finding.summary,),
                steps=(step,),
            ),
            Option(
                id="leave",
                title="leave it: the messages stay in the store and nothing shows them",
                evidence=reasons,
            ),
        ),
    )


def _step(context: RecipeContext, finding: Finding, session_id: str, step_class: StepClass) -> Step:
    titles: set[str] = context.once("titles given", set)
    rebuilt = SessionRow(
        context,
        session_id,
        finding.id,
        is_planned=lambda other: _is_rebuilt(context, other, step_class),
        is_free=lambda title: title not in titles,
    ).rebuild()
    if rebuilt.title is not None:
        titles.add(rebuilt.title)
    return RECIPE.step(
        finding,
        step_class,
        title=f"Rebuild the row of session {session_id}",
        why=f"{finding.summary} Without the row nothing shows them, and every append to the session fails.",
        operations=rebuilt.operations,
        reindex=rebuilt.reindex,
        sessions=(session_id,),
        sources=rebuilt.sources,
    )


def _is_rebuilt(context: RecipeContext, session_id: str, step_class: StepClass) -> bool:
    """Whether a safe step of the same plan makes that row. A step that waits for a choice relies on none."""
    orphans: frozenset[str | None] = context.once(
        "orphans", lambda: frozenset(finding.subject.session for finding in context.of_rule("ORP001"))
    )
    if step_class is not StepClass.SAFE or session_id not in orphans:
        return False
    found: bool = context.once(
        ("rebuilt", session_id),
        lambda: (
            context.store.value(_ORPHAN, (session_id,)) is not None
            and not _deleted_on_purpose(context, session_id)
        ),
    )
    return found


def _deleted_on_purpose(context: RecipeContext, session_id: str) -> tuple[str, ...]:
    """What shows that somebody deleted the session: a log line, or an export that holds all of it and was
    made after the last message, with no sign that anybody went on talking."""
    reasons = []
    deletion = context.once("logged", lambda: read_logs(context.inventory)).deletions.get(session_id)
    if deletion is not None:
        reasons.append(
            f"{deletion.path}, line {deletion.number}: the gateway saw it deleted at {deletion.clock}"
        )
    if session_id not in context.once("failing", lambda: _failing(context)):
        reasons += _complete_exports(context, session_id)
    return tuple(reasons)


def _failing(context: RecipeContext) -> frozenset[str]:
    """The sessions of which a log says that something could not be stored: they were still in use."""
    failures = (failure for log in context.inventory.logs for failure in log.failures)
    return frozenset(failure.session_id for failure in failures if failure.session_id)


def _complete_exports(context: RecipeContext, session_id: str) -> Iterator[str]:
    counted = context.census.get(session_id)
    last = counted.last_at if counted is not None else None
    if last is None or not is_time(last):
        return
    named = context.sections_of(session_id)
    written = {artifact.path: section.exported_at or artifact.modified_at for artifact, section in named}
    if not named:
        return
    for covered in assess_session(context.store, context.inventory, session_id).artifacts:
        at = written[covered.artifact]
        if at >= last and _is_complete(covered):
            yield f"{covered.artifact}: holds every message of it, written at {moment(at)}"


def _is_complete(covered: ArtifactCoverage) -> bool:
    held = covered.exact + covered.lossy
    return (
        covered.kind in TRANSCRIPTS
        and held > 0
        and not (covered.cut or covered.masked or covered.changed or covered.missing)
    )


RECIPE = Recipe(name="rebuild-session", serves=("ORP001",), doc=__doc__ or "", propose=propose)
