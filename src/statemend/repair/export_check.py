"""Proves an export against its store by reading it back: row by row, then as an audit would compare it.

The first comparison is strict: what the file shows, in its order, is what the view of the store shows, each
row with everything that the format can carry. The second is the one of ``evidence.coverage``: what it does
not find, an audit would report as missing. Both read the store anew. A file is complete only when neither
finds a difference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from statemend import formats
from statemend.evidence import lenses
from statemend.evidence.coverage import ArtifactCoverage, assess_session
from statemend.evidence.inventory import Home, Inventory, Settings
from statemend.formats import clock, html, lenientjson
from statemend.formats.artifact import Artifact, Kind, Section
from statemend.formats.files import chunk
from statemend.formats.markdown import Document
from statemend.formats.markdown_render import render_message
from statemend.store.connection import Store
from statemend.store.content import parse_json
from statemend.store.history import View, messages, records
from statemend.store.message import OF_SESSION
from statemend.store.records import table_columns

_CHANGED = "the store shows other messages now than when the file was begun"
#: How many rows a reason names.
_NAMED = 5
_CHECKSUM_LINE = re.compile(rb"- SHA256 of exported body: `[0-9a-f]{64}`")
#: Columns whose text is JSON, and which an export shows decoded.
_DECODED = {"tool_calls": list, "display_metadata": dict}
#: Columns of a message that are in no export: where it is displayed, and a flag while it is not set.
_NOT_SHOWN = frozenset({"display_identity", "display_order", "_compressed_summary"})
#: Columns of a message that the formats for people show.
_SHOWN = frozenset({"role", "content", "timestamp", "tool_calls", "tool_name"})
_REASONING = frozenset({"reasoning", "reasoning_content"})


class Proof(msgspec.Struct, frozen=True):
    """What reading the file back showed.

    ``complete`` is whether it holds every message of the view as exactly as the format can. ``exact`` and
    ``lossy`` count the messages of the display view that it holds, ``drops`` are the fields that the format
    leaves out. ``reasons`` say why it is not complete, ``notes`` what to know of a file that is.
    """

    exact: int
    lossy: int
    drops: tuple[str, ...]
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        return not self.reasons


def prove(
    store: Store,
    session: dict[str, Any],
    path: Path,
    *,
    sha256: str,
    kind: Kind,
    view: View,
    row_ids: Sequence[int],
) -> Proof:
    """Read the file at ``path`` back and compare it with ``view`` of the session.

    ``session`` is the record that was written, ``sha256`` the digest of the bytes that were written,
    ``row_ids`` are the rows that the view showed before. Raises ``Undetermined`` when the file or the store
    cannot be read.
    """
    artifact = formats.read(path)
    reasons = list(_faults(artifact, session["id"], sha256, kind))
    if reasons:
        return Proof(0, 0, (), tuple(reasons))
    section = artifact.sections[0]
    notes: tuple[str, ...] = ()
    if kind is Kind.JSONL:
        reasons += _compare_lines(store, session, path, section, view, row_ids)
    elif kind is Kind.HTML:
        reasons += _compare_page(store, session["id"], path, section, view, row_ids)
    else:
        document = Document.load(path)
        reasons += _compare_text(store, session["id"], document, view, row_ids)
        notes = _notes(document)
    reasons += _undecodable(store, session["id"], kind, frozenset(row_ids))
    covered = _covered(store, artifact, session["id"])
    reasons += _uncovered(covered, view)
    return Proof(covered.exact, covered.lossy, covered.drops, tuple(reasons), notes)


def coverage_of(store: Store, artifact: Artifact, session_id: str) -> ArtifactCoverage | None:
    """What one file alone holds of a session, or ``None`` when it does not name it."""
    home = Home(str(Path(artifact.path).parent), store.path)
    alone = Inventory(home, (artifact,), (), (), (), Settings(None, None, "not looked at"))
    covered = assess_session(store, alone, session_id).artifacts
    return covered[0] if covered else None


def _covered(store: Store, artifact: Artifact, session_id: str) -> ArtifactCoverage:
    covered = coverage_of(store, artifact, session_id)
    assert covered is not None, "the file names its session"
    return covered


def _faults(artifact: Artifact, session_id: str, sha256: str, kind: Kind) -> Iterator[str]:
    if artifact.sha256 != sha256:
        yield "the bytes on the disk are not those that were written"
    if artifact.kind is not kind:
        yield f"it reads back as {artifact.kind.value}, not as {kind.value}"
    if artifact.damage is not None:
        yield f"it reads back as damaged: {artifact.damage}"
    elif [section.session_id for section in artifact.sections] != [session_id]:
        yield "it does not read back as an export of this one session"


def _compare_lines(
    store: Store, session: dict[str, Any], path: Path, section: Section, view: View, row_ids: Sequence[int]
) -> Iterator[str]:
    """Every member of the session, and every column of every row."""
    try:
        written = lenientjson.loads(chunk(path, section.offset, section.length))
    except lenientjson.UnreadableJsonError:
        yield "it is nested too deeply to be read back"
        return
    shown = written.pop("messages")
    if _json(written) != _json(session):
        yield "the columns of the session are not those of the store"
    columns = frozenset(table_columns(store, "messages")) - _NOT_SHOWN
    left_out: dict[str, None] = {}

    def stored() -> Iterator[tuple[int, str]]:
        for row in records(store, session["id"], view):
            left_out.update(dict.fromkeys(columns - row.keys()))
            yield row["id"], _json(row)

    yield from _differences(stored(), map(_json, shown), row_ids)
    for name in sorted(left_out):
        yield f"the column {name} is not in it: Hermes shows no blob of a column that it does not know"


def _compare_page(
    store: Store, session_id: str, path: Path, section: Section, view: View, row_ids: Sequence[int]
) -> Iterator[str]:
    """All that a page shows of a message."""
    hidden: set[int] = set()
    spelled: list[int] = []

    def stored() -> Iterator[tuple[int, Any]]:
        for row in messages(store, session_id, view):
            if row.role == html.HIDDEN_ROLE:
                hidden.add(row.id)
            else:
                shown_of_row = lenses.page_row(row)
                if not _is_encodable(_json(shown_of_row)):
                    spelled.append(row.id)
                yield row.id, (shown_of_row, clock.wall_seconds(row.timestamp, UTC))

    shown = ((lenses.page_record(each), each.clock or "N/A") for each in html.records(path, section))
    yield from _differences(stored(), shown, row_ids, hidden)
    yield from _beyond_utf8(spelled)


def _compare_text(
    store: Store, session_id: str, document: Document, view: View, row_ids: Sequence[int]
) -> Iterator[str]:
    """The messages block is each message rendered, one behind the other, and nothing else."""
    text = document.messages
    spelled: list[int] = []
    at = 0
    for row, expected in zip_longest(messages(store, session_id, view), row_ids):
        if row is None or row.id != expected:
            yield _CHANGED
            return
        rendering = render_message(row)
        if not _is_encodable(rendering):
            spelled.append(row.id)
        data = rendering.encode("utf-8", "backslashreplace")
        if not text.startswith(data, at):
            yield f"it differs from the store from row {row.id} on"
            return
        at += len(data)
    if at != len(text) and not (at == 0 and document.empty):
        yield "it shows more than the store does"
    yield from _beyond_utf8(spelled)


def _beyond_utf8(row_ids: Sequence[int]) -> Iterator[str]:
    if row_ids:
        yield f"text that UTF-8 cannot hold is spelled out (jsonl can hold it): {_rows(row_ids)}"


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _differences(
    stored: Iterable[tuple[int, Any]],
    shown: Iterable[Any],
    row_ids: Sequence[int],
    hidden: Collection[int] = (),
) -> Iterator[str]:
    """Where two sequences are not the same, or the rows are not ``row_ids`` any more. ``hidden`` are those of
    them that the format does not show; they are known when ``stored`` is exhausted."""
    different: list[int] = []
    rows: list[int] = []
    found = 0
    for row, record in zip_longest(stored, shown):
        found += record is not None
        if row is not None:
            rows.append(row[0])
            if record is not None and row[1] != record:
                different.append(row[0])
    if rows != [row_id for row_id in row_ids if row_id not in hidden]:
        yield _CHANGED
    if found != len(rows):
        yield f"it shows {found:,} messages where the store shows {len(rows):,}"
    if different:
        yield f"it shows another content than the store: {_rows(different)}"


def _undecodable(store: Store, session_id: str, kind: Kind, row_ids: Collection[int]) -> Iterator[str]:
    """Cells whose text is not in the file as it is stored, although both read alike: text in another
    encoding than the store's, and JSON columns that hold no JSON."""
    columns = [name for name in table_columns(store, "messages") if name not in ("id", "session_id")]
    if kind is not Kind.JSONL:
        kept = _SHOWN | _REASONING if kind is Kind.HTML else _SHOWN
        columns = [name for name in columns if name in kept]
    invalid: list[int] = []
    spoilt: list[int] = []
    listed = ", ".join(map(_quoted, columns))
    sql = f"SELECT id, {listed} FROM main.messages WHERE {OF_SESSION} ORDER BY id"
    for row_id, *cells in store.rows(sql, (session_id,)):
        if row_id not in row_ids:
            continue
        named = dict(zip(columns, cells, strict=True))
        if any(_is_spelled_out(store, "messages", row_id, name, cell) for name, cell in named.items()):
            invalid.append(row_id)
        if any(cell and _is_spoilt(cell, _DECODED[name]) for name, cell in named.items() if name in _DECODED):
            spoilt.append(row_id)
    if invalid:
        yield f"text that is not valid in the store's encoding is spelled out: {_rows(invalid)}"
    if spoilt:
        yield f"tool calls or metadata that are not JSON are left out: {_rows(spoilt)}"
    for name in table_columns(store, "sessions") if kind is Kind.JSONL else ():
        sql = f"SELECT {_quoted(name)} FROM main.sessions WHERE id = ?"
        if _is_spelled_out(store, "sessions", session_id, name, store.value(sql, (session_id,))):
            yield f"the session's {name} is not valid in the store's encoding and is spelled out"


def _is_spelled_out(store: Store, table: str, key: int | str, column: str, cell: Any) -> bool:
    """Whether a text was read with odd bytes as ``\\xff`` escapes. Then it does not equal the stored one."""
    if not isinstance(cell, str) or "\\x" not in cell:
        return False
    sql = f"SELECT 1 FROM main.{table} WHERE id = ? AND {_quoted(column)} IS ?"
    return store.one(sql, (key, cell)) is None


def _is_spoilt(cell: Any, expected: type) -> bool:
    """Whether reading the cell as JSON loses what is in it."""
    value = parse_json(cell, ...)
    if expected is dict and isinstance(value, str):
        value = parse_json(value, ...)
    return value is ... or (expected is dict and value is not None and not isinstance(value, dict))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _uncovered(covered: ArtifactCoverage, view: View) -> Iterator[str]:
    """What an audit would find wanting in the file."""
    if view is not View.ACTIVE and covered.missing:
        rows = [each.message_id for each in covered.missing]
        yield f"an audit does not find these messages in it: {_rows(rows)}"
    if covered.changed:
        yield f"an audit finds these messages changed in it: {_rows(covered.changed)}"
    if covered.masked or covered.extra:
        yield f"an audit finds {covered.masked + covered.extra:,} messages in it that are not the store's"
    if covered.cut:
        yield "an audit finds it cut off"


def _notes(document: Document) -> tuple[str, ...]:
    """Where Hermes' own check of the file would fail although the file is whole."""
    if b"\r" in document.data:
        return ("its text has carriage returns, so Hermes' own check of the file fails",)
    if len(_CHECKSUM_LINE.findall(document.data)) > 1:
        return ("its text quotes a checksum line, so Hermes' own check of the file fails",)
    return ()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=lambda cell: {"blob": cell.hex()})


def _rows(ids: Sequence[int]) -> str:
    named = ", ".join(map(str, ids[:_NAMED]))
    more = f" and {len(ids) - _NAMED:,} more" if len(ids) > _NAMED else ""
    return f"{'rows' if len(ids) > 1 else 'row'} {named}{more}"
