"""Broken families for the tests of the lineage recipes, and what must hold after a repair."""

from __future__ import annotations

import json
from typing import Any

from tests.audit.builder import START, HomeBuilder
from tests.repair.planning import carry_out, plan_of

from statemend.audit.finding import Finding
from statemend.repair.plan import Choice, Left, Plan, Step
from statemend.store.connection import open_for_audit
from statemend.store.lineage import Graph
from statemend.store.schema import Era

SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."
END = START + 100
MARKING = (Era.V18, Era.V20, Era.V22)


def ended(home: HomeBuilder, session_id: str = "old", **values: Any) -> None:
    """A chat that a compression ended at ``END``."""
    home.chat(session_id, 6, **{"ended_at": END, "end_reason": "compression", **values})


def child(
    home: HomeBuilder, session_id: str, after: float = 1.0, first: str = SUMMARY, **values: Any
) -> None:
    """A session of two rows that began so long after ``END``, a continuation of ``old`` unless told
    otherwise."""
    home.session(session_id, **{"parent_session_id": "old", "started_at": END + after, **values})
    home.message(session_id, "user", first, timestamp=END + after)
    home.message(session_id, "assistant", "And so on.", timestamp=END + after + 1, finish_reason="stop")
    home.sql("UPDATE sessions SET message_count = 2 WHERE id = ?", bindings=(session_id,))


def carry(home: HomeBuilder, parent: str, session_id: str) -> None:
    """The last two rows of the parent, copied behind the summary of its continuation."""
    home.turns(session_id, 0)
    for role, text in (("user", "The last question."), ("assistant", "The last answer.")):
        for one in (parent, session_id):
            home.message(one, role, text, timestamp=END + 3)
            home.sql("UPDATE sessions SET message_count = message_count + 1 WHERE id = ?", bindings=(one,))


def export(home: HomeBuilder, session_id: str, parent: str, name: str = "kept") -> None:
    """An export of a session, made when its link to ``parent`` was there."""
    record = {"id": session_id, "source": "cli", "parent_session_id": parent, "messages": []}
    home.file(f"session-exports/{name}.jsonl", json.dumps(record) + "\n")


def choices(plan: Plan, recipe: str) -> list[Choice]:
    """The choices that one recipe puts."""
    return [one for one in plan.choices if one.id.endswith(f"/{recipe}")]


def left(plan: Plan, rule: str) -> list[Left]:
    return [one for one in plan.left if one.rule == rule]


def findings(home: HomeBuilder) -> dict[str, Finding]:
    """Every finding of the lineage rules, by id."""
    return {one.id: one for one in home.audit("LIN").findings}


def mend(home: HomeBuilder, steps: tuple[Step, ...]) -> None:
    """Carry out the steps. The findings they serve are gone, no new one came, no row of a message changed,
    and a new plan has nothing more to do about them."""
    before, rows = findings(home), home.sql("SELECT * FROM messages ORDER BY id")
    carry_out(home, steps)
    after = findings(home)
    assert home.sql("SELECT * FROM messages ORDER BY id") == rows
    assert after.keys() <= before.keys()
    served = {step.finding for step in steps}
    assert not served & after.keys()
    again = plan_of(home)
    assert not served & {one.finding for one in (*again.steps, *again.choices)}


def tips(home: HomeBuilder, session_id: str, eras: tuple[Era, ...] = MARKING) -> set[str]:
    """Where the eras resume a session."""
    with open_for_audit(home.store) as store:
        graph = Graph.load(store)
        return {graph.resume_tip(session_id, era) for era in eras}


def chains(home: HomeBuilder, session_id: str) -> set[tuple[str, ...] | None]:
    """What the eras export with a session."""
    with open_for_audit(home.store) as store:
        graph = Graph.load(store)
        return {graph.export_chain(session_id, era) for era in MARKING}


def config(home: HomeBuilder, session_id: str) -> Any:
    """The text of a session's configuration."""
    return home.sql("SELECT model_config FROM sessions WHERE id = ?", bindings=(session_id,))[0][0]
