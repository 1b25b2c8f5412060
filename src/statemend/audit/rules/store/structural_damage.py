"""Pages of the store are damaged.

What it means
SQLite finds a table, an index or the file itself broken on the level of pages. A damaged table may have
lost rows; a damaged index or search index has not, it can be built again from the table. Rules that read
a damaged table, or would be served from its damaged index, could not run.

How it happens
A log under one writer replaced by another, a copy of a live file, a checkpoint bug of 0.16 to 0.18, a
network or virtual file system with weak locks, a failing disk.

How we know
By default integrity_check asks SQLite to walk every page of each canonical table, its indexes and overflow
pages, and to look up every row in every index: the other rules are answered from those indexes. --deep
runs it on the whole file, and includes the search indexes. SQLite names a b-tree by its root page; the
schema says what stands there. Where the check stops without a word and quick_check finds the table sound, one
of its indexes is at fault, and SQLite does not say which. Bytes changed inside a cell leave no trace that
SQLite could see: the format has no checksums.

What to do
Copy the folder first. For a table: take the rows from a sound copy, or salvage with `hermes sessions
recover` of 0.22 into a new file. For an index: REINDEX on a copy, then compare. For a search index: have
Hermes rebuild it. Do not copy the damaged file over a backup.

When it is a false alarm
The file was written while it was read; then the audit also says that the store changed. Releases of
SQLite split text with NULs differently, so a search index over such text is not compared with it: it
would always differ.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from statemend.audit.context import Context
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import Family, Level, Rule
from statemend.audit.structure import Damage, Part, Structure

COPY_FIRST = "Copy the folder with its sidecars first."

#: Verdict, severity, what is wrong with NAME, and what to do, for each kind of damage.
JUDGED: dict[Part, tuple[Verdict, Severity, str, str]] = {
    Part.FILE: (
        Verdict.FAULT,
        Severity.HIGH,
        "The structure of {} is damaged.",
        f"{COPY_FIRST} Take a sound copy if there is one, or salvage the store into a new file.",
    ),
    Part.TABLE: (
        Verdict.FAULT,
        Severity.CRITICAL,
        "Pages of the table {} are damaged; rows of it may be lost.",
        f"{COPY_FIRST} Take the rows from a sound copy, or salvage the store into a new file.",
    ),
    Part.INDEX: (
        Verdict.FAULT,
        Severity.HIGH,
        "The index {} is damaged; the rows of its table are not.",
        f"{COPY_FIRST} Then REINDEX the copy, check it, and put it in place.",
    ),
    Part.SEARCH: (
        Verdict.FAULT,
        Severity.MEDIUM,
        "The search index {} is damaged; the messages are not.",
        f"{COPY_FIRST} Then have Hermes rebuild the search index.",
    ),
    Part.VALUES: (
        Verdict.FAULT,
        Severity.MEDIUM,
        "Cells of the table {} hold what its schema forbids.",
        "Look at these rows; a salvage that mapped cells to the wrong columns leaves them behind.",
    ),
    Part.UNUSED: (
        Verdict.LEFTOVER,
        Severity.INFO,
        "Some pages of {} are used by nothing.",
        "Nothing is lost. VACUUM on a copy gives the space back.",
    ),
}


def check(context: Context) -> Iterator[Finding]:
    refused = not context.readable and context.bundle.fault is None and not context.foreign
    if refused:
        finding = RULE.finding(
            context,
            key="refused",
            summary="SQLite refuses to open the store.",
            evidence=[("what SQLite says", context.refusal)],
            remedy=JUDGED[Part.FILE][3],
        )
        yield _by_hand(finding)
        return
    structure = context.structure
    for damage in structure.damages:
        finding = _finding(context, structure, damage)
        yield finding if damage.part is Part.SEARCH else _by_hand(finding)


def _by_hand(finding: Finding) -> Finding:
    """The recipe mends search indexes alone: for all else a plan would have no step."""
    remedy = msgspec.structs.replace(finding.remedy, command=None)
    return msgspec.structs.replace(finding, remedy=remedy)


def _finding(context: Context, structure: Structure, damage: Damage) -> Finding:
    verdict, severity, statement, remedy = JUDGED[damage.part]
    return RULE.finding(
        context,
        key=f"{damage.part}:{damage.name}",
        verdict=verdict,
        severity=severity,
        summary=statement.format(damage.name),
        evidence=[
            ("kind", damage.part.value),
            ("name", damage.name),
            ("lines of SQLite's check", damage.total),
            ("what SQLite says", list(damage.lines)),
            ("method", structure.method),
        ],
        remedy=remedy,
    )


RULE = Rule(
    id="STO003",
    slug="structural-damage",
    family=Family.STORE,
    level=Level.STRUCTURE,
    severity=Severity.CRITICAL,
    verdict=Verdict.FAULT,
    doc=__doc__,
    check=check,
    recipe="search-index",
    needs_store=False,
)
