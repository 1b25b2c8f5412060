"""What an audit says of a home, what a repair makes of it, and what its release shows then."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from tests.hermes.home import HermesHome

from statemend.audit.engine import audit
from statemend.audit.finding import Finding
from statemend.repair.apply import apply
from statemend.repair.plan import Plan, dump
from statemend.repair.planner import make_plan
from statemend.repair.run import Run, State
from statemend.store.connection import open_for_audit
from statemend.store.identity import store_digest


def found(home: HermesHome, *rules: str) -> list[Finding]:
    """What these rules say, by default those about lines; the running release is stopped first."""
    home.stop()
    outcome = audit(home.path, rules=rules or ("LIN",), now=home.now)
    assert outcome.undetermined == ()
    return list(outcome.findings)


def told(home: HermesHome, *rules: str) -> list[tuple[str, str, str | None]]:
    """Rule, verdict and session of each finding."""
    return [(one.rule, one.verdict.value, one.subject.session) for one in found(home, *rules)]


def alarms(home: HermesHome) -> list[tuple[str, str | None]]:
    """Rule and session of each finding about lines."""
    return [(rule, session) for rule, _, session in told(home)]


def planned(home: HermesHome, choose: Mapping[str, str] | None = None) -> Plan:
    """The plan for a stopped home; ``choose`` is the option to take for each recipe that asks."""
    home.stop()
    plan = make_plan(home.path, now=home.now)
    wanted = dict(choose or {})
    choices = tuple(
        msgspec.structs.replace(choice, chosen=wanted.pop(choice.id.rpartition("/")[2], None))
        for choice in plan.choices
    )
    assert not wanted, "no such choice"
    return msgspec.structs.replace(plan, choices=choices)


def repaired(home: HermesHome, choose: Mapping[str, str] | None = None) -> Run:
    """Plan, choose and apply; the release runs again afterwards."""
    plan = planned(home, choose)
    assert plan.selected()
    file = home.path.parent / "plan.json"
    file.write_bytes(dump(plan))
    run = apply(file, now=home.now)
    assert run.state is State.APPLIED
    home.restart()
    return run


def listed(home: HermesHome) -> set[str]:
    """The sessions that a picker of the release shows."""
    return {row["id"] for row in home.store("list_sessions_rich", limit=100)}


def contents(home: HermesHome) -> list[list[object]]:
    """What every message says, and whose it is."""
    return home.rows("SELECT id, session_id, role, content FROM messages ORDER BY id")


def digest(home: HermesHome) -> str:
    """Of the store at rest."""
    home.stop()
    with open_for_audit(home.state_db) as store:
        return store_digest(store)
