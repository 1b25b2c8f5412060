"""An export of a whole conversation lacks a part of it, or has a subagent's run in its place.

What it means
The file was asked for the whole line of a conversation that compression split into several sessions
(`--lineage logical`). It holds fewer sessions than the line has, or it takes the private transcript of a
subagent for the next part. It is named after the last session that it holds, and says nothing of the rest.

How it happens
0.18 and 0.19 take the oldest child of a compressed session that is no branch for the next part, and a
subagent that was started before the compression is older than the continuation. Asked for the first session
they then write its subagent's transcript; asked for the last one they do not find it on the way, and write it
alone. Later releases look at the markers of all children.

How we know
The file lists the sessions that it holds. One of them is, in the store, a delegate of another of them: then
it is mixed in, unless it bears that mark falsely, which LIN008 tells of. Or sessions are missing which 0.22
would put into the line of its first session, and which had begun when the file was written. Sessions that
are gone from the store are not judged.

What to do
Export the conversation again with 0.20 or newer, or each of its sessions by itself, before anything of it is
deleted. Deleting on the strength of the file takes one session: the one that was asked for.

When it is a false alarm
As long as the missing sessions are in the store nothing is lost, so that alone is reported as a leftover.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.context import Context
from statemend.audit.facts import is_time, listed, moment
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.handoff import is_false_delegate
from statemend.audit.rule import READS_MESSAGES, READS_SESSIONS, Family, Level, Rule
from statemend.formats.artifact import Artifact, Section
from statemend.store.lineage import Relation
from statemend.store.schema import Era


def check(context: Context) -> Iterator[Finding]:
    """One finding for each file and line."""
    for artifact, section in context.inventory.sections():
        if not section.lineage or section.lineage[0] not in context.graph.nodes:
            continue
        mixed = _mixed(context, section)
        missing = _missing(context, section)
        if mixed or missing:
            yield _finding(context, artifact, section, mixed, missing)


def _mixed(context: Context, section: Section) -> list[str]:
    """The sessions of the file that are delegates of another one in it."""
    found = []
    for session_id in section.lineage[1:]:
        edge = context.graph.edge(session_id)
        if edge is None or edge.relation is not Relation.DELEGATE or edge.parent_id not in section.lineage:
            continue
        if not is_false_delegate(context, context.graph.nodes[session_id]):
            found.append(session_id)
    return found


def _missing(context: Context, section: Section) -> list[str]:
    """The sessions of the line that the file does not hold, of those that had begun when it was written."""
    if section.exported_at is None:
        return []
    chain = context.graph.export_chain(section.lineage[0], Era.V22) or ()
    found = []
    for session_id in chain:
        node = context.graph.nodes.get(session_id)
        if session_id in section.lineage or node is None:
            continue
        if is_time(node.started_at) and node.started_at < section.exported_at:
            found.append(session_id)
    return found


def _finding(
    context: Context, artifact: Artifact, section: Section, mixed: list[str], missing: list[str]
) -> Finding:
    if mixed:
        verdict, severity = Verdict.FAULT, Severity.MEDIUM
        summary = "A subagent's transcript stands in this export as a part of the conversation."
    else:
        verdict, severity = Verdict.LEFTOVER, Severity.LOW
        number = f"{len(missing):,} session{'s' if len(missing) > 1 else ''}"
        summary = f"This export of a whole conversation lacks {number} of it; the store has them."
    held = {
        session.session_id for session in context.coverage if session.artifacts and not session.unheld
    } & set(missing)
    wanted = [sid for sid in (*section.lineage, *missing) if sid not in mixed]
    return RULE.finding(
        context,
        session=section.session_id,
        artifact=artifact.path,
        verdict=verdict,
        severity=severity,
        summary=summary,
        evidence=(
            ("sessions in the file", listed(section.lineage)),
            ("delegates among them", listed(mixed) or None),
            ("sessions of the conversation that it lacks", listed(missing) or None),
            ("of these whole in other files", len(held) if missing else None),
            ("exported at", moment(section.exported_at)),
            ("sha256 of the file", artifact.sha256),
        ),
        remedy="Export the sessions of the conversation again, each whole, and delete nothing before.",
        command=context.command("export", context.store_label, *wanted, output="exports"),
    )


RULE = Rule(
    id="EXP007",
    slug="lineage-segments-missing",
    family=Family.EXPORTS,
    level=Level.EXPORTS,
    severity=Severity.MEDIUM,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
    reads=(READS_SESSIONS, READS_MESSAGES),
)
