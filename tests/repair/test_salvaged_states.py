"""Which messages of a lost session come back live, where its newest transcript has no flags."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.evidence.scene import Scene

from statemend.evidence.inventory import find_home, take
from statemend.evidence.salvage import Salvager
from statemend.formats.artifact import Kind
from statemend.repair.salvaged import Salvaged, salvaged
from statemend.store.connection import open_for_audit
from statemend.store.history import View

TURNS = 4


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Eight messages archived; a head of ``kept``, a summary and two more live."""
    scene = Scene(tmp_path / "home").session()
    for number in range(2 * TURNS):
        role = "assistant" if number % 2 else "user"
        scene.say(f"message number {number}", 10.0 * number + 1, role=role)
    return scene


def compacted(scene: Scene, head: int, *, live: int | None = None) -> Scene:
    """As 0.22 compacts; ``live`` is what the row of the session counts, by default the truth."""
    scene.change("UPDATE messages SET active = 0, compacted = 1")
    for number in range(head):
        role = "assistant" if number % 2 else "user"
        scene.say(f"message number {number}", 10.0 * number + 1, role=role)
    scene.say("[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were summarized.", 90.0)
    scene.say("and now?", 95.0).say("the end", 96.0, role="assistant")
    scene.change("UPDATE sessions SET message_count = ?", head + 3 if live is None else live)
    return scene


def lost(scene: Scene) -> Salvaged:
    scene.change("DELETE FROM messages")
    scene.change("DELETE FROM sessions")
    with open_for_audit(scene.rows.path) as store:
        found = salvaged(store, Salvager(store, take(find_home(scene.root), store=store)), "s1")
        assert found.states.live is not None
        return found


def live(found: Salvaged) -> list[str]:
    return [str(found.union.messages[number].record.content)[:16] for number in found.states.live]


TAIL = ["[CONTEXT COMPACT", "and now?", "the end"]
MESSAGES = [f"message number {number}" for number in range(2 * TURNS)]


@pytest.mark.parametrize("head", [0, 1, 3])
def test_the_number_of_live_messages_tells_which_they_are(scene: Scene, head: int) -> None:
    compacted(scene, head).export(Kind.MARKDOWN, view=View.DISPLAY)
    found = lost(scene)
    assert live(found) == [*MESSAGES[:head], *TAIL]
    assert found.states.undecided == ()


@pytest.mark.parametrize("counted", [2, 8, 11, 12], ids=["less", "a kept tail", "as many", "more"])
def test_a_number_that_does_not_fit_decides_nothing(scene: Scene, counted: int) -> None:
    compacted(scene, 0, live=counted).export(Kind.MARKDOWN, view=View.DISPLAY)
    found = lost(scene)
    assert live(found) == [*MESSAGES, *TAIL]
    assert len(found.states.undecided) == len(MESSAGES)


def test_a_page_tells_no_number(scene: Scene) -> None:
    compacted(scene, 0).export(Kind.HTML, view=View.DISPLAY)
    assert len(lost(scene).states.undecided) == len(MESSAGES)


def test_another_file_with_flags_tells(scene: Scene) -> None:
    compacted(scene, 0).export(Kind.JSONL, view=View.RAW, at=97.0)
    scene.say("later", 99.0)
    scene.export(Kind.HTML, view=View.DISPLAY, at=100.0)
    found = lost(scene)
    assert live(found) == [*TAIL, "later"]
    assert found.states.undecided == ()


def test_what_was_live_alone_is_live_again(scene: Scene) -> None:
    compacted(scene, 3).export(Kind.MARKDOWN)
    found = lost(scene)
    assert live(found) == [*MESSAGES[:3], *TAIL]
    assert found.states.undecided == ()


def test_a_counter_that_is_too_low_is_no_sign_of_a_compaction(scene: Scene) -> None:
    scene.change("UPDATE sessions SET message_count = 2")
    scene.export(Kind.MARKDOWN)
    found = lost(scene)
    assert live(found) == MESSAGES
    assert found.states.undecided == ()
