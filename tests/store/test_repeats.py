"""Taking out the rows that only repeat others changes nothing that anybody sees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.store.rows import DATA, Rows

from statemend.store import history
from statemend.store.connection import Store
from statemend.store.repeats import likenesses, repeats

RECORDED = sorted((DATA / "display").glob("*.json"))


def recorded(path: Path, folder: Path) -> tuple[Rows, list[Any]]:
    """A store that a release lived in, lawful or damaged, with what the releases answered about it: the rows
    that 0.22.2 displays and those that are active, by session."""
    data = json.loads(path.read_text())
    made = Rows(folder, data["release"])
    blob = lambda cell: bytes.fromhex(cell["blob"]) if isinstance(cell, dict) else cell  # noqa: E731
    made.insert("messages", [dict(zip(data["columns"], map(blob, row), strict=True)) for row in data["rows"]])
    return made, data["answers"]


def seen(store: Store, sid: str) -> list[Any]:
    shown = [logical.shown for logical in history.display(store, sid)]
    return [shown, list(history.messages(store, sid)), likenesses(store, sid)]


def take_out(made: Rows, sid: str) -> int:
    with made.opened() as store:
        surplus = list(repeats(store, sid).surplus)
    sql = "DELETE FROM messages WHERE id IN (SELECT value FROM json_each(?))"
    made.run(sql, bindings=(json.dumps(surplus),))
    with made.opened() as store:
        assert repeats(store, sid).surplus == {}
    return len(surplus)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_the_releases_would_answer_as_they_did(path: Path, tmp_path: Path) -> None:
    made, answers = recorded(path, tmp_path)
    for sid, display, active in answers:
        take_out(made, sid)
        with made.opened() as store:
            assert [logical.shown.id for logical in history.display(store, sid)] == display
            assert [message.id for message in history.messages(store, sid)] == active


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_so_it_is_after_three_more_compactions(path: Path, tmp_path: Path) -> None:
    """Every visible row is archived three times more, whatever it is."""
    made, answers = recorded(path, tmp_path)
    columns = {name for _, name, *_ in made.run("PRAGMA table_info(messages)")} - {
        "id",
        "active",
        "compacted",
    }
    listed = ", ".join(sorted(columns))
    ((last,),) = made.run("SELECT MAX(id) FROM messages")
    for _ in range(3):
        made.run(
            f"INSERT INTO messages ({listed}, active, compacted) SELECT {listed}, 0, 1 FROM messages "
            f"WHERE id <= {last} AND (active = 1 OR compacted = 1)"
        )
    before = {}
    with made.opened() as store:
        for sid, _, _ in answers:
            before[sid] = seen(store, sid)
    assert sum(take_out(made, sid) for sid in before) > 50
    with made.opened() as store:
        for sid, found in before.items():
            assert seen(store, sid) == found
