"""A story as data: the contract ``statemend/story/v1``.

It says in order what happened, what was lost, what was had back from where, what nobody knows, what statemend
changed, and what the operator decided. Each statement names its evidence and the command that shows it again.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

SCHEMA: Final = "statemend/story/v1"

#: In the order in which they come when they happen at the same moment.
MomentKind = Literal[
    "compacted",
    "exported",
    "deleted",
    "append-failed",
    "played",
    "audited",
    "preserved",
    "repaired",
    "cleaned up",
    "undone",
]


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """One report or run that the story is told from."""

    what: str
    path: str
    home: str
    at: str | None


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened. Either ``at`` (UTC) or ``clock`` (the wall time of the machine that wrote a
    log, whose zone is unknown) is set. ``count`` is how many such moments this stands for, ``until`` when the
    last of them was."""

    kind: MomentKind
    at: str | None = None
    clock: str | None = None
    until: str | None = None
    session: str | None = None
    count: int = 1
    detail: str = ""
    source: str
    command: str


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is so. ``first`` and ``last`` are when reports saw it (UTC); ``ended`` is the run that
    put an end to it. ``sources`` say where a value came from."""

    text: str
    session: str | None = None
    finding: str | None = None
    first: str | None = None
    last: str | None = None
    ended: str | None = None
    sources: tuple[str, ...] = ()
    command: str


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a store that statemend made. The digests are of the whole store; ``snapshot`` is the
    sha256 of the copy taken before."""

    what: str
    run: str
    store: str
    state: str
    at: str | None
    rows: dict[str, int]
    sessions: tuple[str, ...]
    digest_before: str | None
    digest_after: str | None
    snapshot: str | None
    notes: tuple[str, ...] = ()
    command: str


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Something that the operator decided: the question, the answer, and why where it was said."""

    question: str
    answer: str
    why: str | None = None
    evidence: tuple[str, ...] = ()
    command: str


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """The whole story. ``lost`` is text that is gone, ``endangered`` what is about to be; ``recovered`` what
    was had back or preserved; ``unknown`` what the evidence does not tell."""

    schema: Literal["statemend/story/v1"] = SCHEMA
    tool: str
    headline: str
    homes: tuple[str, ...]
    told_from: tuple[Told, ...]
    events: tuple[Moment, ...]
    lost: tuple[Statement, ...]
    endangered: tuple[Statement, ...]
    other: tuple[Statement, ...]
    recovered: tuple[Statement, ...]
    unknown: tuple[Statement, ...]
    changed: tuple[Changed, ...]
    decisions: tuple[Decision, ...]
