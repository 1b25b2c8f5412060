"""Which releases can have written a file, as far as it tells."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

from statemend import formats
from statemend.formats import files
from statemend.formats.artifact import Artifact, Kind

#: Columns of messages by the first release that has them, newest first.
_COLUMNS = (
    ("message_uid", "0.22 or newer"),
    ("display_kind", "0.20 or newer"),
    ("effect_disposition", "0.19 or newer"),
    ("compacted", "0.18 or newer"),
    ("active", "0.16 or 0.17"),
    ("platform_message_id", "0.15"),
)
_OLDEST = "0.14 or older"
_BY_KIND = {
    Kind.MARKDOWN: "0.18 or newer",
    Kind.QMD: "0.18 or newer",
    Kind.PROMPTS_JSONL: "0.18 or newer",
    Kind.PROMPTS_MARKDOWN: "0.18 or newer",
    Kind.MANIFEST: "0.18 or newer",
    Kind.TRACE: "0.18 or newer",
    Kind.SAVE_MARKDOWN: "0.20 or newer",
    Kind.PENDING: "0.20 or newer",
    Kind.SNAPSHOT_JSON: "0.13 to 0.20",
    Kind.TRANSCRIPT_JSONL: "0.13 or 0.14",
    Kind.RESCUE_JSONL: "0.22 or newer",
}
#: A page of 0.19 and newer forbids what it does not need, and no other page has a policy with this beginning.
#: Up to 0.19 a session without a model shows "None", from 0.20 on "Unknown".
_POLICY = b'<meta http-equiv="Content-Security-Policy"'
_OF_HERMES = _POLICY + b""" content="default-src 'none'; script-src 'nonce-"""
_MODEL = re.compile(rb"<strong>Model:</strong> (None|Unknown)</div>")
#: A page is looked at for the headings of so many sessions, and of so many bytes each.
_MOST_SESSIONS, _HEADING = 64, 128 * 1024
#: Kinds whose messages are whole rows: their columns tell.
_ROWS = frozenset({Kind.JSONL, Kind.DESKTOP_JSON})


def releases(artifact: Artifact) -> str | None:
    """The releases that can have written the file; ``None`` where nothing tells. A later one can have written
    a session that an earlier one began. Raises ``Undetermined`` when the file cannot be read."""
    if artifact.kind is Kind.SAVE_JSON:
        return (
            "0.13 to 0.20" if all(each.started_at is None for each in artifact.sections) else "0.20 or newer"
        )
    if artifact.kind is Kind.HTML:
        return _of_page(artifact)
    if artifact.kind not in _ROWS:
        return _BY_KIND.get(artifact.kind)
    for section in artifact.sections:
        for record in islice(formats.records(Path(artifact.path), artifact, section), 1):
            return next((name for column, name in _COLUMNS if column in (record.row or {})), _OLDEST)
    return None


def _of_page(artifact: Artifact) -> str | None:
    path = Path(artifact.path)
    if not artifact.sections:
        return "0.18 or newer"
    head = files.head(path)
    if _POLICY not in head:
        return "0.18"
    if _OF_HERMES not in head:
        return None
    for section in artifact.sections[:_MOST_SESSIONS]:
        shown = _MODEL.search(files.chunk(path, section.offset, min(section.length, _HEADING)))
        if shown is not None:
            return "0.19" if shown[1] == b"None" else "0.20 or newer"
    return "0.19 or newer"
