"""What a rule is: an id, a docstring, the SQL it reads, and one pure generator of findings.

A rule module holds its docstring (a first line and the five sections below), its SQL constants, one generator
``check(context)`` and one constant ``RULE``. Nothing else registers it: the registry finds it by its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

import msgspec

from statemend.audit.finding import (
    Fact,
    Finding,
    Remedy,
    Severity,
    Subject,
    Value,
    Verdict,
    finding_id,
)

if TYPE_CHECKING:
    from statemend.audit.context import Context

#: The sections of a rule's docstring, in this order. ``explain`` prints them.
SECTIONS = (
    "What it means",
    "How it happens",
    "How we know",
    "What to do",
    "When it is a false alarm",
)

#: For ``Rule.reads`` of a rule that reads these tables through the lineage graph, coverage or a census.
READS_SESSIONS = "SELECT id FROM sessions"
READS_MESSAGES = "SELECT id FROM messages"

_ID = re.compile(r"[A-Z]{3}[0-9]{3}")
_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class Family(StrEnum):
    """What a rule is about; the first three letters of its id say the same (``FTS`` for the search index)."""

    STORE = "store"
    EXPORTS = "exports"
    ORPHANS = "orphans"
    LINEAGE = "lineage"
    MESSAGES = "messages"
    COUNTERS = "counters"
    SEARCH = "search"
    LIFECYCLE = "lifecycle"
    PROFILES = "profiles"


class Level(IntEnum):
    """The order of the audit. What a level finds broken, the later ones cannot trust."""

    BYTES = 1
    STRUCTURE = 2
    SCHEMA = 3
    VALUES = 4
    REFERENCES = 5
    LINEAGE = 6
    HISTORY = 7
    EXPORTS = 8
    COUNTERS = 9
    DERIVED = 10
    HOUSEKEEPING = 11


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule.

    ``severity`` and ``verdict`` are those of its usual finding; a finding may carry others. ``recipe`` names
    the repair that mends it, if there is one. ``reads`` is every SQL text the rule runs: the engine derives
    from it which tables must be there. ``columns`` are those (``table.column``) that every release has and
    without which it would judge by what a view puts in their place. ``sign`` is what makes a session worth a
    look, as an SQL aggregate over its messages: ``Context.suspects`` asks for the signs of all rules in one
    pass. ``needs_store`` is false for a rule that
    also says something when the store cannot be opened, from its bytes or from the files beside it; it asks
    ``context.readable`` first. ``needs_company`` is true for one that asks the other stores of a home,
    ``in_pairs`` for one that compares it with each of them, ``needs_owner`` for one that asks which profile
    the store is of.
    """

    id: str
    slug: str
    family: Family
    level: Level
    severity: Severity
    verdict: Verdict
    doc: str
    check: Callable[[Context], Iterator[Finding]]
    reads: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    sign: str | None = None
    recipe: str | None = None
    needs_store: bool = True
    needs_company: bool = False
    needs_owner: bool = False
    in_pairs: bool = False

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise ValueError(f"rule id {self.id!r} is not three letters and three digits")
        if not _SLUG.fullmatch(self.slug):
            raise ValueError(f"rule slug {self.slug!r} of {self.id} is not words joined by hyphens")

    @property
    def title(self) -> str:
        """The first line of the docstring: one sentence that says what a finding states."""
        return self.doc.strip().partition("\n")[0].strip()

    @property
    def sections(self) -> dict[str, str]:
        """The docstring's sections, heading to text, in the order they are written."""
        found: dict[str, list[str]] = {}
        current: list[str] | None = None
        for line in self.doc.splitlines():
            if line.strip() in SECTIONS and line == line.lstrip():
                current = found.setdefault(line.strip(), [])
            elif current is not None:
                current.append(line.strip())
        return {heading: "\n".join(lines).strip() for heading, lines in found.items()}

    def finding(
        self,
        context: Context,
        *,
        summary: str,
        remedy: str,
        command: str | None = None,
        evidence: Sequence[tuple[str, Value]] = (),
        session: str | None = None,
        artifact: str | None = None,
        message_ids: Sequence[int] = (),
        key: str | None = None,
        verdict: Verdict | None = None,
        severity: Severity | None = None,
        planned: bool = True,
    ) -> Finding:
        """A finding of this rule. Its id depends on rule, session, artifact, profile and ``key``, which tells
        two findings about one subject apart and must not contain what grows (counts, times). Evidence whose
        value is ``None`` is left out. Where a recipe mends a fault, the command to run next is
        ``statemend plan``, unless ``planned`` is false: then a plan has nothing for this one.
        """
        if planned and self.recipe is not None and (verdict or self.verdict) is Verdict.FAULT:
            command = context.command("plan", context.home.root, output="plan.json")
        return Finding(
            id=finding_id(
                self.id,
                session,
                None if artifact is None else context.lasting_name(artifact),
                key,
                *filter(None, [context.home.place]),
            ),
            rule=self.id,
            verdict=verdict or self.verdict,
            severity=severity or self.severity,
            subject=Subject(
                store=context.store_label, session=session, artifact=artifact, message_ids=tuple(message_ids)
            ),
            summary=summary,
            evidence=tuple(Fact(label, value) for label, value in evidence if value is not None),
            remedy=Remedy(text=remedy, command=command),
        )
