"""Whose a transcript is that names no session: told by its texts, or left open.

A session fits when it has every text of the transcript that a user or an assistant said, in that order, or
when the transcript has every one of the session's. One that fits alone is the one. Where several fit, as a
branch and what it was branched from do, or where so little was said that it could be anybody's, they are
named and nothing is guessed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from statemend import formats
from statemend.evidence.inventory import Inventory
from statemend.evidence.memory import spoken
from statemend.evidence.wording import MARKDOWN, structured
from statemend.formats import pending
from statemend.formats.artifact import Artifact, Kind, Section
from statemend.store.connection import Store
from statemend.store.content import decode_content
from statemend.store.history import View, messages

#: So many texts must agree.
_ENOUGH = 2
#: So many of a transcript's texts of the user are looked for in the store.
_PROBES = 3
#: Of more sessions that hold one of these texts, none is compared.
_MOST = 50
_SPOKEN = frozenset({"user", "assistant"})

OF_CHAT = "SELECT id FROM sessions WHERE session_key = ? AND typeof(id) = 'text' ORDER BY started_at, id"
USER_TEXTS = "SELECT session_id, content FROM messages WHERE role = 'user' AND typeof(session_id) = 'text'"


class Attribution(msgspec.Struct, frozen=True):
    """One section that names no session. ``session_id`` is the session that it was found to be of, or
    ``None``; ``candidates`` are those that fit, in order, when it is not one; ``reason`` says why."""

    artifact: Artifact
    section: Section
    session_id: str | None
    candidates: tuple[str, ...]
    reason: str


def attribute(store: Store, inventory: Inventory) -> tuple[Attribution, ...]:
    """Every section without a session, and whose it is. Read are the user's texts in the store, once, and the
    sessions that may fit.

    Raises ``StoreUnreadable`` when the store, ``Undetermined`` when an artifact cannot be read."""
    nameless = [each for each in inventory.sections() if not each[1].session_id]
    if not nameless:
        return ()
    probes: dict[bytes, set[int]] = {}
    for number, (artifact, section) in enumerate(nameless):
        for text in _probes(artifact, section):
            probes.setdefault(digest_of(text), set()).add(number)
    holders: list[set[str]] = [set() for _ in nameless]
    for session_id, content in store.rows(USER_TEXTS) if probes else ():
        for number in probes.get(digest_of(spoken("user", decode_content(content))), ()):
            holders[number].add(session_id)

    @lru_cache(maxsize=_MOST)
    def spoken_in(session_id: str) -> tuple[bytes, ...]:
        """What was said in a session of the store: many transcripts may be compared with it."""
        return tuple(map(_mark, stored(store, session_id)))

    return tuple(
        _settled(store, *nameless[number], sorted(found), spoken_in) for number, found in enumerate(holders)
    )


def _probes(artifact: Artifact, section: Section) -> tuple[str, ...]:
    """The first, the last and the longest text of the user."""
    asked = [text for role, text in said(artifact, section) if role == "user"]
    return tuple(dict.fromkeys((asked[0], asked[-1], max(asked, key=len)))) if asked else ()


def _settled(
    store: Store,
    artifact: Artifact,
    section: Section,
    holders: Sequence[str],
    spoken_in: Callable[[str], Sequence[bytes]],
) -> Attribution:
    def result(session_id: str | None, candidates: Sequence[str], reason: str) -> Attribution:
        return Attribution(artifact, section, session_id, tuple(candidates), reason)

    chat = pending.chat_of(Path(artifact.path)) if artifact.kind is Kind.PENDING else None
    if chat is not None:
        ids = [session_id for (session_id,) in store.rows(OF_CHAT, (chat,))]
        return result(None, ids[-_MOST:], "it was waiting for its turn in a chat; these are its sessions")
    if not holders:
        return result(None, (), "no session of the store has its texts")
    if len(holders) > _MOST:
        return result(None, (), f"{len(holders):,} sessions have one of its texts, too many to be compared")
    shown = list(map(_mark, said(artifact, section)))
    if len(shown) < _ENOUGH:
        return result(None, holders, "it says too little to tell whose it is")
    fitting = [each for each in holders if fits(shown, spoken_in(each))]
    if len(fitting) == 1:
        return result(fitting[0], (), f"its {len(shown):,} texts are this session's, and no other has them")
    if fitting:
        return result(None, fitting, "several sessions have its texts")
    return result(None, (), "no session has its texts in their order")


def fits(shown: Sequence[object], whole: Sequence[object]) -> bool:
    """Whether two transcripts may be of one session: one of them has every text of the other, in order."""
    return _within(shown, whole) or (len(whole) >= _ENOUGH and _within(whole, shown))


def _within(some: Iterable[object], whole: Iterable[object]) -> bool:
    """Whether ``some`` stand in ``whole``, in their order."""
    rest = iter(whole)
    return all(each in rest for each in some)


def stored(store: Store, session_id: str) -> Iterator[tuple[str, str]]:
    """What a user and an assistant said in a session of the store: role and text."""
    for row in messages(store, session_id, View.RAW):
        if row.role in _SPOKEN and (text := spoken(row.role, row.content)):
            yield row.role, text


def said(artifact: Artifact, section: Section) -> Iterator[tuple[str, str]]:
    """What a user and an assistant said in a transcript: role and text."""
    for record in formats.records(Path(artifact.path), artifact, section):
        if record.role not in _SPOKEN:
            continue
        content = structured(record.content) if artifact.kind in MARKDOWN else record.content
        if text := spoken(record.role, content):
            yield record.role, text


def _mark(said: tuple[str, str]) -> bytes:
    """A role and a text in few bytes."""
    role, text = said
    return role.encode() + digest_of(text)


def digest_of(text: str) -> bytes:
    """A text in few bytes."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
