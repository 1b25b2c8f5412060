"""An export shows other texts than the store has for the same messages.

What it means
The export and the store agree on which messages there are, and not on what some of them say. One of the two
was changed after the export was made.

How it happens
Up to 0.19, /retry and edits rewrite the rows of a session; `hermes sessions clean-markers` blanks texts;
compaction shortens old tool results. Or somebody edited the export, and its checksum with it.

How we know
A message of the export matches a row of the store by its place, role, time and tool ids, but not by its
text. What matches no row at all is not counted here, and text that was only masked, or of which only the line
ends differ in a format that escapes nothing, is none of it.

What to do
Keep both. Where the text of the export is wanted back, take it from there; the store does not have it.

When it is a false alarm
When the rewrite was wanted. The store does not record who rewrote a row, or why, so this is never called a
fault.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.context import Context
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import READS_MESSAGES, READS_SESSIONS, Family, Level, Rule


def check(context: Context) -> Iterator[Finding]:
    """One finding for each artifact and session."""
    for session in context.coverage:
        for artifact in session.artifacts:
            changed = artifact.changed
            if not changed:
                continue
            yield RULE.finding(
                context,
                session=session.session_id,
                artifact=artifact.artifact,
                message_ids=changed,
                summary=f"{len(changed):,} message{'s read' if len(changed) > 1 else ' reads'} otherwise in "
                "this export than in the store.",
                evidence=(
                    ("messages with another text", len(changed)),
                    ("messages that agree", artifact.exact + artifact.lossy + artifact.masked),
                    ("messages of the session", session.display),
                ),
                remedy="Keep both until it is known which of them was changed.",
                command=context.command("show", context.store_label, session.session_id),
            )


RULE = Rule(
    id="EXP005",
    slug="rewritten-since-export",
    family=Family.EXPORTS,
    level=Level.EXPORTS,
    severity=Severity.LOW,
    verdict=Verdict.UNDECIDABLE,
    doc=__doc__ or "",
    check=check,
    reads=(READS_SESSIONS, READS_MESSAGES),
)
