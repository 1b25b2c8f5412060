"""A manifest lists exports that are not here, or does not list one that is.

What it means
manifest.jsonl is the list of what was exported into a folder. A listed file that is nowhere to be found is
evidence that is missing; where its session is gone from the store as well, it may have been the only copy. A
file that is not listed came from elsewhere, or the list is not whole.

How it happens
Somebody moved, renamed or deleted exports, or copied some into the folder. A manifest that was deleted is
begun anew by the next export and then lists that one alone. No release moves or deletes an export.

How we know
The last line for a file name is the valid one. A listed file is missing when nothing has its name beside the
manifest and no file that was looked at has the sha256 of the line: one that was moved or renamed is found by
that. A file is not listed when it is a Markdown or QMD export, which alone are listed, and no line has its
name or its sha256. A file that is there under its name with other bytes is told of by artifact-altered.

What to do
Look for a missing file where its folder was copied to; `--exports` takes further folders. For a session that
is gone from the store, do that before anything else is cleaned up. What is not listed is compared with the
store like any other export, and needs nothing.

When it is a false alarm
When the file was deleted because nobody needs it, or lies where this audit did not look. That cannot be told
from here, so it is never called a fault.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from statemend.audit.context import Context
from statemend.audit.facts import listed, moment
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.known import KNOWN
from statemend.audit.rule import READS_MESSAGES, Family, Level, Rule
from statemend.audit.rules.exports.artifact_altered import manifest_lines
from statemend.formats.artifact import Artifact, Kind
from statemend.formats.manifest import ManifestLine

_LISTED_KINDS = frozenset({Kind.MARKDOWN, Kind.QMD})


def check(context: Context) -> Iterator[Finding]:
    """One finding for each session that is gone and whose export is missing, and two at most for each
    manifest."""
    inventory = context.inventory
    lines = manifest_lines(context)
    digests = {artifact.sha256 for artifact in inventory.artifacts}
    missing = [
        (line, source)
        for place, (line, source) in sorted(lines.items())
        if line.sha256 not in digests and not os.path.lexists(place)
    ]
    held = {
        session_id
        for session_id, artifacts in inventory.by_session().items()
        if any(artifact.kind is not Kind.ROUTING for artifact, _ in artifacts)
    }
    spare: dict[str, list[ManifestLine]] = {}
    for line, source in missing:
        present = context.has(line.session_id)
        if present or line.session_id in held:
            spare.setdefault(source, []).append(line)
        else:
            yield _lost(context, line, source)
    for source, few in sorted(spare.items()):
        yield _missing(context, few, source)
    sums = {line.sha256 for line, _ in lines.values()}
    for manifest in inventory.manifests:
        unlisted = [
            artifact
            for artifact in inventory.artifacts
            if artifact.kind in _LISTED_KINDS
            and Path(artifact.path).parent == Path(manifest.path).parent
            and os.path.realpath(artifact.path) not in lines
            and artifact.sha256 not in sums
        ]
        if unlisted:
            yield _unlisted(context, unlisted, manifest)


def _lost(context: Context, line: ManifestLine, source: str) -> Finding:
    return RULE.finding(
        context,
        session=line.session_id,
        artifact=source,
        verdict=Verdict.UNDECIDABLE,
        severity=Severity.HIGH,
        summary="Exported, and now neither the export nor the session is here.",
        evidence=(
            ("file as it was named", line.path[:300]),
            ("messages in it", line.message_count),
            ("exported at", moment(line.exported_at)),
            ("sha256 of the file", line.sha256),
            ("line of the manifest", line.line),
        ),
        remedy="Look for the file where its folder was copied to, and name that with --exports: it may be "
        "the only copy of the session.",
        command=context.command("scan", context.home.root),
    )


def _missing(context: Context, lines: list[ManifestLine], source: str) -> Finding:
    number = f"{len(lines):,} file{'s' if len(lines) > 1 else ''} that the manifest lists"
    return RULE.finding(
        context,
        artifact=source,
        key="missing",
        summary=f"{number} {'are' if len(lines) > 1 else 'is'} not here; no session is lost by that.",
        evidence=(
            ("files", len(lines)),
            ("as they were named", listed(line.path[:200] for line in lines)),
            ("sessions", listed(dict.fromkeys(line.session_id for line in lines))),
        ),
        remedy="Nothing is to be done: the sessions are in the store, or in another file.",
    )


def _unlisted(context: Context, artifacts: list[Artifact], manifest: Artifact) -> Finding:
    number = f"{len(artifacts):,} export{'s' if len(artifacts) > 1 else ''}"
    return RULE.finding(
        context,
        artifact=manifest.path,
        key="unlisted",
        summary=f"{number} beside the manifest {'are' if len(artifacts) > 1 else 'is'} not listed in it.",
        evidence=(
            ("files", len(artifacts)),
            ("names", listed(Path(artifact.path).name for artifact in artifacts)),
            ("what is wrong with the manifest", manifest.damage),
        ),
        remedy="Nothing is to be done: each is compared with the store like any other export.",
    )


RULE = Rule(
    id="EXP011",
    slug="manifest-disagrees",
    family=Family.EXPORTS,
    level=Level.EXPORTS,
    severity=Severity.INFO,
    verdict=Verdict.LEFTOVER,
    doc=__doc__ or "",
    check=check,
    reads=(KNOWN, READS_MESSAGES),
)
