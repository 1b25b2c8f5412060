"""Links the segments of one conversation that no release ever linked.

Each segment becomes the parent of the next and is ended by compression, at the time that it bears or where
the next began: the form that every release since 0.13 writes. Resume of the first then comes to the last, and
an export holds all of them. No message changes and no title.

People number titles too, so it is always a choice. It is not offered where a segment was talked in after the
next had begun, or where the links would make another fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from statemend.audit.candidates import lines
from statemend.audit.facts import is_time
from statemend.audit.finding import Finding
from statemend.audit.handoff import cut_roots
from statemend.audit.rules.lineage.unlinked_chain import chains
from statemend.audit.unlinked import Link
from statemend.repair.cells import SqlValue
from statemend.repair.foresight import families_chained, new_faults, told_faults, walks
from statemend.repair.marks import update_session
from statemend.repair.plan import Option, Source, Step, StepClass
from statemend.repair.recipe import Proposal, Recipe, RecipeContext, leave

#: Turns this much (seconds) after the next segment began are not written together with it.
_TOGETHER = 60.0
#: Of so many segments the evidence tells.
_TOLD = 8

Changes = Mapping[str, Mapping[str, SqlValue]]


def propose(context: RecipeContext, finding: Finding) -> Iterator[Proposal]:
    """The choice whether to link them, or why there is none."""
    found: Mapping[str, Sequence[Link]] = context.once(
        "unlinked chains",
        lambda: {
            chain[0].before.id: chain for chain in chains(context.audit, list(cut_roots(context.audit)))
        },
    )
    chain = found.get(finding.subject.session or "", ())
    if late := next((link for link in chain if _talked_in_later(context, link)), None):
        yield leave(
            finding, f"{late.before.id} was talked in after {late.root.id} had begun: read both first"
        )
        return
    changes = _changes(chain)
    before, after = families_chained(context, changes)
    if clashes := new_faults(context, before, after):
        yield leave(
            finding, f"linked, they would make another fault: {told_faults(clashes)}; settle that first"
        )
        return
    step = _step(context, finding, chain, changes)
    told = [chain[0].before.id, *(link.root.id for link in chain)]
    yield RECIPE.choice(
        finding,
        f"Are these {len(told)} sessions one conversation?",
        (
            Option(
                id="link",
                title=step.title,
                evidence=(
                    *(
                        f"{link.before.id} > {link.root.id}: "
                        + ", ".join(("the next number of its title", *link.reasons))
                        for link in chain[:_TOLD]
                    ),
                    *(
                        f"{each}: {line}"
                        for each in told[:_TOLD]
                        for line in lines(context.audit, each, None)
                    ),
                    *walks(after, told[0]),
                ),
                steps=(step,),
            ),
            Option(id="leave", title="Leave them as conversations of their own"),
        ),
    )


def _talked_in_later(context: RecipeContext, link: Link) -> bool:
    counts = context.census.get(link.before.id)
    last = counts.last_at if counts else None
    return last is not None and last > link.root.started_at + _TOGETHER


def _changes(chain: Sequence[Link]) -> Changes:
    """The columns that each session gets."""
    changes: dict[str, dict[str, SqlValue]] = {}
    for link in chain:
        ended, began = link.before.ended_at, link.root.started_at
        own = isinstance(ended, float) and is_time(ended) and ended <= began
        end: SqlValue = ended if own and isinstance(ended, float) else began
        changes.setdefault(link.before.id, {}).update(ended_at=end, end_reason="compression")
        changes.setdefault(link.root.id, {}).update(parent_session_id=link.before.id)
    return changes


def _step(context: RecipeContext, finding: Finding, chain: Sequence[Link], changes: Changes) -> Step:
    first, last = chain[0].before.id, chain[-1].root.id
    return RECIPE.step(
        finding,
        StepClass.CHOICE,
        title=f"Link {len(chain) + 1} sessions, from {first} to {last}",
        why=finding.summary,
        operations=tuple(update_session(context, each, after) for each, after in changes.items()),
        sessions=tuple(changes),
        sources=(
            Source(column="parent_session_id", origin="the numbers of their titles, and where each begins"),
            Source(column="ended_at", origin="its own end, or where the next one began"),
            Source(column="end_reason", origin="what every release since 0.13 writes at such an end"),
        ),
    )


RECIPE = Recipe(name="link-chain", serves=("LIN013",), doc=__doc__ or "", propose=propose)
