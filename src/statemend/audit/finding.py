"""What a rule yields."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from enum import StrEnum

import msgspec


class Verdict(StrEnum):
    """How a finding stands."""

    FAULT = "fault"  # wrong now
    RISK = "risk"  # right now, but the next export, prune or upgrade loses something
    LEFTOVER = "leftover"  # lawful residue
    UNDECIDABLE = "undecidable"  # the evidence here cannot tell


class Severity(StrEnum):
    """How much it matters, worst first."""

    CRITICAL = "critical"  # text is gone, or is about to be
    HIGH = "high"  # text is unreachable, or the store refuses writes
    MEDIUM = "medium"  # Hermes serves the wrong history
    LOW = "low"  # wrong numbers, clutter
    INFO = "info"


Value = str | int | float | bool | Sequence[str | int] | None


class Fact(msgspec.Struct, frozen=True):
    """One piece of evidence: a label and what was measured. Never message text."""

    label: str
    value: Value


class Subject(msgspec.Struct, frozen=True):
    """What a finding is about. ``message_ids`` holds, for each logical message, the id of the row that a
    display would show."""

    store: str
    session: str | None = None
    artifact: str | None = None
    message_ids: tuple[int, ...] = ()


class Remedy(msgspec.Struct, frozen=True):
    """What to do: in words, and where there is one, the exact command to run next."""

    text: str
    command: str | None = None


class Finding(msgspec.Struct, frozen=True):
    """One fault found. ``id`` is stable across runs: it depends on the rule and on what the subject *is*, not
    on counts or times that grow."""

    id: str
    rule: str
    verdict: Verdict
    severity: Severity
    subject: Subject
    summary: str
    evidence: tuple[Fact, ...]
    remedy: Remedy


def finding_id(rule: str, *parts: str | None) -> str:
    """The stable id of a finding of ``rule`` about ``parts`` (session id, artifact path, a discriminator)."""
    digest = hashlib.sha256("\0".join(part or "" for part in parts).encode("utf-8", "surrogatepass"))
    return f"{rule}-{digest.hexdigest()[:10]}"
