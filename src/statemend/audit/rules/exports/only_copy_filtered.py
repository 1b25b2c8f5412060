"""The only copy of messages leaves things out by intent: it was filtered, or redacted.

What it means
An export of the user's prompts has none of the answers; an export with `--redact` has marks where secrets
were, and sometimes where there were none. Either is the only copy left of a session that is gone, or the only
export of turns that compaction archived. As long as the store has these nothing is lost, so that is a
leftover; where Hermes will delete the session by itself, it is a risk.

How it happens
`--redact --delete-after-verified` deletes the originals and leaves the masked text alone, in 0.22 too. Or the
session was pruned or deleted, and what remains is an export that was made for another purpose.

How we know
For a session that is gone, everything that names it is put together, message by message: no transcript of it
is left, or some of its messages are nowhere but with a mask in their text. Nothing in a file says that it was
redacted; a text counts when it holds a mark as redaction leaves it. For a session that is in the store, each
archived message is looked up: some file holds it, and none without masks or filter. Whether Hermes will
delete the session is told as for EXP010.

What to do
For a session that is gone, keep the file, and look for a copy of the store from before; what is left comes
back where `plan --restore` asks for it. For one that is still there, export it once more with its archived
history and without `--redact`.

When it is a false alarm
Exports of another store (another profile, another machine) are taken for what is left of this one's sessions,
unless the id of a message says otherwise. A text that talks about redaction holds such marks itself. A
session may have been deleted so that only this remains: what its owner wanted is not in any file, so of a
session that is gone it is never called a fault.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit import anew
from statemend.audit.context import Context
from statemend.audit.facts import listed, moment
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.pruning import LAST_RUN, PINNED, PRUNABLE, prunable, pruning, schedule
from statemend.audit.rule import READS_MESSAGES, READS_SESSIONS, Family, Level, Rule
from statemend.evidence.coverage import SessionCoverage
from statemend.evidence.salvage import Fidelity, Salvage, Salvager, Saved
from statemend.formats.artifact import FILTERED
from statemend.store.history import RowState


def check(context: Context) -> Iterator[Finding]:
    """One finding for each session."""
    salvager = Salvager(context.store, context.inventory)
    doomed: frozenset[str] | None = None
    for session in context.coverage:
        if not session.present:
            found = _gone(context, session, salvager)
        elif session.archived and _may_be_alone(session):
            doomed = _doomed(context) if doomed is None else doomed
            found = _archived(context, session, salvager, is_doomed=session.session_id in doomed)
        else:
            found = None
        if found is not None:
            yield found


def _gone(context: Context, session: SessionCoverage, salvager: Salvager) -> Finding | None:
    shown = [remains for remains in session.remains if remains.records]
    suspicious = any(remains.redacted for remains in shown) or all(remains.filtered for remains in shown)
    if session.elsewhere or not shown or not suspicious:
        return None
    left = salvager.session(session.session_id)
    filtered = all(source.kind in FILTERED for source in left.sources if source.records)
    masked = [each for each in left.messages if each.fidelity is Fidelity.MASKED or each.suspect]
    if not filtered and not masked:
        return None
    beginning = anew.beginning_of(context)
    strange = any(
        beginning.is_strange(each.place.row_id) for each in left.messages if each.place.row_id is not None
    )
    where = "Not of this store, by its row ids" if strange else "Not in the store"
    if filtered:
        summary = f"{where}, and only what the user said is left of it."
    else:
        number = f"{len(masked):,} of its {len(left.messages):,} messages"
        verb = "are" if len(masked) > 1 else "is"
        summary = f"{where}, and {number} {verb} left with a mask in the text alone."
    severity = Severity.HIGH if filtered else Severity.MEDIUM
    times = [each.at for each in left.messages if each.at is not None]
    return RULE.finding(
        context,
        session=session.session_id,
        artifact=_main(left, context.store.path),
        verdict=Verdict.UNDECIDABLE,
        severity=Severity.LOW if strange else severity,
        summary=summary,
        evidence=(
            ("messages left", len(left.messages)),
            ("of these masked, as far as can be told", len(masked)),
            ("first time", moment(min(times, default=None))),
            ("last time", moment(max(times, default=None))),
            ("files", listed(source.artifact for source in left.sources if source.records)),
        ),
        remedy="Keep the files, and look for a copy of the store from before the deletion.",
        command=context.command("show", context.store_label, session.session_id),
    )


def _may_be_alone(session: SessionCoverage) -> bool:
    """Whether a file of a session that is there masks or filters. A transcript beside it may be of the live
    turns alone."""
    return not session.copies and any(
        artifact.kind in FILTERED or artifact.masked for artifact in session.artifacts
    )


def _doomed(context: Context) -> frozenset[str]:
    """The sessions that Hermes will delete by itself; none where the settings do not tell."""
    plan = pruning(context) if context.inventory.settings.trouble is None else None
    if plan is None or not plan.certain:
        return frozenset()
    return frozenset(schedule(context, plan, prunable(context)))


def _archived(
    context: Context, session: SessionCoverage, salvager: Salvager, *, is_doomed: bool
) -> Finding | None:
    left = salvager.session(session.session_id)
    store = context.store.path
    alone = [each for each in left.messages if each.state is RowState.ARCHIVED and _is_alone(each, store)]
    rows = tuple(each.place.row_id for each in alone if each.place.row_id is not None)
    if not rows:
        return None
    number = f"{len(alone):,} archived message{'s' if len(alone) > 1 else ''}"
    verb = "are" if len(alone) > 1 else "is"
    return RULE.finding(
        context,
        session=session.session_id,
        artifact=_main(left, store),
        message_ids=rows,
        verdict=Verdict.RISK if is_doomed else Verdict.LEFTOVER,
        severity=Severity.MEDIUM if is_doomed else Severity.LOW,
        summary=f"Outside the store {number} {verb} held only by exports that mask or filter.",
        evidence=(
            ("archived messages held so", len(alone)),
            ("archived messages of the session", session.archived),
            ("Hermes deletes the session by itself", is_doomed),
            ("files", listed(artifact.artifact for artifact in session.artifacts)),
        ),
        remedy="Export the session with its archived history, without --redact, and delete nothing before.",
        command=context.command("export", context.store_label, session.session_id, output="exports"),
    )


def _is_alone(message: Saved, store: str) -> bool:
    """Whether a message of the store is in some file, and in none that has its text without a filter."""
    files = [each for each in message.others if each.artifact != store]
    return bool(files) and all(each.kind in FILTERED or each.fidelity is Fidelity.MASKED for each in files)


def _main(left: Salvage, store: str) -> str:
    """The file that shows the most."""
    files = [source for source in left.sources if source.artifact != store]
    return max(files, key=lambda source: source.records).artifact


RULE = Rule(
    id="EXP008",
    slug="only-copy-filtered",
    family=Family.EXPORTS,
    level=Level.EXPORTS,
    severity=Severity.MEDIUM,
    verdict=Verdict.RISK,
    recipe="restore",
    doc=__doc__ or "",
    check=check,
    reads=(READS_SESSIONS, READS_MESSAGES, PRUNABLE, PINNED, LAST_RUN, *anew.READS),
)
