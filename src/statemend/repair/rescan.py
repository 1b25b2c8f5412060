"""Looks at a store again after a change: what the plan serves is gone, and nothing is new."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from statemend.audit import registry
from statemend.audit.context import Context, Progress
from statemend.audit.engine import run as run_rules
from statemend.audit.finding import Finding
from statemend.audit.outcome import RuleResult, Status
from statemend.errors import Undetermined
from statemend.evidence.inventory import Home, take
from statemend.repair.plan import Kind, Plan, StepClass
from statemend.store.bundle import inspect
from statemend.store.connection import open_for_audit

#: Rules that tell of what lies ahead, and of nothing that is wrong: a session that is ended joins their list.
_AHEAD = frozenset({"EXP012"})


class Look(msgspec.Struct, frozen=True):
    """What an audit found, as a run keeps it."""

    findings: tuple[Finding, ...]
    rules: tuple[RuleResult, ...]

    @property
    def ids(self) -> set[str]:
        """The ids of the findings."""
        return {finding.id for finding in self.findings}

    @property
    def blind(self) -> set[str]:
        """The rules that could not run."""
        return {rule.id for rule in self.rules if rule.status is Status.COULD_NOT_RUN}

    def require_as_much(self, before: Look) -> None:
        """Raise ``Undetermined`` when a rule could not run that could ``before``: this look tells too
        little."""
        lost = [rule for rule in self.rules if rule.id in self.blind - before.blind]
        if lost:
            told = "; ".join(f"{rule.id} could not run any more: {rule.reason}" for rule in lost[:3])
            raise Undetermined(f"{told}{f'; {len(lost) - 3} others neither' if lost[3:] else ''}")

    def seen_before(self, earlier: Look) -> Look:
        """This look with what an ``earlier`` moment showed besides."""
        more = tuple(finding for finding in earlier.findings if finding.id not in self.ids)
        return Look((*self.findings, *more), self.rules)


class Judgement(msgspec.Struct, frozen=True):
    """How a change stands the second look. ``remaining`` findings were to be gone, ``new`` ones were not
    there, ``troubles`` say in words what else is wrong. ``revealed`` findings are about a session whose row
    or messages the plan made: what they tell was so before, and could not be seen. ``later`` ones came after
    a run that was verified already, and are about sessions that it did not touch."""

    remaining: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    revealed: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return not (self.remaining or self.new or self.troubles)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Everything that is wrong, one sentence each."""
        return (
            *(f"{finding} is still there" for finding in self.remaining),
            *(f"{finding} is new" for finding in self.new),
            *self.troubles,
        )


def look(plan: Plan, *, store: Path | None = None, now: float, progress: Progress | None = None) -> Look:
    """Audit the plan's store, or the copy of it at ``store``, with all that lies beside the plan's home, as
    thoroughly as for the plan."""
    path = store or Path(plan.store.path)
    home = Home(plan.home, str(path))
    bundle = inspect(path)
    with open_for_audit(path) as opened:
        context = Context(
            home=home,
            bundle=bundle,
            store=opened,
            inventory=take(home, _beside(plan), progress, store=opened, deep=plan.deep),
            now=now,
            deep=plan.deep,
            progress=progress,
        )
        findings, rules = run_rules(registry.all_rules(), context)
    return Look(findings, rules)


def judge(
    plan: Plan,
    before: Look,
    after: Look,
    *,
    store: Path | None = None,
    verified: bool = False,
    now: float,
    progress: Progress | None = None,
) -> Judgement:
    """Compare two looks at a store, and plan again. ``verified`` is whether the change stood this look once:
    then what life brought since, elsewhere in the store, is not held against it."""
    served = served_by(plan)
    made = _sessions_made(plan)
    ahead = {finding.id for finding in after.findings if finding.rule in _AHEAD}
    appeared = [finding for finding in after.findings if finding.id not in before.ids | ahead]
    revealed = {finding.id for finding in appeared if finding.subject.session in made}
    touched = {session for step in plan.selected() for session in step.sessions}
    later = {finding.id for finding in appeared if verified and finding.subject.session not in touched}
    troubles = [f"{rule} could not run any more" for rule in sorted(after.blind - before.blind)]
    troubles += [
        f"planning again would still {step}" for step in _safe_steps(plan, served, store, now, progress)
    ]
    return Judgement(
        remaining=tuple(sorted((after.ids & served) - _lessened(before, after))),
        new=tuple(sorted(after.ids - before.ids - ahead - revealed - later)),
        revealed=tuple(sorted(revealed)),
        later=tuple(sorted(later - revealed)),
        troubles=tuple(troubles),
    )


def _lessened(before: Look, after: Look) -> set[str]:
    """The findings of which what was asked for is done, and something else stays to be told: one about
    several sessions that is about fewer now, one about a session that was gone and is back."""
    known = {finding.id: finding for finding in before.findings}
    return {
        finding.id
        for finding in after.findings
        if finding.id in known and _sessions_gone(finding) < _sessions_gone(known[finding.id])
    }


def _sessions_gone(finding: Finding) -> int:
    """Of how many sessions a finding says that they are not in the store."""
    told = {fact.label: fact.value for fact in finding.evidence}
    if finding.subject.session is not None:
        return int(told.get("session is in the store") is False)
    number = told.get("sessions")
    return number if isinstance(number, int) else 0


def served_by(plan: Plan) -> set[str]:
    """The findings that the steps of the plan serve, choices included."""
    return {step.finding for step in plan.selected()}


def _sessions_made(plan: Plan) -> set[str]:
    """The sessions whose row, or messages, the plan makes."""
    made = (
        operation.key.get("id") if operation.table == "sessions" else operation.after.get("session_id")
        for step in plan.selected()
        for operation in step.operations
        if operation.kind is Kind.INSERT and operation.table in ("sessions", "messages")
    )
    return {session_id for session_id in made if isinstance(session_id, str)}


def _safe_steps(
    plan: Plan, served: set[str], store: Path | None, now: float, progress: Progress | None
) -> Iterable[str]:
    """The titles of the safe steps that a plan made now would hold for findings already served."""
    from statemend.repair.planner import make_plan  # the planner imports every recipe

    home = Home(plan.home, str(store or plan.store.path))
    again = make_plan(home, exports=_beside(plan), now=now, deep=plan.deep, progress=progress)
    return [
        f"serve {step.finding}: {step.title}"
        for step in again.steps
        if step.finding in served and step.step_class is StepClass.SAFE
    ]


def _beside(plan: Plan) -> Sequence[Path]:
    return [Path(each) for each in plan.exports]
