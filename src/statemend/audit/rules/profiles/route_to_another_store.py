"""A chat of this profile is routed to a session that is in the store of another.

What it means
The gateway looks for the session of a chat in the store of the chat's profile, and it is not there. What the
chat had before goes on existing, in a store that this gateway does not read.

How it happens
Up to 0.16 a clone of a whole profile took the file of its routes with it, and the routes stay when the clone
begins with a store of its own. A session that was moved to another store by hand leaves its route behind. The
gateways of several profiles before 0.22 copied routes to the store of whichever profile they worked for
(#66887).

How we know
Ids are compared: the routes and the bindings of topics in the store, and the entries of
sessions/sessions.json beside it, with the sessions of all stores of the home. Only chats whose key is of this
profile are looked at; the gateway of a home keeps the routes of the other profiles too, and their sessions
are in their stores. A session that no store has is told of by dangling-references and known-but-absent. Up to
0.20 the gateway hands the missing session on, and an agent then makes its row anew under the same id: after
that one id is in two stores. 0.22 begins a new session instead.

What to do
Decide where the conversation belongs. If it is this profile's, have the session moved here
(`hermes sessions repair-profiles` of 0.22 where its key says so). If it is the other's, drop the route while
the gateway is stopped, in the store and in the file: the gateway takes from the file what the store lacks.

When it is a false alarm
A home whose gateway was moved away from this profile for good: nobody reads the route any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from statemend.audit.context import Context
from statemend.audit.eras import written_by
from statemend.audit.facts import listed
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.known import KNOWN, is_known
from statemend.audit.routes import BINDINGS, ROUTES, Way, ways_elsewhere, ways_to_nothing
from statemend.audit.rule import READS_MESSAGES, READS_SESSIONS, Family, Level, Rule
from statemend.evidence.owed_replies import is_own_chat
from statemend.formats import routing_file
from statemend.formats.artifact import Kind
from statemend.store.schema import Era


def check(context: Context) -> Iterator[Finding]:
    """One finding for each session."""
    ways: dict[str, list[Way]] = {}
    for way in ways_elsewhere(context):
        ways.setdefault(way.session_id, []).append(way)
    filed: dict[str, list[str]] = {}
    for key, session_id in _filed(context):
        filed.setdefault(session_id, []).append(key)
    for session_id in sorted({*ways, *filed}):
        yield _finding(context, session_id, ways.get(session_id, []), filed.get(session_id, []))
    if context.company is not None and ways_to_nothing(context):
        context.company.require_all()


def _filed(context: Context) -> Iterator[routing_file.RoutingEntry]:
    """The entries of the file of routes beside this store that lead to a session elsewhere."""
    root = Path(context.home.root)
    for artifact in context.inventory.artifacts:
        if artifact.kind is Kind.ROUTING and Path(artifact.path).is_relative_to(root):
            for entry in routing_file.entries(Path(artifact.path)):
                lacks = is_own_chat(root, entry.session_key) and not is_known(context.store, entry.session_id)
                if lacks and context.elsewhere(entry.session_id):
                    yield entry


def _finding(context: Context, session_id: str, ways: list[Way], filed: list[str]) -> Finding:
    members = context.elsewhere(session_id)
    heals = context.store.schema.era >= Era.V22
    routes = [way.name for way in ways if way.table == ROUTES]
    bindings = [way.name for way in ways if way.table == BINDINGS]
    return RULE.finding(
        context,
        session=session_id,
        verdict=Verdict.LEFTOVER if heals and not bindings else Verdict.RISK,
        severity=Severity.INFO if heals and not bindings else Severity.MEDIUM,
        summary="A chat of this profile is routed to a session that is in another profile's store"
        + (": its next message begins a new one." if heals and not bindings else ": it is made anew here."),
        evidence=(
            ("stores that have the session", listed(member.path for member in members)),
            ("routes in the store", listed(routes) or None),
            ("topic bindings in the store", listed(bindings) or None),
            ("keys in sessions.json", listed(filed) or None),
            ("profile of this store", context.home.profile),
            written_by(context.store),
        ),
        remedy="Decide in which store the conversation belongs, before the next message of that chat.",
        command=context.command("show", members[0].path, session_id),
    )


RULE = Rule(
    id="PRO005",
    slug="route-to-another-store",
    family=Family.PROFILES,
    level=Level.EXPORTS,
    severity=Severity.MEDIUM,
    verdict=Verdict.RISK,
    doc=__doc__ or "",
    reads=(KNOWN, READS_SESSIONS, READS_MESSAGES),
    check=check,
    needs_company=True,
)
