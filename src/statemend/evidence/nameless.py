"""Transcripts that name no session, as sources of one that they are certainly of.

One counts for a session when their texts are the same as far as both go, and when no other session that the
store, another store or any file knows could be meant as well. Where that is not so, it counts for none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from statemend.evidence.attribution import USER_TEXTS, digest_of, fits, said, stored
from statemend.evidence.inventory import Inventory
from statemend.evidence.memory import spoken
from statemend.formats.artifact import Artifact, Section
from statemend.store.connection import Store
from statemend.store.content import decode_content, is_summary_text

#: Parts of artifacts.
Sections = Sequence[tuple[Artifact, Section]]
Texts = list[tuple[str, str]]

#: So many texts must agree, and one of the user's must be so long (characters).
_ENOUGH, _TELLING = 3, 12


class Nameless:
    """The sections without a session, by what the user says in them: each is read once for that, and again
    for the sessions in which the same was said."""

    def __init__(self, store: Store, inventory: Inventory) -> None:
        self._store = store
        self._inventory = inventory
        self._sections = [each for each in inventory.sections() if not each[1].session_id]

    def of(self, session_id: str, named: Sections) -> list[tuple[Artifact, Section]]:
        """Those that are of this session; ``named`` are the sections that name it.

        Raises ``StoreUnreadable`` when the store, ``Undetermined`` when an artifact cannot be read.
        """
        if not self._sections:
            return []
        own = [texts for texts in _of_session(self._store, session_id, named) if texts]
        asked = {mark for texts in own for mark in _marks(texts)}
        numbers = sorted({number for mark in asked for number in self._by_mark.get(mark, ())})
        shown = ((self._sections[number], _words(said(*self._sections[number]))) for number in numbers)
        fitting = [(each, texts) for each, texts in shown if any(_is_one(texts, other) for other in own)]
        if not fitting:
            return []
        rivals = _rivals(self._store, self._inventory, session_id, [texts for _, texts in fitting])
        return [each for (each, _), others in zip(fitting, rivals, strict=True) if not others]

    @cached_property
    def _by_mark(self) -> dict[bytes, list[int]]:
        found: dict[bytes, list[int]] = {}
        for number, each in enumerate(self._sections):
            for mark in _marks(_words(said(*each))):
                found.setdefault(mark, []).append(number)
        return found


def _marks(texts: Texts) -> set[bytes]:
    """The texts of the user that are long enough to tell, in few bytes each."""
    return {digest_of(text) for role, text in texts if role == "user" and len(text) >= _TELLING}


def _of_session(store: Store, session_id: str, named: Sections) -> Iterator[Texts]:
    """What each source of a session has of it; a file with several sessions in one is none."""
    yield _words(stored(store, session_id))
    for artifact, section in named:
        if len(section.lineage) < 2:
            yield _words(said(artifact, section))


def _rivals(store: Store, inventory: Inventory, session_id: str, fitting: Sequence[Texts]) -> list[set[str]]:
    """For each of these transcripts, the other sessions that it may be of."""
    asked = [{text for role, text in texts if role == "user"} for texts in fitting]
    found: list[set[str]] = [set() for _ in fitting]
    suspects: dict[str, set[int]] = {}
    for other, content in store.rows(USER_TEXTS):
        text = spoken("user", decode_content(content)).strip()
        for number, words in enumerate(asked):
            if text in words and other != session_id:
                suspects.setdefault(other, set()).add(number)
    for other, numbers in suspects.items():
        theirs = _words(stored(store, other))
        for number in numbers:
            if _is_one(fitting[number], theirs):
                found[number].add(other)
    for artifact, section in _elsewhere(inventory, session_id):
        theirs = _words(said(artifact, section))
        for number, texts in enumerate(fitting):
            if _is_one(texts, theirs):
                found[number].add(section.session_id)
    return found


def _elsewhere(inventory: Inventory, session_id: str) -> Iterator[tuple[Artifact, Section]]:
    """The sections of all other sessions, each once."""
    for artifact in (*inventory.artifacts, *inventory.stores):
        for section in artifact.sections:
            if section.session_id not in ("", session_id):
                yield artifact, section


def _words(texts: Iterator[tuple[str, str]]) -> Texts:
    return [(role, text.strip()) for role, text in texts if text.strip() and not is_summary_text(text)]


def _is_one(one: Texts, other: Texts) -> bool:
    """Whether two transcripts are of one session as far as both go."""
    common = set(one) & set(other)
    if len(common) < _ENOUGH or not any(role == "user" and len(text) >= _TELLING for role, text in common):
        return False
    return fits(one, other) or _goes_on(one, other) or _goes_on(other, one)


def _goes_on(one: Texts, other: Texts) -> bool:
    """Whether the second goes on where the first ends, and has nothing else before: a compaction may have
    taken some of that out of it."""
    last = next((place for place in reversed(range(len(other))) if other[place] == one[-1]), None)
    return last is not None and fits(other[: last + 1], one)
