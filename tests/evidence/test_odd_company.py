"""Artifacts as they really lie about: twice, renamed, converted, contradicting each other, from elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.evidence.scene import KINDS, SUMMARY, TRANSCRIPTS, Scene, causes

from statemend.evidence.coverage import Cause, Scope
from statemend.evidence.inventory import find_home, take
from statemend.formats.artifact import FILTERED, Kind
from statemend.store.history import View

EACH_KIND = pytest.mark.parametrize("kind", KINDS)
EACH_TRANSCRIPT = pytest.mark.parametrize("kind", TRANSCRIPTS)
MARK = b"\xef\xbb\xbf"


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A session of three turns: rows 1 to 6."""
    return talk(Scene(tmp_path / "home"))


def talk(scene: Scene, word: str = "question") -> Scene:
    scene.session()
    for turn in range(3):
        scene.say(f"{word} {turn}", 10.0 * turn + 1)
        scene.say(f"answer to {word} {turn}", 10.0 * turn + 2, role="assistant")
    counted(scene)
    return scene


def counted(scene: Scene) -> None:
    """Count the live rows, as Hermes does."""
    live = "SELECT COUNT(*) FROM messages AS m WHERE m.session_id = sessions.id AND m.active = 1"
    scene.change(f"UPDATE sessions SET message_count = ({live})")


def carry_on(scene: Scene) -> None:
    """End the first session by compression, and begin the next with a summary and the last turn."""
    scene.change(
        "UPDATE sessions SET ended_at = ?, end_reason = 'compression' WHERE id = 's1'", scene.start + 50
    )
    scene.session("s2", parent_session_id="s1", started_at=scene.start + 50)
    scene.say(SUMMARY, 50.0, "s2")
    scene.say("question 2", 21.0, "s2").say("answer to question 2", 22.0, "s2", role="assistant")
    scene.say("and then?", 60.0, "s2")


@pytest.mark.parametrize("kind", [Kind.MARKDOWN, Kind.QMD])
def test_a_carried_tail_stands_in_both_segments_of_a_logical_export(scene: Scene, kind: Kind) -> None:
    carry_on(scene)
    scene.export(kind, "s1", "s2", lineage=("s1", "s2"))
    sessions = scene.sessions()
    for session_id, count in (("s1", 6), ("s2", 4)):
        (coverage,) = sessions[session_id].artifacts
        assert (coverage.lossy, coverage.records, coverage.extra, coverage.missing) == (count, count, 0, ())
        assert sessions[session_id].unheld == ()
        assert coverage.reason == "no message of the session is archived, so all views are the same"


def test_a_carried_tail_counts_for_each_session_of_one_json_object(scene: Scene) -> None:
    carry_on(scene)
    objects = [json.loads(scene.export(Kind.JSONL, each).read_text()) for each in ("s1", "s2")]
    for path in scene.exports.iterdir():
        path.unlink()
    messages = [message for each in objects for message in each["messages"]]
    whole = {**objects[1], "lineage_session_ids": ["s1", "s2"], "messages": messages}
    (scene.exports / "whole.jsonl").write_text(json.dumps(whole) + "\n")
    sessions = scene.sessions()
    for session_id, count in (("s1", 6), ("s2", 4)):
        (coverage,) = sessions[session_id].artifacts
        assert (coverage.exact, coverage.extra, coverage.missing) == (count, 0, ())


@EACH_KIND
def test_a_session_exported_under_two_titles_is_held_by_both_files(scene: Scene, kind: Kind) -> None:
    scene.export(kind, at=60.0, name="first-title")
    scene.change("UPDATE sessions SET title = 'Another'")
    scene.say("later", 70.0)
    counted(scene)
    scene.export(kind, at=80.0, name="another")
    first, second = sorted(scene.session_coverage().artifacts, key=lambda each: each.exact + each.lossy)
    assert causes(first) == {7: Cause.LATER}
    assert (second.missing, second.extra, second.changed) == ((), 0, ())
    assert first.scope is second.scope is (Scope.PROMPTS if kind in FILTERED else Scope.UNKNOWN)
    assert 7 not in scene.session_coverage().unheld


@EACH_TRANSCRIPT
def test_of_two_files_that_contradict_each_other_one_agrees_with_the_store(scene: Scene, kind: Kind) -> None:
    scene.export(kind, name="one")
    scene.change("UPDATE messages SET content = 'something else' WHERE id = 4")
    scene.export(kind, name="two")
    session = scene.session_coverage()
    assert {Path(each.artifact).name: each.changed for each in session.artifacts} == {"one": (4,), "two": ()}
    assert all((each.missing, each.extra) == ((), 0) for each in session.artifacts)
    assert session.unheld == ()


@EACH_TRANSCRIPT
def test_what_two_files_say_against_the_store_is_held_by_neither(scene: Scene, kind: Kind) -> None:
    scene.export(kind, name="one")
    scene.change("UPDATE messages SET content = 'something else' WHERE id = 4")
    scene.export(kind, name="two")
    scene.change("UPDATE messages SET content = 'what is true' WHERE id = 4")
    session = scene.session_coverage()
    assert [each.changed for each in session.artifacts] == [(4,), (4,)]
    assert session.unheld == (4,)


@EACH_KIND
@pytest.mark.parametrize("mark", [b"", MARK], ids=["plain", "marked"])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
def test_a_converted_copy_shows_what_the_original_shows(
    scene: Scene, kind: Kind, mark: bytes, line_end: bytes
) -> None:
    scene.say("one\ntwo\n\nthree", 40.0)
    path = scene.export(kind)
    expected = scene.coverage()
    path.write_bytes(mark + path.read_bytes().replace(b"\n", line_end))
    assert scene.coverage() == expected
    (artifact,) = take(find_home(scene.root)).artifacts
    assert artifact.damage is None


@EACH_KIND
def test_another_conversation_under_the_same_id_covers_nothing(
    scene: Scene, kind: Kind, tmp_path: Path
) -> None:
    scene.compact(("user", "question 2", 21.0), at=90.0)
    other = talk(Scene(tmp_path / "other"), "frage")
    other.change("UPDATE messages SET timestamp = timestamp + 1000.5")
    path = other.export(kind, at=5000.0)
    session = scene.sessions(path)["s1"]
    (coverage,) = session.artifacts
    assert coverage.exact + coverage.lossy + coverage.masked == 0
    assert coverage.extra == coverage.records == (3 if kind in FILTERED else 6)
    assert coverage.changed == ()
    assert set(causes(coverage).values()) == {Cause.UNKNOWN}
    assert coverage.scope is (Scope.PROMPTS if kind in FILTERED else Scope.UNKNOWN)
    assert coverage.reason == "none of its messages is in the store: it is of another store, or all were lost"
    assert len(session.unheld) == session.display


@EACH_KIND
def test_a_copy_of_the_store_that_went_its_own_way_covers_what_both_share(
    scene: Scene, kind: Kind, tmp_path: Path
) -> None:
    other = talk(Scene(tmp_path / "other")).say("only there", 70.0)
    path = other.export(kind, at=99.0)
    scene.say("only here", 71.0)
    session = scene.sessions(path)["s1"]
    (coverage,) = session.artifacts
    assert coverage.exact + coverage.lossy == (3 if kind in FILTERED else 6)
    assert coverage.extra == 1
    assert 7 in session.unheld


@EACH_KIND
def test_ids_that_this_store_never_had_are_told_apart(scene: Scene, kind: Kind, tmp_path: Path) -> None:
    other = Scene(tmp_path / "other").session("elsewhere").say("hello", 1.0, "elsewhere")
    session = scene.sessions(other.export(kind, "elsewhere"))["elsewhere"]
    assert (session.present, session.artifacts) == (False, ())
    (remains,) = session.remains
    assert (remains.records, remains.filtered) == (1, kind in FILTERED)


@EACH_TRANSCRIPT
def test_scope_is_stated_with_its_reason(scene: Scene, kind: Kind) -> None:
    scene.compact(("user", "question 2", 21.0), at=90.0)
    counted(scene)
    active = scene.export(kind, at=99.0, name="active")
    display = scene.export(kind, view=View.DISPLAY, at=99.0, name="display")
    found = {each.artifact: (each.scope, each.reason) for each in scene.session_coverage().artifacts}
    lost = "it was made after 5 messages were archived, and shows none of them"
    assert found[str(active)] == (Scope.ACTIVE, lost)
    assert found[str(display)][0] is (Scope.ALL if kind is Kind.JSONL else Scope.DISPLAY)
