"""The messages by which each release says that something did not reach the store.

| since | message begins | what failed |
|---|---|---|
| 0.13 | ``Session DB append_message failed: E`` | the messages of a turn |
| 0.13 | ``Session DB creation failed (will retry next turn): E`` | the session row |
| 0.13 | ``Session DB compression split failed — new session will NOT be …: E`` | a compression's child |
| 0.13 | ``Session DB operation failed: E`` (level DEBUG) | a gateway's session row or message |
| 0.13 | ``Failed to persist ACP session S`` (the cause is in the traceback below) | an editor's session |
| 0.18 | ``Incremental tool-call persistence failed after STAGE: E`` | the messages of a running turn |
| 0.18 | ``finalize_turn: _persist_session failed: E`` | the messages of a turn |
| 0.19 | ``Session DB transcript append failed for S (failure_count=N, …); …: E`` | a gateway's message |
| 0.19 | ``Session DB transcript pending queue full for S (cap=N); dropping …`` | a message, given up |
| 0.20 | ``Session DB transcript append rejected for compression-ended S …`` | a message, given up |
| 0.22 | ``Session DB refused further writes on this handle for S (TYPE); …: E`` | a gateway's messages |
| 0.22 | ``Session DB row for S is missing and could not be recreated; …`` | the session row |
| 0.22 | ``codex app-server turn was delivered but could NOT be persisted … (session=S)`` | a turn |
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Failure(NamedTuple):
    """What a message says: the operation that failed, the session it names, the cause it gives."""

    operation: str
    session_id: str | None
    error: str


_PATTERNS = tuple(
    (operation, re.compile(pattern, re.DOTALL))
    for operation, pattern in (
        ("append", r"Session DB append_message failed: (?P<error>.*)"),
        ("create", r"Session DB creation failed \(will retry next turn\): (?P<error>.*)"),
        ("split", r"Session DB compression split failed \S+ new session will NOT be indexed: (?P<error>.*)"),
        ("append", r"Session DB operation failed: (?P<error>.*)"),
        ("append", r"Failed to persist ACP session (?P<session>\S+)"),
        ("append", r"Incremental tool-call persistence failed after .{0,200}?: (?P<error>.*)"),
        ("append", r"finalize_turn: _persist_session failed: (?P<error>.*)"),
        (
            "append",
            r"Session DB transcript append failed for (?P<session>.{1,300}?) \(failure_count=[^)]{0,200}\); "
            r"(?:will retry|session is stalled [^:]*): (?P<error>.*)",
        ),
        (
            "drop",
            r"Session DB transcript pending queue full for (?P<session>.{1,300}?) \(cap=\d+\); dropping ",
        ),
        (
            "drop",
            r"Session DB transcript append rejected for compression-ended (?P<session>.{1,300}?) "
            r"with no unique live child",
        ),
        (
            "append",
            r"Session DB refused further writes on this handle for (?P<session>.{1,300}?) \([^)]{0,200}\); "
            r"[^:]*: (?P<error>.*)",
        ),
        ("create", r"Session DB row for (?P<session>.{1,300}?) is missing and could not be recreated"),
        (
            "append",
            r"codex app-server turn was delivered but could NOT be persisted to the session DB "
            r"\(session=(?P<session>[^)]+)\)",
        ),
    )
)
#: A line without one of these holds none of the messages.
MARKS = (b"Session DB ", b"ersist")


def match_failure(message: str) -> Failure | None:
    """What the message of a log line says about the store, or ``None`` if it is about something else."""
    for operation, pattern in _PATTERNS:
        found = pattern.match(message)
        if found is not None:
            parts = found.groupdict()
            return Failure(operation, parts.get("session"), (parts.get("error") or "").strip())
    return None
