"""Thousands of messages of one moment: each is compared with its neighbours, not with all of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.evidence.scene import Scene

from statemend.evidence.inventory import find_home, take
from statemend.evidence.rows import Fidelity, SessionRows, Tally
from statemend.evidence.salvage import Salvage, salvage
from statemend.formats.artifact import Kind
from statemend.formats.save_markdown import render_message
from statemend.store.connection import open_for_audit
from statemend.store.history import View, messages

COUNT = 1500
EACH_KIND = pytest.mark.parametrize("kind", [Kind.JSONL, Kind.MARKDOWN, Kind.HTML])


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return told(Scene(tmp_path / "home").session(), range(1, COUNT + 1))


def told(scene: Scene, numbers: range) -> Scene:
    scene.change(
        "WITH RECURSIVE n(i) AS (SELECT ? UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
        "INSERT INTO messages (session_id, role, content, timestamp) "
        "SELECT 's1', 'user', printf('the key of number %d is k%08d, and so on', i, i), ? FROM n",
        numbers.start,
        numbers.stop - 1,
        scene.start,
    )
    return scene


def masked(text: str) -> str:
    return re.sub(r"k\d{8}", "***", text)


@EACH_KIND
def test_masked_messages_of_one_moment_are_found_one_by_one(scene: Scene, kind: Kind) -> None:
    path = scene.export(kind)
    path.write_text(masked(path.read_text()))
    coverage = scene.coverage()
    assert (coverage.masked, coverage.changed, coverage.missing, coverage.extra) == (COUNT, (), (), 0)


@EACH_KIND
def test_changed_messages_of_one_moment_are_counted_one_by_one(scene: Scene, kind: Kind) -> None:
    path = scene.export(kind)
    path.write_text(path.read_text().replace("the key", "a key"))
    coverage = scene.coverage()
    assert (len(coverage.changed), coverage.missing, coverage.extra) == (COUNT, (), 0)


def test_masked_messages_of_saved_markdown_are_found_one_by_one(scene: Scene) -> None:
    with open_for_audit(scene.rows.path) as store:
        shown = "".join(render_message(each, level=2) for each in messages(store, "s1", View.RAW))
    title = f"# Session: On s1\n- Session ID: `s1`\n- Messages: {COUNT}\n\n"
    (scene.exports / "saved.md").write_text(title + masked(shown))
    coverage = scene.coverage()
    assert (coverage.masked, coverage.changed, coverage.missing, coverage.extra) == (COUNT, (), (), 0)


@EACH_KIND
def test_messages_of_one_moment_are_put_together_one_by_one(scene: Scene, kind: Kind) -> None:
    told(scene, range(COUNT + 1, 4001))
    scene.export(kind)
    scene.change("DELETE FROM messages")
    assert len(salvaged(scene).messages) == 4000


def test_two_files_that_differ_in_each_message_of_one_moment_name_some_of_the_others(tmp_path: Path) -> None:
    scene = told(Scene(tmp_path / "home").session(), range(1, 301))
    path = scene.export(Kind.JSONL, name="one.jsonl")
    other = json.loads(path.read_text().replace("the key", "a key"))
    for message in other["messages"]:
        message["id"] += 1000
    (scene.exports / "two.jsonl").write_text(json.dumps(other) + "\n")
    scene.change("DELETE FROM messages")
    found = salvaged(scene)
    assert len(found.messages) == 600
    assert 300 <= len(found.conflicts) <= 300 * 64


def salvaged(scene: Scene) -> Salvage:
    with open_for_audit(scene.rows.path) as store:
        return salvage(store, take(find_home(scene.root)), "s1")


def test_what_came_to_lie_in_the_place_of_another_list_is_no_other_list() -> None:
    tally = Tally(SessionRows("s1", (), ()))
    once = [tally.take([1], Fidelity.EXACT) for _ in range(2)]
    again = [tally.take([2], Fidelity.EXACT) for _ in range(2)]
    assert once == again == [True, False]
