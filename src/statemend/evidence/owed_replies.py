"""``delivery_obligations``: the replies that the gateway of 0.19 and newer owes to its chats.

A reply is written here before it is sent, with its whole text, and stays for a week, whatever becomes of its
session. The row names the chat alone. Its session is the one of that chat which has the text as a message of
the assistant; where none has, the reply was never stored, or its session is gone, or it was sent in another
wording than it is stored in.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from statemend.evidence.attribution import OF_CHAT
from statemend.evidence.own_part import Part
from statemend.formats.artifact import Record, Section
from statemend.formats.clock import finite
from statemend.store.connection import Store
from statemend.store.content import decode_content, plain_text

TABLE = "delivery_obligations"
_REPLIES = """
SELECT session_key, content, created_at
FROM delivery_obligations
WHERE typeof(session_key) = 'text' AND typeof(content) = 'text'
ORDER BY session_key, created_at, obligation_id
"""
_SAID = """
SELECT m.session_id, m.content
FROM sessions AS s
JOIN messages AS m ON m.session_id = s.id
WHERE s.session_key = ? AND m.role = 'assistant' AND typeof(s.id) = 'text'
ORDER BY m.id
"""
_NO_SESSION = "it is owed to a chat of which the store has no session"
_NOT_SAID = "it is owed to a chat; these are its sessions, and none of them has the text"


class _Reply(NamedTuple):
    session_id: str
    key: str
    text: str
    at: float | None


def is_own_chat(root: Path, key: str) -> bool:
    """Whether the chat is one of the home ``root``: the gateway of a home keeps the replies of all profiles,
    whose sessions are in stores of their own."""
    agent, _, rest = key.partition(":")
    folder = root.absolute()
    own = {"main", *([folder.name] if folder.parent.name == "profiles" else ())}
    return agent != "agent" or rest.partition(":")[0] in own


def sections(store: Store) -> Iterator[Part]:
    """One section for each session that a reply was found in, and for what is left of each chat; ``title`` is
    the chat's key. Raises ``StoreUnreadable``."""
    if not store.table_exists(TABLE):
        return
    found: dict[tuple[str, str], list[_Reply]] = {}
    for reply in _replies(store):
        found.setdefault((reply.session_id, reply.key), []).append(reply)
    for (session_id, key), replies in found.items():
        times = [reply.at for reply in replies if reply.at is not None]
        candidates = () if session_id else tuple(each for (each,) in store.rows(OF_CHAT, (key,)))
        yield Part(
            Section(
                session_id,
                0,
                0,
                title=key,
                held=len(replies),
                first_at=min(times, default=None),
                last_at=max(times, default=None),
            ),
            size=sum(len(reply.text) for reply in replies),
            candidates=candidates,
            reason=_NOT_SAID if candidates else _NO_SESSION,
        )


def records(store: Store, section: Section) -> Iterator[Record]:
    """The replies of one section, oldest first."""
    wanted = (section.session_id, section.title)
    found = (reply for reply in _replies(store) if (reply.session_id, reply.key) == wanted)
    for position, reply in enumerate(found):
        yield Record(position, "assistant", reply.text, timestamp=reply.at)


def _replies(store: Store) -> Iterator[_Reply]:
    """Every reply with its session; the messages of each chat are read once."""
    by_chat: dict[str, list[tuple[str, Any]]] = {}
    for key, text, at in store.rows(_REPLIES):
        by_chat.setdefault(key, []).append((text, at))
    for key, owed in by_chat.items():
        said: dict[str, str] = dict.fromkeys((text.strip() for text, _ in owed), "")
        for session_id, content in store.rows(_SAID, (key,)):
            text = plain_text(decode_content(content)).strip()
            if text in said:
                said[text] = session_id
        yield from (_Reply(said[text.strip()], key, text, finite(at)) for text, at in owed)
