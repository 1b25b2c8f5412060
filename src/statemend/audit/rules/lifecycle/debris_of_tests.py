"""Tests of a program left routes of theirs in this store.

What it means
A run of automatic tests wrote to this store instead of one of its own. Its routes lead nowhere that matters,
but the sessions that it made stand among those of people.

How it happens
A test or a trial of Hermes, of any release from 0.18 on, ran while the environment named this home
(#82770: 700 rows). The route of a chat names the folder of sessions that it belongs to, and the tests have a
temporary one.

How we know
The scope of a route is a folder that pytest makes for one test (`pytest-of-NAME/pytest-NUMBER`). The route
says which session it leads to. What else such a run wrote bears no mark, and nothing is guessed of it.

What to do
Nothing, or delete the sessions that are named here in Hermes, once you have looked at each. Nothing is
deleted for it here.

When it is a false alarm
A home that lies below such a folder because it belongs to a test: there the rows are where they should be.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from statemend.audit.context import Context
from statemend.audit.facts import listed, moment, words
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import Family, Level, Rule

ROUTES = """
    SELECT scope, CASE WHEN json_valid(entry_json) THEN json_extract(entry_json, '$.session_id') END,
           updated_at
    FROM gateway_routing
    WHERE instr(scope, 'pytest-of-') > 0
    ORDER BY scope, session_key
"""
_OF_A_TEST = re.compile(r"(^|[/\\])pytest-of-[^/\\]+[/\\]pytest-\d+[/\\]")


def is_of_a_test(folder: str) -> bool:
    """Whether a folder is one that pytest makes for a test, or lies in one."""
    return _OF_A_TEST.search(f"{folder}/") is not None


def check(context: Context) -> Iterator[Finding]:
    """One finding for all such routes; none in a home that is itself a test's."""
    if is_of_a_test(os.path.realpath(context.home.root)):
        return
    routes = [row for row in context.store.rows(ROUTES) if is_of_a_test(str(row[0]))]
    if not routes:
        return
    sessions = sorted({str(session) for _, session, _ in routes if session is not None})
    times = [at for _, _, at in routes if isinstance(at, int | float)]
    yield RULE.finding(
        context,
        summary=f"{len(routes):,} route{'s' if len(routes) > 1 else ''} of automatic tests "
        f"{'are' if len(routes) > 1 else 'is'} in the store.",
        evidence=(
            ("routes", len(routes)),
            ("folders of the tests", listed(sorted({str(words(str(scope))) for scope, _, _ in routes}))),
            ("sessions that they lead to", len(sessions)),
            ("which", listed(sessions) or None),
            ("last written", moment(max(times)) if times else None),
        ),
        remedy="Nothing, or delete the sessions named here in Hermes once you have looked at each.",
    )


RULE = Rule(
    id="LIF005",
    slug="debris-of-tests",
    family=Family.LIFECYCLE,
    level=Level.HOUSEKEEPING,
    severity=Severity.LOW,
    verdict=Verdict.LEFTOVER,
    doc=__doc__ or "",
    check=check,
    reads=(ROUTES,),
)
