"""What ``/save md`` wrote against the rows of a session, by rendering the rows again."""

from __future__ import annotations

from statemend.evidence.masks import hides
from statemend.evidence.rows import Fidelity, SessionRows, Tally
from statemend.formats.markdown_walk import Renderings
from statemend.formats.save_markdown import HIDDEN_ROLE, likely_starts, render_message


def match_save(rows: SessionRows, text: bytes, level: int) -> Tally:
    """What ``text``, the messages of one section under headings of ``level``, holds of the session."""
    rendered = {
        row.id: render_message(row, level=level).encode("utf-8", "surrogatepass")
        for row in rows.rows
        if row.role != HIDDEN_ROLE and not isinstance(row.content, bytes)
    }
    renderings = Renderings(rendered.items())
    tally = Tally(rows)
    # The empty lines that end the file were trimmed: with as many as a message may end in, the last one is
    # found like all others.
    end = len(text)
    text += b"\n" * max((len(each) - len(each.rstrip(b"\n")) for each in rendered.values()), default=0)
    mark = b"#" * level + b" "
    starts = iter([*likely_starts(text, level), end])
    place = next(starts)
    while place < end:
        tally.records += 1
        found = _at(text, place, renderings, mark, end)
        if found is not None:
            place += len(found)
            if not tally.take(renderings.rows(found), Fidelity.LOSSY):
                tally.repeated += 1
            following = place if place < end else end
        else:
            following = next((start for start in starts if start > place), end)
            _settle(tally, renderings, text[place:following])
        place = following
    return tally


def _at(text: bytes, place: int, renderings: Renderings, mark: bytes, end: int) -> bytes | None:
    """The longest rendering that stands at ``place`` and is followed by another heading or the end."""
    for each in renderings.at(text, place):
        behind = place + len(each)
        if behind >= end or text.startswith(mark, behind):
            return each
    return None


def _settle(tally: Tally, renderings: Renderings, piece: bytes) -> None:
    """What a message is that equals no row: masked, changed, or none of the store's."""
    heading = piece.partition(b"\n")[0]
    free = tally.near(renderings.under(heading))
    shown = _text(piece)
    masked = [
        row_id for row_id in free for text in renderings.of(heading, row_id) if hides(shown, _text(text))
    ]
    if masked:
        tally.give(masked[0], Fidelity.MASKED)
    elif free:
        tally.changed[free[0]] = None
    else:
        tally.extra += 1


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape").rstrip("\n")
