"""A real release that writes on its own while a test does something else to the same store.

The writer works through what it is given, one operation after another, in a thread that does nothing but talk
to the release's process. It keeps a model of what each session must hold, from the answers alone.
"""

from __future__ import annotations

import queue
import random
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.hermes.home import HermesError, HermesHome

from statemend.repair import preflight
from statemend.store import connection, writing


def hide_holders(patch: pytest.MonkeyPatch) -> None:
    """No process is seen to hold the store, as if it had opened it a moment later: only the fence is left."""
    for module in (connection, writing, preflight):
        patch.setattr(module, "find_holders", lambda bundle: ())


@dataclass
class Told:
    """What a session must hold: ``live`` in order, and ``stored``, every row that no rewrite removed."""

    live: list[str] = field(default_factory=list)
    stored: Counter[str] = field(default_factory=Counter)


class Writer:
    """Appends to, edits, undoes and compacts the sessions of a home, and closes and reopens its store."""

    def __init__(self, home: HermesHome, sessions: tuple[str, ...], seed: str) -> None:
        self.home = home
        self.sessions = sessions
        self.told = {session: Told() for session in sessions}
        self.errors: list[HermesError] = []
        self.done = 0
        self._random = random.Random(seed)
        self._number = 0
        self._prefix = home.summary_prefix()
        self._work: queue.SimpleQueue[tuple[str, ...] | None] = queue.SimpleQueue()
        self._idle = threading.Condition()
        self._waiting = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def start(self, count: int, sessions: tuple[str, ...] | None = None) -> None:
        """Have ``count`` operations done on some of ``sessions``, and return at once."""
        with self._idle:
            self._waiting += count
        for _ in range(count):
            self._work.put(sessions or self.sessions)

    def wait(self) -> None:
        """Return when everything that was started is done."""
        with self._idle:
            assert self._idle.wait_for(lambda: self._waiting == 0, 300), "the release did not come to an end"

    def stop(self) -> None:
        """End the thread."""
        self._work.put(None)
        self._thread.join(300)

    def begin(self, session: str) -> None:
        """Four messages, the first two of them archived, written in the caller's thread. They are no burst:
        one that a summary follows at once looks like the end of a session that is gone."""
        for number in range(4):
            self._append(session, gap=5.0)
            if number == 1:
                self._compact(session)

    def _run(self) -> None:
        while (sessions := self._work.get()) is not None:
            try:
                self._operate(self._random.choice(sessions))
            except HermesError as error:
                self.errors.append(error)
            except (RuntimeError, OSError, ValueError) as error:  # the process is gone: no answer will come
                self.errors.append(HermesError(type(error).__name__, str(error)))
            with self._idle:
                self._waiting -= 1
                self.done += 1
                self._idle.notify_all()

    def _operate(self, session: str) -> None:
        """One operation. Each of them commits something."""
        operations = [self._append] * 6 + [self._undo, self._edit, self._compact, self._reopen]
        self._random.choice(operations)(session)

    def _text(self, what: str) -> str:
        self._number += 1
        return f"{what} {self._number}"

    def _append(self, session: str, gap: float = 1.0) -> None:
        told = self.told[session]
        role = "assistant" if len(told.live) % 2 else "user"
        text = self._text("message")
        self.home.append(session, role, text, gap=gap)
        told.live.append(text)
        told.stored[text] += 1

    def _undo(self, session: str) -> None:
        """``/undo``: the last user message and all after it are taken back; their rows stay."""
        told = self.told[session]
        rows = self.home.messages(session)
        asked = [number for number, row in enumerate(rows) if row["role"] == "user"]
        if not asked:
            self._append(session)
            return
        self.home.store("rewind_to_message", session, rows[asked[-1]]["id"])
        del told.live[asked[-1] :]

    def _edit(self, session: str) -> None:
        """A message is written anew: the live rows are replaced, and the store lets the old ones go."""
        told = self.told[session]
        texts = [*told.live[:-1], self._text("edited")]
        self.home.store("replace_messages", session, _as_messages(texts), active_only=True)
        told.stored.subtract(told.live)
        told.stored.update(texts)
        told.live = texts

    def _compact(self, session: str) -> None:
        told = self.told[session]
        if len(told.live) < 2:
            self._append(session)
            return
        summary = f"{self._prefix}\n## Goal\n{self._text('Count to')}."
        texts = [summary, *told.live[-1:]]
        self.home.store("archive_and_compact", session, _as_messages(texts))
        told.live = texts
        told.stored.update(texts)

    def _reopen(self, session: str) -> None:
        """The release closes its store, as at an exit, and opens it again."""
        self.home.process.call("close", path=None)
        self._append(session)

    def check(self) -> None:
        """Every session holds what it must, and nothing else; nothing that the writer did has failed."""
        assert not self.errors
        for session, told in self.told.items():
            assert [row["content"] for row in self.home.messages(session)] == told.live
            rows = self.home.rows("SELECT content FROM messages WHERE session_id = ?", session)
            assert Counter(content for (content,) in rows) == told.stored
        assert self.home.rows("PRAGMA integrity_check") == [["ok"]]
        self.home.rows("INSERT INTO messages_fts(messages_fts) VALUES ('integrity-check')")
        assert self.home.rows("PRAGMA foreign_key_check") == []


def _as_messages(texts: list[str]) -> list[dict[str, Any]]:
    """Texts as the agent hands them to the store: the roles take turns."""
    return [
        {"role": "assistant" if number % 2 else "user", "content": text} for number, text in enumerate(texts)
    ]
