"""An export leaves out what compaction had archived, and no other export holds it.

What it means
The file looks like the whole conversation and its own checksum holds, yet it begins with a summary: the
turns that the summary replaced are in the store and in no export. Whoever deletes the session on the
strength of this file loses them.

How it happens
In-place compaction (0.18 and newer, on by default) keeps the older turns under the same session id as
archived rows. The exports of 0.18 to 0.21.4 read only the live rows: jsonl, Markdown, QMD, HTML and the
user prompts alike. Since the fix of 2026-09-23 (#120435) the readable formats show archived rows too; a
trace shows live ones alone in every release.

How we know
The export is compared with the store, message by message and by content. A message counts as left out for
this reason when only archived rows hold it, the export was made after the compaction that archived it (it
shows that compaction's summary or a later message, or says a later time), and the export shows no other
archived message. What any other artifact here holds, even with secrets masked, is not counted. An export of
user prompts is asked for user messages only. Another store that lies here is asked too; one that Hermes
deletes in its turn (state-snapshots/, backups before an update) is named, and preserves nothing.

What to do
Export the session again, with `statemend export` (`--at-risk` takes every such session) or with 0.22 or
newer, and keep that file instead. Do not delete the session before.

When it is a false alarm
When the missing turns are kept in a form or a place that is not read here: another machine, a backup that is
looked at with --deep only.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.context import Context
from statemend.audit.elsewhere import stores_with
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import READS_MESSAGES, READS_SESSIONS, Family, Level, Rule
from statemend.evidence.coverage import ArtifactCoverage, Cause, SessionCoverage
from statemend.formats.artifact import FILTERED


def left_out(artifact: ArtifactCoverage, session: SessionCoverage) -> tuple[int, ...]:
    """The messages that ``artifact`` lacks because they were archived, and that nothing else holds."""
    unheld = frozenset(session.unheld)
    return tuple(
        missing.message_id
        for missing in artifact.missing
        if missing.cause is Cause.ARCHIVED and missing.message_id in unheld
    )


def check(context: Context) -> Iterator[Finding]:
    """One finding for each artifact and session."""
    for session in context.coverage:
        for artifact in session.artifacts:
            lost = left_out(artifact, session)
            if lost:
                yield _finding(context, session, artifact, lost)


def _finding(
    context: Context, session: SessionCoverage, artifact: ArtifactCoverage, lost: tuple[int, ...]
) -> Finding:
    messages = "1 archived message is" if len(lost) == 1 else f"{len(lost):,} archived messages are"
    filtered = artifact.kind in FILTERED
    return RULE.finding(
        context,
        session=session.session_id,
        artifact=artifact.artifact,
        message_ids=lost,
        severity=Severity.HIGH if filtered else Severity.CRITICAL,
        summary=f"{messages} not in this {artifact.kind.value} export, nor in any other.",
        evidence=(
            ("archived messages in no export", len(lost)),
            ("messages of the session", session.display),
            ("archived messages of the session", session.archived),
            ("messages held by this export", artifact.exact + artifact.lossy + artifact.masked),
            ("messages it says it holds", artifact.declared),
            ("view it was made from", artifact.scope.value),
            ("how the view is known", artifact.reason),
            ("artifacts of this session", len(session.artifacts)),
            *stores_with(context, session, lost),
        ),
        remedy="Export the session again with its archived history, and delete nothing before.",
        command=context.command("export", context.store_label, session.session_id, output="exports"),
    )


RULE = Rule(
    id="EXP001",
    slug="archived-rows-not-exported",
    family=Family.EXPORTS,
    level=Level.EXPORTS,
    severity=Severity.CRITICAL,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
    reads=(READS_SESSIONS, READS_MESSAGES),
)
