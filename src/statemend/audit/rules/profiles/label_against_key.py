"""The profile that a session is labelled with is not the one that its chat's key names.

What it means
A row says of itself that it belongs to two profiles. The gateway goes by the key, so the chat goes on in one
of them; lists and the desktop program of 0.22 go by the label, and look for the session in the other.

How it happens
Releases that let a child inherit its parent's profile copied a wrong label to every session after it
(#88381). A session that was kept in another profile's store got that profile's label. Renaming a profile,
before 0.22, changes the folder and leaves both in the rows.

How we know
The key of a gateway's chat begins with agent:NAME:, or with agent:main: for the default profile. It is
compared with profile_name, where that is set. A gateway that serves one profile alone writes agent:main:
whatever its profile is called, so in a profile's own store that key and the profile's own label agree.
Where a profile is itself called main, older releases write the same key for both: that is never decided. Nor
is it where this home has no profile of one of the names, which may be what a profile was called before.

What to do
Find out which of the two is right: from the chat itself, or from which profile answered in it. 0.22 sets
labels by the key (`hermes sessions repair-profiles`); that is right unless the session lies in the wrong
store, which row-in-wrong-store tells of.

When it is a false alarm
None is known where neither name is main.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.context import Context
from statemend.audit.eras import written_by
from statemend.audit.facts import listed, words
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.ownership import KEYED, MAIN, Keyed, exists, keyed
from statemend.audit.rule import Family, Level, Rule
from statemend.evidence.inventory import DEFAULT


def check(context: Context) -> Iterator[Finding]:
    """One finding for each pair of names."""
    crossed: dict[tuple[str, str], list[Keyed]] = {}
    for session in keyed(context.store):
        if session.label and session.label != session.profile and not _is_alone(context, session):
            crossed.setdefault((session.namespace, session.label), []).append(session)
    for (namespace, label), sessions in sorted(crossed.items()):
        yield _finding(context, namespace, label, sessions)


def _is_alone(context: Context, session: Keyed) -> bool:
    """Whether the key is the one that a gateway of one profile alone writes, for all that is known."""
    return session.namespace == MAIN and context.home.profile in (session.label, None)


def _finding(context: Context, namespace: str, label: str, sessions: list[Keyed]) -> Finding:
    profile = sessions[0].profile
    ambiguous = MAIN in (label, profile) or (profile == DEFAULT and exists(context.home, MAIN))
    missing = _of_no_profile(context, profile, label)
    number = f"{len(sessions):,} session{'s are' if len(sessions) > 1 else ' is'}"
    return RULE.finding(
        context,
        key=f"{namespace} {label}",
        verdict=Verdict.UNDECIDABLE if ambiguous or missing else Verdict.FAULT,
        summary=f"{number} labelled as of profile {words(label, 64)}, and keyed as a chat of "
        f"{words(profile, 64)}"
        + (f"; this home has no profile {words(missing[0], 64)}." if missing else "."),
        evidence=(
            ("sessions", len(sessions)),
            ("ids", listed(session.session_id for session in sessions)),
            ("profile by the label", words(label, 64)),
            ("profile by the key", words(profile, 64)),
            ("profile of this store", context.home.profile),
            ("profiles that this home does not have", [words(name, 64) or "" for name in missing] or None),
            ("a key of the profile main looks the same", ambiguous or None),
            written_by(context.store),
        ),
        remedy="Find out whether that profile was renamed or deleted before you change either."
        if missing
        else "Ask which profile answers in these chats before you change either."
        if ambiguous
        else "Find out which of the two is right. Hermes 0.22 sets the label by the key.",
        command=context.command("show", context.store_label, sessions[0].session_id),
    )


def _of_no_profile(context: Context, profile: str, label: str) -> list[str]:
    """The names that no profile of this home has, where one may be the old name of the store's own. A key
    that names the store's own profile decides whatever the label is."""
    owner = context.home.profile
    names = [] if owner in (None, profile) else [label, profile]
    return [name for name in names if not exists(context.home, name)]


RULE = Rule(
    id="PRO001",
    slug="label-against-key",
    family=Family.PROFILES,
    level=Level.LINEAGE,
    severity=Severity.LOW,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    reads=(KEYED,),
    columns=("sessions.session_key", "sessions.profile_name"),
    check=check,
)
