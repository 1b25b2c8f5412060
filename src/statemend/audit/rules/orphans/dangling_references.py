"""Something points at a session, or at a system prompt, that is not there.

What it means
A chat is routed to a session that is gone, or a Telegram topic is bound to one: then that is where the next
message goes. Or the account of a session's tokens outlived it, or a session names a system prompt that is
missing; nothing is sent anywhere by these.

How it happens
Up to 0.20 the route of a chat stays when its session is deleted; 0.22 removes it where its gateway is told of
the deletion. The other rows go with the session, but only where foreign keys are enforced: another program's
deletion leaves them, and so does a partial salvage.

How we know
Ids are compared, nothing is inferred. A session whose messages are still there is told of by
messages-without-session alone: once it is rebuilt, what points at it is right again. One that another store
of the home has is told of by route-to-another-store. Routes of other profiles are left out, because their
sessions are in other stores, and so are leases and locks, which every release leaves where a session is
deleted. Told apart is what Hermes does at the next message.
From 0.18 to 0.20 the gateway hands the missing session on: what it stores by itself in that chat fails until
an agent has made the row anew, under the id of the deleted session; 0.18 drops it silently, later releases
hold it in memory. 0.22 begins a new session. A binding wins over the route in every release: each message
ends the session in which the topic is talking, and goes to the missing one.

What to do
Drop the route or the binding: the next message of that chat begins a new session. The gateway also reads
sessions/sessions.json and takes from there what the store lacks, so while the gateway is stopped remove the
entry from that file as well. If the session is to be restored from an export, do that first: then its route
is right again.

When it is a false alarm
The store holds only a part of the sessions on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter

from statemend.audit.context import Context
from statemend.audit.facts import listed, rows
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.routes import BINDINGS, GONE, ROUTES, Way, ways_to_nothing
from statemend.audit.rule import READS_MESSAGES, READS_SESSIONS, Family, Level, Rule
from statemend.store.schema import Era

USAGE = f"""
    SELECT u.session_id, COUNT(*)
    FROM session_model_usage AS u
    WHERE u.session_id IS NOT NULL
      AND {GONE.format(id="u.session_id")}
    GROUP BY u.session_id
"""
#: A hash of 64 digits; older rows of 0.22 hold the names of the tools themselves.
PROMPTLESS = """
    SELECT s.id
    FROM sessions AS s
    WHERE (
            s.system_prompt_hash IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM system_prompts AS p WHERE p.hash = s.system_prompt_hash)
          )
       OR (
            length(s.tool_names) = 64
            AND s.tool_names NOT GLOB '*[^0-9a-f]*'
            AND NOT EXISTS (SELECT 1 FROM system_prompts AS p WHERE p.hash = s.tool_names)
          )
"""


def check(context: Context) -> Iterator[Finding]:
    for session_id, led in groupby(ways_to_nothing(context), key=attrgetter("session_id")):
        yield _led_astray(context, session_id, list(led))
    yield from _outlived(context)
    if context.store.table_exists("system_prompts"):
        yield from _promptless(context)


def _led_astray(context: Context, session_id: str, ways: list[Way]) -> Finding:
    routes = [way.name for way in ways if way.table == ROUTES]
    bindings = [way.name for way in ways if way.table == BINDINGS]
    heals = context.store.schema.era >= Era.V22
    if bindings:
        verdict, severity = Verdict.FAULT, Severity.MEDIUM
        summary = (
            "A topic is bound to this session, which is gone: each message ends the topic's own session."
        )
    elif heals:
        verdict, severity = Verdict.LEFTOVER, Severity.INFO
        summary = "A chat is routed to this session, which is gone: its next message begins a new one."
    else:
        verdict, severity = Verdict.RISK, Severity.MEDIUM
        summary = "A chat is routed to this session, which is gone: its next messages go there."
    return RULE.finding(
        context,
        session=session_id,
        key="routed",
        verdict=verdict,
        severity=severity,
        summary=summary,
        evidence=[
            ("routes", len(routes)),
            ("keys of the chats", listed(routes) or None),
            ("topic bindings", len(bindings)),
            ("topics", listed(bindings) or None),
            ("this release begins a new session by itself", heals and not bindings),
        ],
        remedy="Drop them, unless the session is to be restored first; remove the entry from "
        "sessions/sessions.json as well, while the gateway is stopped.",
        command=context.command("plan", context.home.root, output="plan.json"),
    )


def _outlived(context: Context) -> Iterator[Finding]:
    """Accounts of sessions that are gone; they lead nobody anywhere."""
    usage: dict[str, int] = dict(context.store.rows(USAGE))
    if usage:
        gone = "a session" if len(usage) == 1 else f"{len(usage):,} sessions"
        yield RULE.finding(
            context,
            key="outlived",
            verdict=Verdict.LEFTOVER,
            severity=Severity.INFO,
            summary=f"{rows(sum(usage.values()))} of token usage outlived {gone}.",
            evidence=[
                ("rows of token usage", sum(usage.values())),
                ("sessions", len(usage)),
                ("ids", listed(sorted(map(str, usage)))),
            ],
            remedy="Leave them: no release counts them for another session, and they are the last account of "
            "one.",
        )


def _promptless(context: Context) -> Iterator[Finding]:
    sessions = sorted(str(session_id) for (session_id,) in context.store.rows(PROMPTLESS))
    if sessions:
        named = "1 session names" if len(sessions) == 1 else f"{len(sessions):,} sessions name"
        yield RULE.finding(
            context,
            key="prompts",
            verdict=Verdict.FAULT,
            severity=Severity.LOW,
            summary=f"{named} a system prompt or tools that are not there.",
            evidence=[("sessions", len(sessions)), ("ids", listed(sessions))],
            remedy="Look for the prompt in exports and snapshots: its hash tells whether it is the one. When "
            "such a session is resumed, Hermes writes a new prompt.",
            planned=False,
        )


RULE = Rule(
    id="ORP006",
    slug="dangling-references",
    family=Family.ORPHANS,
    level=Level.REFERENCES,
    severity=Severity.MEDIUM,
    verdict=Verdict.RISK,
    doc=__doc__,
    reads=(READS_SESSIONS, READS_MESSAGES),
    check=check,
    recipe="routing",
)
