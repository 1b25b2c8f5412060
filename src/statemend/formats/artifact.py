"""The one model that every reader yields.

An *artifact* is a file beside the store that holds session content or traces of it. A *section* is
the part of an artifact that belongs to one session; a *record* is one message as the artifact shows it.
Sections carry offsets instead of text, so an inventory of large files stays small: records are read
again, one section at a time, when they are compared.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec


class Kind(StrEnum):
    """What a file is, told from its content and never from its name."""

    JSONL = "jsonl"
    MARKDOWN = "markdown"
    QMD = "qmd"
    HTML = "html"
    PROMPTS_JSONL = "prompts-jsonl"
    PROMPTS_MARKDOWN = "prompts-markdown"
    MANIFEST = "manifest"
    LOG = "log"
    EMPTY = "empty"
    UNCLASSIFIED = "unclassified"
    SAVE_JSON = "save-json"
    SAVE_MARKDOWN = "save-markdown"
    DESKTOP_JSON = "desktop-json"
    TRACE = "trace"
    TRAJECTORY = "trajectory"
    SNAPSHOT_JSON = "session-snapshot"
    TRANSCRIPT_JSONL = "gateway-transcript"
    RESCUE_JSONL = "rescue-transcript"
    REQUEST_DUMP = "request-dump"
    PENDING = "pending-messages"
    ROUTING = "routing"
    STORE = "store"
    ARCHIVE = "archive"
    RESPONSES = "response-store"
    ROUTES = "routing-table"
    DELEGATIONS = "delegations"
    REPLIES = "owed-replies"
    INDEX = "search-index"


#: Kinds that show a whole transcript. The prompts kinds are filtered: they never claim to.
TRANSCRIPTS = frozenset({Kind.JSONL, Kind.MARKDOWN, Kind.QMD, Kind.HTML})
#: Kinds that show only the user's messages, by intent.
FILTERED = frozenset({Kind.PROMPTS_JSONL, Kind.PROMPTS_MARKDOWN})
#: Kinds that a running agent wrote without being asked: what it held at that moment, or could not store.
#: Nobody took them for an export, so what they lack is no fault of theirs.
AUTOMATIC = frozenset(
    {
        Kind.SNAPSHOT_JSON,
        Kind.TRANSCRIPT_JSONL,
        Kind.RESCUE_JSONL,
        Kind.REQUEST_DUMP,
        Kind.PENDING,
        Kind.TRAJECTORY,
        Kind.RESPONSES,
    }
)
#: Tables of the audited store itself that tell of sessions beside their messages. None of them shows a
#: session as it was.
OWN_TABLES = frozenset({Kind.ROUTES, Kind.DELEGATIONS, Kind.REPLIES, Kind.INDEX})
#: Kinds written from the context that a running agent held in memory: texts were cleaned and stripped, no row
#: has its id, and what compaction had archived is not in them. They never license a deletion.
IN_MEMORY = AUTOMATIC | {Kind.SAVE_JSON, Kind.TRACE}


class Record(msgspec.Struct, frozen=True):
    """One message as an artifact shows it. A field is ``None`` where the format drops it.

    ``position`` counts from 0 within the section. ``timestamp`` is epoch seconds in UTC as exactly as the
    format has it; ``clock`` is the local wall time of the exporting machine as text (HTML only), whose
    zone is unknown. ``row`` is the whole exported object where the format has one (JSONL and the prompts
    JSONL): every column of the row, under the names of the release that wrote it.
    """

    position: int
    role: str
    content: Any = None
    timestamp: float | None = None
    clock: str | None = None
    row_id: int | None = None
    tool_call_id: str | None = None
    tool_calls: list[Any] | None = None
    tool_name: str | None = None
    reasoning: str | None = None
    active: int | None = None
    compacted: int | None = None
    summary: bool = False
    row: dict[str, Any] | None = None


class Section(msgspec.Struct, frozen=True):
    """The part of an artifact that belongs to one session (or to one lineage, named after its tip).

    ``session_id`` is empty where the format names none. ``offset`` and ``length`` are bytes of the file.
    ``declared`` is the number of messages that the file says it holds, ``held`` the number that the
    reader found, ``source_count`` the number that the file says the store held. ``lineage`` lists every
    segment of a logical export, oldest first, and is empty for a single session. ``started_at`` is epoch
    seconds; an HTML page has only the exporting machine's wall time and gives it as ``clock``. ``damage``
    says what is wrong with this part of the file, or is ``None``: what a damaged section still holds is
    exact, and it never stands for the whole session. A store also tells how many of the messages are no
    longer live (``inactive``), and the times of the first and the last one (epoch seconds).
    """

    session_id: str
    offset: int
    length: int
    title: str | None = None
    started_at: float | None = None
    parent_id: str | None = None
    lineage: tuple[str, ...] = ()
    declared: int | None = None
    source_count: int | None = None
    exported_at: float | None = None
    held: int | None = None
    clock: str | None = None
    damage: str | None = None
    inactive: int | None = None
    first_at: float | None = None
    last_at: float | None = None


class Artifact(msgspec.Struct, frozen=True):
    """One classified file.

    ``path`` is as given, ``modified_at`` epoch seconds, ``sha256`` over the raw bytes of the whole file. It
    is empty for another store that is too large to be read whole just for it. A store in an archive has the
    path ``ARCHIVE!MEMBER``, and the size, time and digest of the archive. A table of the audited store has
    the path ``STORE!TABLE``, no digest, the time of its last change and the size of its texts.
    ``damage`` says in one phrase what is wrong with the file itself (truncated, checksum mismatch,
    unreadable line), or is ``None``. An empty file is no damage: its kind says it, and an export of a
    session without prompts is lawfully empty.
    """

    path: str
    kind: Kind
    size: int
    modified_at: float
    sha256: str
    sections: tuple[Section, ...] = ()
    damage: str | None = None
