"""JSONL: byte-exact both ways against real exports, exact values, and calm in front of damaged files."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.corpus import EXPORTS, VERSIONS, files, store_of

from statemend.errors import Undetermined
from statemend.formats import jsonl
from statemend.formats.artifact import Kind, Record, Section
from statemend.store import history
from statemend.store.connection import Store
from statemend.store.schema import Era


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(version: str, tmp_path: Path) -> Iterator[Store]:
    with store_of(version, tmp_path) as opened:
        yield opened


def exported_view(store: Store) -> history.View:
    """The rows that a JSONL export of the store's era takes."""
    return history.View.RAW if store.schema.era >= Era.V22 else history.View.ACTIVE


def last_active(store: Store, session_id: str) -> float:
    sql = (
        "SELECT COALESCE(MAX(m.timestamp), s.started_at) FROM sessions s "
        "LEFT JOIN messages m ON m.session_id = s.id WHERE s.id = ?"
    )
    return float(store.value(sql, (session_id,)))


def written(path: Path, section: Section) -> bytes:
    return path.read_bytes()[section.offset :][: section.length]


def test_rendering_the_store_gives_the_bytes_of_every_single_export(store: Store, version: str) -> None:
    paths = files(version, "jsonl/single-*.jsonl")
    for path in paths:
        (section,) = jsonl.read(path).sections
        session = history.session_record(store, section.session_id)
        assert session is not None
        rows = history.records(store, section.session_id, exported_view(store))
        line = "".join(jsonl.render(session, rows, timings=store.schema.era >= Era.V22))
        assert line.encode() == path.read_bytes(), path.name


def test_rendering_the_store_gives_the_bytes_of_the_export_of_all(store: Store, version: str) -> None:
    (path,) = files(version, "jsonl/all.jsonl")
    sections = jsonl.read(path).sections
    assert len(sections) == 14
    for section in sections:
        session = history.session_record(store, section.session_id)
        assert session is not None
        if store.schema.era >= Era.V22:
            stored = store.value("SELECT tool_names FROM sessions WHERE id = ?", (section.session_id,))
            session["tool_names"] = stored  # a bare export leaves the hash unresolved
        line = "".join(
            jsonl.render(
                session,
                history.records(store, section.session_id, exported_view(store)),
                last_active=last_active(store, section.session_id),
                timings=store.schema.era >= Era.V22,
            )
        )
        assert line.encode() == written(path, section), section.session_id


def test_records_have_the_exact_values_of_the_rows(store: Store, version: str) -> None:
    for path in files(version, "jsonl/single-*.jsonl"):
        artifact = jsonl.read(path)
        (section,) = artifact.sections
        rows = list(history.records(store, section.session_id, exported_view(store)))
        found = list(jsonl.records(path, section))
        assert [record.row for record in found] == rows
        assert [record.position for record in found] == list(range(len(rows)))
        assert section.held == len(rows)
        assert artifact.damage is None
        for record, row in zip(found, rows, strict=True):
            assert (record.row_id, record.role, record.content) == (row["id"], row["role"], row["content"])
            assert record.timestamp == row["timestamp"]
            assert record.tool_calls == (row["tool_calls"] or None)
            assert (record.active, record.compacted) == (row.get("active"), row.get("compacted"))


def test_a_summary_row_is_told_from_its_flag_or_its_text() -> None:
    (path,) = files("0.22.2", "jsonl/single-C-*.jsonl")
    (section,) = jsonl.read(path).sections
    summaries = [record for record in jsonl.records(path, section) if record.summary]
    assert len(summaries) == 1
    assert summaries[0].row is not None
    assert summaries[0].row["_compressed_summary"] is True


def test_read_names_sessions_and_hashes_the_file(version: str) -> None:
    (path,) = files(version, "jsonl/all.jsonl")
    artifact = jsonl.read(path)
    objects = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert artifact.kind is Kind.JSONL
    assert artifact.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert artifact.size == path.stat().st_size
    assert artifact.modified_at == path.stat().st_mtime
    assert [
        (s.session_id, s.title, s.started_at, s.parent_id, s.source_count) for s in artifact.sections
    ] == [(o["id"], o["title"], o["started_at"], o["parent_session_id"], o["message_count"]) for o in objects]
    assert sum(section.length for section in artifact.sections) == artifact.size


def session(session_id: str = "s1", *messages: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": session_id,
        "source": "cli",
        "title": "T",
        "started_at": 1.5,
        **more,
        "messages": [*messages],
    }


def user(text: Any = "hello", **more: Any) -> dict[str, Any]:
    return {"id": 7, "role": "user", "content": text, "timestamp": 2.25, **more}


def wrote(folder: Path, *lines: bytes | dict[str, Any]) -> Path:
    path = folder / "any.name"
    path.write_bytes(
        b"".join(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in lines)
    )
    return path


def all_records(path: Path) -> list[list[Record]]:
    return [list(jsonl.records(path, section)) for section in jsonl.read(path).sections]


def test_recognised_when_the_first_line_is_longer_than_the_head() -> None:
    head = json.dumps(session("s1", user("x" * 100_000)))[:65536].encode()
    assert jsonl.recognise(head) is Kind.JSONL


def test_recognised_behind_an_unreadable_line() -> None:
    assert jsonl.recognise(b'{"id": \n' + json.dumps(session()).encode() + b"\n") is Kind.JSONL


@pytest.mark.parametrize(
    "head",
    [
        b'{"session_id": "s", "index": 1, "role": "user", "text": "\\"messages\\""}\n',
        b'{"parentUuid": null, "sessionId": "s", "version": "hermes-agent"}\n',
        b'{"role": "user", "content": "\\"messages\\": ["}\n',
        b'{"conversations": [], "messages": "x"}\n',
        b"# messages\n",
        b"\0" * 100,
    ],
)
def test_other_json_is_not_taken_for_sessions(head: bytes) -> None:
    assert jsonl.recognise(head) is None


def test_a_cut_line_keeps_what_was_complete(tmp_path: Path) -> None:
    line = json.dumps(session("s2", user("one"), user("two"), user("three", id=9))).encode()
    path = wrote(tmp_path, session("s1", user()), line[: line.index(b"three")])
    artifact = jsonl.read(path)
    assert artifact.damage == "the last line is cut off"
    assert [(s.session_id, s.held, s.damage) for s in artifact.sections] == [
        ("s1", 1, None),
        ("s2", 2, "cut off"),
    ]
    assert [record.content for record in all_records(path)[1]] == ["one", "two"]


@given(cut=st.integers(min_value=0))
@settings(max_examples=60, deadline=None)
def test_every_cut_of_a_real_line_gives_a_prefix_of_its_messages(cut: int, tmp_path_factory: Any) -> None:
    data = files("0.22.2", "jsonl/single-T-*.jsonl")[0].read_bytes()
    rows = json.loads(data)["messages"]
    path = tmp_path_factory.mktemp("cut") / "cut.jsonl"
    path.write_bytes(data[: cut % len(data)])
    for found in all_records(path):
        assert [record.row for record in found] == rows[: len(found)]


def test_an_unreadable_line_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    spoilt = json.dumps(session("s2", user("one"), user("two"))).replace("two", 'tw"o').encode() + b"\n"
    path = wrote(tmp_path, session("s1"), spoilt, b"\0\0\0\n", session("s3"))
    artifact = jsonl.read(path)
    assert artifact.damage == "lines 2 and 3 are unreadable"
    assert [(section.session_id, section.held, section.damage) for section in artifact.sections] == [
        ("s1", 0, None),
        ("s2", 1, "unreadable behind its start"),
        ("s3", 0, None),
    ]
    assert [record.content for record in all_records(path)[1]] == ["one"]


def test_much_damage_is_said_briefly(tmp_path: Path) -> None:
    path = wrote(tmp_path, session(), *([b"{\n"] * 1000))
    assert jsonl.read(path).damage == "lines 2, 3, 4 and 997 more are unreadable"


@pytest.mark.parametrize(
    ("line", "damage"),
    [
        ({"id": 5, "messages": []}, "line 1 holds no session"),
        ([1, 2], "line 1 holds no session"),
        ({"messages": []}, "line 1 holds no session"),
        ({"id": "s", "messages": {"a": 1}}, "line 1 holds a session without messages"),
        ({"id": "s"}, "line 1 holds a session without messages"),
    ],
)
def test_a_line_of_another_shape_is_reported(tmp_path: Path, line: Any, damage: str) -> None:
    path = wrote(tmp_path, json.dumps(line).encode() + b"\n")
    assert jsonl.read(path).damage == damage
    assert all(found == [] for found in all_records(path))


def test_entries_that_are_no_messages_are_left_out_and_reported(tmp_path: Path) -> None:
    path = wrote(tmp_path, session("s1", user("a"), 5, None, {"content": "no role"}, {"role": 3}, user("b")))
    artifact = jsonl.read(path)
    assert artifact.damage == "line 1 holds entries that are no messages"
    assert artifact.sections[0].held == 2
    assert artifact.sections[0].damage == "some entries are no messages"
    assert [(record.content, record.position) for record in all_records(path)[0]] == [("a", 0), ("b", 1)]


def test_values_of_the_wrong_type_count_as_absent(tmp_path: Path) -> None:
    odd = user(
        {"a": [1]},
        id="7",
        timestamp="noon",
        tool_call_id=4,
        tool_calls="x",
        tool_name=[],
        active="1",
        reasoning=1,
    )
    path = wrote(
        tmp_path, session("s1", odd, title=3, started_at="x", message_count="4", lineage_session_ids=[1, "a"])
    )
    (section,) = jsonl.read(path).sections
    assert (section.title, section.started_at, section.source_count) == (None, None, None)
    assert section.lineage == ("a",)
    (record,) = jsonl.records(path, section)
    assert record == Record(position=0, role="user", content={"a": [1]}, row=odd)


def test_what_python_writes_and_strict_json_forbids_is_read(tmp_path: Path) -> None:
    path = wrote(tmp_path, session("s1", user("\ud83d lone", timestamp=float("inf"), cost=float("nan"))))
    (record,) = all_records(path)[0]
    assert record.content == "\ud83d lone"
    assert record.timestamp is None
    assert jsonl.read(path).damage is None


def test_a_repeated_member_counts_as_the_last_one(tmp_path: Path) -> None:
    path = wrote(tmp_path, b'{"id": "a", "id": "b", "messages": [], "messages": [{"role": "user"}]}\n')
    (section,) = jsonl.read(path).sections
    assert (section.session_id, section.held) == ("b", 1)


def test_bytes_that_are_no_utf8_are_reported_and_survive(tmp_path: Path) -> None:
    path = wrote(tmp_path, b'{"id": "s", "messages": [{"role": "user", "content": "a\xffb"}]}\n')
    assert jsonl.read(path).damage == "line 1 is not UTF-8"
    (record,) = all_records(path)[0]
    assert record.content.encode("utf-8", "surrogateescape") == b"a\xffb"


@pytest.mark.parametrize(
    "bomb", [b"[" * 200_000, b'{"a":' * 200_000, b"[" * 200_000 + b"]" * 200_000, b"9" * 100_000]
)
def test_bombs_are_unreadable_lines(tmp_path: Path, bomb: bytes) -> None:
    path = wrote(tmp_path, b'{"id": "s", "x": ' + bomb + b', "messages": []}\n', session("s1"))
    artifact = jsonl.read(path)
    assert [section.session_id for section in artifact.sections] == ["s", "s1"]
    whole = bomb.startswith(b"9")
    assert artifact.damage == (None if whole else "line 1 is unreadable")
    assert artifact.sections[0].damage == (None if whole else "unreadable behind its start")
    assert all_records(path) == [[], []]


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_no_content_raises(tmp_path_factory: Any, content: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "any"
    path.write_bytes(b'{"id": "s", "source": ' + content)
    jsonl.recognise(content)
    artifact = jsonl.read(path)
    assert artifact.size == len(content) + 22
    for section in artifact.sections:
        assert section.offset + section.length <= artifact.size
        assert len(list(jsonl.records(path, section))) == section.held


def test_a_pretty_printed_session_is_one_section(tmp_path: Path) -> None:
    one = session("s1", user("a\nb"))
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(one, indent=2, ensure_ascii=False))
    assert jsonl.recognise(path.read_bytes()) is Kind.JSONL
    artifact = jsonl.read(path)
    assert (artifact.damage, artifact.sections[0].length) == (None, path.stat().st_size)
    assert [record.content for record in all_records(path)[0]] == ["a\nb"]


def test_a_compact_session_without_line_break_is_whole(tmp_path: Path) -> None:
    path = wrote(tmp_path, json.dumps(session("s1", user()), separators=(",", ":")).encode())
    assert jsonl.recognise(path.read_bytes()) is Kind.JSONL
    assert jsonl.read(path).damage is None
    assert len(all_records(path)[0]) == 1


def test_windows_line_ends_change_nothing(tmp_path: Path) -> None:
    data = (EXPORTS / "0.19.0" / "jsonl" / "all.jsonl").read_bytes()
    path = wrote(tmp_path, data.replace(b"\n", b"\r\n"))
    assert jsonl.recognise(path.read_bytes()[:65536]) is Kind.JSONL
    assert jsonl.read(path).damage is None
    assert len(jsonl.read(path).sections) == 14


def test_memory_follows_the_longest_line_and_not_the_file(tmp_path: Path) -> None:
    line = json.dumps(session("s", *[user("w" * 200)] * 50)).encode() + b"\n"
    path = tmp_path / "many.jsonl"
    path.write_bytes(line * 700)
    tracemalloc.start()
    try:
        artifact = jsonl.read(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(artifact.sections) == 700
    assert artifact.size > 8_000_000
    assert peak < artifact.size / 8


def test_what_hermes_cannot_write_is_written_without_loss(tmp_path: Path) -> None:
    messages = [user("lone \udc00"), {"id": 2, "role": "tool", "content": b"\x00\xff"}]
    text = "".join(jsonl.render({"id": "s"}, messages))
    path = wrote(tmp_path, text.encode())
    first, second = all_records(path)[0]
    assert first.content == "lone \udc00"
    assert second.content == {"blob": "00ff"}


def test_a_folder_and_a_missing_file_could_not_be_determined(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(Undetermined, match=path.name):
            jsonl.read(path)


@pytest.mark.parametrize(
    "members",
    [
        {"id": "c1", "messages": [user("hello")]},
        {"id": "c1", "messages": [user("hello")], "source": "a data set"},
        {"messages": [user("hello")], "id": "c1", "source": "a data set"},
        {"id": "c1", "title": "talk", "messages": [user("a" * 70_000)]},
        {"id": "c1", "title": 5, "messages": [user('"source": "cli"')]},
    ],
)
def test_the_conversations_of_another_program_are_no_export(members: dict[str, Any]) -> None:
    assert jsonl.recognise((json.dumps(members).encode() + b"\n" + b"{}")[:65536]) is None


def test_an_export_whose_members_were_sorted_is_one() -> None:
    members = {**session("s1", user("hello")), "started_at": 1.0, "source": "cli"}
    assert jsonl.recognise(json.dumps(members, sort_keys=True).encode() + b"\n") is Kind.JSONL
