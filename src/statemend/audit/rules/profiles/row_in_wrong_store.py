"""Sessions of one profile lie in the store of another.

What it means
The key of the chat names a profile, and the session is not in that profile's store. Which store is asked for
a chat depends on the release. 0.22 asks that of the profile alone: there the chat has no history, and its
next message begins a new session. Up to 0.20 a gateway of several profiles keeps all their chats in the store
of the home that it was started in, and finds them there; what breaks is the upgrade.

How it happens
By the gateways of several profiles up to 0.20, as told above. By programs that held a store open while they
worked for another profile. By renaming a profile before 0.22, which leaves the old name in the keys. By
moving or copying a store by hand.

How we know
The key of a gateway's chat begins with agent:NAME:, and the place of the store says whose it is. Sessions
that the profile's own store has too are left to one-id-in-two-stores. A name that no profile of this home has
may be that of a renamed or a deleted one.
agent:main: is the default profile's in a key that a gateway of several profiles made, and any profile's in
one that a gateway of that profile alone made. In a profile's own store the row cannot say which it is. It is
taken for its own where its label names this profile, or where this store has the route of that chat, or where
no store of this home shows that a gateway of several profiles ever ran; otherwise it is undecidable, and the
routes of the home's own store are named as evidence.

What to do
Do not delete them: they are the only copy. `hermes sessions repair-profiles` of 0.22 moves what a key
decides; before that, stop every gateway and copy the folder. For agent:main: in a profile's store ask who
answers in the chat: if it is this profile, the key wants its name (repair-profiles --legacy-main rekey), if
it is the default one, the session belongs into the home's own store (--legacy-main move).

When it is a false alarm
A home that never runs 0.22, and whose one gateway serves all profiles: it finds them where they are. That is
why it is a risk there and no fault.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.context import Context
from statemend.audit.eras import written_by
from statemend.audit.facts import listed, words
from statemend.audit.finding import Finding, Severity, Value, Verdict
from statemend.audit.known import KNOWN
from statemend.audit.ownership import KEYED, MAIN, Keyed, exists, keyed, served_together
from statemend.audit.rule import READS_MESSAGES, Family, Level, Rule
from statemend.evidence.inventory import DEFAULT
from statemend.store.connection import Store
from statemend.store.schema import Era

ROUTED = "SELECT 1 FROM gateway_routing WHERE session_key = ? LIMIT 1"
#: Whether a route leads to a session, and is that of its chat.
ROUTE_TO = """
    SELECT 1 FROM gateway_routing
    WHERE session_key = ?
      AND CASE WHEN json_valid(entry_json) THEN json_extract(entry_json, '$.session_id') END = ?
    LIMIT 1
"""


def check(context: Context) -> Iterator[Finding]:
    """One finding for each profile whose sessions are here."""
    owner = context.home.profile
    foreign: dict[str, list[Keyed]] = {}
    unclear: list[Keyed] = []
    for session in keyed(context.store):
        if session.profile == owner:
            continue
        if session.namespace == MAIN:
            unclear.append(session)
        elif not _is_in_its_store(context, session):
            foreign.setdefault(session.profile, []).append(session)
    for profile, sessions in sorted(foreign.items()):
        yield _foreign(context, profile, sessions)
    left = [session for session in unclear if not _is_own(context, session)]
    if left and served_together(context):
        yield _unclear(context, left)
    if context.company is not None and (foreign or left):
        context.company.require_all()


def _is_in_its_store(context: Context, session: Keyed) -> bool:
    return any(member.profile == session.profile for member in context.elsewhere(session.session_id))


def _is_own(context: Context, session: Keyed) -> bool:
    """Whether something says that a chat keyed as the default profile's is this profile's own."""
    if session.label == context.home.profile:
        return True
    return context.store.value(ROUTED, (session.key,)) is not None and not _root_leads_to(context, [session])


def _root_leads_to(context: Context, sessions: list[Keyed]) -> int:
    """To how many of the sessions a route of the home's own store leads."""

    def led_to(store: Store) -> int:
        return sum(store.value(ROUTE_TO, (each.key, each.session_id)) is not None for each in sessions)

    company = context.company
    root = company.of_profile(DEFAULT) if company else None
    return 0 if company is None or root is None else company.ask(root, led_to, otherwise=0)


def _foreign(context: Context, profile: str, sessions: list[Keyed]) -> Finding:
    known = exists(context.home, profile)
    asked_for = context.store.schema.era >= Era.V22
    if not known:
        verdict, remedy = (
            Verdict.UNDECIDABLE,
            "Find out whether that profile was renamed, deleted or never here.",
        )
    elif asked_for:
        verdict, remedy = Verdict.FAULT, "Have Hermes move them to their profile's store, and delete none."
    else:
        verdict, remedy = (
            Verdict.RISK,
            "Before an upgrade to 0.22, plan to have them moved to their profile's store.",
        )
    return RULE.finding(
        context,
        key=f"of {profile}",
        verdict=verdict,
        summary=f"{_sessions(len(sessions))} in this store though the keys of the chats name profile "
        f"{words(profile, 64)}{'' if known else ', which this home does not have'}.",
        evidence=(
            *_told(context, sessions),
            ("profile by the keys", words(profile, 64)),
            written_by(context.store),
        ),
        remedy=remedy,
        command=context.command("show", context.store_label, sessions[0].session_id),
    )


def _unclear(context: Context, sessions: list[Keyed]) -> Finding:
    return RULE.finding(
        context,
        key="main",
        verdict=Verdict.UNDECIDABLE,
        summary=f"{_sessions(len(sessions))} its own or the default profile's: the key agent:main: "
        "does not tell.",
        evidence=(
            *_told(context, sessions),
            ("labels", listed(sorted({session.label for session in sessions if session.label})) or None),
            ("of these the home's own store routes a chat to", _root_leads_to(context, sessions)),
        ),
        remedy="Ask which profile answers in these chats. Until that is known, move and delete none of them.",
        command=context.command("show", context.store_label, sessions[0].session_id),
    )


def _told(context: Context, sessions: list[Keyed]) -> list[tuple[str, Value]]:
    counted = [context.census.get(session.session_id) for session in sessions]
    rows = sum(row.total for row in counted if row)
    return [
        ("sessions", len(sessions)),
        ("messages in them", rows),
        ("ids", listed(session.session_id for session in sessions)),
        ("keys", listed(dict.fromkeys(session.key[:200] for session in sessions))),
        ("profile of this store", context.home.profile),
    ]


def _sessions(number: int) -> str:
    return f"{number:,} sessions are" if number > 1 else "1 session is"


RULE = Rule(
    id="PRO002",
    slug="row-in-wrong-store",
    family=Family.PROFILES,
    level=Level.LINEAGE,
    severity=Severity.MEDIUM,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    reads=(KEYED, ROUTED, ROUTE_TO, KNOWN, READS_MESSAGES),
    columns=("sessions.session_key",),
    check=check,
    needs_owner=True,
)
