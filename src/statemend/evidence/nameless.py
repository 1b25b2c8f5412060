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
    for the sessions in which the same was said. So is all that may be of a session as well."""

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
        return [each for each, texts in fitting if not self._has_rival(session_id, texts)]

    @cached_property
    def _by_mark(self) -> dict[bytes, list[int]]:
        found: dict[bytes, list[int]] = {}
        for number, each in enumerate(self._sections):
            for mark in _marks(_words(said(*each))):
                found.setdefault(mark, []).append(number)
        return found

    def _has_rival(self, session_id: str, texts: Texts) -> bool:
        """Whether such a transcript may be of another session as well."""
        marks = _marks(texts)
        stored_in = {each for mark in marks for each in self._stored_in.get(mark, ())} - {session_id}
        if any(_is_one(texts, _words(stored(self._store, other))) for other in sorted(stored_in)):
            return True
        numbers = sorted({number for mark in marks for number in self._shown_in.get(mark, ())})
        others = (self._elsewhere[number] for number in numbers)
        return any(
            _is_one(texts, _words(said(*other))) for other in others if other[1].session_id != session_id
        )

    @cached_property
    def _stored_in(self) -> dict[bytes, set[str]]:
        """The sessions of the store in which a text of these transcripts was said."""
        found: dict[bytes, set[str]] = {}
        for session_id, content in self._store.rows(USER_TEXTS):
            mark = digest_of(spoken("user", decode_content(content)).strip())
            if mark in self._by_mark:
                found.setdefault(mark, set()).add(session_id)
        return found

    @cached_property
    def _elsewhere(self) -> list[tuple[Artifact, Section]]:
        """The sections that name a session, in files and in other stores."""
        artifacts = (*self._inventory.artifacts, *self._inventory.stores)
        return [(each, section) for each in artifacts for section in each.sections if section.session_id]

    @cached_property
    def _shown_in(self) -> dict[bytes, list[int]]:
        """The ``_elsewhere`` in which a text of these transcripts was said."""
        found: dict[bytes, list[int]] = {}
        for number, each in enumerate(self._elsewhere):
            for mark in _marks(_words(said(*each))) & self._by_mark.keys():
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
