"""A plan file is data from outside: what no plan may ask for is refused before anything is opened."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.repair import plans

from statemend.errors import StatemendError, UsageError
from statemend.repair import bounds
from statemend.repair.apply import apply
from statemend.repair.rehearse import rehearse
from statemend.store.schema import CATALOGUE

DIGEST = "0" * 64
KEY = {"key": "mended"}


@pytest.fixture
def store(stores: Mapping[str, Path], tmp_path: Path) -> Path:
    return plans.home_with(tmp_path, stores["0.22.2"])


def written(store: Path, *operations: Mapping[str, Any], **step: Any) -> Path:
    """A plan file with these operations, as anybody could write it."""
    made = msgspec.json.decode(msgspec.json.encode(plans.plan(store)))
    made["steps"] = [
        {
            "id": "s",
            "recipe": "r",
            "finding": "f",
            "class": "safe",
            "title": "t",
            "why": "w",
            "operations": operations,
            **step,
        }
    ]
    path = store.parent.parent / "plan.json"
    path.write_bytes(msgspec.json.encode(made))
    return path


def op(kind: str, table: str, **parts: Any) -> dict[str, Any]:
    return {"kind": kind, "table": table, **parts}


def update(table: str, key: Any, after: Any, before: Any = None) -> dict[str, Any]:
    before = dict.fromkeys(after) if before is None else before
    return op("update", table, key=key, before=before, before_digest=DIGEST, after=after)


HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "the schema": (op("insert", "sqlite_master", key={"name": "x"}, after={"sql": "x"}), "may not change"),
    "sqlite_schema": (update("sqlite_schema", {"name": "x"}, {"sql": "x"}), "may not change"),
    "the ids": (update("sqlite_sequence", {"name": "messages"}, {"seq": 0}), "may not change"),
    "an index's pages": (op("delete", "messages_fts_data", key={"id": 1}), "may not change"),
    "an index's rows": (op("insert", "messages_fts", key={"content": "x"}), "may not change"),
    "a table of another": (op("insert", "moz_places", key={"id": 1}), "may not change"),
    "a quoted name": (op("insert", 'x"; DROP TABLE messages; --', key={"id": 1}), "may not change"),
    "another database": (op("insert", "temp.sessions", key={"id": "x"}), "may not change"),
    "the version": (update("schema_version", {"version": 31}, {"version": 1}), "may not change"),
    "a lease": (
        op("delete", "session_turn_leases", key={"conversation_id": "x"}, before_digest=DIGEST),
        "may not change",
    ),
    "a lock": (
        op("delete", "compression_locks", key={"session_id": "x"}, before_digest=DIGEST),
        "may not change",
    ),
    "a message goes": (op("delete", "messages", key={"id": 1}, before_digest=DIGEST), "only a cleanup"),
    "a session goes": (op("delete", "sessions", key={"id": "x"}, before_digest=DIGEST), "only a cleanup"),
    "a text changes": (update("messages", {"id": 1}, {"content": ""}), "is never changed"),
    "a message moves": (update("messages", {"id": 1}, {"session_id": "x"}), "is never changed"),
    "an id changes": (update("sessions", {"id": "x"}, {"id": "y"}), "a key of sessions never changes"),
    "an unknown column": (update("sessions", {"id": "x"}, {"rowid": 1}), "has no column"),
    "a column by SQL": (update("sessions", {"id": "x"}, {"title = 1 --": 1}), "has no column"),
    "no row": (update("sessions", {}, {"title": "x"}), "names no row"),
    "no digest": (
        op("update", "sessions", key={"id": "x"}, before={"title": None}, after={"title": "y"}),
        "does not say what the row",
    ),
    "no pre-image": (update("sessions", {"id": "x"}, {"title": "y"}, before={}), "without saying"),
    "nothing set": (update("sessions", {"id": "x"}, {}), "sets nothing"),
    "two keys": (op("insert", "sessions", key={"id": "x"}, after={"id": "y"}), "has two keys"),
    "no key": (op("insert", "messages", key={"id": None}, after={"role": "user"}), "has no key"),
    "a new row that was": (op("insert", "state_meta", key=KEY, before_digest=DIGEST), "nothing before"),
    "texts of a session": (
        op("insert", "sessions", key={"id": "x"}, texts={"title": DIGEST}),
        "are not in it",
    ),
    "two texts": (
        op("insert", "messages", key={"id": 1}, after={"content": "x"}, texts={"content": DIGEST}),
        "has two values",
    ),
    "a text of no column": (op("insert", "messages", key={"id": 1}, texts={"rowid": DIGEST}), "no column"),
    "another text": (
        op(
            "update",
            "messages",
            key={"id": 1},
            before={"active": 0},
            before_digest=DIGEST,
            after={"active": 1},
            texts={"content": DIGEST},
        ),
        "only a new message",
    ),
    "an id behind which there is none": (
        op("insert", "messages", key={"id": (1 << 63) - 1}, after={"role": "user"}),
        "no room for others",
    ),
    "too large a number": (op("insert", "state_meta", key=KEY, after={"value": 1 << 63}), "too large"),
    "a cell that is none": (op("insert", "state_meta", key=KEY, after={"value": {"x": "1"}}), "cannot be"),
    "not a number": (op("insert", "state_meta", key=KEY, after={"value": {"real": "nan"}}), "real"),
    "half a byte": (op("insert", "state_meta", key=KEY, after={"value": {"blob": "f"}}), "hex"),
}


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: name.replace(" ", "-"))
@pytest.mark.parametrize("verb", [apply, rehearse])
def test_what_no_plan_may_ask_for_is_refused(store: Path, name: str, verb: Any) -> None:
    operation, why = HOSTILE[name]
    file = written(store, operation)
    before = store.read_bytes(), store.stat().st_mtime_ns
    with pytest.raises(UsageError, match=why):
        verb(file, now=plans.NOW)
    assert (store.read_bytes(), store.stat().st_mtime_ns) == before
    assert [path.name for path in store.parent.iterdir()] == ["state.db"]


@pytest.mark.parametrize("table", sorted(bounds.KEPT))
@pytest.mark.parametrize("step_class", ["safe", "choice", "destructive"])
def test_no_class_of_step_removes_a_session_or_a_message(store: Path, table: str, step_class: str) -> None:
    operation = op("delete", table, key={"id": 1}, before={"id": 1}, before_digest=DIGEST)
    with pytest.raises(UsageError, match="only a cleanup"):
        apply(written(store, operation, **{"class": step_class}), now=plans.NOW)


def test_a_destructive_step_is_refused_whatever_it_does(store: Path) -> None:
    operation = op("insert", "state_meta", key=KEY)
    with pytest.raises(UsageError, match="only a cleanup"):
        apply(written(store, operation, **{"class": "destructive"}), now=plans.NOW)


@pytest.mark.parametrize("name", ["sessions", "messages_fts_data", 'x"; DROP TABLE messages; --'])
def test_only_a_search_index_is_built_anew(store: Path, name: str) -> None:
    with pytest.raises(UsageError, match="is no search index"):
        apply(written(store, reindex=["messages_fts", name]), now=plans.NOW)


def test_a_step_that_does_nothing_is_refused(store: Path) -> None:
    with pytest.raises(UsageError, match="it does nothing"):
        apply(written(store), now=plans.NOW)


def test_an_option_that_was_not_chosen_is_held_to_the_same(store: Path) -> None:
    made = msgspec.json.decode(written(store, HOSTILE["a message goes"][0]).read_bytes())
    option = {"id": "o", "title": "t", "steps": made.pop("steps")}
    made["choices"] = [{"id": "c", "finding": "f", "question": "q", "options": [option]}]
    file = store.parent.parent / "plan.json"
    file.write_bytes(msgspec.json.encode(made))
    with pytest.raises(UsageError, match="only a cleanup"):
        apply(file, now=plans.NOW)


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[" * 100_000, b'{"schema": "statemend/plan/v2"}', b"\xff\xfe", b"null", b"\0" * 4096],
)
def test_a_file_that_is_no_plan_is_refused(store: Path, content: bytes) -> None:
    file = store.parent.parent / "plan.json"
    file.write_bytes(content)
    with pytest.raises(UsageError, match="not a plan"):
        apply(file, now=plans.NOW)


def test_an_unknown_field_is_refused_with_its_place(store: Path) -> None:
    file = written(store, {**op("insert", "state_meta", key=KEY), "sql": "DROP TABLE messages"})
    with pytest.raises(UsageError, match=r"unknown field `sql`.*operations"):
        apply(file, now=plans.NOW)


def test_a_file_too_large_is_refused_unread(store: Path) -> None:
    file = store.parent.parent / "plan.json"
    with open(file, "wb") as sparse:
        sparse.truncate(bounds.LARGEST_PLAN + 1)
    with pytest.raises(UsageError, match="too large for a plan"):
        apply(file, now=plans.NOW)


def test_a_plan_of_many_operations_is_carried_out(store: Path) -> None:
    rows = [op("insert", "state_meta", key={"key": f"k{n}"}, after={"value": "x" * 50}) for n in range(2000)]
    apply(written(store, *rows), now=plans.NOW)
    assert plans.query(store, "SELECT COUNT(*) FROM state_meta WHERE value LIKE 'xxx%'") == [(2000,)]


@pytest.mark.parametrize("path", ["nowhere.json", "home"])
def test_a_path_that_is_no_file_is_said(store: Path, path: str) -> None:
    with pytest.raises(StatemendError, match="plan"):
        apply(store.parent.parent / path, now=plans.NOW)


def test_every_table_is_known(store: Path) -> None:
    assert set(CATALOGUE) >= bounds.KEPT
