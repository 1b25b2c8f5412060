"""Whatever an artifact contains, it is compared or skipped; nothing fails and nothing is made up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.evidence.scene import KINDS, Scene
from tests.store.rows import ARCHIVED

from statemend.evidence.coverage import assess
from statemend.evidence.inventory import find_home, take
from statemend.formats.artifact import Kind
from statemend.store.connection import open_for_audit

SIX = range(1, 7)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Scene, dict[Kind, bytes]]:
    """A session of six messages, the first of them archived, and its exports."""
    scene = Scene(tmp_path_factory.mktemp("garbage") / "home").session()
    scene.say("archived", 1.0, **ARCHIVED)
    for number in range(5):
        scene.say(f"text {number} <b>&amp;\r\n", 2.0 + number, role="assistant" if number % 2 else "user")
    return scene, {kind: scene.export(kind, name="export").read_bytes() for kind in KINDS}


@settings(max_examples=150, deadline=None)
@given(data=st.data(), kind=st.sampled_from(KINDS))
def test_a_damaged_export_never_holds_more_than_it_did(
    whole: tuple[Scene, dict[Kind, bytes]], data: st.DataObject, kind: Kind
) -> None:
    scene, exports = whole
    text = bytearray(exports[kind])
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 40)))
        text[start:end] = data.draw(st.binary(max_size=20))
    (scene.exports / "export").write_bytes(text)
    inventory = take(find_home(scene.root))
    with open_for_audit(scene.rows.path) as store:
        sessions = list(assess(store, inventory))
    for session in sessions:
        assert {1} <= set(session.unheld) or session.session_id != "s1"
        for artifact in session.artifacts:
            held = artifact.exact + artifact.lossy + artifact.masked
            assert held + len(artifact.changed) + len(artifact.missing) <= len(SIX)
            assert artifact.extra >= 0


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_no_release_can_export_stop_nothing(tmp_path: Path, kind: Kind) -> None:
    scene = Scene(tmp_path / "home").session().say("one", 1.0)
    scene.export(kind)
    scene.say("\0json:" + "[" * 900 + "]" * 900, 2.0)
    scene.rows.message("s1", b"\xff\x00blob", at=scene.start + 3)
    scene.say("lone \ud83d".encode("utf-8", "surrogatepass").decode("utf-8", "replace"), 4.0)
    scene.say([{"type": "text", "text": "big", "n": 2**70}], 5.0)
    scene.say("x", 6.0, tool_calls='"encoded twice"', role="assistant")
    coverage = scene.coverage()
    assert (coverage.exact + coverage.lossy, coverage.extra, coverage.changed) == (1, 0, ())


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": {"a": [[[]]]}, "tool_calls": 7, "tool_call_id": ["x"], "id": "1"},
        {"role": "user", "content": 2**70, "timestamp": "soon", "tool_name": {}},
        {"role": "", "content": "\ud83d", "active": "no"},
    ],
)
def test_odd_members_of_a_record_match_nothing(tmp_path: Path, message: dict[str, object]) -> None:
    scene = Scene(tmp_path / "home").session().say("one", 1.0)
    line = json.dumps({"id": "s1", "source": "cli", "messages": [message]})
    (scene.exports / "odd.jsonl").write_text(line + "\n")
    coverage = scene.coverage()
    assert (coverage.extra, coverage.exact, len(coverage.missing)) == (1, 0, 1)
