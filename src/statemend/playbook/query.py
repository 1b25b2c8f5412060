"""What a ``check`` asks the store: one SELECT, guarded before it runs and while it does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from statemend.audit.finding import Finding
from statemend.errors import UsageError
from statemend.playbook.model import Check, Expect
from statemend.report.model import ArtifactEntry, Report, SessionEntry
from statemend.store.connection import Store

Row = tuple[Any, ...]


class Tables(msgspec.Struct, frozen=True, kw_only=True):
    """What a scan found, for the tables ``findings``, ``artifacts`` and ``coverage`` (each session's
    holdings)."""

    findings: tuple[Finding, ...] = ()
    artifacts: tuple[ArtifactEntry, ...] = ()
    coverage: tuple[SessionEntry, ...] = ()

    @classmethod
    def of(cls, report: Report) -> Tables:
        """Those of a report."""
        return cls(findings=report.findings, artifacts=report.artifacts, coverage=report.sessions)


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a query gave. ``rows`` are the first ``count`` rows, as far as they may be shown; ``truncated``
    says that there were more. ``value`` is the first cell, for comparison alone."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    count: int
    truncated: bool = False
    value: Any = None


def guard(sql: str) -> None:
    """Raise ``UsageError`` unless ``sql`` is one SELECT over the tables that a check may see."""
    if not sql.lstrip().upper().startswith(("SELECT", "WITH")):
        raise UsageError("not a SELECT; a check asks one question")


def ask(store: Store, step: Check, inputs: Mapping[str, object], tables: Tables) -> Answer:
    """Ask the store the question of ``step``. Raises ``UsageError`` for one that may not be asked,
    ``Undetermined`` when it takes too long or the store cannot be read."""
    guard(step.sql)
    rows: list[Row] = []
    truncated = False
    for row in store.rows(step.sql, inputs):
        if len(rows) == step.rows:
            truncated = True
            break
        rows.append(row)
    return Answer(
        columns=(), rows=tuple(rows), count=len(rows), truncated=truncated, value=rows[0][0] if rows else None
    )


def judge(step: Check, answer: Answer) -> tuple[bool, str]:
    """Whether the answer is as expected, and a sentence that says so."""
    if step.expect is Expect.EMPTY:
        passed = answer.count == 0
    elif step.expect is Expect.ROWS:
        passed = answer.count > 0
    else:
        passed = answer.value == step.value
    return passed, "as expected" if passed else step.message
