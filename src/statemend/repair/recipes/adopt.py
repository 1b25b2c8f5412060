"""Gives a subagent's run the parent that asked for it, and the mark of a run.

Parent and ``_delegate_from`` are filled in, as 0.18 to 0.20 do by themselves when they make such a row a
second time. The run is hidden from lists then, and deleted together with its parent; no message changes.

More than one session may hold the call that asked for it, because a compression copies it, and hiding is not
undone by looking: always a choice, with one option for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.candidates import lines
from statemend.audit.facts import moment
from statemend.audit.finding import Finding, Verdict
from statemend.audit.rescued import Caller, bare_runs, callers
from statemend.repair.marks import DELEGATE, index_after, remark
from statemend.repair.plan import Option, Source, StepClass
from statemend.repair.recipe import Proposal, Recipe, RecipeContext, leave


def propose(context: RecipeContext, finding: Finding) -> Iterator[Proposal]:
    """The choice among the sessions that asked for the run, or why there is none."""
    run = finding.subject.session or ""
    if finding.verdict is not Verdict.FAULT:
        yield leave(finding, f"nothing here says who asked for it: {finding.remedy.text}")
        return
    asked = context.once("callers of runs", lambda: callers(context.audit, list(bare_runs(context.audit))))
    possible = [caller for caller in asked.get(run, ()) if not context.graph.is_above(run, caller.id)]
    options = [_option(context, finding, run, caller, n) for n, caller in enumerate(possible, 1)]
    if not options:
        yield leave(finding, "only sessions that come from it asked for it")
        return
    yield RECIPE.choice(
        finding,
        f"Which session is {run} a subagent's run of?",
        (*options, Option(id="leave", title="Leave it among the conversations")),
    )


def _option(context: RecipeContext, finding: Finding, run: str, caller: Caller, number: int) -> Option:
    step = RECIPE.step(
        finding,
        StepClass.CHOICE,
        number,
        title=f"Make {run} a subagent's run of {caller.id}",
        why=finding.summary,
        operations=(remark(context, run, {DELEGATE: caller.id}, also={"parent_session_id": caller.id}),),
        reindex=index_after(context, [run]),
        sessions=(run,),
        sources=(
            Source(
                column="parent_session_id, model_config",
                origin=f"a call of delegate_task in {caller.id} that asks for exactly its first message",
            ),
        ),
    )
    return Option(
        id=f"run-of:{caller.id}",
        title=step.title,
        evidence=(
            f"{caller.id} asked for it in a row stored {moment(caller.at)}",
            *lines(context.audit, caller.id, None),
            f"then no list shows {run}, and deleting {caller.id} takes it along (0.17 and newer)",
        ),
        steps=(step,),
    )


RECIPE = Recipe(name="adopt", serves=("LIN011",), doc=__doc__ or "", propose=propose)
