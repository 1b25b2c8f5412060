"""Gives a continuation that was cut off its parent again.

The parent of a session that begins with a compaction summary is set to the session that a compression ended
and that nothing continues. Nothing else is changed: the parent bears its end reason already, and the link is
all that is missing, so one link mends the cut continuation and the dead end.

It is done without asking when exactly one session fits on either side and the evidence decides: an undamaged
export, made when the link was there, names it, or at least two rows stand in both sessions and the time, the
title or the routing key agrees. Otherwise every way to link the sessions that fit each other is a choice. It
is also a choice where the continuation began before the end of its parent was written and the store is older
than 0.18: those releases do not take it for the continuation, and the upgrade to 0.17 would mark it as a
subagent run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from statemend.audit.facts import moment, words
from statemend.audit.finding import Finding, Verdict
from statemend.repair.foresight import Fault, families_linked, new_faults
from statemend.repair.handoffs import Handoffs, Pair, handoffs, matchings
from statemend.repair.marks import update_session
from statemend.repair.plan import Choice, Option, Source, Step, StepClass
from statemend.repair.recipe import Proposal, Recipe, RecipeContext, leave
from statemend.store.schema import Era

#: So many ways to link several sessions are listed; beyond that, one link at a time, and no more than
#: ``_MOST``.
_WAYS, _MOST = 24, 200


def propose(context: RecipeContext, finding: Finding) -> Iterator[Proposal]:
    """The link, the choice of links, or why there is none."""
    root = finding.subject.session or ""
    found = handoffs(context)
    together = found.together(root)
    if not together:
        yield leave(finding, _nothing_fits(finding))
        return
    yield _link(context, finding, found, together)


def _link(context: RecipeContext, finding: Finding, found: Handoffs, together: tuple[Pair, ...]) -> Proposal:
    root = finding.subject.session
    host = min(pair.root.id for pair in together)
    ways: list[tuple[Pair, ...]] = context.once(
        ("ways to link", host),
        lambda: list(islice(_ways(context, together), _MOST + 1)),
    )
    if not ways:
        return leave(finding, "every link would part the ways of resume and export; settle that first")
    if len(together) == 1 and together[0].strong and not _misread(context, together[0]):
        return _step(context, finding, together[0], StepClass.SAFE, 1)
    findings: Mapping[str | None, Finding] = context.once(
        "cut roots", lambda: {one.subject.session: one for one in context.of_rule(finding.rule)}
    )
    if root != host and host in findings:
        return leave(finding, f"decided together with {findings[host].id}: the same sessions fit")
    return _choice(context, {**findings, root: finding}, finding, ways, found)


def _ways(context: RecipeContext, together: tuple[Pair, ...]) -> Iterator[tuple[Pair, ...]]:
    """The ways to link the sessions of these pairs that make no fault, those of strong pairs first where each
    is a single link."""
    ways = matchings(together, _WAYS)
    if len(ways) > _MOST:
        ways.sort(key=lambda way: not all(pair.strong for pair in way))
    return (way for way in ways if not _new_faults(context, way))


def _nothing_fits(finding: Finding) -> str:
    if finding.verdict is Verdict.LEFTOVER:
        return f"lawful as it is: {finding.summary}"
    return "no session of this store fits as its parent"


def _new_faults(context: RecipeContext, way: tuple[Pair, ...]) -> set[Fault]:
    """What the lineage rules would say of the joined families that they do not say now."""
    return new_faults(context, *families_linked(context, {pair.root.id: pair.dead.id for pair in way}))


def _misread(context: RecipeContext, pair: Pair) -> bool:
    """Whether the store's own release would not take the link for a continuation."""
    return context.store.schema.era < Era.V18 and pair.early


def _step(context: RecipeContext, finding: Finding, pair: Pair, kind: StepClass, number: int) -> Step:
    parent, child = pair.dead.id, pair.root.id
    return RECIPE.step(
        finding,
        kind,
        number,
        title=f"Make {parent} the parent of {child}",
        why=(
            f"{parent} was ended by compression and nothing continues it; {child} begins with a summary and "
            "has no parent. The link mends both."
        ),
        operations=(update_session(context, child, {"parent_session_id": parent}),),
        sessions=(child,),
        sources=(
            Source(
                column="parent_session_id",
                origin="; ".join(pair.match.reasons),
                artifact=pair.export.path if pair.export else None,
                locator=f"session {child}" if pair.export else None,
                digest=pair.export.sha256 if pair.export else None,
            ),
        ),
    )


def _choice(
    context: RecipeContext,
    findings: Mapping[str | None, Finding],
    finding: Finding,
    ways: Sequence[tuple[Pair, ...]],
    found: Handoffs,
) -> Choice:
    options: list[Option] = []
    number = 0
    cut_short = f" (only the first {_MOST} links are listed)" if len(ways) > _MOST else ""
    ways = ways[:_MOST]
    for way in ways:
        steps = []
        for pair in way:
            number += 1
            served = findings.get(pair.root.id, finding)
            steps.append(_step(context, served, pair, StepClass.CHOICE, number))
        options.append(
            Option(
                id="; ".join(f"{pair.dead.id} > {pair.root.id}" for pair in way),
                title="; ".join(f"{pair.root.id} continues {pair.dead.id}" for pair in way),
                evidence=tuple(line for pair in way for line in _evidence(context, pair, found)),
                steps=tuple(steps),
            )
        )
    options.append(Option(id="leave", title="Leave the sessions as they are, unlinked"))
    roots = sorted({pair.root.id for way in ways for pair in way})
    return RECIPE.choice(
        finding,
        f"Which session is continued by {', by '.join(roots)}?" + cut_short,
        tuple(options),
    )


def _evidence(context: RecipeContext, pair: Pair, found: Handoffs) -> Iterator[str]:
    dead, root, link = pair.dead, pair.root, pair.match
    yield (
        f"{dead.id} ended {moment(dead.ended_at)}, {root.id} began {moment(root.started_at)} with a summary "
        f"stored {moment(root.summary_at)}"
    )
    yield f"titles: {words(dead.title) or 'none'} / {words(root.title) or 'none'}"
    yield from link.reasons
    yield f"{link.carried} of the first rows behind the summary stand among the last rows of {dead.id}"
    if pair.export is not None:
        damage = f" (damaged: {pair.export.damage})" if pair.export.damage else ""
        yield f"named by {pair.export.path}{damage}"
    rivals = len(found.of_root(root.id)) - 1, len(found.of_dead_end(dead.id)) - 1
    yield f"{rivals[0]} other parents fit {root.id}, {rivals[1]} other sessions fit {dead.id}"
    if _misread(context, pair):
        yield (
            "0.13 to 0.17 do not follow a child that began before its parent ended, and the upgrade to 0.17 "
            "would mark it as a subagent run"
        )


RECIPE = Recipe(name="relink", serves=("LIN009",), doc=__doc__ or "", propose=propose)
