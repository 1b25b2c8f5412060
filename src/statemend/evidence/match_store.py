"""What other stores hold of a session, row by row and by content.

Row ids only break ties: the same id is another message in a store that was begun anew.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from statemend.errors import StatemendError
from statemend.evidence.rows import Fidelity, SessionRows, Tally
from statemend.formats import stores
from statemend.formats.artifact import Artifact, Section
from statemend.store.connection import Store
from statemend.store.history import Message, RowState, View, messages
from statemend.store.identity import message_digest

#: So many are open at a time.
_MOST_OPEN = 3


def match_store(rows: SessionRows, theirs: Iterable[Message]) -> Tally:
    """What the rows of the same session in another store hold of it. What cannot be read any more cuts it."""
    tally = Tally(rows)
    by_content: dict[bytes, list[int]] = {}
    for row in rows.rows:
        by_content.setdefault(message_digest(row), []).append(row.id)
    others: list[Message] = []
    try:
        for message in theirs:
            tally.records += 1
            tally.inactive = tally.inactive or message.state in (RowState.ARCHIVED, RowState.REWOUND)
            candidates = by_content.get(message_digest(message))
            if candidates is None:
                others.append(message)
            elif not tally.take(candidates, Fidelity.EXACT, message.id):
                tally.repeated += 1
    except StatemendError:
        tally.cut = True
    for other in others:
        if other.id not in tally.held and _stands_at(rows.by_id.get(other.id), other):
            tally.changed[other.id] = None
        else:
            tally.extra += 1
    return tally


def _stands_at(row: Message | None, other: Message) -> bool:
    """Whether a row is the same message with another text."""
    return row is not None and (row.role, row.timestamp) == (other.role, other.timestamp)


class OtherStores:
    """Other stores in the order in which they are asked, opened as they are needed and a few at a time."""

    def __init__(self, artifacts: Sequence[Artifact], *, deep: bool) -> None:
        self._artifacts = [each for each in artifacts if each.damage is None]
        self._deep = deep
        self._open: OrderedDict[str, tuple[ExitStack, Store]] = OrderedDict()

    def close(self) -> None:
        """Close what is open."""
        while self._open:
            self._open.popitem()[1][0].close()

    def compare(
        self, rows: SessionRows, listed: Sequence[tuple[Artifact, Section]], wanted: Iterable[int]
    ) -> Iterator[tuple[Artifact, Section, Tally]]:
        """Compare a session with the stores that are ``listed`` for it, and with the others until each of the
        places ``wanted`` is found in one; in a deep look with all."""
        left = set(wanted)
        known = {artifact.path: section for artifact, section in listed}
        for artifact in self._artifacts:
            section = known.get(artifact.path)
            if section is None and not left:
                continue
            tally = self._compared(rows, artifact)
            if not tally.records and not tally.cut:
                continue
            if not self._deep:
                left -= {rows.place[row_id] for row_id in tally.held if row_id in rows.place}
            yield artifact, section or Section(rows.session_id, 0, 0, held=tally.records), tally

    def _compared(self, rows: SessionRows, artifact: Artifact) -> Tally:
        return match_store(rows, self._messages(artifact.path, rows.session_id))

    def _messages(self, path: str, session_id: str) -> Iterator[Message]:
        yield from messages(self._opened(path), session_id, View.RAW)

    def _opened(self, path: str) -> Store:
        if path not in self._open:
            stack = ExitStack()
            self._open[path] = stack, stack.enter_context(stores.opened(Path(path)))
            if len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)[1][0].close()
        self._open.move_to_end(path)
        return self._open[path][1]
