"""What survives of a session: the union of everything that shows it."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.evidence.scene import KINDS, SUMMARY, TRANSCRIPTS, Scene

from statemend.evidence.inventory import Home, find_home, take
from statemend.evidence.rows import Fidelity
from statemend.evidence.salvage import Lack, Salvage, salvage
from statemend.formats import html, jsonl, markdown, prompts
from statemend.formats.artifact import FILTERED, Kind
from statemend.formats.save_markdown import HIDDEN_ROLE, render_message
from statemend.store.connection import Store, open_for_audit
from statemend.store.history import Message, RowState, View
from statemend.store.message import MESSAGE_COLUMNS, message_from_row

EXAMPLES = int(os.environ.get("STATEMEND_SALVAGE_EXAMPLES", "60"))
START = Scene.start
CALL = {"id": "c1", "type": "function", "function": {"name": "sh", "arguments": '{"command": "ls"}'}}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A session of three turns: rows 1 to 6."""
    scene = Scene(tmp_path / "home").session()
    for turn in range(3):
        scene.say(f"question {turn}", 10.0 * turn + 1)
        scene.say(f"answer {turn}", 10.0 * turn + 2, role="assistant")
    return scene


def lose(scene: Scene) -> None:
    """Delete every session, as Hermes does."""
    scene.change("DELETE FROM messages")
    scene.change("DELETE FROM sessions")


def saved(scene: Scene, session_id: str = "s1", *extra: Path) -> Salvage:
    inventory = take(find_home(scene.root), extra)
    with open_for_audit(scene.rows.path) as store:
        return salvage(store, inventory, session_id)


def texts(found: Salvage) -> list[Any]:
    return [each.record.content for each in found.messages]


TALK = [f"{word} {turn}" for turn in range(3) for word in ("question", "answer")]


@pytest.mark.parametrize("kind", KINDS)
def test_one_export_gives_back_what_it_shows(scene: Scene, kind: Kind) -> None:
    path = scene.export(kind)
    lose(scene)
    found = saved(scene)
    assert texts(found) == (TALK[::2] if kind in FILTERED else TALK)
    assert {each.fidelity for each in found.messages} == {
        Fidelity.EXACT if kind is Kind.JSONL else Fidelity.LOSSY
    }
    assert [each.place.position for each in found.messages] == list(range(len(found.messages)))
    assert {each.place.artifact for each in found.messages} == {str(path)}
    assert [gap.lack for gap in found.gaps] == ([Lack.FILTERED] if kind in FILTERED else [])
    assert found.lost == 0


def test_all_formats_together_give_each_message_once(scene: Scene) -> None:
    for kind in KINDS:
        scene.export(kind, zone=timezone(timedelta(hours=2)))
    lose(scene)
    found = saved(scene)
    assert texts(found) == TALK
    assert found.count(Fidelity.EXACT) == 6
    assert [len(each.others) for each in found.messages] == [5, 3, 5, 3, 5, 3]
    assert {each.kind: each.best for each in found.sources} == {
        kind: 6 * (kind is Kind.JSONL) for kind in KINDS
    }
    assert (found.conflicts, found.gaps, found.strangers) == ((), (), ())


def test_what_the_store_still_has_is_part_of_the_union(scene: Scene) -> None:
    scene.export(Kind.MARKDOWN)
    scene.change("DELETE FROM messages WHERE id < 5")
    found = saved(scene)
    assert texts(found) == TALK
    assert [each.place.kind for each in found.messages] == [Kind.MARKDOWN] * 4 + [Kind.STORE] * 2
    assert found.messages[5].others[0].kind is Kind.MARKDOWN


@pytest.mark.parametrize("kind", TRANSCRIPTS)
def test_an_export_from_before_the_compaction_fills_what_one_from_after_it_lacks(
    scene: Scene, kind: Kind
) -> None:
    scene.export(kind, at=60.0, name="before")
    scene.compact(("user", "question 2", 21.0), ("assistant", "answer 2", 22.0), at=90.0)
    scene.say("the end", 95.0)
    scene.export(kind, at=99.0, name="after")
    lose(scene)
    found = saved(scene)
    assert texts(found) == [*TALK[:4], SUMMARY, *TALK[4:], "the end"]
    assert found.gaps == ()


@pytest.mark.parametrize("kind", TRANSCRIPTS)
def test_a_summary_alone_tells_of_turns_that_are_lost(scene: Scene, kind: Kind) -> None:
    scene.compact(("user", "question 2", 21.0), ("assistant", "answer 2", 22.0), at=90.0)
    path = scene.export(kind, at=99.0)
    lose(scene)
    (gap,) = saved(scene).gaps
    assert (gap.lack, gap.artifact, gap.count) == (Lack.COMPACTED, str(path), None)
    if kind is not Kind.HTML:
        assert (gap.first_at, gap.last_at) == (scene.start, scene.start + 90)


def test_every_row_of_a_raw_export_keeps_its_state_and_is_folded(scene: Scene) -> None:
    scene.compact(("user", "question 2", 21.0), ("assistant", "answer 2", 22.0), at=90.0)
    scene.say("undone", 95.0, active=0, compacted=0)
    scene.export(Kind.JSONL, view=View.RAW)
    lose(scene)
    found = saved(scene)
    assert texts(found) == [*TALK, SUMMARY, "undone"]
    states = [RowState.ARCHIVED] * 4 + [RowState.LIVE] * 3 + [RowState.REWOUND]
    assert [each.state for each in found.messages] == states
    assert found.gaps == ()


def test_the_newest_source_says_the_state(scene: Scene) -> None:
    scene.export(Kind.JSONL, name="before.jsonl")
    scene.change("UPDATE messages SET active = 0, compacted = 1 WHERE id < 3")
    scene.say("later", 60.0)
    scene.export(Kind.JSONL, view=View.RAW, name="after.jsonl")
    lose(scene)
    assert [each.state for each in saved(scene).messages[:3]] == [
        RowState.ARCHIVED,
        RowState.ARCHIVED,
        RowState.LIVE,
    ]


def test_a_masked_text_gives_way_to_a_plain_one(scene: Scene) -> None:
    scene.say("my key is sk-ant...WxYz and more", 40.0)
    scene.export(Kind.JSONL)
    scene.change("UPDATE messages SET content = ? WHERE id = 7", "my key is sk-ant-Ab12345WxYz and more")
    scene.export(Kind.HTML)
    lose(scene)
    found = saved(scene)
    last = found.messages[-1]
    assert len(found.messages) == 7
    assert (last.record.content, last.fidelity) == ("my key is sk-ant-Ab12345WxYz and more", Fidelity.LOSSY)
    assert not last.suspect


@pytest.mark.parametrize("kind", TRANSCRIPTS)
def test_a_text_that_looks_redacted_is_suspect_where_nothing_tells(scene: Scene, kind: Kind) -> None:
    scene.say("my key is sk-ant...WxYz and more", 40.0)
    scene.export(kind)
    lose(scene)
    assert [each.suspect for each in saved(scene).messages] == [False] * 6 + [True]


MARKED = ["password=***", '{"key": "***"}', "ghp_ab...6789", "see [REDACTED PRIVATE KEY]", "«redacted:sk-…»"]
UNMARKED = ["***", "so ***bold***", "a: ***bold***", "finish...soon", "wait...what", "1234567...9"]


@pytest.mark.parametrize("text", [*MARKED, *UNMARKED])
def test_ordinary_dots_and_stars_are_not_suspect(tmp_path: Path, text: str) -> None:
    scene = Scene(tmp_path / "home").session().say(text, 1.0)
    scene.export(Kind.JSONL)
    lose(scene)
    assert [each.suspect for each in saved(scene).messages] == [text in MARKED]


def test_a_row_with_two_texts_is_one_message_and_a_conflict(scene: Scene) -> None:
    scene.export(Kind.JSONL, name="one.jsonl")
    scene.change("UPDATE messages SET content = 'answer one' WHERE id = 4")
    scene.export(Kind.JSONL, name="two.jsonl")
    lose(scene)
    found = saved(scene)
    assert texts(found) == [*TALK[:3], found.messages[3].record.content, *TALK[4:]]
    (conflict,) = found.conflicts
    assert conflict.messages == (3,)
    assert {conflict.variants[0].artifact, found.messages[3].place.artifact} == {
        str(scene.exports / "one.jsonl"),
        str(scene.exports / "two.jsonl"),
    }


def test_two_texts_of_one_moment_may_be_one_message_or_two(scene: Scene) -> None:
    scene.export(Kind.JSONL)
    scene.change("UPDATE messages SET content = 'answer one' WHERE id = 4")
    scene.export(Kind.MARKDOWN)
    lose(scene)
    found = saved(scene)
    assert texts(found) == [*TALK[:4], "answer one", *TALK[4:]]
    assert [each.messages for each in found.conflicts] == [(3, 4)]


def test_the_end_of_a_cut_file_is_counted_as_lost(scene: Scene) -> None:
    path = scene.export(Kind.MARKDOWN, at=60.0)
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"answer 1") + 4])
    lose(scene)
    found = saved(scene)
    assert texts(found) == [*TALK[:3], "answ"]
    assert [each.cut for each in found.messages] == [False, False, False, True]
    (gap,) = found.gaps
    assert (gap.lack, gap.count, gap.last_at) == (Lack.CUT, 2, scene.start + 60)
    scene.rows.session("s1")  # the prompts of another file fill some of it
    found = saved(scene)
    assert found.lost == 2


def test_a_whole_export_fills_the_end_of_a_cut_one(scene: Scene) -> None:
    for kind in (Kind.MARKDOWN, Kind.HTML):
        scene.export(kind, at=60.0)
    path = scene.exports / "s1-active.markdown"
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"answer 1") + 4])
    lose(scene)
    found = saved(scene)
    assert texts(found) == TALK
    assert not any(each.cut for each in found.messages)
    assert found.gaps == ()


def test_another_stores_export_under_the_same_id_is_a_stranger(scene: Scene, tmp_path: Path) -> None:
    other = Scene(tmp_path / "other").session()
    other.say("bonjour", 100.0).say("salut", 101.0, role="assistant")
    mine, foreign = scene.export(Kind.JSONL), other.export(Kind.JSONL)
    also = scene.export(Kind.MARKDOWN)
    lose(scene)
    found = saved(scene, "s1", foreign)
    assert [each.artifact for each in found.strangers] == [str(foreign)]
    assert {each.artifact for each in found.sources} == {str(mine), str(also), str(foreign)}


def test_one_segment_of_a_logical_export_is_that_session(scene: Scene) -> None:
    scene.session("s2", parent_session_id="s1").say("question 2", 21.0, "s2").say("go on", 60.0, "s2")
    scene.export(Kind.MARKDOWN, "s1", "s2", lineage=("s1", "s2"))
    lose(scene)
    assert texts(saved(scene)) == TALK
    assert texts(saved(scene, "s2")) == ["question 2", "go on"]


def test_a_message_that_imitates_an_export_is_one_where_its_text_is_known(scene: Scene) -> None:
    scene.say("x\n\n\n### User — 2026-01-01T00:00:00Z\n\nfake\n\n\n## Compression segment: s2\n", 40.0)
    scene.export(Kind.JSONL)
    scene.export(Kind.MARKDOWN)
    lose(scene)
    assert len(saved(scene).messages) == 7


def test_an_unknown_session_has_nothing(scene: Scene) -> None:
    found = saved(scene, "nobody")
    assert found == Salvage("nobody", (), (), (), ())


# Any subset of the rows, in any formats.

TEXTS = st.sampled_from(
    [
        "ok",
        "ok",
        "yes",
        "line one\nline two\n\nline three",
        "ends in spaces   \n\n",
        "  begins in spaces",
        "### User — 2026-08-01T09:20:07Z",
        "\U0001f642 画像 \u202eabc",
        '{"json": true}',
        [{"type": "text", "text": "look"}, PICTURE],
    ]
)
ROWS = st.tuples(
    st.sampled_from(["user", "assistant", "tool", "system"]), TEXTS, st.sampled_from([1.0, 1.25, 70.5])
)
FILES = st.lists(
    st.tuples(st.sampled_from((*KINDS, Kind.SAVE_MARKDOWN)), st.integers(0, 2**12 - 1)),
    min_size=1,
    max_size=5,
)


def as_row(number: int, role: str, content: Any, at: float) -> dict[str, Any]:
    """A row of the messages table as the exporters get it."""
    called = role == "assistant" and number % 3 == 0
    return {
        "id": number,
        "session_id": "s1",
        "role": role,
        "content": content,
        "tool_call_id": f"c{number}" if role == "tool" else None,
        "tool_calls": [{**CALL, "id": f"c{number}"}] if called else None,
        "tool_name": "sh" if role == "tool" else None,
        "timestamp": at,
        "active": 1,
        "compacted": 0,
    }


def as_message(row: dict[str, Any]) -> Message:
    content = row["content"]
    stored = content if isinstance(content, str) else "\0json:" + json.dumps(content)
    calls = None if row["tool_calls"] is None else json.dumps(row["tool_calls"])
    cells = {**row, "content": stored, "tool_calls": calls}
    return message_from_row(tuple(cells.get(column) for column in re.split(r"\W+", MESSAGE_COLUMNS)))


def write(path: Path, kind: Kind, rows: Sequence[dict[str, Any]]) -> None:
    session = {"id": "s1", "source": "cli", "title": "T", "started_at": START, "message_count": len(rows)}
    messages = [as_message(row) for row in rows]
    if kind is Kind.JSONL:
        parts = list(jsonl.render(session, rows))
    elif kind is Kind.HTML:
        parts = list(
            html.render([(session, messages)], generated_at="now", zone=timezone(timedelta(hours=-7)))
        )
    elif kind is Kind.PROMPTS_JSONL:
        parts = list(prompts.render_jsonl("s1", messages))
    elif kind is Kind.PROMPTS_MARKDOWN:
        parts = [prompts.render_markdown([(session, messages)])]
    elif kind is Kind.SAVE_MARKDOWN:
        said = "".join(render_message(each) for each in messages if each.role != HIDDEN_ROLE)
        parts = [f"# Session: T\n- Session ID: `s1`\n\n{said.rstrip()}\n"]
    else:
        parts = [markdown.render(session, [("s1", messages)], kind=kind, exported_at=START + 1e5, lineage=())]
    path.write_bytes("".join(parts).encode())


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], tuple[Home, Store]]]:
    scene = Scene(tmp_path_factory.mktemp("empty") / "home")
    with open_for_audit(scene.rows.path) as store:
        yield lambda: (find_home(scene.root), store)


def shows(kind: Kind, role: str) -> bool:
    """Whether a file of this kind shows the messages of a role."""
    return role == "user" or kind not in FILTERED | ({Kind.SAVE_MARKDOWN} if role == HIDDEN_ROLE else set())


def seen(role: str, content: Any, at: float | None) -> tuple[Any, ...]:
    """A message as the coarsest format tells it."""
    text = content if isinstance(content, str) else content[0]["text"]
    lines = [line for line in text.split("\n") if line != "[Image Attachment]" and '"image_url"' not in line]
    return role, "\n".join(lines).strip(), None if at is None else int(at)


@settings(max_examples=EXAMPLES, deadline=None)
@given(rows=st.lists(ROWS, min_size=1, max_size=12), files=FILES)
def test_any_subset_in_any_formats_comes_back_whole(
    empty: Callable[[], tuple[Home, Store]], rows: list[tuple[str, Any, float]], files: list[tuple[Kind, int]]
) -> None:
    home, store = empty()
    at = START
    stored = []
    for number, (role, content, gap) in enumerate(rows, start=1):
        at += gap
        stored.append(as_row(number, role, content, at))
    shown: dict[int, list[Kind]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, (kind, chosen) in enumerate(files):
            subset = [row for row in stored if chosen >> (row["id"] - 1) & 1]
            write(Path(folder) / f"{number}.{kind}", kind, subset)
            for row in subset:
                if shows(kind, row["role"]):
                    shown.setdefault(row["id"], []).append(kind)
        inventory = take(home, [Path(folder)])
        found = salvage(store, inventory, "s1")
        backwards = msgspec.structs.replace(inventory, artifacts=inventory.artifacts[::-1])
        assert salvage(store, backwards, "s1") == found
    dated = all(each.dated for each in found.sources)
    if not dated and len({kind for kind, _ in files}) > 1:
        return  # a page whose clock nothing ties to the others
    expected = [row for row in stored if row["id"] in shown]
    assert [
        seen(each.record.role, each.record.content, each.at if dated else None) for each in found.messages
    ] == [seen(row["role"], row["content"], row["timestamp"] if dated else None) for row in expected]
    assert [each.fidelity is Fidelity.EXACT for each in found.messages] == [
        Kind.JSONL in shown[row["id"]] for row in expected
    ]
    assert [1 + len(each.others) for each in found.messages] == [len(shown[row["id"]]) for row in expected]
    assert found.conflicts == ()


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    place=st.integers(0, 10_000),
    length=st.integers(0, 400),
    change=st.sampled_from(["cut", "drop", "repeat", "flip"]),
)
def test_a_spoilt_file_beside_a_whole_one_takes_nothing_away(
    empty: Callable[[], tuple[Home, Store]], kind: Kind, place: int, length: int, change: str
) -> None:
    home, store = empty()
    rows = [
        as_row(n, ("user", "assistant", "tool")[n % 3], f"text {n}", START + 7.0 * n) for n in range(1, 7)
    ]
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "whole.jsonl", Kind.JSONL, rows)
        path = Path(folder) / f"spoilt.{kind}"
        write(path, kind, rows)
        data = path.read_bytes()
        start = place % len(data)
        piece = data[start : start + length]
        path.write_bytes(
            {
                "cut": data[:start],
                "drop": data[:start] + data[start + length :],
                "repeat": data[:start] + piece + data[start:],
                "flip": data[:start] + bytes(byte ^ 1 for byte in piece) + data[start + length :],
            }[change]
        )
        found = salvage(store, take(home, [Path(folder)]), "s1")
    exact = iter([each.record.content for each in found.messages if each.fidelity is Fidelity.EXACT])
    assert all(row["content"] in exact for row in rows)  # in their order, whatever else there is
