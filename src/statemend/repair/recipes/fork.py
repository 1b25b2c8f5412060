"""Makes one session the only continuation of another, and keeps its rivals as branches.

A rival is marked as a branch of the parent (``_branched_from`` in its ``model_config``): every release from
0.18 on then leaves it out when it looks for the continuation and when it exports the chain, lists it as a
conversation of its own, and keeps it when the parent is deleted. Where resume would go on from it and export
would not, its own continuations get the same mark. No row is lost, and clearing the marks undoes it.
The chosen one loses marks that it inherited from an earlier segment where these alone would stop resume. A
rival that is probably a subagent's run from before there were marks can instead get the mark that 0.17 and
newer write; then it is hidden, and deleted together with the parent, so that is an option of its own.

Which one is right, the store does not say: always a choice. An option that would leave another fork open on
its way decides that one too. Where resume and export part at a session that several continue, the choice for
that session settles both findings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product

import msgspec

from statemend.audit.candidates import lines, times
from statemend.audit.finding import Finding
from statemend.repair.foresight import FORK, PARTING, as_branch, family_with, faults, parting_point, walks
from statemend.repair.marks import DELEGATE, FIELDS, index_after, remark
from statemend.repair.plan import Operation, Option, Source, StepClass
from statemend.repair.recipe import Proposal, Recipe, RecipeContext, leave
from statemend.store.lineage import Graph, Node
from statemend.store.schema import Era

#: An option decides at most so many forks, and at most so many options are listed.
_DEPTH, _MOST = 4, 200


class Decision(msgspec.Struct, frozen=True):
    """Which session continues ``point`` (``None``: none of them), which rivals become branches and which runs
    of subagents, whether the continuations of the branches are marked too, and the inherited marks that the
    chosen one loses."""

    point: str
    chosen: str | None
    branches: tuple[str, ...]
    runs: tuple[str, ...]
    chained: bool
    cleared: tuple[str, ...]

    @property
    def name(self) -> str:
        """What the operator writes for it."""
        return f"{'hide-runs' if self.runs else 'continue'}:{self.chosen or 'none'}"

    @property
    def title(self) -> str:
        """What becomes of each session, in clauses."""
        parts = [f"{self.chosen or 'none of them'} continues {self.point}"]
        parts += [f"{', '.join(self.branches)} become branches"] * bool(self.branches)
        parts += [f"{', '.join(self.runs)} become subagent runs"] * bool(self.runs)
        return ", ".join(parts)


Marks = dict[str, dict[str, str | None]]


def propose(context: RecipeContext, finding: Finding) -> Iterator[Proposal]:
    """The choice among the candidates, or where else it is made."""
    about = finding.subject.session or ""
    point = about if finding.rule == FORK else parting_point(context.graph, about)
    fork = next((one for one in context.of_rule(FORK) if one.subject.session == point), None)
    if finding.rule == PARTING and fork is not None:
        reason = f"settled by the choice for {fork.id}: the walks part at that fork"
        yield leave(finding, reason)
        return
    options = list(islice(_options(context, finding, point), _MOST + 1))
    if not options:
        yield leave(finding, _unsettled(context.graph, point))
        return
    yield RECIPE.choice(
        finding,
        f"Which session continues {point}?" + _cut_short(options),
        (*options[:_MOST], Option(id="leave", title="Leave them as they are")),
    )


def _cut_short(options: list[Option]) -> str:
    return f" (only the first {_MOST} ways are listed)" if len(options) > _MOST else ""


def _unsettled(graph: Graph, point: str) -> str:
    node = graph.nodes.get(point)
    if node is not None and node.branched_from is not None:
        return (
            f"{point} is itself a branch, and export takes a branch for one segment, whatever marks its "
            "continuation bears; export its segments by their own ids"
        )
    return "no marks on the sessions in question would settle it without another fault"


def _options(context: RecipeContext, finding: Finding, point: str) -> Iterator[Option]:
    before = faults(context, family_with(context, point, {}))
    target = (finding.rule, finding.subject.session or "")
    ways = _settle(context, point, {}, (), before, target)
    for number, (marks, decisions) in enumerate(ways, 1):
        title = "; ".join(one.title for one in decisions)
        step = RECIPE.step(
            finding,
            StepClass.CHOICE,
            number,
            title=title,
            why=f"Several sessions could be taken for the continuation of {point}; the others get a mark.",
            operations=tuple(_operation(context, session_id, marks[session_id]) for session_id in marks),
            reindex=index_after(context, [run for one in decisions for run in one.runs]),
            sessions=tuple(marks),
            sources=(Source(column="model_config", origin="decided by the operator"),),
        )
        yield Option(
            id=" ".join(one.name for one in decisions),
            title=step.title,
            evidence=tuple(_evidence(context, point, marks, decisions)),
            steps=(step,),
        )


def _operation(context: RecipeContext, session_id: str, marks: Mapping[str, str | None]) -> Operation:
    """The update of one session, which is the same in many options."""
    wanted = ("remark", session_id, tuple(marks.items()))
    operation: Operation = context.once(wanted, lambda: remark(context, session_id, marks))
    return operation


def _settle(
    context: RecipeContext,
    point: str,
    marks: Marks,
    decisions: tuple[Decision, ...],
    before: set[tuple[str, str]],
    target: tuple[str, str],
) -> Iterator[tuple[Marks, tuple[Decision, ...]]]:
    """Every way to settle ``point``, and what then still parts on the way, such that ``target`` is gone and
    nothing is there that was not there ``before``."""
    settled: set[str] = set()
    for decision in _decisions(family_with(context, point, marks), point):
        if decision.name in settled:
            continue
        both = (*decisions, decision)
        merged = _merge(marks, _marks_of(family_with(context, point, marks), decision))
        family = family_with(context, point, merged)
        expected = [] if decision.chosen is None else [decision.chosen]
        if [child.id for child in family.continuations(point)] != expected:
            continue
        then = faults(context, family)
        open_ = sorted((then - before) | (then & {target}))
        if not open_:
            settled.add(decision.name)
            yield merged, both
            continue
        rule, session = open_[0]
        further = session if rule == FORK else parting_point(family, session)
        if rule in (FORK, PARTING) and len(both) < _DEPTH and all(further != one.point for one in both):
            for way in _settle(context, further, merged, both, before, target):
                settled.add(decision.name)
                yield way


def _decisions(family: Graph, point: str) -> Iterator[Decision]:
    among = rivals(family, point)
    qualified = {child.id for child in family.continuations(point)}
    for chosen in (*among, *([] if qualified else [None])):
        others = [child.id for child in among if chosen is None or child.id != chosen.id]
        runs = tuple(child for child in others if child not in qualified)
        inherited = tuple(key for key in FIELDS if chosen is not None and getattr(chosen, FIELDS[key]))
        for hidden in ((), runs) if runs else ((),):
            # With its inherited marks only where clearing them will not do: the continuations of a branch
            # bear the branch's mark, and resume is to stop there as export does.
            branches = tuple(child for child in others if child not in hidden)
            chains = (False, True) if any(map(family.continuations, branches)) else (False,)
            for cleared, chained in product(dict.fromkeys((inherited, ())), chains):
                yield Decision(
                    point=point,
                    chosen=chosen.id if chosen else None,
                    branches=branches,
                    runs=hidden,
                    chained=chained,
                    cleared=cleared,
                )


def rivals(family: Graph, parent: str) -> list[Node]:
    """The children among which the walks of 0.18 and newer choose: no tool run, and not marked as a branch,
    delegate or reset of this very session. Those that qualify come first, then the oldest."""
    qualified = {child.id for child in family.continuations(parent)}
    free = [
        child
        for child in family.children(parent)
        if child.source != "tool"
        and parent not in (child.branched_from, child.delegate_from, child.reset_from)
    ]
    return sorted(free, key=lambda child: child.id not in qualified)


def _marks_of(family: Graph, decision: Decision) -> Marks:
    marks: Marks = {run: {DELEGATE: decision.point} for run in decision.runs}
    for branch in decision.branches:
        marks |= as_branch(family, branch, decision.point, chained=decision.chained)
    if decision.chosen is not None and decision.cleared:
        marks[decision.chosen] = dict.fromkeys(decision.cleared)
    return marks


def _merge(
    one: Mapping[str, Mapping[str, str | None]], other: Mapping[str, Mapping[str, str | None]]
) -> Marks:
    return {
        sid: {**one.get(sid, {}), **other.get(sid, {})} for sid in (*one, *(s for s in other if s not in one))
    }


def _evidence(
    context: RecipeContext, point: str, marks: Marks, decisions: tuple[Decision, ...]
) -> Iterator[str]:
    after = family_with(context, point, marks)
    for decision in decisions:
        named = [*([decision.chosen] if decision.chosen else []), *decision.branches, *decision.runs]
        for session_id in named:
            edge = context.graph.edge(session_id)
            told = ", ".join(edge.evidence) if edge else "no link"
            yield f"{session_id}: {times(context.audit, context.graph.nodes[session_id])}; {told}"
        if decision.chosen is not None:
            yield from _known_of(context, decision.chosen, decision.point)
        if decision.cleared:
            marks_gone = ", ".join(decision.cleared)
            yield f"marks of {decision.chosen} that name another session are cleared: {marks_gone}"
        if decision.runs:
            yield f"subagent runs are hidden, and deleted together with {decision.point}"
    decided = {each for one in decisions for each in (one.chosen, *one.branches, *one.runs)}
    segments = [session_id for session_id in marks if session_id not in decided]
    if segments:
        yield f"what continues the branches is marked too, and listed one by one: {', '.join(segments)}"
    yield from walks(after, point)
    own = context.store.schema.era
    if own < Era.V18:
        tip = after.resume_tip(point, own)
        yield f"releases before 0.18 heed no mark: they resume {tip} until the store is upgraded"


def _known_of(context: RecipeContext, chosen: str, point: str) -> Sequence[str]:
    """What is known of the chosen session beside its times, which is the same in many options."""
    found: Sequence[str] = context.once(
        ("known of", chosen, point),
        lambda: [f"{chosen}: {line}" for line in islice(lines(context.audit, chosen, point), 1, None)],
    )
    return found


RECIPE = Recipe(name="fork", serves=(FORK, PARTING), doc=__doc__ or "", propose=propose)
