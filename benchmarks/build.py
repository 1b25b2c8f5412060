"""Build the benchmark store: 300,000 messages in 20,000 sessions, about 1.2 GB with its search indexes.

The empty store comes from a real Hermes 0.22.2, so tables, indexes, triggers and search layout are the
release's own. Rows go in with the triggers taken off, carrying the values that the triggers would have
written; then the release's own definitions of the triggers come back and FTS5 rebuilds its indexes.
"""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
from tests.hermes.home import HermesHome

SEED = 20261130
FIRST_DAY = 1_764_000_000.0
#: One session in this many was compacted in place, one rotated, one forked, one undone.
COMPACTED, ROTATED, BRANCHED, REWOUND = 20, 25, 60, 40


def vocabulary(random_: random.Random) -> list[str]:
    """4,000 pronounceable words, common ones first."""
    heads = ("b", "c", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "st", "tr", "pl")
    tails = ("a", "e", "i", "o", "u", "ai", "ea", "io", "ou", "an", "er", "in", "or")
    return [
        "".join(random_.choice(heads) + random_.choice(tails) for _ in range(random_.randint(1, 4)))
        for _ in range(4000)
    ]


class Texts:
    """Text of a wanted length, cut from one long shuffled passage, so that making it costs nothing."""

    def __init__(self, random_: random.Random) -> None:
        words = vocabulary(random_)
        weights = [1 / (rank + 3) for rank in range(len(words))]
        self._passage = " ".join(random_.choices(words, weights, k=400_000))
        self._random = random_

    def take(self, length: int) -> str:
        """So many characters from anywhere in the passage."""
        start = self._random.randrange(len(self._passage) - length)
        return self._passage[start : start + length]


def _identity(key: tuple[Any, ...]) -> bytes:
    return hashlib.sha256(repr(key).encode()).digest()


class Builder:
    """Rows of the whole store, session by session."""

    def __init__(self, messages: int, sessions: int) -> None:
        self.random = random.Random(SEED)
        self.texts = Texts(self.random)
        self.per_session = messages // sessions
        self.sessions = sessions
        self.next_id = 1

    def session(self, number: int) -> tuple[tuple[Any, ...], list[tuple[Any, ...]]]:
        """The row of a session, by its number from 0, and those of its messages. In order: each may continue
        the one before."""
        started = FIRST_DAY + number * 1500.0
        stamp = time.strftime("%Y%m%d_%H%M%S", time.gmtime(started))
        session_id = f"{stamp}_{number:06x}"
        parent, config, reason = None, None, "cli_close"
        if number % ROTATED == 1:
            parent = self._last
        elif number % BRANCHED == 2:
            parent, config = self._last, json.dumps({"_branched_from": self._last})
        if number % ROTATED == 0:
            reason = "compression"
        rows = list(self._messages(session_id, number, started))
        live = sum(1 for row in rows if row[7] == 1)
        calls = sum(1 for row in rows if row[7] == 1 and row[4])
        self._last = session_id
        ended = started + 1400.0
        return (
            session_id, "cli" if number % 10 else "telegram", "cli", "anthropic/claude-sonnet-4.5", config,
            parent, started, ended, reason, live, calls, f"Session {number}", ended,
        ), rows  # fmt: skip

    def _messages(self, session_id: str, number: int, started: float) -> Iterator[tuple[Any, ...]]:
        count = self.per_session
        compacted = count - 4 if number % COMPACTED == 0 else 0
        rewound = 2 if number % REWOUND == 3 else 0
        for position in range(count):
            at = started + 5.0 + position * 60.0
            state = (0, 1) if position < compacted else (0, 0) if position >= count - rewound else (1, 0)
            yield self._message(session_id, position, at, position == compacted and compacted > 0, *state)

    def _message(
        self, session_id: str, position: int, at: float, summary: bool, active: int, compacted: int
    ) -> tuple[Any, ...]:
        role = ("user", "assistant", "tool")[position % 3]
        calls = call_id = name = None
        if role == "user":
            text = self.texts.take(self.random.randint(20, 400))
            if summary:
                text = "[CONTEXT COMPACTION — REFERENCE ONLY] " + text
        elif role == "assistant":
            text = self.texts.take(self.random.randint(100, 2800))
            arguments = json.dumps({"command": self.texts.take(60)})
            calls = json.dumps(
                [
                    {
                        "id": f"call_{self.next_id}",
                        "type": "function",
                        "function": {"name": "terminal", "arguments": arguments},
                    }
                ]
            )
        else:
            text = self.texts.take(self.random.choice((120, 900, 4000)))
            call_id, name = f"call_{self.next_id - 1}", "terminal"
        row_id, self.next_id = self.next_id, self.next_id + 1
        key: tuple[Any, ...] = (role, text, at, call_id, calls, name)
        if role == "assistant":
            key = (role, None, at, call_id, (f"call_{row_id}",), name)
        return (
            row_id, session_id, role, text, calls, call_id, name, active, compacted, at,
            _identity(key), row_id, f"{row_id:032x}", int(summary),
        )  # fmt: skip


def build(folder: Path, messages: int = 300_000, sessions: int = 20_000) -> float:
    """Make ``folder`` a home with the store in it; returns the seconds it took."""
    begun = time.perf_counter()
    with HermesHome("0.22.2", folder) as home:
        home.store("session_count")
    connection = apsw.Connection(str(home.state_db))
    connection.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -200000")
    triggers = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'messages'"
    ).fetchall()
    for name, _ in triggers:
        connection.execute(f'DROP TRIGGER "{name}"')
    builder = Builder(messages, sessions)
    with connection:
        for number in range(sessions):
            session, rows = builder.session(number)
            connection.execute(
                """
                INSERT INTO sessions (id, source, created_source, model, model_config, parent_session_id,
                    started_at, ended_at, end_reason, message_count, tool_call_count, title, last_activity_at)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """,
                session,
            )
            connection.executemany(
                """
                INSERT INTO messages (id, session_id, role, content, tool_calls, tool_call_id, tool_name,
                    active, compacted, timestamp, display_identity, display_order, message_uid,
                    _compressed_summary)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """,
                rows,
            )
    for _, sql in triggers:
        connection.execute(sql)
    with connection:
        connection.execute("INSERT INTO messages_fts(messages_fts) VALUES ('rebuild')")
        connection.execute("INSERT INTO messages_fts_trigram(messages_fts_trigram) VALUES ('rebuild')")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    return time.perf_counter() - begun
