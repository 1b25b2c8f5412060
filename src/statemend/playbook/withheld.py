"""What of a run's files may leave the machine without the text of messages, and in which form."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any, Final

import msgspec

#: Columns whose values a plan may show: what links, times, counts and names rows. Everything else is text of
#: somebody, or may be.
_SHOWN: Final = frozenset(
    {
        "active",
        "compacted",
        "display_kind",
        "display_order",
        "end_reason",
        "ended_at",
        "id",
        "last_active",
        "message_count",
        "message_id",
        "model",
        "parent_session_id",
        "role",
        "session_id",
        "session_key",
        "source",
        "started_at",
        "timestamp",
        "tool_call_count",
        "updated_at",
    }
)
#: The maps of a plan's operation, and of a row in an undo record, that hold cells.
_CELLS: Final = frozenset({"key", "before", "after"})


class Why(StrEnum):
    """Why a file is left out of a bundle."""

    STORE = "holds a store, with its messages"
    ROWS = "holds rows as they were, with their messages"
    TRANSCRIPT = "is an export, with its messages"
    CONTENTS = "was made with the texts of messages"
    FOREIGN = "is none of the files that a run makes"
    BROKEN = "is not whole, so that no text can be taken out of it"
    BUNDLE = "is a bundle"


Redact = Callable[[bytes], bytes]

#: Names of files that never hold the text of a message, whatever the run.
_PLAIN: Final = frozenset(
    {
        "SHA256SUMS",
        "after.json",
        "answer.json",
        "baseline.json",
        "before.json",
        "choices.yaml",
        "cleanup.json",
        "decided.json",
        "diff.json",
        "export.json",
        "inputs.json",
        "journal.jsonl",
        "manifest.jsonl",
        "playbook.yaml",
        "receipt.json",
        "receipt.promised.json",
        "rehearsal.json",
        "resolved.json",
        "result.json",
        "run.json",
        "versions.json",
    }
)
_CELLED: Final = frozenset({"plan.json", "undo.json"})
_REPORTS: Final = frozenset({"report", "story"})
_ROWS: Final = (".changeset", ".changeset.new")


def judge(path: PurePosixPath, first: bytes) -> Why | Redact | None:
    """Why the file at this path within a run is left out; how it is changed; or ``None``: it goes as it is.

    ``first`` are its first bytes. A file that is not known is left out: nothing is guessed.
    """
    name = path.name
    if first.startswith(b"SQLite format 3\0") or name.startswith("snapshot.db"):
        return Why.STORE
    if name.endswith(_ROWS):
        return Why.ROWS
    if name.endswith((".tar.gz", ".tar.gz.new")):
        return Why.BUNDLE
    if name in _CELLED:
        return without_cells
    if name in _PLAIN:
        return None
    if name.partition(".")[0] in _REPORTS:
        return Why.CONTENTS if name == "report.json" and b'"contents"' in first else None
    if name.startswith("verified-") and name.endswith(".json"):
        return None
    return Why.TRANSCRIPT if "export" in path.parts[:-1] else Why.FOREIGN


def without_cells(data: bytes) -> bytes:
    """A plan or an undo record with the text of every cell replaced by its digest, but for the columns that
    only link, time, count and name rows."""
    return msgspec.json.format(msgspec.json.encode(_redacted(msgspec.json.decode(data))), indent=2) + b"\n"


def _redacted(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _cells(item) if name in _CELLS and isinstance(item, dict) else _redacted(item)
            for name, item in value.items()
        }
    return [_redacted(item) for item in value] if isinstance(value, list) else value


def _cells(cells: dict[str, Any]) -> dict[str, Any]:
    return {
        column: value if column in _SHOWN or not isinstance(value, str | dict) else _withheld(value)
        for column, value in cells.items()
    }


def _withheld(value: Any) -> dict[str, Any]:
    encoded = msgspec.json.encode(value, order="deterministic")
    return {"withheld": hashlib.sha256(encoded).hexdigest(), "length": len(encoded)}
