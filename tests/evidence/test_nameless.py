"""Transcripts without a session as sources of one that is gone: where it is certain, and never else."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.evidence.scene import Scene

from statemend.evidence.attribution import said
from statemend.evidence.inventory import find_home, take
from statemend.evidence.salvage import Salvager, salvage
from statemend.formats.artifact import Artifact, Kind, Section
from statemend.store.connection import open_for_audit

TALK = [f"{word} number {turn}" for turn in range(3) for word in ("question", "answer")]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A session of three turns."""
    return told(Scene(tmp_path / "home").session())


def told(scene: Scene, session_id: str = "s1", texts: list[str] = TALK) -> Scene:
    for number, text in enumerate(texts):
        scene.say(text, 10.0 * number + 1, session_id, "assistant" if number % 2 else "user")
    return scene


def save(scene: Scene, texts: list[str], name: str = "hermes_conversation_1.json") -> Path:
    """What 0.15's ``session.save`` wrote."""
    said: list[Any] = [
        {"role": "assistant" if number % 2 else "user", "content": text} for number, text in enumerate(texts)
    ]
    path = scene.exports / name
    path.write_text(json.dumps({"model": "gpt-4o", "messages": said}))
    return path


def lose(scene: Scene, session_id: str = "s1") -> None:
    scene.change("DELETE FROM messages WHERE session_id = ?", session_id)
    scene.change("DELETE FROM sessions WHERE id = ?", session_id)


def texts(scene: Scene, session_id: str = "s1") -> list[Any]:
    with open_for_audit(scene.rows.path) as store:
        found = salvage(store, take(find_home(scene.root), store=store), session_id)
    return [each.record.content for each in found.messages]


LATER = ["question number 3", "answer number 3"]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (TALK, TALK),
        (TALK[:4], TALK),
        (TALK + LATER, TALK + LATER),
        (TALK[2:] + LATER, TALK + LATER),
        (["something before", *TALK[1:]], TALK),
        (TALK[:2], TALK),
        (["ok", "yes", "ok", "yes"], TALK),
    ],
    ids=["the same", "less", "more", "later", "another", "little", "anybody's"],
)
def test_it_counts_where_it_agrees_as_far_as_both_go(
    scene: Scene, shown: list[str], expected: list[str]
) -> None:
    scene.export(Kind.MARKDOWN)
    save(scene, shown)
    lose(scene)
    assert texts(scene) == expected


def test_it_fills_what_a_compaction_took_out_of_an_export(scene: Scene) -> None:
    save(scene, TALK)
    kept = [("assistant", TALK[3], 31.0), ("user", TALK[4], 41.0), ("assistant", TALK[5], 51.0)]
    scene.compact(*kept, at=90.0)
    scene.say("the end of it", 95.0)
    scene.export(Kind.MARKDOWN)
    lose(scene)
    found = texts(scene)
    assert [text for text in found if text in TALK] == TALK
    assert found[-1] == "the end of it"


def test_it_goes_before_a_tail_in_the_store(scene: Scene) -> None:
    save(scene, TALK)
    scene.change("DELETE FROM messages WHERE id < 3")
    scene.export(Kind.JSONL)
    assert texts(scene) == TALK


@pytest.mark.parametrize("place", ["store", "export", "other store"])
def test_it_counts_for_none_where_another_session_may_be_meant(scene: Scene, place: str) -> None:
    told(scene.session("s2"), "s2")
    save(scene, TALK + LATER)
    scene.export(Kind.MARKDOWN)
    if place == "export":
        scene.export(Kind.HTML, "s2")
    elif place == "other store":
        (scene.root / "state-snapshots" / "1").mkdir(parents=True)
        shutil.copyfile(scene.rows.path, scene.root / "state-snapshots" / "1" / "state.db")
    lose(scene)
    if place != "store":
        lose(scene, "s2")
    assert texts(scene) == TALK


def test_each_is_read_once_for_all_sessions_in_which_nothing_of_it_was_said(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(scene.session("s2"), "s2", [f"{text} of the other" for text in TALK])
    for number in range(4):
        save(scene, [f"{text} of file {number}" for text in TALK], f"{number}.json")
    save(scene, TALK + LATER)
    scene.export(Kind.JSONL)
    scene.export(Kind.JSONL, "s2")
    read: list[str] = []

    def counting(artifact: Artifact, section: Section) -> Iterator[tuple[str, str]]:
        read.append(Path(artifact.path).suffix)
        return said(artifact, section)

    monkeypatch.setattr("statemend.evidence.nameless.said", counting)
    with open_for_audit(scene.rows.path) as store:
        salvager = Salvager(store, take(find_home(scene.root), store=store))
        found = [len(salvager.session(each).messages) for each in ("s1", "s2")]
    assert found == [len(TALK + LATER), len(TALK)]
    assert read.count(".json") == 5 + 1
