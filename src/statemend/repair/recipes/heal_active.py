"""Give messages that have no state the one they had.

A row that nothing speaks against becomes live, as Hermes 0.18 and newer would make it; one that says it was
archived becomes archived again. Rows that a compaction or an undo passed over are the operator's choice.
Where the counter of messages would no longer fit, it is set with them. What the messages say is not touched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec

from statemend.audit.finding import Finding
from statemend.audit.rules.counters.message_count_drift import lawful
from statemend.audit.unset import DOUBTFUL, Lost, UnsetRow, unset_rows
from statemend.repair.cells import SqlValue
from statemend.repair.plan import Operation, Option, Source, Step, StepClass
from statemend.repair.recipe import Proposal, Recipe, RecipeContext, leave, row_of, update_of
from statemend.store.message import RowState

#: What each row becomes where the rows alone decide, and where doubtful ones are kept out of the model's way.
_DECIDED = {Lost.LIVE: RowState.LIVE, Lost.ARCHIVED: RowState.ARCHIVED}
_ALL_LIVE = {**_DECIDED, **dict.fromkeys(DOUBTFUL, RowState.LIVE)}
_ASIDE = {**_DECIDED, Lost.BEFORE_COMPACTION: RowState.ARCHIVED, Lost.AFTER_REWIND: RowState.REWOUND}
_CELLS: Mapping[RowState, dict[str, SqlValue]] = {
    RowState.LIVE: {"active": 1},
    RowState.ARCHIVED: {"active": 0, "compacted": 1},
    RowState.REWOUND: {"active": 0},
}


def propose(context: RecipeContext, finding: Finding) -> Iterator[Proposal]:
    """The states of its rows, the choice about doubtful ones, or why they stay without."""
    session_id = finding.subject.session
    rows = [] if session_id is None else list(unset_rows(context.store, session_id))
    if session_id is None or not rows:
        yield leave(finding, f"the id of the session is not valid text: {finding.remedy.text}")
        return
    session = row_of(context.store, "sessions", {"id": session_id})
    if session is None:
        named = [each.id for each in context.of_rule("ORP001") if each.subject.session == session_id]
        yield leave(
            finding, f"the row of its session is missing ({', '.join(named) or 'ORP001'}): plan again with it"
        )
        return
    doubtful = Counter(row.lost for row in rows if row.lost in DOUBTFUL)
    if not doubtful:
        yield _step(context, finding, session, rows, _DECIDED, 1, StepClass.SAFE)
        return
    yield RECIPE.choice(
        finding,
        f"{doubtful.total():,} rows of session {session_id} were passed over by a compaction or an "
        "undo. Are they to be live?",
        (
            Option(
                id="aside",
                title="keep them aside: archived with the rows around them, or taken back with them",
                evidence=tuple(_evidence(doubtful)),
                steps=(_step(context, finding, session, rows, _ASIDE, 1, StepClass.CHOICE),),
            ),
            Option(
                id="live",
                title="make them live: the model reads them again",
                evidence=(
                    "Hermes 0.18 and newer do so with every row that has no state when they open the store",
                ),
                steps=(_step(context, finding, session, rows, _ALL_LIVE, 2, StepClass.CHOICE),),
            ),
            Option(id="leave", title="leave them without a state", evidence=(finding.summary,)),
        ),
    )


def _evidence(doubtful: Counter[Lost]) -> Iterator[str]:
    for state, why in (
        (Lost.BEFORE_COMPACTION, "older than a row that was archived; a compaction takes every live row"),
        (Lost.AFTER_REWIND, "younger than a row that was taken back; an undo takes every live row behind it"),
    ):
        if doubtful[state]:
            yield f"{doubtful[state]:,} rows are {why}"


def _step(
    context: RecipeContext,
    finding: Finding,
    session: Mapping[str, SqlValue],
    rows: list[UnsetRow],
    become: Mapping[Lost, RowState],
    number: int,
    step_class: StepClass,
) -> Step:
    session_id = str(session["id"])
    operations = [
        update_of(context.store, "messages", {"id": row.id}, _CELLS[become[row.lost]]) for row in rows
    ]
    states = Counter(become[row.lost] for row in rows)
    sources = [Source(column="messages.active", origin="the state of the rows around it, and compacted")]
    counter = _counter(context, session, states)
    if counter is not None:
        operations.append(counter)
        sources.append(Source(column="sessions.message_count", origin="the live rows of the session"))
    made = ", ".join(f"{states[state]:,} {state.value}" for state in RowState if states[state])
    return RECIPE.step(
        finding,
        step_class,
        number,
        title=f"Give the messages of session {session_id} their state: {made}",
        why="Rows without a state are shown by no release before 0.18, and later ones make all of them live.",
        operations=tuple(operations),
        sessions=(session_id,),
        sources=tuple(sources),
    )


def _counter(
    context: RecipeContext, session: Mapping[str, SqlValue], states: Counter[RowState]
) -> Operation | None:
    """The update of the counter, where no release would keep it for the rows as they become."""
    was = context.census[str(session["id"])]
    now = msgspec.structs.replace(
        was,
        live=was.live + states[RowState.LIVE],
        archived=was.archived + states[RowState.ARCHIVED],
        rewound=was.rewound + states[RowState.REWOUND],
        unset=0,
    )
    if (session.get("message_count", now.live) or 0) in lawful(now, session.get("source")):
        return None
    return update_of(context.store, "sessions", {"id": session["id"]}, {"message_count": now.live})


RECIPE = Recipe(name="heal-active", serves=("MSG001",), doc=__doc__ or "", propose=propose)
