"""A Markdown or QMD export against the rows of a session, by rendering the rows again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from statemend.evidence.masks import hides
from statemend.evidence.rows import Fidelity, SessionRows, Tally
from statemend.formats.clock import trusted_epoch
from statemend.formats.markdown import Document
from statemend.formats.markdown_render import (
    PLACEHOLDER,
    render_message,
    segment_heading,
)
from statemend.formats.markdown_walk import Hit, Renderings, Walk, walk
from statemend.store.history import Message

_HEADING = re.compile(r"### (?:Tool — [^\n]+|[A-Z]\S*)(?: — \S+)?\Z".encode())
#: How many places that look like the start of one segment are tried.
_MOST_STARTS = 16


def match_markdown(rows: SessionRows, document: Document) -> Tally:
    """What ``document`` holds of the session."""
    text = document.messages
    renderings = Renderings(renderings_of(rows.rows, document))
    tally = Tally(rows)
    path = walk_session(text, renderings, rows.session_id, document)
    if path is None:
        tally.absent = True
        return tally
    if document.empty:
        return tally
    for number, step in enumerate(path.steps):
        if isinstance(step, Hit):
            tally.records += 1
            if not tally.take(step.rows, Fidelity.LOSSY):
                tally.repeated += 1
        else:
            at_cut = document.footer is None and number == len(path.steps) - 1 and path.end == len(text)
            _gap(tally, renderings, text[step.start : step.end], at_cut=at_cut)
    if len(document.segments) == 1 and document.declared is not None:
        # A changed message may quote headings; the file says how many messages it really has.
        found = path.hits + len(tally.changed) + sum(f is Fidelity.MASKED for f in tally.held.values())
        tally.extra = min(tally.extra, max(document.declared - found, 0))
    if document.footer is None and (document.declared is None or tally.records < document.declared):
        tally.cut = True
    return tally


def renderings_of(rows: Iterable[Message], document: Document) -> Iterator[tuple[int, bytes]]:
    """Row ids with what stands in the file for a row, if it is there."""
    for row_id, rendering in _written(rows, document):
        yield row_id, rendering
        for converted in _converted(rendering):
            yield row_id, converted


def conversions(rows: Iterable[Message], document: Document) -> dict[bytes, bytes]:
    """What stands in the file for rows whose line ends something converted → what the exporter wrote."""
    return {
        converted: rendering
        for _, rendering in _written(rows, document)
        for converted in _converted(rendering)
    }


def _converted(rendering: bytes) -> set[bytes]:
    """What becomes of a rendering when something converts the line ends of the whole file."""
    if b"\r" not in rendering:
        return set()
    unix = rendering.replace(b"\r\n", b"\n")
    return {unix, unix.replace(b"\r", b"\n")} - {rendering}


def _written(rows: Iterable[Message], document: Document) -> Iterator[tuple[int, bytes]]:
    """Row ids with what an exporter writes for a row."""
    digest = document.footer.sha256 if document.footer is not None else None
    quoted = digest is not None and document.data.find(digest.encode(), 0, document.block_end) >= 0
    for row in rows:
        for rendering in _shown(row):
            if quoted and digest is not None:
                rendering = rendering.replace(PLACEHOLDER, digest)
            yield row.id, rendering.encode("utf-8", "surrogatepass")


def _shown(row: Message) -> set[str]:
    """How the releases render a row: they differ where its time is corrupt. None can render a blob, or JSON
    that is nested too deeply."""
    if isinstance(row.content, bytes):
        return set()
    try:
        shown = {render_message(row)}
        if trusted_epoch(row.timestamp) is None:
            shown.add(render_message(row, guarded=False))
    except RecursionError:
        return set()
    return shown


def walk_session(text: bytes, renderings: Renderings, session_id: str, document: Document) -> Walk | None:
    """The walk over this session's part of the file, ``None`` when it has none."""
    segments = document.segments
    if len(segments) == 1:
        return walk(text, renderings, expected=document.declared) if session_id in segments else None
    if session_id not in segments:
        return None
    following = segments[segments.index(session_id) + 1 :]
    stop = segment_heading(following[0]).encode("utf-8", "surrogatepass") if following else None
    walks = [walk(text, renderings, start=start, stop=stop) for start in _starts(text, session_id)]
    return max(walks, key=lambda each: each.hits, default=None)


def _starts(text: bytes, session_id: str) -> Iterator[int]:
    """The places behind what looks like this session's heading; a message may imitate one."""
    heading = segment_heading(session_id).encode("utf-8", "surrogatepass")
    place = tried = 0
    while (place := text.find(heading, place)) >= 0 and tried < _MOST_STARTS:
        if place == 0 or text.endswith(b"\n\n", 0, place):
            tried += 1
            yield place + len(heading)
        place += len(heading)


def _gap(tally: Tally, renderings: Renderings, gap: bytes, *, at_cut: bool) -> None:
    """What the messages in a gap are: masked, changed, cut off, or none of the store's."""
    pieces = pieces_of(gap, renderings)
    for number, piece in enumerate(pieces):
        cut_here = at_cut and number == len(pieces) - 1
        heading = piece.partition(b"\n")[0]
        free = tally.near(renderings.under(heading))
        known = [(row_id, text.rstrip()) for row_id in free for text in renderings.of(heading, row_id)]
        shown = piece.rstrip()
        whole = next((row_id for row_id, text in known if text == shown), None)
        if whole is not None:
            tally.give(whole, Fidelity.LOSSY)
        elif cut_here and (not known or any(text.startswith(shown) for _, text in known)):
            tally.cut = True
            continue
        elif (masked := _masked(_text(shown), known)) is not None:
            tally.give(masked, Fidelity.MASKED)
        elif free:
            tally.changed[free[0]] = None
        else:
            tally.extra += 1
        tally.records += 1


def _masked(shown: str, known: Iterable[tuple[int, bytes]]) -> int | None:
    """The first row whose text is shown with some of it masked."""
    return next((row_id for row_id, text in known if hides(shown, _text(text))), None)


def pieces_of(gap: bytes, renderings: Renderings) -> list[bytes]:
    """The gap split where a message could begin."""
    starts = [0]
    place = 0
    while (blank := gap.find(b"\n\n\n### ", place)) >= 0:
        place = blank + 3
        end = gap.find(b"\n", place)
        heading = gap[place : end if end >= 0 else len(gap)]
        if _HEADING.match(heading) or renderings.under(heading):
            starts.append(place)
    return [gap[start:end] for start, end in zip(starts, [*starts[1:], len(gap)], strict=True)]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
