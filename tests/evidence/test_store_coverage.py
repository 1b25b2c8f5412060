"""What other stores hold of a session: exactly its rows, told by their content."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest
from tests.evidence.scene import Scene
from tests.evidence.test_other_stores import forget, kept_at

from statemend.evidence.causes import Cause, Scope
from statemend.evidence.coverage import SessionCoverage, assess
from statemend.evidence.inventory import find_home, take
from statemend.evidence.match_store import match_store
from statemend.evidence.rows import SessionRows
from statemend.formats.artifact import Kind
from statemend.store.connection import open_for_audit
from statemend.store.history import View, messages

SNAPSHOT = "state-snapshots/20260801-090000/state.db"
LASTING = "state.db.bak"


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """One session, compacted, and exported without its four archived messages."""
    made = Scene(tmp_path / "home").session("s1")
    for number in range(2):
        made.say(f"question {number}", 10 * number).say(f"answer {number}", 10 * number + 1, role="assistant")
    made.compact(at=100.0)
    made.export(Kind.JSONL)
    return made


def covered(scene: Scene, *, deep: bool = False) -> dict[str, SessionCoverage]:
    with open_for_audit(scene.rows.path) as store:
        inventory = take(find_home(scene.root), store=store, deep=deep)
        return {each.session_id: each for each in assess(store, inventory)}


def test_a_message_that_another_store_has_is_held_exactly(scene: Scene) -> None:
    kept_at(scene, LASTING, 2000.0)
    (session,) = covered(scene).values()
    (copy,) = session.copies
    assert (copy.kind, copy.scope, copy.exact, copy.missing) == (Kind.STORE, Scope.ALL, 5, ())
    assert session.unheld == ()
    assert [each.kind for each in session.artifacts] == [Kind.JSONL]


def test_one_that_hermes_deletes_in_its_turn_preserves_nothing(scene: Scene) -> None:
    kept_at(scene, SNAPSHOT, 2000.0)
    (session,) = covered(scene).values()
    (copy,) = session.copies
    assert copy.exact == 5
    assert len(session.unheld) == 4


def test_row_ids_alone_say_nothing(scene: Scene) -> None:
    """A store that was begun anew gives the same ids to other messages."""
    kept_at(scene, LASTING, 2000.0)
    scene.change("UPDATE messages SET content = 'other ' || id, timestamp = timestamp + 7 WHERE active = 0")
    (session,) = covered(scene).values()
    (copy,) = session.copies
    assert (copy.exact, copy.extra, copy.changed) == (1, 4, ())
    assert len(session.unheld) == 4


def test_ids_that_differ_do_not_matter(scene: Scene) -> None:
    kept_at(scene, LASTING, 2000.0)
    scene.change("UPDATE messages SET id = id + 1000")
    (session,) = covered(scene).values()
    assert session.copies[0].exact == 5
    assert session.unheld == ()


def test_a_text_that_was_rewritten_is_changed(scene: Scene) -> None:
    path = kept_at(scene, LASTING, 2000.0)
    scene.change("UPDATE messages SET content = 'rewritten' WHERE content = 'answer 1'")
    (copy,) = covered(scene)["s1"].copies
    assert (copy.artifact, copy.exact, len(copy.changed)) == (str(path), 4, 1)


def test_what_came_later_is_missing_for_that(scene: Scene) -> None:
    kept_at(scene, LASTING, 2000.0)
    scene.say("after the copy", 200.0)
    (copy,) = covered(scene)["s1"].copies
    assert [each.cause for each in copy.missing] == [Cause.LATER]


def test_other_stores_are_asked_only_where_something_is_wanted(scene: Scene) -> None:
    scene.export(Kind.JSONL, view=View.DISPLAY, name="whole.jsonl")
    kept_at(scene, LASTING, 2000.0)
    assert covered(scene)["s1"].copies == ()


def test_the_first_that_has_everything_is_enough_unless_it_is_deep(scene: Scene) -> None:
    paths = [kept_at(scene, f"state-snapshots/{number}/state.db", 1000.0 * number) for number in (1, 2, 3)]
    assert [each.artifact for each in covered(scene)["s1"].copies] == [str(paths[2])]
    assert [each.artifact for each in covered(scene, deep=True)["s1"].copies] == [
        str(path) for path in reversed(paths)
    ]


def test_of_a_session_that_is_gone_the_rows_are_counted(scene: Scene) -> None:
    kept_at(scene, SNAPSHOT, 2000.0)
    forget(scene, "s1")
    session = covered(scene)["s1"]
    assert not session.present
    (remains,) = session.elsewhere
    assert (remains.kind, remains.records, remains.inactive) == (Kind.STORE, 5, 4)
    assert (remains.started_at, remains.first_message_at) == (scene.start, scene.start)
    assert [each.kind for each in session.remains] == [Kind.JSONL]


def test_rows_that_this_store_lost_are_extra_in_the_other(scene: Scene) -> None:
    kept_at(scene, SNAPSHOT, 2000.0)
    scene.change("DELETE FROM messages WHERE active = 0")
    (copy,) = covered(scene)["s1"].copies
    assert (copy.exact, copy.extra) == (1, 4)


def test_a_store_that_breaks_while_it_is_read_counts_for_what_was_read(scene: Scene) -> None:
    path = kept_at(scene, LASTING, 2000.0)
    scene.rows.run("VACUUM")
    shutil.copyfile(scene.rows.path, path)
    data = bytearray(path.read_bytes())
    root = scene.rows.run("SELECT rootpage FROM sqlite_schema WHERE name = 'messages'")[0][0]
    size = int.from_bytes(data[16:18], "big")
    data[(root - 1) * size : root * size] = bytes(size)
    path.write_bytes(data)
    (session,) = covered(scene).values()
    assert len(session.unheld) == 4
    assert all(copy.cut and not copy.exact for copy in session.copies)


@pytest.mark.parametrize("seed", range(int(os.environ.get("STATEMEND_SUBSETS", "6"))))
def test_of_any_part_of_the_rows_exactly_the_rest_is_missing(seed: int, tmp_path: Path) -> None:
    random_ = random.Random(seed)
    scene = Scene(tmp_path / "home", random_.choice(["0.13.0", "0.19.0", "0.22.2"])).session("s1")
    for number in range(12):
        scene.say(f"text {number % 5}", number, role=random_.choice(["user", "assistant"]))
    path = kept_at(scene, LASTING, 2000.0)
    ids = [row_id for (row_id,) in scene.rows.run("SELECT id FROM messages ORDER BY id")]
    gone = random_.sample(ids, random_.randrange(len(ids)))
    scene.change(f"DELETE FROM messages WHERE id IN ({', '.join(map(str, gone)) or 'NULL'})")
    # The other store has rows that this one lacks: they are extra.
    for copy in covered(scene)["s1"].copies if gone else ():
        assert (copy.exact, copy.extra, copy.missing) == (len(ids) - len(gone), len(gone), ())
    # And the other way round, row by row.
    with open_for_audit(path) as whole, open_for_audit(scene.rows.path) as part:
        tally = match_store(SessionRows.load(whole, "s1"), messages(part, "s1", View.RAW))
    assert set(tally.held) == set(ids) - set(gone)
    assert (tally.extra, tally.repeated, tally.changed) == (0, 0, {})
