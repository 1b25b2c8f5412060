"""The store was begun anew: what lies beside it tells of older sessions that it never had.

What it means
Hermes found no store, or one that it could not use, and silently began an empty one in its place. All
conversations from before are missing, and nothing said so: the program works, the list is only shorter.

How it happens
state.db was deleted or moved away while it was being looked into, a full disk or a crash left a file that
releases from 0.20 on put aside before they begin a new one, a volume was not mounted, the home was restored
without its store.

How we know
A row id of a message is never given twice in one store, not even after a deletion. Another store of this
home (a snapshot, a backup, a copy that was put aside) shows sessions that are older than everything in this
store, and their row ids belong to other messages here, or are higher than any that this store has ever given:
so they were in another file. Exports show the same where they keep row ids (JSONL), and so do stores that lie
elsewhere in the home, but both may have come from another machine or profile: alone they leave it
undecidable, together with a log of this home they do not. Logs alone tell only where the very first row that
this store was given is still there: turns of sessions that are not in it, more than half a day before, were
not stored in this file. They may not have been stored at all: undecidable. A profile may be a clone of
another one: `profile create --clone-all` of 0.17 and newer takes along its logs, its exports and what lies
next to its store, but neither the store nor state-snapshots/ and backups/: only these two are certain there.
Where sessions were merely deleted, ids do not clash, and the rule is silent. Files outside the home do not
count.

What to do
Stop Hermes and copy the folder first. Look for the store that was here: next to this one, in state-snapshots/
and backups/, in the trash, in the file system's own snapshots. Audit each: what it has can be brought back.

When it is a false alarm
The home was begun anew on purpose and old backups and logs were kept. The messages were renumbered by a
recovery that wrote a new file and left sessions out. A copy of another machine's store or export was put into
this home.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from statemend.audit.anew import READS, Beginning, Older, in_exports, in_logs, in_stores
from statemend.audit.context import Context
from statemend.audit.facts import listed, moment
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import READS_MESSAGES, READS_SESSIONS, Family, Level, Rule
from statemend.evidence.other_stores import is_in_folder, is_own


def check(context: Context) -> Iterator[Finding]:
    """At most one finding, for the store as a whole."""
    beginning = Beginning(context)
    stores, exports = list(in_stores(context, beginning)), list(in_exports(context, beginning))
    logs = list(in_logs(context, beginning))
    strange = [each for each in (*stores, *exports) if each.strange]
    logged = {each.session_id for each in logs}
    if any(_is_certain(context, each, logged) for each in strange):
        yield _finding(context, beginning, Verdict.FAULT, stores, exports, logs)
    elif strange or logs:
        yield _finding(context, beginning, Verdict.UNDECIDABLE, stores, exports, logs)


def _is_certain(context: Context, older: Older, logged: Collection[str]) -> bool:
    """Whether a session that the store cannot have had was in a store of this very home."""
    root = Path(context.home.root)
    if context.home.place:  # of a profile, and it may be a clone
        return is_in_folder(root, older.where)
    return older.session_id in logged or is_own(root, older.where)


def _finding(
    context: Context,
    beginning: Beginning,
    verdict: Verdict,
    stores: Sequence[Older],
    exports: Sequence[Older],
    logs: Sequence[Older],
) -> Finding:
    older = [*stores, *exports, *logs]
    ids = sorted({each.session_id for each in older})
    strange = {row_id for each in older for row_id in each.strange}
    sessions = "1 older session" if len(ids) == 1 else f"{len(ids):,} older sessions"
    certain = verdict is Verdict.FAULT
    kept = listed(sorted({each.where for each in stores}))
    return RULE.finding(
        context,
        verdict=verdict,
        severity=Severity.CRITICAL if certain else Severity.HIGH,
        summary=f"The store was begun anew: it never held {sessions} that this home had."
        if certain
        else f"The store may have been begun anew: it lacks {sessions} that files of this home tell of.",
        evidence=(
            ("oldest time in the store", "it is empty" if beginning.empty else moment(beginning.at)),
            ("highest row id it ever gave", beginning.highest),
            ("older sessions that it lacks", len(ids)),
            ("their ids", listed(ids)),
            ("first of their times", moment(min(each.first_at for each in older))),
            ("last of their times", moment(max(each.last_at for each in older))),
            ("row ids of theirs that this store cannot have had", len(strange)),
            ("other stores that have them", kept or None),
            ("exports that show them", listed(sorted({each.where for each in exports})) or None),
            ("logs that tell of their turns", listed(sorted({each.where for each in logs})) or None),
        ),
        remedy="Stop Hermes and copy the folder. Bring the sessions back from the stores named here before "
        "Hermes deletes those in their turn."
        if kept
        else "Stop Hermes and copy the folder. Look for the store that was here before: in backups, in the "
        "trash, in snapshots of the file system.",
    )


RULE = Rule(
    id="STO005",
    slug="store-younger-than-evidence",
    family=Family.STORE,
    level=Level.EXPORTS,
    severity=Severity.CRITICAL,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
    reads=(*READS, READS_SESSIONS, READS_MESSAGES),
)
