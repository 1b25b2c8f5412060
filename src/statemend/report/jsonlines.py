"""The report as JSON Lines: a line for each thing in it, so that a program reads it piece by piece.

The first line, ``{"type": "report", "schema": "statemend/report/v1", …}``, has the verdict and the exit
code. Each other line is one entry of the report with its ``type``; the last, ``{"type": "end", "lines": N}``,
counts all lines, itself too, so that a cut file can be told from a whole one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from statemend.report.json import line, without_absent
from statemend.report.model import Report

#: The lists of a report, in the order in which they are written, and the type of their lines.
TYPES: Final = {
    "stores": "store",
    "rules": "rule",
    "findings": "finding",
    "skipped": "skipped",
    "artifacts": "artifact",
    "sessions": "session",
    "timeline": "event",
    "lineage": "family",
    "checklist": "check",
    "contents": "content",
}


def render(report: Report) -> str:
    """All lines, each ended by a newline."""
    lines = [line(entry) for entry in _entries(report)]
    lines.append(line({"type": "end", "lines": len(lines) + 1}))
    return "".join(lines)


def _entries(report: Report) -> Iterator[dict[str, Any]]:
    plain = without_absent(report)
    yield {"type": "report", **{name: value for name, value in plain.items() if name not in TYPES}}
    for name, type_ in TYPES.items():
        for entry in plain.get(name, ()):
            yield {"type": type_, **entry}
