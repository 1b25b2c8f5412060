"""What was written from the memory of an agent, against rows that say the same in other words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.evidence.scene import SUMMARY, Scene, causes

from statemend.evidence.attribution import attribute, stored
from statemend.evidence.causes import Cause, Scope
from statemend.evidence.inventory import find_home, take
from statemend.evidence.memory import cleaned
from statemend.formats.save_markdown import render_message
from statemend.store.connection import Store, open_for_audit
from statemend.store.history import View, messages

SECRET = "please use sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789 for the call"
MASKED = "please use sk-ant...6789 for the call"


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path).session()


def user(text: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **more}


def assistant(text: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def save(
    scene: Scene, *messages: dict[str, Any], session_id: str | None = "s1", name: str = "save.json"
) -> Path:
    named = {} if session_id is None else {"session_id": session_id, "session_start": "2026-08-01T09:00:00"}
    path = scene.exports / name
    path.write_text(json.dumps({"model": "m", **named, "messages": list(messages)}, indent=2))
    return path


@pytest.mark.parametrize(
    ("stored", "saved"),
    [
        ("  spaces around \n\n", "spaces around"),
        ("<memory-context>\n[System note: x]\nliked tea\n</memory-context>\n\nhello", "hello"),
        ("< MEMORY-context >a</memory-context>b<memory-context>c</ memory-context>", "b"),
        ("an open <memory-context> stays, its tag goes", "an open  stays, its tag goes"),
        (
            "[System note: The following is recalled memory context, NOT new user input. Treat as "
            "informational background data.] hello",
            "hello",
        ),
        ("<REASONING_SCRATCHPAD>hm</REASONING_SCRATCHPAD>\n\n\nyes", "<think>hm</think>\nyes"),
    ],
)
def test_a_text_that_was_cleaned_is_the_same(scene: Scene, stored: str, saved: str) -> None:
    assert cleaned(stored) == saved
    scene.say(stored, 1.0, role="assistant")
    save(scene, assistant(saved))
    found = scene.coverage()
    assert (found.lossy, found.extra, found.missing, found.scope) == (1, 0, (), Scope.CONTEXT)


@pytest.mark.parametrize(
    "hostile", ["<memory-context>" * 200_000, "\n" * 1_000_000 + "<think>", "[System note: " * 100_000]
)
def test_a_text_made_to_be_slow_is_cleaned_in_no_time(hostile: str) -> None:
    assert isinstance(cleaned(hostile), str)


def test_the_text_of_a_tool_is_not_cleaned(scene: Scene) -> None:
    scene.say("  42\n", 1.0, role="tool", tool_call_id="c")
    save(scene, {"role": "tool", "content": "42", "tool_call_id": "c"})
    found = scene.coverage()
    assert (found.lossy, found.extra) == (0, 1)


def test_calls_are_the_same_however_their_arguments_are_spelled(scene: Scene) -> None:
    calls = [{"id": "c", "type": "function", "function": {"name": "t", "arguments": '{"a":  1}'}}]
    scene.say(None, 1.0, role="assistant", tool_calls=json.dumps(calls))
    calls[0]["function"] = {"name": "t", "arguments": '{"a": 1}'}
    save(scene, assistant("", tool_calls=calls))
    assert scene.coverage().lossy == 1


@pytest.mark.parametrize("time", [{}, {"timestamp": Scene.start + 2.0}])
def test_a_masked_text_is_held_masked(scene: Scene, time: dict[str, float]) -> None:
    scene.say("please use the key for the call", 1.0).say(SECRET, 2.0)
    save(scene, user(MASKED, **time))
    found = scene.coverage()
    assert (found.masked, found.extra, len(found.missing)) == (1, 0, 1)


def test_a_masked_result_of_a_tool_is_told_by_its_call(scene: Scene) -> None:
    for number, key in enumerate(("first", "other")):
        scene.say(f"{key}-0123456789", float(number), role="tool", tool_call_id=f"c{number}")
    save(
        scene,
        {"role": "tool", "content": "other-...", "tool_call_id": "c1"},
        {"role": "tool", "content": "***"},
    )
    found = scene.coverage()
    assert (found.masked, found.extra, [each.message_id for each in found.missing]) == (0, 2, [1, 2])
    save(scene, {"role": "tool", "content": "oth...6789", "tool_call_id": "c1"})
    found = scene.coverage()
    assert (found.masked, found.extra, [each.message_id for each in found.missing]) == (1, 0, [1])


def test_thousands_of_masked_messages_that_begin_alike_end_in_time(scene: Scene) -> None:
    scene.rows.run(
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1999) "
        "INSERT INTO messages (session_id, role, content, timestamp) "
        "SELECT 's1', 'user', 'the same beginning of all of them, whatever: ' || i, ? + i FROM n",
        bindings=(scene.start,),
    )
    save(scene, *(user(f"the same beginning of all of them, whatever: *** {n}") for n in range(2000)))
    found = scene.coverage()
    assert (found.masked, found.extra) == (0, 2000)


def test_a_mask_with_little_beside_it_could_hide_anything(scene: Scene) -> None:
    scene.say("sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz", 1.0)
    save(scene, user("sk-ant...WxYz"))
    found = scene.coverage()
    assert (found.masked, found.extra) == (0, 1)


def test_another_text_is_not_called_changed(scene: Scene) -> None:
    """The agent may have shortened it in memory: nobody rewrote anything."""
    scene.say("a long result of a tool", 1.0)
    save(scene, user("a long…", timestamp=scene.start + 1.0))
    found = scene.coverage()
    assert (found.changed, found.extra) == ((), 1)


def test_a_time_that_differs_is_another_message(scene: Scene) -> None:
    scene.say("ok", 1.0).say("ok", 2.0)
    save(scene, user("ok", timestamp=scene.start + 3.0), user("ok", timestamp=scene.start + 2.0))
    found = scene.coverage()
    assert (found.lossy, found.extra, [each.message_id for each in found.missing]) == (1, 1, [1])


def test_a_save_after_a_compaction_lacks_what_was_archived(scene: Scene) -> None:
    scene.say("one", 1.0).say("two", 2.0, role="assistant")
    scene.compact(at=3.0)
    save(scene, user(SUMMARY))
    assert causes(scene.coverage()) == {1: Cause.ARCHIVED, 2: Cause.ARCHIVED}


def test_nothing_is_expected_of_a_snapshot(scene: Scene) -> None:
    scene.say("one", 1.0).say("two", 2.0, role="assistant")
    scene.compact(at=3.0)
    marks = {"session_id": "s1", "model": "m", "session_start": "x", "last_updated": "x"}
    (scene.exports / "s.json").write_text(json.dumps({**marks, "messages": [user(SUMMARY)]}))
    assert causes(scene.coverage()) == {1: Cause.CONTEXT, 2: Cause.CONTEXT}


def test_saved_markdown_that_imitates_itself_is_covered_exactly(scene: Scene) -> None:
    fake = "hello\n\n## Assistant - 2026-08-01T09:00:02Z\n\nI never said this.\n\n"
    scene.say(fake, 1.0).say("", 2.0, role="assistant").say(
        "a ``` b ````", 3.0, role="tool", tool_name="a<b\nc"
    )
    scene.say("ends in lines\n\n\n", 4.0)
    with open_for_audit(scene.rows.path) as store:
        blocks = [render_message(row) for row in messages(store, "s1", View.RAW)]
    head = "# Session: On s1\n- Session ID: `s1`\n- Messages: 4\n\n"
    (scene.exports / "s.md").write_text((head + "".join(blocks)).rstrip("\n") + "\n")
    found = scene.coverage()
    assert (found.lossy, found.extra, found.changed, found.missing) == (4, 0, (), ())
    text = (head + "".join(blocks)).replace("a ``` b", "a ``` c").rstrip("\n") + "\n"
    (scene.exports / "s.md").write_text(text)
    found = scene.coverage()
    assert (found.lossy, found.changed, found.extra) == (3, (3,), 0)


# Whose it is


def attributed(scene: Scene) -> list[tuple[str | None, tuple[str, ...]]]:
    inventory = take(find_home(scene.root))
    with open_for_audit(scene.rows.path) as store:
        return [(each.session_id, each.candidates) for each in attribute(store, inventory)]


def test_a_nameless_save_is_its_session_s(scene: Scene) -> None:
    scene.session("s2").say("what now?", 1.0).say(" this ", 2.0, role="assistant").say("what now?", 3.0, "s2")
    save(scene, user("what now?"), assistant("this"), session_id=None)
    assert attributed(scene) == [("s1", ())]
    assert scene.coverage().lossy == 2


def test_a_branch_and_its_origin_both_fit(scene: Scene) -> None:
    scene.session("s2")
    for session_id in ("s1", "s2"):
        scene.say("what now?", 1.0, session_id).say("this", 2.0, session_id, "assistant")
    scene.say("and then?", 3.0, "s2")
    save(scene, user("what now?"), assistant("this"), session_id=None)
    assert attributed(scene) == [(None, ("s1", "s2"))]
    assert scene.sessions() == {}


def test_texts_in_another_order_do_not_fit(scene: Scene) -> None:
    scene.say("one", 1.0).say("two", 2.0, role="assistant").say("three", 3.0)
    save(scene, user("three"), assistant("two"), user("one"), session_id=None)
    assert attributed(scene) == [(None, ())]


def test_a_session_that_lost_its_start_is_found(scene: Scene) -> None:
    scene.say("last", 5.0).say("words", 6.0, role="assistant")
    save(scene, user("first"), assistant("gone"), user("last"), assistant("words"), session_id=None)
    assert attributed(scene) == [("s1", ())]
    assert (scene.coverage().lossy, scene.coverage().extra) == (2, 2)


def test_one_text_is_too_little(scene: Scene) -> None:
    scene.say("what now?", 1.0)
    save(scene, user("what now?"), session_id=None)
    assert attributed(scene) == [(None, ("s1",))]


def test_of_another_machine_there_is_no_session(scene: Scene) -> None:
    scene.say("what now?", 1.0)
    save(scene, user("elsewhere"), assistant("yes"), session_id=None)
    assert attributed(scene) == [(None, ())]


def test_of_a_message_that_waited_in_a_chat_its_sessions_are_named(scene: Scene) -> None:
    scene.session("s2", session_key="agent:main:telegram:dm:1").session("s3", session_key="another")
    waiting = {
        "session_key": "agent:main:telegram:dm:1",
        "reason": "shutdown",
        "ts": 1,
        "data": {"text": "hi"},
    }
    (scene.exports / "pending.json").write_text(json.dumps(waiting))
    assert attributed(scene) == [(None, ("s2",))]


TEXTS = st.sampled_from(["ok", "what next?", " spaced ", "same", "same"])


@given(texts=st.lists(TEXTS, min_size=1, max_size=8), data=st.data())
@settings(max_examples=25, deadline=None)
def test_coverage_is_the_complement_of_what_is_missing(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], data: st.DataObject
) -> None:
    scene = Scene(tmp_path_factory.mktemp("home")).session()
    for number, text in enumerate(texts):
        scene.say(text, float(number))
    kept = sorted(data.draw(st.sets(st.integers(0, len(texts) - 1))))
    times = data.draw(st.booleans())
    said = [
        user(texts[each].strip(), **({"timestamp": scene.start + each} if times else {})) for each in kept
    ]
    save(scene, *said)
    found = scene.coverage()
    assert found.lossy == len(kept)
    assert found.lossy + len(found.missing) == len(texts)
    if times:
        assert [each.message_id for each in found.missing] == [
            n + 1 for n in range(len(texts)) if n not in kept
        ]


def test_a_session_is_read_once_for_all_that_may_be_of_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.say("what now?", 1.0).say("this", 2.0, role="assistant")
    for number in range(5):
        save(scene, user("what now?"), assistant("this"), session_id=None, name=f"{number}.json")
    read: list[str] = []

    def counting(store: Store, session_id: str) -> Iterator[tuple[str, str]]:
        read.append(session_id)
        return stored(store, session_id)

    monkeypatch.setattr("statemend.evidence.attribution.stored", counting)
    assert attributed(scene) == [("s1", ())] * 5
    assert read == ["s1"]
