"""What became of messages that files show and the store does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.evidence.scene import TRANSCRIPTS, Scene
from tests.store.rows import REWOUND

from statemend.evidence.beyond import Fate, beyond
from statemend.evidence.coverage import assess_session
from statemend.evidence.inventory import find_home, take
from statemend.formats.artifact import Kind
from statemend.store.connection import open_for_audit

EACH_TRANSCRIPT = pytest.mark.parametrize("kind", TRANSCRIPTS)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A session of three turns: rows 1 to 6."""
    scene = Scene(tmp_path / "home").session()
    for turn in range(3):
        scene.say(f"question {turn}", 10.0 * turn + 1)
        scene.say(f"answer {turn}", 10.0 * turn + 2, role="assistant")
    return scene


def fates(scene: Scene, *extra: Path) -> dict[Fate, int]:
    with open_for_audit(scene.rows.path) as store:
        inventory = take(find_home(scene.root), extra, store=store)
        return dict(beyond(store, inventory, assess_session(store, inventory, "s1")))


def put_aside(scene: Scene, *texts: str, memory: bool = False) -> None:
    """Messages that a release could not store; or those that an agent held, as they lie in a snapshot."""
    messages: list[dict[str, Any]] = [
        {"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)
    ]
    kept: dict[str, Any] = {"session_id": "s1", "messages": messages}
    if memory:
        kept |= {"model": "m", "session_start": "2026-08-01T09:00:00", "last_updated": "2026-08-01T09:00:01"}
    else:
        kept |= {"reason": "shutdown", "issue": "#1", "count": len(texts)}
    folder = scene.root / "pending_messages"
    folder.mkdir()
    (folder / "pending-1.json").write_text(json.dumps(kept))


@EACH_TRANSCRIPT
def test_nothing_is_beyond_what_the_store_shows(scene: Scene, kind: Kind) -> None:
    scene.export(kind)
    assert fates(scene) == {}


@EACH_TRANSCRIPT
def test_undone_and_deleted_rows_are_told_apart(scene: Scene, kind: Kind) -> None:
    scene.export(kind)
    scene.change("UPDATE messages SET active = 0, compacted = 0 WHERE id > 4")
    scene.change("DELETE FROM messages WHERE id = 2")
    assert fates(scene) == {Fate.UNDONE: 2, Fate.DELETED: 1}


def test_a_message_that_several_files_show_counts_once(scene: Scene) -> None:
    for kind in TRANSCRIPTS:
        scene.export(kind)
    scene.change("DELETE FROM messages WHERE id = 2")
    assert fates(scene) == {Fate.DELETED: 1}


def test_a_message_that_was_undone_at_once_is_in_no_file(scene: Scene) -> None:
    scene.export(Kind.JSONL)
    scene.say("undone", 40.0, **REWOUND)
    assert fates(scene) == {}


@EACH_TRANSCRIPT
def test_of_another_conversation_nothing_is_told(scene: Scene, kind: Kind, tmp_path: Path) -> None:
    other = Scene(tmp_path / "other").session().say("frage", 5.0).say("antwort", 7.0, role="assistant")
    assert fates(scene, other.export(kind)) == {Fate.UNTOLD: 2}


@pytest.mark.parametrize(("memory", "fate"), [(False, Fate.UNSTORED), (True, Fate.UNTOLD)])
def test_what_was_held_in_memory_alone(scene: Scene, memory: bool, fate: Fate) -> None:
    put_aside(scene, "question 0", "answer 0", "question 1", "answer never stored", memory=memory)
    assert fates(scene) == {fate: 1}
    scene.export(Kind.JSONL)
    scene.change("DELETE FROM messages WHERE id = 3")
    assert fates(scene) == {Fate.DELETED: 1, fate: 1}
