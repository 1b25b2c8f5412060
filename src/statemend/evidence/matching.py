"""Records of an artifact against the rows of a session, by what both show.

Which part of a message a format shows is its *lens*. Through the lens, a record and the row it was
written from look the same; the lens also says what still agrees when the text was changed or masked. Row
ids only break ties: compaction, undo and import number rows anew.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from itertools import chain

import msgspec

from statemend.evidence.masks import around, hides
from statemend.evidence.rows import Fidelity, SessionRows, Tally
from statemend.formats.artifact import Record
from statemend.store.history import Message


class Lens(msgspec.Struct, frozen=True):
    """How one format shows messages.

    ``keys`` are everything it shows, ``places`` role and time alone, ``text`` the words alone. A record may
    have several keys and places where its time is ambiguous, a row where the format shows times on some
    records only. ``shows`` says which rows the format has at all. ``settled``: its texts are those of the
    rows, so that another text in the same place was changed.
    """

    fidelity: Fidelity
    row_keys: Callable[[Message], Iterable[Hashable]]
    record_keys: Callable[[Record], Iterable[Hashable]]
    row_places: Callable[[Message], Iterable[Hashable]]
    record_places: Callable[[Record], Iterable[Hashable]]
    row_text: Callable[[Message], str]
    record_text: Callable[[Record], str]
    shows: Callable[[Message], bool] = lambda message: True
    settled: bool = True


def match(rows: SessionRows, records: Iterable[Record], lens: Lens) -> Tally:
    """What the records hold of the session."""
    tally = Tally(rows)
    shown = [row for row in rows.rows if lens.shows(row)]
    by_key = _grouped(shown, lens.row_keys)
    unknown: list[Record] = []
    for record in records:
        tally.records += 1
        tally.inactive = tally.inactive or record.active == 0
        known = False
        for key in lens.record_keys(record):
            candidates = by_key.get(key)
            if candidates is not None:
                known = True
                if tally.take(candidates, lens.fidelity, record.row_id):
                    break
        else:
            if known:
                tally.repeated += 1
            else:
                unknown.append(record)
    if unknown:
        _settle(tally, rows, shown, unknown, lens)
    return tally


def add_known(tally: Tally, rows: SessionRows, records: Iterable[Record], lens: Lens) -> Tally:
    """The same ``tally`` with the records that equal rows not found before; what others are is no matter."""
    by_key = _grouped((row for row in rows.rows if lens.shows(row)), lens.row_keys)
    for record in records:
        known = (by_key[key] for key in lens.record_keys(record) if key in by_key)
        tally.records += any(tally.take(candidates, lens.fidelity) for candidates in known)
    return tally


def _settle(
    tally: Tally, rows: SessionRows, shown: Sequence[Message], unknown: Sequence[Record], lens: Lens
) -> None:
    """What the records are that equal no row: masked, changed, or none of the store's."""
    by_place = _grouped(shown, lens.row_places)
    texts = cache(lambda row_id: lens.row_text(rows.by_id[row_id]))
    for record in unknown:
        near = (tally.near(by_place.get(place, ())) for place in lens.record_places(record))
        free = sorted(chain.from_iterable(near), key=lambda row_id: row_id != record.row_id)
        text = lens.record_text(record)
        hiding = (row_id for row_id in free if hides(text, texts(row_id)))
        masked = next(hiding, None) if around(text) else None
        if masked is not None:
            tally.give(masked, Fidelity.MASKED)
        elif free and lens.settled:
            tally.changed[free[0]] = None
        else:
            tally.extra += 1


def _grouped(
    rows: Iterable[Message], keys: Callable[[Message], Iterable[Hashable]]
) -> dict[Hashable, list[int]]:
    """Row ids by what they show. A row that is nested too deeply to be shown is left out, as no release can
    export it."""
    groups: dict[Hashable, list[int]] = {}
    for row in rows:
        try:
            for key in keys(row):
                groups.setdefault(key, []).append(row.id)
        except RecursionError:
            continue
    return groups
