"""An export is not the file that was written: altered, cut off, or unreadable in part.

What it means
Something in the file is no longer as Hermes wrote it. What can be read of it is still compared with the
store, but the file must not stand for the whole session, and it must not license a deletion.

How it happens
An editor saved it again, a disk was full, a copy broke off, a tool converted line ends, or somebody changed
the text. No release alters an export that it has written.

How we know
A Markdown or QMD export carries the sha256 of its own text, its manifest.jsonl the sha256 of the whole file;
the last line for a file name is the valid one, and a line counts for the file of that name beside the
manifest. The checksum of the text is computed without the three quirks of Hermes' own check (carriage
returns, a message that quotes a checksum line, a message that quotes the placeholder), which rejects intact
files. A JSONL line and the object of a saved session must be complete JSON, an HTML page must end. What a
running agent writes for itself (snapshots, transcripts, dumps of requests) is no export and not judged here.
A file that lists another time of export than the manifest, or several, is another export, not an altered one:
undecidable. One that is the file that was written but for its line ends, empty lines behind it and a byte
order mark was only saved anew: a leftover. Where line ends inside of messages were converted too, the
messages of the store tell what they were: with these put back, the checksum holds.

What to do
Export the session again while the store still has it. If the store has lost it, keep the file as it is and
compare it with a backup.

When it is a false alarm
An empty .jsonl file is what a failed export leaves, and also what an export of prompts leaves for a session
without any: undecidable. A file that was being written while it was read is reported as undecidable too, and
so is a file without marks whose last newline is missing while all its texts are as the store has them, and a
file that begins otherwise and merely contains an export, as the output of a console does. Of a session that
the store has lost, other line ends inside of messages cannot be told from another change.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from statemend.audit.context import Context
from statemend.audit.facts import moment
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import Family, Level, Rule
from statemend.evidence.coverage import ArtifactCoverage
from statemend.evidence.line_ends import only_line_ends
from statemend.formats import files, manifest
from statemend.formats.artifact import AUTOMATIC, Artifact, Kind
from statemend.formats.manifest import ManifestLine
from statemend.formats.markdown import Document

#: The manifest's line is written this long (seconds) after the time in the file, at most.
_SAME_EXPORT = 60.0
_LINES = frozenset({Kind.JSONL, Kind.PROMPTS_JSONL, Kind.MANIFEST, Kind.TRACE})
_TEXTS = frozenset({Kind.MARKDOWN, Kind.QMD})
#: These do not mark their end.
_UNMARKED = frozenset({Kind.PROMPTS_MARKDOWN, Kind.SAVE_MARKDOWN})
_NO_NEWLINE = "the last line is cut off"
_UNSETTLED = re.compile(r"changed while it was read|too long to be read")


def manifest_lines(context: Context) -> dict[str, tuple[ManifestLine, str]]:
    """The valid manifest line of each file, by its real path, with the manifest's own path."""
    valid: dict[str, tuple[ManifestLine, str]] = {}
    for artifact in context.inventory.manifests:
        folder = Path(artifact.path).parent
        for line in manifest.lines(Path(artifact.path)):
            name = re.split(r"[\\/]", line.path)[-1]
            try:
                place = os.path.realpath(folder / name)
            except ValueError:
                continue  # a NUL or a lone surrogate: no file can have this name
            valid[place] = (line, artifact.path)
    return valid


def check(context: Context) -> Iterator[Finding]:
    """One finding for each file that is not as it was written."""
    listed = manifest_lines(context)
    for artifact in (*context.inventory.artifacts, *context.inventory.manifests):
        line, source = listed.get(os.path.realpath(artifact.path), (None, None))
        fault = _fault(artifact, line)
        if fault is not None and artifact.kind not in AUTOMATIC:
            yield _finding(context, artifact, fault, line, source)


def _fault(artifact: Artifact, line: ManifestLine | None) -> str | None:
    """What is wrong with a file, or ``None``."""
    if artifact.kind is Kind.EMPTY:
        return "the file is empty" if line is not None or artifact.path.endswith(".jsonl") else None
    if artifact.damage is not None:
        return artifact.damage
    is_listed = line is None or line.sha256 == artifact.sha256
    return None if is_listed else "it is not the file that the manifest lists"


def begins_as_lines(artifact: Artifact) -> bool:
    """Whether a file of JSON lines begins with one. Another file may merely contain an export: a console's
    output, say."""
    head = files.head(Path(artifact.path)).removeprefix(files.BYTE_ORDER_MARK)
    return head.lstrip().startswith(b"{")


def _verdict(context: Context, artifact: Artifact, line: ManifestLine | None) -> tuple[Verdict, Severity]:
    if artifact.kind is Kind.EMPTY and line is None:
        return Verdict.UNDECIDABLE, Severity.LOW
    if artifact.damage is not None and _UNSETTLED.search(artifact.damage):
        return Verdict.UNDECIDABLE, Severity.MEDIUM
    if artifact.kind in _LINES and not begins_as_lines(artifact):
        return Verdict.UNDECIDABLE, Severity.LOW
    if artifact.damage is None and line is not None and artifact.kind is not Kind.EMPTY:
        times = [section.exported_at for section in artifact.sections if section.exported_at is not None]
        if len(times) > 1 or any(abs(line.exported_at - at) > _SAME_EXPORT for at in times):
            return Verdict.UNDECIDABLE, Severity.MEDIUM
    if artifact.kind in _TEXTS and _is_converted(context, artifact, line):
        return Verdict.LEFTOVER, Severity.LOW
    if (
        artifact.kind in _UNMARKED
        and artifact.damage == _NO_NEWLINE
        and not _reads_otherwise(context, artifact)
    ):
        return Verdict.UNDECIDABLE, Severity.LOW
    return Verdict.FAULT, Severity.HIGH


def _reads_otherwise(context: Context, artifact: Artifact) -> bool:
    """Whether a file shows texts that the store has not, as one does that was cut off within one."""
    found = context.once("coverage by file", lambda: _by_file(context))
    return any(each.changed or each.extra or each.cut for each in found.get(artifact.path, ()))


def _by_file(context: Context) -> dict[str, list[ArtifactCoverage]]:
    found: dict[str, list[ArtifactCoverage]] = {}
    for session in context.coverage if context.trusts("sessions", "messages") else ():
        for each in session.artifacts:
            found.setdefault(each.artifact, []).append(each)
    return found


def _is_converted(context: Context, artifact: Artifact, line: ManifestLine | None) -> bool:
    """Whether a file is the one that was written, with other line ends, another end or a byte order mark."""
    if artifact.damage is not None:
        document = Document.load(Path(artifact.path))
        return context.trusts("messages") and only_line_ends(context.store, document)
    data = files.chunk(Path(artifact.path), 0, artifact.size).removeprefix(files.BYTE_ORDER_MARK)
    text = data.rstrip() + b"\n"
    unix = text.replace(b"\r\n", b"\n")
    forms = (data, text, unix, unix.replace(b"\n", b"\r\n"))
    return line is not None and line.sha256 in {hashlib.sha256(form).hexdigest() for form in forms}


def _finding(
    context: Context, artifact: Artifact, fault: str, line: ManifestLine | None, source: str | None
) -> Finding:
    verdict, severity = _verdict(context, artifact, line)
    sessions = list(dict.fromkeys(each.session_id for each in artifact.sections if each.session_id))
    summary = f"The {artifact.kind.value} file is not to be relied on: {fault}."
    remedy = "Export again while the store has the session; if it has not, compare the file with a backup."
    if verdict is Verdict.LEFTOVER:
        summary = (
            f"This {artifact.kind.value} file is as it was written but for line ends, empty lines behind it "
            "or a byte order mark."
        )
        remedy = "Nothing is to be done: no word is lost. Whatever compares bytes takes it for another file."
    return RULE.finding(
        context,
        session=sessions[0] if len(sessions) == 1 else None,
        artifact=artifact.path,
        verdict=verdict,
        severity=severity,
        summary=summary,
        evidence=(
            ("what is wrong", fault),
            ("size in bytes", artifact.size),
            ("modified at", moment(artifact.modified_at)),
            ("sha256 of the file", artifact.sha256),
            ("sha256 in the manifest", line.sha256 if line else None),
            ("manifest", source),
            ("line of the manifest", line.line if line else None),
            ("sessions in the file", len(sessions)),
        ),
        remedy=remedy,
    )


RULE = Rule(
    id="EXP003",
    slug="artifact-altered",
    family=Family.EXPORTS,
    level=Level.EXPORTS,
    severity=Severity.HIGH,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
    needs_store=False,
)
