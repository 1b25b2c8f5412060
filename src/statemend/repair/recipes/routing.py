"""Drop the routes and topic bindings that lead to a session that is gone.

The next message of the chat then begins a new session, as Hermes 0.22 lets it by itself. Only the rows that
lead nowhere go; no session, message or account of tokens does. Where a file still holds the session, it may
be restored, and its route would find it again: that is the operator's choice. A route that the gateway would
read back from its file stays until it is taken out there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from statemend.audit.finding import Finding
from statemend.audit.routes import BINDINGS, ROUTES, Way, ways_to_nothing
from statemend.repair.cells import encode, row_digest
from statemend.repair.digests import primary_key
from statemend.repair.plan import Kind, Operation, Option, Source, Step, StepClass
from statemend.repair.recipe import Proposal, Recipe, RecipeContext, leave, row_of
from statemend.repair.session_traces import ROUTING_FILE, filed_routes

_IS_SESSION = "SELECT 1 FROM sessions WHERE id = ?"


def propose(context: RecipeContext, finding: Finding) -> Iterator[Proposal]:
    """What is dropped, the choice whether to drop it, or why it stays."""
    ways = _ways(context).get(finding.subject.session or "", [])
    if not ways:
        yield leave(finding, f"it leads nobody anywhere: {finding.remedy.text}")
        return
    if back := [way.name for way in ways if way.table == ROUTES and _comes_back(context, way)]:
        yield leave(
            finding,
            f"the gateway would read the route back from {ROUTING_FILE}: while it is stopped, remove the "
            f"entry {', '.join(back)} from that file, then plan again",
        )
        return
    operations = [_deletion(context, way) for way in ways]
    if None in operations:
        yield leave(
            finding,
            "a row of it cannot be named: its key is not valid text, or not as usual",
        )
        return
    deletions = [operation for operation in operations if operation is not None]
    holding = _holding(context, ways[0].session_id)
    if not holding:
        yield _step(finding, ways, deletions, StepClass.SAFE)
        return
    yield RECIPE.choice(
        finding,
        f"Session {ways[0].session_id} is gone from the store, and a file holds it. Shall what "
        "leads to it be dropped?",
        (
            Option(
                id="drop",
                title="drop it: the next message of the chat begins a new session",
                evidence=(finding.summary,),
                steps=(_step(finding, ways, deletions, StepClass.CHOICE),),
            ),
            Option(
                id="leave",
                title="leave it: a session that is restored is found by it",
                evidence=tuple(f"{path} holds messages of it" for path in holding),
            ),
        ),
    )


def _ways(context: RecipeContext) -> dict[str, list[Way]]:
    def gather() -> dict[str, list[Way]]:
        found: dict[str, list[Way]] = {}
        for way in ways_to_nothing(context.audit):
            found.setdefault(way.session_id, []).append(way)
        return found

    ways: dict[str, list[Way]] = context.once("ways to nothing", gather)
    return ways


def _comes_back(context: RecipeContext, route: Way) -> bool:
    """Whether the gateway's file leads that chat to a session that is not there either."""
    filed: dict[str, str] = context.once("filed routes", lambda: filed_routes(Path(context.home.root)))
    session_id = filed.get(route.key["session_key"])
    return session_id is not None and context.store.value(_IS_SESSION, (session_id,)) is None


def _deletion(context: RecipeContext, way: Way) -> Operation | None:
    """The deletion of one row, with all that it was; ``None`` for one that its key does not lead to."""
    named_by = primary_key(context.store, way.table)
    if not named_by or not way.key.keys() >= set(named_by):
        return None
    key = {name: way.key[name] for name in named_by}
    row = row_of(context.store, way.table, key)
    if row is None:
        return None
    was: dict[str, Any] = {
        "key": {name: encode(value) for name, value in key.items()},
        "before": {name: encode(value) for name, value in row.items()},
        "before_digest": row_digest(row),
    }
    if way.table == BINDINGS:
        return Operation(kind=Kind.DELETE, table="telegram_dm_topic_bindings", **was)
    return Operation(kind=Kind.DELETE, table="gateway_routing", **was)


def _holding(context: RecipeContext, session_id: str) -> list[str]:
    """The files that hold messages of a session, and the other stores that have it."""
    copied = context.once("stores by session", context.inventory.stores_by_session).get(session_id, ())
    return sorted({artifact.path for artifact, _ in (*context.sections_of(session_id), *copied)})


def _step(
    finding: Finding, ways: Sequence[Way], deletions: Sequence[Operation], step_class: StepClass
) -> Step:
    session_id = ways[0].session_id
    why = (
        "Each message of the topic ends the session it is talking in, and goes to one that is not there."
        if any(way.table == BINDINGS for way in ways)
        else "The next message of the chat would go to a session that is not there."
    )
    return RECIPE.step(
        finding,
        step_class,
        title=f"Drop what leads to session {session_id}: {', '.join(way.name for way in ways)}",
        why=why,
        operations=tuple(deletions),
        sources=tuple(
            Source(column=table, origin="neither the session nor a message of it is in the store")
            for table in dict.fromkeys(way.table for way in ways)
        ),
    )


RECIPE = Recipe(name="routing", serves=("ORP006",), doc=__doc__ or "", propose=propose)
