"""The views of a session's history, against what Hermes itself returned for the same rows."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.folders import pages_of
from tests.store.rows import ARCHIVED, DATA, ERA_RELEASES, REWOUND, Rows

from statemend.errors import StoreUnreadable
from statemend.store import content as cells
from statemend.store import history
from statemend.store.connection import Store, open_for_audit
from statemend.store.display import display_key
from statemend.store.history import Message, RowState, View
from statemend.store.message import message_from_row

SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns.\nThe summary."
LEGACY = "[CONTEXT SUMMARY]:\nThe summary."
HEADER = "[PRIOR CONTEXT — for reference only; not a new message]"
DELIMITER = "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]"
END = "--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---"

MakeRows = Callable[[str], Rows]
WITH_ARCHIVE = ("0.19.0", "0.20.1", "0.22.2")
RECORDED = sorted((DATA / "display").glob("*.json"))
EXPORTED = sorted((DATA / "exports").glob("*/state.db"))


@pytest.fixture
def rows(tmp_path: Path) -> MakeRows:
    return lambda release: Rows(tmp_path / release, release)


def texts(store: Store, view: View, sid: str = "s") -> list[Any]:
    return [message.content for message in history.messages(store, sid, view)]


def folded(store: Store, sid: str = "s") -> list[tuple[int, ...]]:
    return [logical.row_ids for logical in history.display(store, sid)]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_views_show_the_rows_that_hermes_showed(rows: MakeRows, path: Path) -> None:
    """The answers were recorded from the release itself (active) and from 0.22.2 on a copy (display)."""
    recorded = json.loads(path.read_text())
    made = rows(recorded["release"])
    blob = lambda cell: bytes.fromhex(cell["blob"]) if isinstance(cell, dict) else cell  # noqa: E731
    made.insert(
        "messages", [dict(zip(recorded["columns"], map(blob, row), strict=True)) for row in recorded["rows"]]
    )
    with made.opened() as store:
        for sid, display, active in recorded["answers"]:
            assert [logical.shown.id for logical in history.display(store, sid)] == display
            assert [message.id for message in history.messages(store, sid)] == active


@pytest.mark.parametrize("path", EXPORTED, ids=lambda path: path.parent.name)
def test_records_equal_the_lines_that_hermes_exported(path: Path) -> None:
    exported = [
        json.loads(line)
        for file in path.parent.glob("jsonl/single-*.jsonl")
        for line in file.read_text().rstrip("\n").split("\n")
    ]
    assert exported
    with open_for_audit(path) as store:
        for line in exported:
            line.pop("timings", None)
            lines = line.pop("messages")
            view = View.RAW if path.parent.name == "0.22.2" else View.ACTIVE
            found = list(history.records(store, line["id"], view))
            assert found == lines
            assert [list(record) for record in found] == [list(record) for record in lines]
            assert history.session_record(store, line["id"]) == line


def test_a_record_that_does_not_exist_is_none(stores: Mapping[str, Path]) -> None:
    with open_for_audit(stores["0.22.2"]) as store:
        assert history.session_record(store, "nobody") is None
        assert list(history.records(store, "nobody", View.DISPLAY)) == []


@pytest.mark.parametrize("release", WITH_ARCHIVE)
def test_display_records_are_those_of_the_rows_shown(rows: MakeRows, release: str) -> None:
    made = rows(release).message("s", "a", **ARCHIVED).message("s", "a").message("s", "b", **REWOUND)
    with made.opened() as store:
        assert [record["id"] for record in history.records(store, "s", View.DISPLAY)] == [2]


@pytest.mark.parametrize("release", WITH_ARCHIVE)
def test_each_view_has_its_rows(rows: MakeRows, release: str) -> None:
    made = rows(release).message("s", "old", **ARCHIVED).message("s", "gone", **REWOUND).message("s", "new")
    with made.opened() as store:
        assert texts(store, View.RAW) == ["old", "gone", "new"]
        assert texts(store, View.ACTIVE) == ["new"]
        assert texts(store, View.DISPLAY) == ["old", "new"]
        states = [message.state for message in history.messages(store, "s", View.RAW)]
    assert states == [RowState.ARCHIVED, RowState.REWOUND, RowState.LIVE]


def test_every_row_is_live_before_rows_could_be_undone(rows: MakeRows) -> None:
    with rows("0.15.2").message("s", "a").message("s", "a").opened() as store:
        assert [message.state for message in history.messages(store, "s")] == [RowState.LIVE] * 2
        assert texts(store, View.ACTIVE) == texts(store, View.RAW) == ["a", "a"]


def test_a_row_rewound_in_0_17_is_in_no_other_view(rows: MakeRows) -> None:
    with rows("0.17.0").message("s", "undone", active=0).message("s", "kept").opened() as store:
        assert texts(store, View.ACTIVE) == texts(store, View.DISPLAY) == ["kept"]
        assert next(history.messages(store, "s", View.RAW)).state is RowState.REWOUND


@pytest.mark.parametrize(
    ("added", "active"),
    [
        (["active INTEGER"], ["seen"]),
        (["active INTEGER", "compacted INTEGER NOT NULL DEFAULT 0"], ["unset", "seen"]),
    ],
)
def test_an_unset_row_shows_where_hermes_heals_it(
    rows: MakeRows, added: list[str], active: list[str]
) -> None:
    made = rows("0.15.2")
    made.run(*(f"ALTER TABLE messages ADD COLUMN {column}" for column in added))
    made.message("s", "unset").message("s", "seen", active=1)
    with made.opened() as store:
        assert texts(store, View.ACTIVE) == active
        assert texts(store, View.DISPLAY) == ["unset", "seen"]
        assert next(history.messages(store, "s", View.RAW)).state is RowState.UNSET
        assert [record["active"] for record in history.records(store, "s", View.ACTIVE)] == [1] * len(active)


def test_an_unset_copy_is_shown_before_an_archived_one(rows: MakeRows) -> None:
    made = rows("0.15.2")
    made.run(
        "ALTER TABLE messages ADD COLUMN active INTEGER", "ALTER TABLE messages ADD COLUMN compacted INTEGER"
    )
    made.message("s", "x", finish_reason="unset").message("s", "x", finish_reason="archived", **ARCHIVED)
    with made.opened() as store:
        assert [message.finish_reason for message in history.messages(store, "s", View.DISPLAY)] == ["unset"]


@pytest.mark.parametrize("release", WITH_ARCHIVE)
def test_a_copied_tail_is_shown_once_where_it_first_stood(rows: MakeRows, release: str) -> None:
    made = rows(release).message("s", "question", at=5.0, **ARCHIVED)
    made.message("s", "between", at=6.0, **ARCHIVED)
    made.message("s", SUMMARY, at=7.0, role="assistant").message("s", "question", at=5.0)
    with made.opened() as store:
        shown = list(history.display(store, "s"))
    assert [logical.row_ids for logical in shown] == [(1, 4), (2,), (3,)]
    assert [logical.shown.id for logical in shown] == [4, 2, 3]
    assert [logical.state for logical in shown] == [RowState.LIVE, RowState.ARCHIVED, RowState.LIVE]


@pytest.mark.parametrize(
    "other",
    [{"at": 2.0}, {"role": "assistant"}, {"tool_name": "t"}, {"tool_call_id": "c"}, {"tool_calls": "[]"}],
)
def test_the_same_text_said_anew_is_another_message(rows: MakeRows, other: dict[str, Any]) -> None:
    with rows("0.19.0").message("s", "ok", **ARCHIVED).message("s", "ok", **other).opened() as store:
        assert folded(store) == [(1,), (2,)]


@pytest.mark.parametrize(
    ("calls", "later", "count"),
    [
        ([{"id": "a", "arguments": "long"}, {"id": "b"}], [{"id": "a", "arguments": "…"}, {"id": "b"}], 1),
        ([{"call_id": "a|item", "id": "x"}], [{"call_id": "a", "id": "y"}], 1),
        ([{"id": " a "}], [{"call_id": " ", "id": "a"}], 1),
        ([{"id": "a"}], [{"id": "b"}], 2),
        ([{"id": "a"}, {"id": "b"}], [{"id": "b"}, {"id": "a"}], 2),
        ([{"id": "a"}, {}], [{"id": "a"}, {}], 2),
        ([{"id": "a"}, "b"], [{"id": "a"}, "b"], 2),
        ([{"id": 5}], [{"id": 5}], 2),
        ([], [], 2),
    ],
)
def test_calls_with_ids_are_one_message_whatever_their_arguments(
    rows: MakeRows, calls: list[Any], later: list[Any], count: int
) -> None:
    made = rows("0.19.0").message("s", "long", role="assistant", tool_calls=json.dumps(calls), **ARCHIVED)
    made.message("s", "short", role="assistant", tool_calls=json.dumps(later))
    with made.opened() as store:
        assert len(folded(store)) == count


CARRIERS = {
    "after the end": f"{SUMMARY}\n\n{END}\n\nplease go on",
    "before the summary": f"{HEADER}\nplease go on\n\n{DELIMITER}\n\n{SUMMARY}\n\n{END}",
    "without a header": f"please go on\n\n{DELIMITER}\n\n{LEGACY}",
}


@pytest.mark.parametrize("carrier", CARRIERS.values(), ids=CARRIERS)
@pytest.mark.parametrize("kind", [None, "hidden"])
def test_words_that_a_summary_was_merged_into_are_one_message(
    rows: MakeRows, carrier: str, kind: str | None
) -> None:
    made = rows("0.20.1").message("s", "please go on", **ARCHIVED).message("s", carrier, display_kind=kind)
    with made.opened() as store:
        shown = list(history.display(store, "s"))
    assert [logical.row_ids for logical in shown] == [(1, 2)]
    assert shown[0].shown.summary


PICTURE = {"type": "image_url", "image_url": {"url": "data:,"}}


@pytest.mark.parametrize(
    "carrier",
    [
        [{"type": "text", "text": f"{SUMMARY}\n{END}\n\n"}, {"type": "text", "text": "look"}, PICTURE],
        [{"type": "text", "text": HEADER}, {"type": "text", "text": "look"}, PICTURE,
         {"type": "text", "text": f"\n{DELIMITER}\n{SUMMARY}"}],
    ],
)  # fmt: skip
def test_parts_that_a_summary_was_merged_into_are_one_message(rows: MakeRows, carrier: list[Any]) -> None:
    original = [{"type": "text", "text": "look"}, PICTURE]
    with rows("0.19.0").message("s", original, **ARCHIVED).message("s", carrier).opened() as store:
        assert folded(store) == [(1, 2)]


@pytest.mark.parametrize(
    ("words", "more"),
    [
        ("[System: Continue now.]", {}),
        (LEGACY, {}),
        ("please go on", {"display_kind": "model_switch"}),
        ("please go on", {"role": "assistant"}),
    ],
)
def test_words_that_nobody_said_stay_in_their_carrier(
    rows: MakeRows, words: str, more: dict[str, Any]
) -> None:
    made = rows("0.20.1").message("s", words, **{**ARCHIVED, "role": more.get("role", "user")})
    made.message("s", f"{SUMMARY}\n{END}\n{words}", **more)
    with made.opened() as store:
        assert folded(store) == [(1,), (2,)]


@pytest.mark.parametrize(
    ("metadata", "hidden"),
    [
        ('{"model_only": true}', True),
        ('{"model_only": "yes"}', True),
        ('{"model_only": {}}', True),
        ('{"model_only": false}', False),
        ('{"model_only": null}', False),
        ('"{\\"model_only\\": true}"', False),
        ("{not json", False),
        (None, False),
    ],
)
@pytest.mark.parametrize("release", ["0.20.1", "0.22.2"])
def test_rows_for_the_model_alone_are_not_displayed(
    rows: MakeRows, release: str, metadata: str | None, hidden: bool
) -> None:
    made = rows(release).message("s", "merged", display_metadata=metadata).message("s", "said")
    with made.opened() as store:
        assert texts(store, View.DISPLAY) == [*([] if hidden else ["merged"]), "said"]
        assert texts(store, View.ACTIVE) == ["merged", "said"]


@pytest.mark.parametrize(
    ("cell", "decoded"),
    [
        ('{"a": 1}', {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ("[1]", None),
        ("{broken", None),
        (None, None),
    ],
)
def test_display_metadata_is_an_object_or_nothing(rows: MakeRows, cell: Any, decoded: Any) -> None:
    with rows("0.20.1").message("s", "x", display_metadata=cell).opened() as store:
        assert [message.display_metadata for message in history.messages(store, "s")] == [decoded]
        assert [record["display_metadata"] for record in history.records(store, "s", View.RAW)] == [decoded]


def test_a_row_for_the_model_alone_keeps_the_place_of_its_copy(rows: MakeRows) -> None:
    made = rows("0.20.1").message("s", "twice", display_metadata='{"model_only": 1}')
    made.message("s", "between", at=2.0).message("s", "twice")
    with made.opened() as store:
        assert folded(store) == [(3,), (2,)]


def placed(order: int | None, identity: bytes | None = b"i") -> dict[str, Any]:
    return {"display_order": order, "display_identity": identity}


def test_a_place_that_is_stored_for_every_row_is_trusted(rows: MakeRows) -> None:
    made = rows("0.22.2").message("s", "a", at=1.0, **placed(2)).message("s", "b", at=2.0, **placed(1))
    made.message("s", "c", at=3.0, **placed(2)).message("s", "hidden", **REWOUND, **placed(None))
    with made.opened() as store:
        assert folded(store) == [(2,), (1, 3)]
        assert texts(store, View.DISPLAY) == ["b", "c"]


@pytest.mark.parametrize("missing", [placed(None), placed(9, None)])
def test_one_unplaced_row_makes_all_places_of_its_session_computed(
    rows: MakeRows, missing: dict[str, Any]
) -> None:
    made = rows("0.22.2").message("s", "a", at=1.0, **placed(2)).message("s", "b", at=2.0, **placed(1))
    made.message("s", "c", at=3.0, **missing)
    with made.opened() as store:
        assert folded(store) == [(1,), (2,), (3,)]


def test_long_text_does_not_pile_up(rows: MakeRows) -> None:
    made = rows("0.19.0")
    for at in range(12):
        made.message("s", f"{at} " + "é" * 2_000_000, at=float(at), **ARCHIVED)
        made.message("s", f"{at} " + "é" * 2_000_000, at=float(at))
    with made.opened() as store:
        tracemalloc.start()
        lengths = [len(logical.row_ids) for logical in history.display(store, "s")]
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert lengths == [2] * 12
    assert peak < 20_000_000


@pytest.mark.parametrize("release", ERA_RELEASES)
def test_the_census_counts_what_the_rows_say(stores: Mapping[str, Path], release: str) -> None:
    with open_for_audit(stores[release]) as store:
        ids = sorted({sid for (sid,) in store.rows("SELECT session_id FROM messages")})
        counted = list(history.census(store))
        assert [census.session_id for census in counted] == ids
        for census in counted:
            raw = list(history.messages(store, census.session_id, View.RAW))
            states = Counter(message.state for message in raw)
            assert census.total == len(raw)
            assert census.live == states[RowState.LIVE]
            assert census.archived == states[RowState.ARCHIVED]
            assert (census.rewound, census.unset) == (states[RowState.REWOUND], states[RowState.UNSET])
            assert census.first_at == min(message.timestamp for message in raw)
            assert census.last_at == max(message.timestamp for message in raw)
            assert list(history.census(store, census.session_id)) == [census]


@pytest.mark.parametrize("release", WITH_ARCHIVE)
def test_the_census_takes_flags_and_times_as_they_come(rows: MakeRows, release: str) -> None:
    made = rows(release).message("ghost", "a", at="soon").message("ghost", "b", active=7, compacted=1)
    made.message("ghost", "c", at=3.0, active=7, compacted=0).message("ghost", "d", at=2.0, compacted=1)
    made.message("wordless", None, at="never")
    with made.opened() as store:
        ghost, wordless = history.census(store)
    assert (ghost.live, ghost.archived, ghost.rewound, ghost.unset) == (2, 1, 1, 0)
    assert ghost.total == 4
    assert (ghost.first_at, ghost.last_at) == (1.0, 3.0)
    assert (wordless.live, wordless.first_at, wordless.last_at) == (1, None, None)


@pytest.mark.parametrize("release", ERA_RELEASES)
def test_the_census_does_not_read_what_was_said(rows: MakeRows, release: str) -> None:
    made = rows(release).message("s", "x" * 100_000).message("s", "y" * 100_000)
    size = made.run("PRAGMA page_size")[0][0]
    with made.path.open("r+b") as file:
        for page, kind in pages_of(made.path, "messages"):
            if kind == "overflow":
                file.seek((page - 1) * size)
                file.write(b"\xff" * 4)
    with made.opened() as store:
        assert [census.live for census in history.census(store)] == [2]
        with pytest.raises(StoreUnreadable):
            list(history.messages(store, "s"))


def test_the_first_row_is_the_oldest_in_any_state(rows: MakeRows) -> None:
    made = rows("0.19.0").message("s", "first", at=9.0, **REWOUND).message("s", "second", at=1.0)
    with made.opened() as store:
        found = history.first_row(store, "s")
        assert found is not None
        assert found.content == "first"
        assert history.first_row(store, "nobody") is None


@pytest.mark.parametrize(
    ("cell", "decoded"),
    [
        (b"\x00\xff", b"\x00\xff"),
        ("\0json:{broken", "\0json:{broken"),
        ('\0json:[{"type": "text"}]', [{"type": "text"}]),
        ('\0json:"\\u0000json:literal"', "\0json:literal"),
        ("\0json:5", 5),
        ("\0json:" + "[" * 100_000, "\0json:" + "[" * 100_000),
        (None, None),
    ],
)
def test_content_of_any_kind_is_decoded(rows: MakeRows, cell: Any, decoded: Any) -> None:
    with rows("0.19.0").message("s", cell).opened() as store:
        assert texts(store, View.ACTIVE) == texts(store, View.DISPLAY) == [decoded]


@pytest.mark.parametrize(
    ("cell", "decoded"),
    [
        ("{broken", []),
        ("", None),
        (None, None),
        ('{"id": 1}', {"id": 1}),
        (b"\xff\xfe", []),
        ("[" * 100_000, []),
    ],
)
def test_tool_calls_of_any_kind_are_decoded(rows: MakeRows, cell: Any, decoded: Any) -> None:
    with rows("0.19.0").message("s", "x", role="assistant", tool_calls=cell).opened() as store:
        assert [message.tool_calls for message in history.messages(store, "s")] == [decoded]
        assert len(folded(store)) == 1


def test_rows_with_invalid_text_and_times_are_shown(rows: MakeRows) -> None:
    made = rows("0.19.0").message("s", "x", at=8e252).message("s", "x", at="yesterday")
    made.run("UPDATE messages SET content = CAST(x'ff41' AS TEXT)")
    with made.opened() as store:
        times = [message.timestamp for message in history.messages(store, "s", View.DISPLAY)]
        assert times == [8e252, "yesterday"]
        assert all(text.endswith("A") for text in texts(store, View.ACTIVE))


SUMMARIES = [SUMMARY, LEGACY, f"\n{SUMMARY}", *CARRIERS.values(), [{"type": "text", "text": SUMMARY}]]


@pytest.mark.parametrize("content", SUMMARIES)
def test_summaries_of_every_release_are_recognised(content: Any) -> None:
    assert history.is_summary_text(content)


@pytest.mark.parametrize(
    "content",
    [
        None,
        "",
        "I read [CONTEXT COMPACTION",
        f"{DELIMITER} and nothing",
        f"{LEGACY}{DELIMITER}text",
        5,
        b"x",
        [],
    ],
)
def test_other_content_is_no_summary(content: Any) -> None:
    assert not history.is_summary_text(content)


def test_a_flagged_row_is_a_summary_whatever_it_says(rows: MakeRows) -> None:
    with rows("0.22.2").message("s", "in short", _compressed_summary=1).message("s", "x").opened() as store:
        assert [message.summary for message in history.messages(store, "s")] == [True, False]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
WORDS = st.text() | st.sampled_from([SUMMARY, LEGACY, END, DELIMITER, HEADER, "\0json:"])
PARTS = st.lists(WORDS | st.fixed_dictionaries({"type": st.just("text"), "text": WORDS | JSON}) | JSON)
CELLS = (
    st.none()
    | st.binary()
    | st.integers()
    | st.floats()
    | st.text()
    | JSON.map(lambda value: f"\0json:{value}")
)


@given(JSON.filter(lambda value: not isinstance(value, bool)))
def test_content_that_hermes_stores_is_read_back(content: Any) -> None:
    assert cells.decode_content(cells.encode_content(content)) == content


@given(st.lists(WORDS).map("\n".join) | PARTS | JSON, st.sampled_from([None, "hidden", "steer"]))
def test_what_a_summary_carries_is_found_without_error(content: Any, kind: str | None) -> None:
    carried = cells.carried_request(content, kind)
    assert carried is None or history.is_summary_text(content)


@given(st.tuples(*[CELLS] * 20), st.sampled_from(["user", "assistant", "tool"]))
def test_a_row_of_any_cells_is_a_message_with_a_key(row: tuple[Any, ...], role: str) -> None:
    odd = (1, "s", role, *row[3:])
    assert isinstance(message_from_row(odd), Message)
    assert display_key(odd)[0] == role
