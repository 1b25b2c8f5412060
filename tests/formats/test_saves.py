"""Files that hold whole messages beside the exports: told by content, read whole, cut or spoilt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.corpus import EXPORTS

from statemend import formats
from statemend.formats import routing_file
from statemend.formats.artifact import Artifact, Kind, Record

SAVES = EXPORTS.parent / "saves"
FILES = sorted(path for path in SAVES.rglob("*") if path.is_file())

MESSAGE = {"role": "user", "content": "hello"}
PENDING = {"session_key": "agent:main:telegram:dm:1", "reason": "shutdown", "ts": 1785574800}
CALL = '{"name": "t", "arguments": {}}'
ANSWER = '{"tool_call_id": "c", "name": "t", "content": "</tool_response>"}'
REQUEST = {"timestamp": "2026-08-01T09:00:00", "session_id": "s", "reason": "max_retries"}

#: What a file holds, its kind, its sections' sessions, and the role and content of each message.
FORMS: list[tuple[Any, Kind, list[str], list[tuple[str, Any]]]] = [
    ({"model": None, "messages": []}, Kind.SAVE_JSON, [""], []),
    ({"model": "m", "messages": [MESSAGE]}, Kind.SAVE_JSON, [""], [("user", "hello")]),
    (
        {"id": "s", "model": "m", "started_at": 1.5, "messages": [MESSAGE]},
        Kind.SAVE_JSON,
        ["s"],
        [("user", "hello")],
    ),
    (
        {"id": "s", "source": "cli", "model": "m", "messages": [MESSAGE]},
        Kind.JSONL,
        ["s"],
        [("user", "hello")],
    ),
    ({"model": "m", "messages": ["hello"]}, Kind.UNCLASSIFIED, [], []),
    ({"model": "m", "messages": [MESSAGE], "temperature": 0}, Kind.UNCLASSIFIED, [], []),
    ({**PENDING, "data": {"text": "hello"}}, Kind.PENDING, [""], [("user", "hello")]),
    ({**PENDING, "data": {"text": "hello", "session_id": "s"}}, Kind.PENDING, ["s"], [("user", "hello")]),
    ({**PENDING, "data": {"session_id": "s", "message": MESSAGE}}, Kind.PENDING, ["s"], [("user", "hello")]),
    ({**PENDING, "data": None}, Kind.PENDING, [""], []),
    (
        {"reason": "r", "issue": "i", "session_id": "s", "count": 2, "messages": [MESSAGE, "odd"]},
        Kind.PENDING,
        ["s"],
        [("user", "hello")],
    ),
    ({**REQUEST, "request": {"method": "POST", "body": None}}, Kind.REQUEST_DUMP, ["s"], []),
    (
        {
            **REQUEST,
            "request": {
                "method": "POST",
                "body": {
                    "messages": [
                        {"role": "system", "content": "You are"},
                        {"role": "user", "content": [{"type": "text", "text": "hello"}]},
                        {
                            "role": "assistant",
                            "content": [{"type": "tool_use", "id": "c", "name": "t", "input": {}}],
                        },
                        {
                            "role": "user",
                            "content": [
                                {"type": "tool_result", "tool_use_id": "c", "content": "done"},
                                {"type": "text", "text": "go on"},
                            ],
                        },
                    ]
                },
            },
        },
        Kind.REQUEST_DUMP,
        ["s"],
        [("user", "hello"), ("assistant", ""), ("tool", "done"), ("user", "go on")],
    ),
    (
        {
            **REQUEST,
            "request": {
                "method": "POST",
                "body": {
                    "input": [
                        {"role": "user", "content": [{"type": "input_text", "text": "hello"}]},
                        {"type": "function_call", "call_id": "c", "name": "t", "arguments": "{}"},
                        {"type": "function_call_output", "call_id": "c", "output": "done"},
                        {"type": "reasoning", "summary": []},
                    ]
                },
            },
        },
        Kind.REQUEST_DUMP,
        ["s"],
        [("user", "hello"), ("assistant", None), ("tool", "done")],
    ),
    ({"_README": "x", "k": {"session_key": "k", "session_id": "s"}}, Kind.ROUTING, [], []),
    ({"k": {"session_id": "s"}}, Kind.UNCLASSIFIED, [], []),
    ({}, Kind.UNCLASSIFIED, [], []),
]


def written(folder: Path, value: Any, name: str = "x", indent: int | None = 2) -> Path:
    path = folder / name
    path.write_text(json.dumps(value, indent=indent), encoding="utf-8")
    return path


def everything(path: Path, artifact: Artifact) -> list[Record]:
    return [each for section in artifact.sections for each in formats.records(path, artifact, section)]


@pytest.mark.parametrize("number", range(len(FORMS)))
@pytest.mark.parametrize("indent", [None, 2])
def test_each_form_is_told_and_read(tmp_path: Path, number: int, indent: int | None) -> None:
    value, kind, sessions, shown = FORMS[number]
    path = written(tmp_path, value, indent=indent)
    artifact = formats.read(path)
    assert (artifact.kind, artifact.damage) == (kind, None)
    assert [each.session_id for each in artifact.sections] == sessions
    records = everything(path, artifact)
    assert [(each.role, each.content) for each in records] == shown
    assert sum(each.held or 0 for each in artifact.sections) == len(shown)


def test_routes_name_their_sessions(tmp_path: Path) -> None:
    path = written(tmp_path, {"_README": "x", "k": {"session_key": "k", "session_id": "s"}, "odd": 1})
    assert list(routing_file.entries(path)) == [("k", "s")]


@pytest.mark.parametrize(
    ("name", "session_id"),
    [
        ("20260801_170000_777777.jsonl", "20260801_170000_777777"),
        ("cron_ab12_20260801_170000.jsonl", "cron_ab12_20260801_170000"),
        ("renamed.jsonl", ""),
    ],
)
def test_a_transcript_is_named_by_its_file_where_that_is_an_id(
    tmp_path: Path, name: str, session_id: str
) -> None:
    line = {**MESSAGE, "timestamp": "2026-08-01T17:00:00.100000"}
    path = written(tmp_path, line, name, indent=None)
    artifact = formats.read(path)
    assert artifact.kind is Kind.TRANSCRIPT_JSONL
    assert [each.session_id for each in artifact.sections] == [session_id]


@pytest.mark.parametrize(
    "line",
    [
        {"role": "user", "content": "no time"},
        {"role": "user", "content": "x", "timestamp": "yesterday"},
        {"type": "message", "role": "user", "content": "x", "timestamp": 1.0},
        {"role": 1, "content": "x", "timestamp": 1.0},
    ],
)
def test_what_only_looks_like_a_message_is_no_transcript(tmp_path: Path, line: Any) -> None:
    assert formats.classify(written(tmp_path, line, indent=None)) is Kind.UNCLASSIFIED


def test_a_trajectory_may_quote_its_own_marks(tmp_path: Path) -> None:
    quoted = 'Write <tool_call>\n{"name": "x"}\n</tool_call> like this.'
    turns = [
        {"from": "human", "value": "how?"},
        {
            "from": "gpt",
            "value": f"<think>\nhm\n</think>\n{quoted}\n<tool_call>\n{CALL}\n</tool_call>",
        },
        {
            "from": "tool",
            "value": f"<tool_response>\n{ANSWER}\n</tool_response>",
        },
    ]
    path = written(tmp_path, {"conversations": turns, "completed": True}, indent=None)
    records = everything(path, formats.read(path))
    assert [(each.role, each.content, each.reasoning) for each in records] == [
        ("user", "how?", None),
        ("assistant", quoted, "hm"),
        ("tool", "</tool_response>", None),
    ]
    assert records[1].tool_calls == [{"function": {"name": "t", "arguments": {}}}]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SAVES)))
def test_a_file_that_is_cut_keeps_its_start_and_says_so(tmp_path: Path, path: Path) -> None:
    whole = formats.read(path)
    before = everything(path, whole)
    data = path.read_bytes()
    for share in (0.5, 0.9):
        cut = tmp_path / path.name
        cut.write_bytes(data[: int(len(data) * share)])
        artifact = formats.read(cut)
        records = everything(cut, artifact)
        assert artifact.kind in (whole.kind, Kind.UNCLASSIFIED)
        assert len(records) <= len(before)
        if whole.kind is not Kind.SAVE_MARKDOWN and artifact.kind is whole.kind:
            assert artifact.damage is not None
            assert [each.content for each in records] == [each.content for each in before[: len(records)]]


def shown(path: Path) -> list[tuple[Kind, str | None, str, list[Record]]]:
    artifact = formats.read(path)
    return [
        (artifact.kind, artifact.damage, each.session_id, list(formats.records(path, artifact, each)))
        for each in artifact.sections
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SAVES)))
def test_a_byte_order_mark_and_the_line_ends_of_windows_change_nothing(tmp_path: Path, path: Path) -> None:
    before = shown(path)
    copy = tmp_path / path.name
    copy.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert shown(copy) == before
    copy.write_bytes(path.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    assert shown(copy) == before


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_a_spoilt_file_can_be_read(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    content = bytearray(data.draw(st.sampled_from(FILES)).read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 30))] = data.draw(st.binary(max_size=6))
    path = tmp_path_factory.mktemp("spoilt") / "20260801_170000_777777.jsonl"
    path.write_bytes(content)
    artifact = formats.read(path)
    assert artifact.size == len(content)
    for section in artifact.sections:
        assert 0 <= section.offset <= section.offset + section.length <= artifact.size
        assert all(record.role for record in formats.records(path, artifact, section))


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(number=st.integers(0, len(FORMS) - 1), key=st.text(max_size=5), odd=JSON, data=st.data())
@settings(max_examples=150, deadline=None)
def test_members_of_any_type_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, number: int, key: str, odd: Any, data: st.DataObject
) -> None:
    value = json.loads(json.dumps(FORMS[number][0]))
    places = [value]
    for place in places:
        places += [
            each
            for each in (place.values() if isinstance(place, dict) else place)
            if isinstance(each, dict | list)
        ]
    place = data.draw(st.sampled_from(places))
    if isinstance(place, dict):
        place[data.draw(st.sampled_from([*place, key]))] = odd
    else:
        place.append(odd)
    path = written(tmp_path_factory.mktemp("odd"), value)
    artifact = formats.read(path)
    everything(path, artifact)


def test_nesting_without_end_is_damage(tmp_path: Path) -> None:
    deep = "[" * 100_000
    path = tmp_path / "deep.json"
    path.write_text(
        '{"model": "m", "session_id": "s", "session_start": "x", "messages": [{"role": "user", "content": '
        + deep
    )
    artifact = formats.read(path)
    assert artifact.kind is Kind.SAVE_JSON
    assert artifact.damage is not None
    assert everything(path, artifact) == []
