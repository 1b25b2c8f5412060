"""Audit a home and make its report, in one step."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Unpack

from statemend.audit.context import Context
from statemend.audit.engine import audit, survey
from statemend.audit.finding import Finding
from statemend.audit.outcome import FailOn
from statemend.audit.request import Asked
from statemend.errors import StatemendError
from statemend.report import content
from statemend.report.build import Seen, build
from statemend.report.excerpt import Excerpt, take
from statemend.report.model import MessageText, Report


def produce(
    path: Path,
    *,
    profiles: bool = True,
    with_content: bool = False,
    fail_on: FailOn = FailOn.FAULT,
    live: bool = False,
    **asked: Unpack[Asked],
) -> Report:
    """The report of the home or store at ``path``: of all its stores, or without ``profiles`` of its own.
    ``with_content`` adds the texts of the messages that findings name, and of the first of each candidate.
    Everything else is as for ``survey``, and so are the errors."""
    reading = _Reading(with_content=with_content)
    if profiles:
        found = survey(path, live=live, observe=reading.take, **asked)
    else:
        found = (audit(path, live=live, observe=reading.take, **asked),)
    return build(
        [Seen(each, reading.excerpts.get(each.store.path)) for each in found],
        home=str(path) if os.path.isdir(path) else None,
        exports=map(str, asked.get("exports", ())),
        fail_on=fail_on,
        contents=reading.contents,
    )


class _Reading:
    """What the report shows of the stores themselves, read while the audit has them open, by their paths. A
    store that cannot be read, or whose tables are damaged, has none of it; the rules that could not run say
    why."""

    def __init__(self, *, with_content: bool) -> None:
        self.excerpts: dict[str, Excerpt] = {}
        self.contents: tuple[MessageText, ...] | None = () if with_content else None

    def take(self, context: Context, findings: Sequence[Finding]) -> None:
        if not context.readable:
            return
        context.report("writing the report")
        with suppress(StatemendError):
            if context.structure.untrusted.keys() & {"sessions", "messages"}:
                return
            excerpt = take(
                context.store,
                findings,
                context.computed_coverage,
                graph=context.graph,
                counted=context.census,
            )
            if self.contents is not None:
                self.contents += tuple(content.texts(context.store, findings))
            self.excerpts[context.store_label] = excerpt
