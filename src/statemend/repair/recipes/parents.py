"""Settle a session whose parent is not in the store.

Where the parent's messages are still there, its row is rebuilt by another recipe, and the link is right
again. Where an export names another parent that is in the store, that one is offered. To detach the session
is always offered and never done unasked: the link is the last trace of what came before. The former parent's
id is then kept in the session's configuration, where Hermes does not look.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.finding import Finding
from statemend.repair.cells import SqlValue
from statemend.repair.model_config import NotEditableError, with_key
from statemend.repair.plan import Operation, Option, Source, Step, StepClass
from statemend.repair.recipe import Proposal, Recipe, RecipeContext, leave, row_of, update_of
from statemend.repair.session_headers import headers_of

#: The key in ``model_config`` that keeps the id of a parent that was detached.
FORMER = "_statemend_former_parent"

_IS_SESSION = "SELECT 1 FROM sessions WHERE id = ?"
_HAS_MESSAGES = "SELECT 1 FROM messages WHERE session_id = ? LIMIT 1"


def propose(context: RecipeContext, finding: Finding) -> Iterator[Proposal]:
    """The choice whether to keep the link, or why there is none."""
    session_id = finding.subject.session
    row = None if session_id is None else row_of(context.store, "sessions", {"id": session_id})
    parent = None if row is None else row["parent_session_id"]
    if session_id is None or row is None or not isinstance(parent, str):
        yield leave(finding, f"an id in it is not valid text: {finding.remedy.text}")
        return
    if context.store.value(_HAS_MESSAGES, (parent,)) is not None:
        rebuilt = [each.id for each in context.of_rule("ORP001") if each.subject.session == parent]
        yield leave(
            finding, f"the row of its parent is missing: it goes away with {', '.join(rebuilt) or 'that'}"
        )
        return
    options = [*_relink(context, finding, session_id, parent), _detach(context, finding, row, parent)]
    yield RECIPE.choice(
        finding,
        f"The parent {parent} of session {session_id} is not in the store. Keep the link?",
        (
            *options,
            Option(
                id="leave",
                title="leave the link: the parent may be found in an export, a snapshot or another store",
                evidence=(finding.summary,),
            ),
        ),
    )


def _relink(context: RecipeContext, finding: Finding, session_id: str, parent: str) -> Iterator[Option]:
    """One option for each other parent that exports of the session name and the store has."""
    named: dict[str, list[Source]] = {}
    for header in headers_of(session_id, context.sections_of(session_id)):
        other = header.values.get("parent_session_id")
        if isinstance(other, str) and other not in (parent, session_id):
            named.setdefault(other, []).append(header.source("sessions.parent_session_id"))
    for number, (other, sources) in enumerate(sorted(named.items()), start=2):
        if context.store.value(_IS_SESSION, (other,)) is None or _descends(context, other, session_id):
            continue
        operation = update_of(context.store, "sessions", {"id": session_id}, {"parent_session_id": other})
        yield Option(
            id=f"parent:{other}",
            title=f"make {other} the parent",
            evidence=tuple(f"{source.artifact} names it" for source in sources),
            steps=(
                _step(
                    finding,
                    session_id,
                    number,
                    f"Make {other} the parent of {session_id}",
                    operation,
                    sources,
                ),
            ),
        )


def _descends(context: RecipeContext, other: str, session_id: str) -> bool:
    """Whether ``other`` comes after the session in its line, so that the link would close a circle."""
    seen: set[str] = set()
    at: str | None = other
    while at is not None and at not in seen:
        if at == session_id:
            return True
        seen.add(at)
        at = context.store.value("SELECT parent_session_id FROM sessions WHERE id = ?", (at,))
    return False


def _detach(context: RecipeContext, finding: Finding, row: dict[str, SqlValue], parent: str) -> Option:
    session_id = str(row["id"])
    after: dict[str, SqlValue] = {"parent_session_id": None}
    config = row.get("model_config")
    kept = "its former parent stays named in model_config"
    try:
        after["model_config"] = with_key(config if isinstance(config, str) else None, FORMER, parent)
    except NotEditableError:
        kept = (
            "its model_config cannot be added to, so only the plan and the undo record keep its former parent"
        )
    operation = update_of(context.store, "sessions", {"id": session_id}, after)
    sources = [
        Source(column=f"sessions.{name}", origin=origin)
        for name, origin in (
            ("parent_session_id", "no session of that id, and no message of it, is in the store"),
            ("model_config", f"the former parent, under {FORMER}"),
        )
        if name in after
    ]
    return Option(
        id="detach",
        title=f"detach the session: it stands alone, and {kept}",
        evidence=(f"no session {parent} and no message of it is in the store",),
        steps=(_step(finding, session_id, 1, f"Detach {session_id} from {parent}", operation, sources),),
    )


def _step(
    finding: Finding, session_id: str, number: int, title: str, operation: Operation, sources: list[Source]
) -> Step:
    return RECIPE.step(
        finding,
        StepClass.CHOICE,
        number,
        title=title,
        why="A link to a session that does not exist breaks a foreign key: updates that touch it fail.",
        operations=(operation,),
        sessions=(session_id,),
        sources=tuple(sources),
    )


RECIPE = Recipe(name="parents", serves=("ORP002",), doc=__doc__ or "", propose=propose)
