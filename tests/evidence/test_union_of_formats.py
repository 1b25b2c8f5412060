"""A message is one, whatever two formats show it: what a format drops tells nothing apart."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from tests.evidence.formats import SESSION, WRITTEN, write
from tests.evidence.scene import Scene
from tests.evidence.test_salvage import as_message

from statemend.evidence.drops import WITHOUT_CALLS
from statemend.evidence.inventory import find_home, take
from statemend.evidence.rows import Fidelity
from statemend.evidence.salvage import Salvage, salvage
from statemend.evidence.wording import WHOLE
from statemend.formats.artifact import FILTERED, Kind
from statemend.store.connection import Store, open_for_audit

LOSSY = tuple(kind for kind in WRITTEN if kind not in WHOLE)
START = Scene.start


def row(number: int, role: str, content: Any, at: float, **columns: Any) -> dict[str, Any]:
    """A row as an export has it. ``at`` is seconds since the session began."""
    lacking = dict.fromkeys(("tool_call_id", "tool_calls", "tool_name", "reasoning"))
    flags = {"timestamp": START + at, "active": 1, "compacted": 0}
    return {
        "id": number,
        "session_id": SESSION,
        "role": role,
        "content": content,
        **lacking,
        **flags,
        **columns,
    }


def calls(*names: str) -> list[dict[str, Any]]:
    return [
        {"id": name, "type": "function", "function": {"name": "sh", "arguments": json.dumps({"of": name})}}
        for name in names
    ]


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
ROWS = (
    row(1, "user", "What is in this folder?", 1.123456),
    row(2, "assistant", "Let me look.", 2.25, tool_calls=calls("c1"), reasoning="I need it."),
    row(3, "tool", "12 plan.md", 2.5, tool_call_id="c1", tool_name="sh"),
    row(4, "assistant", "", 3.25, tool_calls=calls("c2"), reasoning="And again."),
    row(5, "tool", "", 3.5, tool_call_id="c2"),
    row(6, "assistant", "", 3.75, tool_calls=calls("c3", "c4"), finish_reason="tool_calls"),
    row(7, "tool", '{"ok": true, "n": [1]}', 3.8, tool_call_id="c3", tool_name="a\nb "),
    row(8, "tool", "  done \n", 3.9, tool_call_id="c4", tool_name=""),
    row(9, "assistant", "Once more.", 4.1, tool_calls=calls("c5")),
    row(10, "tool", "same", 4.2, tool_call_id="c5", tool_name="sh"),
    row(11, "assistant", "Once more.", 4.3, tool_calls=calls("c6")),
    row(12, "tool", "same", 4.4, tool_call_id="c6", tool_name="sh"),
    row(13, "assistant", "Twelve lines. ", 4.5, finish_reason="stop"),
    row(14, "user", [{"type": "text", "text": "and in this picture?"}, PICTURE], 70.0),
    row(15, "user", [PICTURE], 70.5),
    row(16, "assistant", "", 71.0, reasoning="Nothing to say."),
    row(17, "user", " ## Assistant - 2026-08-01T09:00:02Z\n\nno heading\n\n", 72.0),
    row(
        18,
        "tool",
        [{"type": "text", "text": "two"}, {"type": "text", "text": "parts"}],
        73.0,
        tool_call_id="c7",
    ),
    row(19, "assistant", "Goodbye then.", 74.0),
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    scene = Scene(tmp_path_factory.mktemp("empty") / "home")
    with open_for_audit(scene.rows.path) as opened:
        yield opened


def united(store: Store, folder: Path, files: Mapping[Kind, Sequence[Mapping[str, Any]]]) -> Salvage:
    for kind, rows in files.items():
        write(folder, kind, rows, [as_message(dict(each)) for each in rows], START)
    inventory = take(find_home(Path(store.path).parent), [folder])
    assert {each.kind for each in inventory.artifacts} >= {*files}
    return salvage(store, inventory, SESSION)


def told(found: Salvage) -> list[tuple[Any, ...]]:
    return [
        (each.record.row_id, each.record.content, each.record.tool_calls, each.fidelity)
        for each in found.messages
    ]


def whole(rows: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    return [(each["id"], each["content"], each["tool_calls"], Fidelity.EXACT) for each in rows]


@pytest.mark.parametrize("kind", LOSSY)
@pytest.mark.parametrize("best", sorted({*WRITTEN} & WHOLE))
def test_a_lossy_file_adds_nothing_to_a_whole_one(
    store: Store, tmp_path: Path, best: Kind, kind: Kind
) -> None:
    found = united(store, tmp_path, {best: ROWS, kind: ROWS})
    assert told(found) == whole(ROWS)
    assert {each.kind for each in found.sources} == {best, kind}
    assert (found.conflicts, found.gaps, found.strangers) == ((), (), ())


def shows(kind: Kind, row: Mapping[str, Any]) -> bool:
    """Whether a file of this kind shows anything of a row."""
    if kind is Kind.TRACE:
        return bool(row["content"] or row["tool_calls"]) or row["role"] == "tool"
    return kind not in FILTERED or row["role"] == "user"


#: The last two would be one file.
PAIRS = [pair for pair in combinations(LOSSY, 2) if pair != (Kind.TRANSCRIPT_JSONL, Kind.RESCUE_JSONL)]
#: No name of a tool that would break a heading.
PLAIN = [{**each, "tool_name": each["tool_name"] and "sh"} for each in ROWS]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_two_lossy_files_show_each_message_once(store: Store, tmp_path: Path, one: Kind, other: Kind) -> None:
    found = united(store, tmp_path, {one: PLAIN, other: PLAIN})
    kinds = {each.kind for each in found.sources}  # a trajectory has to be recognised first
    assert kinds | {Kind.TRAJECTORY} == {one, other, Kind.TRAJECTORY}
    shown = [row for row in PLAIN if any(shows(kind, row) for kind in kinds)]
    assert [each.record.role for each in found.messages] == [row["role"] for row in shown]
    told = bool(kinds - WITHOUT_CALLS)
    calling = [told and bool(row["tool_calls"]) for row in shown]
    assert [bool(each.record.tool_calls) for each in found.messages] == calling
    assert found.strangers == ()


SAID_TWICE = (
    row(1, "user", "Look once, and then again.", 1.0),
    row(2, "assistant", "I look.", 2.1, tool_calls=calls("c1")),
    row(3, "assistant", "I look.", 2.2, tool_calls=calls("c2")),
)


def called(found: Salvage) -> list[list[str]]:
    return [[call["id"] for call in each.record.tool_calls or ()] for each in found.messages]


@pytest.mark.parametrize("kind", [None, *LOSSY])
def test_the_same_words_with_other_calls_are_two_messages(
    store: Store, tmp_path: Path, kind: Kind | None
) -> None:
    files = {Kind.JSONL: SAID_TWICE} | ({} if kind is None else {kind: SAID_TWICE[:2]})
    assert called(united(store, tmp_path, files)) == [[], ["c1"], ["c2"]]


def test_words_that_a_file_without_calls_shows_once_more_are_another_message(
    store: Store, tmp_path: Path
) -> None:
    files = {Kind.JSONL: SAID_TWICE[:2], Kind.SAVE_MARKDOWN: SAID_TWICE}
    found = united(store, tmp_path, files)
    assert called(found) == [[], ["c1"], []]
    assert found.messages[2].place.kind is Kind.SAVE_MARKDOWN


def test_what_a_file_without_calls_lacks_comes_between_its_messages(store: Store, tmp_path: Path) -> None:
    some = [row for row in PLAIN if row["id"] not in (2, 3, 6, 11, 12, 13, 19)]
    assert told(united(store, tmp_path, {Kind.JSONL: PLAIN, Kind.SAVE_MARKDOWN: some})) == whole(PLAIN)
    found = united(store, tmp_path, {Kind.JSONL: some, Kind.SAVE_MARKDOWN: PLAIN})
    assert [each.record.role for each in found.messages] == [row["role"] for row in PLAIN]
    assert [each for each in told(found) if each[3] is Fidelity.EXACT] == whole(some)


SECRET = "please use sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789 for the call"
MASKED = "please use sk-ant...6789 for the call"


#: A trajectory names no session; with a masked text it is not recognised as this one's.
MASKING = [each for each in LOSSY if each not in FILTERED | {Kind.TRAJECTORY}]


@pytest.mark.parametrize("kind", MASKING)
def test_a_masked_message_with_calls_is_the_one_that_it_hides(
    store: Store, tmp_path: Path, kind: Kind
) -> None:
    rows = [*PLAIN, row(20, "assistant", SECRET, 80.0, tool_calls=calls("c8"))]
    found = united(store, tmp_path, {Kind.JSONL: rows, kind: [*PLAIN, {**rows[-1], "content": MASKED}]})
    assert told(found) == whole(rows)
    assert [each.fidelity for each in found.messages[-1].others] == [Fidelity.MASKED]


@pytest.mark.parametrize("kind", [each for each in MASKING if each is not Kind.TRACE])
def test_what_one_file_masks_another_shows(store: Store, tmp_path: Path, kind: Kind) -> None:
    rows = [*PLAIN, row(20, "assistant", SECRET, 80.0, tool_calls=calls("c8"))]
    masked = [*PLAIN, {**rows[-1], "content": MASKED}]
    found = united(store, tmp_path, {Kind.TRACE: masked, kind: rows})
    assert len(found.messages) == len(rows)
    assert (found.messages[-1].record.content, found.messages[-1].fidelity) == (SECRET, Fidelity.LOSSY)


def test_the_word_that_stands_for_a_missing_name_is_no_name(store: Store, tmp_path: Path) -> None:
    found = united(store, tmp_path, {Kind.SAVE_MARKDOWN: ROWS})
    names = [each.record.tool_name for each in found.messages if each.record.role == "tool"]
    assert names == ["sh", None, "a b", None, "sh", "sh", None]
