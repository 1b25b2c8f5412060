"""``choose``: the operator's answers to what evidence does not decide."""

from __future__ import annotations

import msgspec

from statemend.playbook import choices
from statemend.playbook.env import Env, NoAnswer, Outcome
from statemend.playbook.model import Answer, Choose
from statemend.repair import bounds
from statemend.repair.plan import dump
from statemend.report.json import dump as json_dump
from statemend.report.text import count
from statemend.store import durable

TEMPLATE = "choices.yaml"


def run(step: Choose, env: Env) -> Outcome:
    """Passes when every choice has an answer. The choices file goes before the playbook, and that before the
    terminal."""
    plan = bounds.read(env.plan(step.plan))
    given = {answer.choice for answer in env.answers}
    answers = [*env.answers, *(answer for answer in step.answers if answer.choice not in given)]
    matched = choices.match(plan, answers)
    asked = []
    for choice in matched.unanswered:
        option = env.operator.choose(choice)
        if option is None:
            break
        asked.append(Answer(choice=choice.id, option=option, why="answered at the terminal"))
    else:
        if asked:
            matched = choices.match(matched.plan, asked)
        durable.write_new(env.place / "plan.json", dump(matched.plan))
        decided = [msgspec.to_builtins(answer) for answer in (*answers, *asked)]
        durable.write_new(env.place / "decided.json", json_dump(decided).encode())
        chosen = sum(choice.chosen is not None for choice in matched.plan.choices)
        skipped = f", {len(matched.skipped)} left out on purpose" if matched.skipped else ""
        told = f"{count(chosen, 'choice')} answered{skipped}"
        return Outcome(
            summary=told if plan.choices else "evidence decides everything, no choice is open",
            facts={"chosen": chosen, "skipped": len(matched.skipped)},
        )
    file = env.place / TEMPLATE
    durable.write_new(file, choices.template(matched.plan).encode())
    told = "" if env.dry else f": fill in a copy of {file} and run it again with --choices COPY"
    raise NoAnswer(f"{count(len(matched.unanswered), 'choice')} without an answer{told}")
