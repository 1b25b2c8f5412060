from __future__ import annotations

import json
from datetime import timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests.evidence.scene import KINDS, SUMMARY, TRANSCRIPTS, Scene, causes
from tests.store.rows import ARCHIVED, REWOUND

from statemend.errors import Undetermined
from statemend.evidence.coverage import Cause, Scope, assess, assess_session
from statemend.evidence.inventory import find_home, take
from statemend.formats.artifact import Kind
from statemend.store.connection import open_for_audit
from statemend.store.history import View

EACH_KIND = pytest.mark.parametrize("kind", KINDS)
EACH_TRANSCRIPT = pytest.mark.parametrize("kind", TRANSCRIPTS)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A session of three turns: rows 1 to 6."""
    scene = Scene(tmp_path / "home").session()
    for turn in range(3):
        scene.say(f"question {turn}", 10.0 * turn + 1)
        scene.say(f"answer {turn}", 10.0 * turn + 2, role="assistant")
    return scene


@EACH_KIND
def test_what_came_after_the_export_is_not_the_exports_fault(scene: Scene, kind: Kind) -> None:
    scene.export(kind, at=60.0)
    scene.say("later", 70.0).say("much later", 80.0, role="assistant")
    session = scene.session_coverage()
    (coverage,) = session.artifacts
    shown = {7, 8} if kind in TRANSCRIPTS else {7}
    assert causes(coverage) == dict.fromkeys(shown, Cause.LATER)
    assert set(session.unheld) >= shown


@EACH_KIND
def test_an_export_from_before_the_compaction_holds_what_it_archived(scene: Scene, kind: Kind) -> None:
    scene.export(kind, at=60.0)
    scene.compact(("user", "question 2", 21.0), ("assistant", "answer 2", 22.0), at=90.0)
    session = scene.session_coverage()
    (coverage,) = session.artifacts
    assert causes(coverage) == {7: Cause.LATER}
    assert session.archived == 4
    assert not set(session.unheld) & ({1, 3, 5} if kind not in TRANSCRIPTS else set(range(1, 7)))


@EACH_KIND
def test_an_export_from_between_two_compactions_lacks_what_the_first_archived(
    scene: Scene, kind: Kind
) -> None:
    scene.compact(("user", "question 2", 21.0), ("assistant", "answer 2", 22.0), at=90.0)
    scene.say("middle", 95.0)
    scene.export(kind, at=99.0)
    scene.compact(("user", "middle", 95.0), at=120.0)
    missing = causes(scene.coverage())
    archived = {1, 2, 3, 4} if kind in TRANSCRIPTS else {1, 3}
    assert missing == {**dict.fromkeys(archived, Cause.ARCHIVED), 11: Cause.LATER}


@EACH_TRANSCRIPT
def test_a_text_edited_since_is_changed_and_not_missing(scene: Scene, kind: Kind) -> None:
    scene.export(kind)
    scene.change("UPDATE messages SET content = 'answer one' WHERE id = 4")
    session = scene.session_coverage()
    (coverage,) = session.artifacts
    assert coverage.changed == (4,)
    assert (coverage.missing, coverage.extra) == ((), 0)
    assert coverage.exact + coverage.lossy == 5
    assert session.unheld == (4,)


@EACH_TRANSCRIPT
def test_rows_that_the_store_lost_are_extra(scene: Scene, kind: Kind) -> None:
    scene.export(kind)
    scene.change("DELETE FROM messages WHERE id IN (3, 4)")
    coverage = scene.coverage()
    assert (coverage.extra, coverage.exact + coverage.lossy, coverage.records) == (2, 4, 6)
    assert (coverage.changed, coverage.missing) == ((), ())


@EACH_KIND
def test_a_turn_undone_since_is_neither_extra_nor_missing(scene: Scene, kind: Kind) -> None:
    scene.export(kind)
    scene.change("UPDATE messages SET active = 0, compacted = 0 WHERE id IN (5, 6)")
    coverage = scene.coverage()
    assert (coverage.extra, coverage.changed, coverage.missing) == (0, (), ())
    assert coverage.rewound == (2 if kind in TRANSCRIPTS else 1)


@EACH_TRANSCRIPT
def test_the_same_words_twice_need_two_records(scene: Scene, kind: Kind) -> None:
    scene.say("ok", 40.25).say("ok", 40.75)
    scene.export(kind, name="one")
    path = scene.export(kind, name="two")
    scene.say("ok", 40.875)
    path.unlink()
    session = scene.session_coverage()
    assert len(session.unheld) == 1
    assert session.artifacts[0].records == 8


def test_rows_with_one_rendering_are_counted_one_by_one(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "home").session().say("ok", 1.0)
    scene.export(Kind.MARKDOWN)
    scene.say("ok", 1.0, tool_call_id="another")
    session = scene.session_coverage()
    assert session.display == 2
    assert session.unheld == (2,)


@EACH_TRANSCRIPT
def test_copies_with_a_new_time_hold_their_originals(tmp_path: Path, kind: Kind) -> None:
    scene = Scene(tmp_path / "home").session()
    for number in range(6):
        scene.say(f"text {number}", float(number))
    scene.say("ok", 6.0).say("ok", 7.0).say("the end", 8.0)
    now = 50.0
    scene.change("UPDATE messages SET active = 0, compacted = 1")
    for number, text in enumerate(("text 0", SUMMARY, "ok", "the end")):
        scene.say(text, now + number * 1e-6)
    scene.export(kind, at=60.0)
    session = scene.session_coverage()
    (coverage,) = session.artifacts
    assert session.display == 13
    assert causes(coverage) == dict.fromkeys((2, 3, 4, 5, 6, 7), Cause.ARCHIVED)
    assert "timestamp" in coverage.drops
    assert coverage.exact + coverage.lossy == 7
    assert coverage.lossy >= 3


@EACH_TRANSCRIPT
def test_two_artifacts_hold_together_what_neither_holds_alone(scene: Scene, kind: Kind) -> None:
    scene.export(kind, at=60.0, name="first")
    scene.compact(("user", "question 2", 21.0), ("assistant", "answer 2", 22.0), at=90.0)
    scene.export(kind, at=99.0, name="second")
    session = scene.session_coverage()
    assert [bool(each.missing) for each in session.artifacts] == [True, True]
    assert session.unheld == ()


@EACH_TRANSCRIPT
def test_an_archived_message_cut_out_by_hand_is_not_blamed_on_the_archive(scene: Scene, kind: Kind) -> None:
    scene.compact(("assistant", "answer 2", 22.0), at=90.0)
    path = scene.export(kind, view=View.DISPLAY, at=99.0)
    scene.say("gone", 5.0, **ARCHIVED)
    scene.change("UPDATE messages SET id = 0 WHERE content = 'gone'")
    assert path.exists()
    coverage = scene.coverage()
    assert coverage.scope is (Scope.ALL if kind is Kind.JSONL else Scope.DISPLAY)
    assert causes(coverage) == {0: Cause.UNKNOWN}


def test_a_carried_tail_that_stands_twice_confuses_nothing(scene: Scene) -> None:
    scene.compact(("user", "question 2", 21.0), ("assistant", "answer 2", 22.0), at=90.0)
    scene.export(Kind.JSONL, view=View.RAW)
    session = scene.session_coverage()
    (coverage,) = session.artifacts
    assert (coverage.exact, coverage.extra, coverage.missing) == (7, 0, ())
    assert coverage.scope is Scope.ALL
    assert coverage.records == 9


@EACH_TRANSCRIPT
def test_a_cut_file_misses_its_end_for_no_known_reason(scene: Scene, kind: Kind) -> None:
    path = scene.export(kind, at=60.0)
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"answer 1") + 4])
    coverage = scene.coverage()
    assert coverage.cut
    assert coverage.exact + coverage.lossy == 3
    assert causes(coverage) == dict.fromkeys((4, 5, 6), Cause.UNKNOWN)
    assert (coverage.changed, coverage.extra) == ((), 0)


def test_a_cut_file_still_tells_what_came_later(scene: Scene) -> None:
    path = scene.export(Kind.MARKDOWN, at=60.0)
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"answer 1") + 4])
    scene.say("later", 70.0)
    assert causes(scene.coverage())[7] is Cause.LATER


def test_a_file_cut_between_two_messages_is_cut(scene: Scene) -> None:
    path = scene.export(Kind.MARKDOWN, at=60.0)
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"answer 1") + len("answer 1")])
    coverage = scene.coverage()
    assert (coverage.cut, coverage.lossy, coverage.declared) == (True, 4, 6)


def test_windows_newlines_and_a_byte_order_mark_change_nothing(scene: Scene) -> None:
    scene.say("one\r\ntwo\n\nthree", 40.0)
    for kind in (Kind.MARKDOWN, Kind.PROMPTS_MARKDOWN, Kind.HTML):
        path = scene.export(kind)
        mark = b"\xef\xbb\xbf" if kind is Kind.MARKDOWN else b""
        path.write_bytes(mark + path.read_bytes().replace(b"\n", b"\r\n"))
    session = scene.session_coverage()
    assert len(session.artifacts) == 3
    for coverage in session.artifacts:
        assert (coverage.missing, coverage.changed, coverage.extra) == ((), (), 0), coverage.kind


def test_a_converted_file_may_have_lost_a_carriage_return(scene: Scene) -> None:
    scene.say("one\r\ntwo", 40.0)
    path = scene.export(Kind.MARKDOWN)
    path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    coverage = scene.coverage()
    assert (coverage.lossy, coverage.changed) == (7, ())


SECRETS = {
    "a key": (
        "my key is sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz and more",
        "my key is sk-ant...WxYz and more",
    ),
    "a password": ("postgres://joe:hunter2@db/x", "postgres://joe:***@db/x"),
    "a private key": (
        "-----BEGIN KEY-----\nabc\ndef\n-----END KEY-----\nand text",
        "[REDACTED PRIVATE KEY]\nand text",
    ),
    "a newer mask": ("token ghp_abcdefghij here", "token «redacted:ghp_…» here"),
}


@pytest.mark.parametrize(("stored", "shown"), SECRETS.values(), ids=SECRETS)
@EACH_KIND
def test_masked_text_is_held_masked(scene: Scene, kind: Kind, stored: str, shown: str) -> None:
    scene.say(shown, 40.0)
    scene.export(kind)
    scene.change("UPDATE messages SET content = ? WHERE id = 7", stored)
    session = scene.session_coverage()
    (coverage,) = session.artifacts
    assert (coverage.masked, coverage.changed, coverage.missing) == (1, (), ())
    assert 7 not in session.unheld


ZONES = {
    "east": timezone(timedelta(hours=14)),
    "west": timezone(timedelta(hours=-12)),
    "quarter": timezone(timedelta(hours=5, minutes=45)),
    "summer and winter": ZoneInfo("Europe/Berlin"),
}


@pytest.mark.parametrize("zone", ZONES.values(), ids=ZONES)
def test_the_clock_of_a_page_may_run_in_any_zone(scene: Scene, zone: timezone) -> None:
    half_a_year = 180 * 86400.0
    for number in range(3):
        scene.say(f"winter {number}", half_a_year + number)
    scene.say("ok", 50.0).say("ok", 3650.0).say("ok", half_a_year + 50)
    scene.export(Kind.HTML, zone=zone)
    coverage = scene.coverage()
    assert (coverage.lossy, coverage.missing, coverage.extra) == (12, (), 0)


def test_every_session_of_a_page_shares_its_clock(scene: Scene) -> None:
    scene.session("s2", started_at=0.0).say("my key is sk-ant-abcdefghijkl", 7.0, "s2")
    path = scene.export(Kind.HTML, "s1", "s2", zone=ZONES["east"])
    path.write_bytes(path.read_bytes().replace(b"sk-ant-abcdefghijkl", b"sk-ant...ijkl"))
    assert scene.coverage("s2").masked == 1


def test_one_text_at_another_time_is_another_message(scene: Scene) -> None:
    scene.export(Kind.HTML)
    scene.change("UPDATE messages SET timestamp = timestamp + 7000 WHERE id = 3")
    coverage = scene.coverage()
    assert (coverage.extra, causes(coverage)) == (1, {3: Cause.UNKNOWN})


def test_what_a_page_shows_of_parts_tools_and_thoughts_is_compared(scene: Scene) -> None:
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "terminal", "arguments": '{"command": "ls"}'},
    }
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    scene.say([{"type": "text", "text": "<b>look</b>"}, picture], 40.0)
    scene.say("", 41.0, role="assistant", tool_calls=json.dumps([call]), reasoning="I need 'ls'")
    scene.say("a\r\nb", 42.0, role="tool", tool_call_id="c1", tool_name="terminal")
    scene.say("bookkeeping", 43.0, role="session_meta")
    scene.export(Kind.HTML)
    session = scene.session_coverage()
    (coverage,) = session.artifacts
    assert (coverage.lossy, coverage.missing, coverage.changed, coverage.extra) == (9, (), (), 0)
    assert session.unheld == ()


def test_bookkeeping_rows_are_unheld_where_no_page_leaves_them_out_lawfully(scene: Scene) -> None:
    scene.say("bookkeeping", 43.0, role="session_meta")
    scene.export(Kind.PROMPTS_JSONL)
    assert 7 in scene.session_coverage().unheld


@pytest.mark.parametrize("kind", [Kind.PROMPTS_JSONL, Kind.PROMPTS_MARKDOWN])
def test_prompts_are_asked_for_user_messages_alone(scene: Scene, kind: Kind) -> None:
    scene.export(kind)
    session = scene.session_coverage()
    (coverage,) = session.artifacts
    assert (coverage.lossy, coverage.missing) == (3, ())
    assert session.unheld == (2, 4, 6)
    assert "every other role" in coverage.drops


FORGERIES = {
    "the next prompt": "x\n\n## 3. 2026-08-01T09:00:21Z\nMessage ID: `5`\n\nquestion 2",
    "a prompt without text": "\n\n## 3. 2026-08-01T09:00:21Z\nMessage ID: `5`\n",
    "another section": "# User prompts for session s1\n- Session ID: `s1`\n\n## 1. now\nMessage ID: `1`\n\ny",
    "empty lines": "x\n\n\n\n",
    "nothing": "",
}


@pytest.mark.parametrize("text", FORGERIES.values(), ids=FORGERIES)
@pytest.mark.parametrize("row_id", [3, 5], ids=["in the middle", "as the last prompt"])
def test_a_prompt_may_imitate_its_file(scene: Scene, text: str, row_id: int) -> None:
    scene.change("UPDATE messages SET content = ? WHERE id = ?", text, row_id)
    scene.export(Kind.PROMPTS_MARKDOWN)
    coverage = scene.coverage()
    assert (coverage.lossy, coverage.missing, coverage.changed, coverage.extra) == (3, (), (), 0)


def test_prompts_are_known_by_their_text_when_their_ids_are_new(scene: Scene) -> None:
    scene.export(Kind.PROMPTS_MARKDOWN)
    scene.export(Kind.PROMPTS_JSONL)
    scene.export(Kind.JSONL)
    scene.change("UPDATE messages SET id = id + 1000")
    session = scene.session_coverage()
    assert [each.missing for each in session.artifacts] == [(), (), ()]
    assert session.unheld == ()


def test_a_segment_that_a_logical_export_lacks_is_another_segments(scene: Scene) -> None:
    scene.session("s2", parent_session_id="s1").say("continued", 60.0, "s2")
    scene.export(Kind.MARKDOWN, "s1", "s2", lineage=("s1", "s2"), name="both")
    sessions = scene.sessions()
    assert [sessions[each].artifacts[0].lossy for each in ("s1", "s2")] == [6, 1]
    path = scene.exports / "both"
    path.write_bytes(path.read_bytes().replace(b"## Compression segment: s1\n\n", b""))
    coverage = scene.coverage("s1")
    assert set(causes(coverage).values()) == {Cause.OTHER_SEGMENT}
    assert len(coverage.missing) == 6


def test_one_json_object_may_hold_a_whole_lineage(scene: Scene) -> None:
    scene.session("s2", parent_session_id="s1").say("continued", 60.0, "s2")
    lines = [json.loads(scene.export(Kind.JSONL, each).read_text()) for each in ("s1", "s2")]
    both = [message for line in lines for message in line["messages"]]
    whole = {**lines[1], "lineage_session_ids": ["s1", "s2"], "messages": both}
    for path in scene.exports.iterdir():
        path.unlink()
    (scene.exports / "whole.jsonl").write_text(json.dumps(whole) + "\n")
    sessions = scene.sessions()
    for session_id, count in (("s1", 6), ("s2", 1)):
        (coverage,) = sessions[session_id].artifacts
        assert (coverage.exact, coverage.extra, coverage.missing) == (count, 0, ())


def test_a_message_may_imitate_a_segment(scene: Scene) -> None:
    scene.say("x\n\n\n## Compression segment: s2\n\n### User\n\ncontinued", 40.0)
    scene.session("s2", parent_session_id="s1").say("## Compression segment: s1\n\nback", 60.0, "s2")
    scene.say("continued", 61.0, "s2")
    scene.export(Kind.MARKDOWN, "s1", "s2", lineage=("s1", "s2"))
    sessions = scene.sessions()
    for session_id, count in (("s1", 7), ("s2", 2)):
        (coverage,) = sessions[session_id].artifacts
        assert (coverage.lossy, coverage.missing, coverage.extra) == (count, (), 0)


def test_a_changed_message_that_quotes_headings_is_one_message(scene: Scene) -> None:
    quoted = "x\n\n\n### User — 2026-01-01T00:00:00Z\n\nfake\n\n\n### Assistant\n\nfake"
    scene.change("UPDATE messages SET content = ? WHERE id = 3", quoted)
    scene.export(Kind.MARKDOWN)
    scene.change("UPDATE messages SET content = 'question 1' WHERE id = 3")
    coverage = scene.coverage()
    assert (coverage.changed, coverage.extra, coverage.lossy) == ((3,), 0, 5)


def test_a_session_that_is_gone_is_read_for_what_it_was(scene: Scene) -> None:
    scene.compact(("assistant", "answer 2", 22.0), at=90.0)
    for kind in KINDS:
        scene.export(kind, at=99.0)
    scene.change("DELETE FROM messages")
    scene.change("DELETE FROM sessions")
    session = scene.session_coverage()
    assert (session.present, session.display, session.artifacts, session.unheld) == (False, 0, (), ())
    remains = {each.kind: each for each in session.remains}
    assert set(remains) == set(KINDS)
    for kind in TRANSCRIPTS:
        assert (remains[kind].records, remains[kind].first_summary, remains[kind].inactive) == (2, 0, 0)
        assert remains[kind].started_at == scene.start
        assert remains[kind].first_message_at == scene.start + 90
    assert remains[Kind.MARKDOWN].declared == 2
    assert remains[Kind.PROMPTS_MARKDOWN].filtered


def test_inactive_rows_of_a_session_that_is_gone_are_counted(scene: Scene) -> None:
    scene.compact(("assistant", "answer 2", 22.0), at=90.0)
    scene.export(Kind.JSONL, view=View.RAW)
    scene.change("DELETE FROM messages")
    scene.change("DELETE FROM sessions")
    (remains,) = scene.session_coverage().remains
    assert (remains.records, remains.inactive, remains.first_summary) == (8, 6, 6)


def test_a_session_whose_row_alone_is_gone_is_still_compared(scene: Scene) -> None:
    scene.export(Kind.JSONL)
    scene.change("DELETE FROM sessions")
    session = scene.session_coverage()
    assert (session.present, session.artifacts[0].exact) == (True, 6)


def test_rows_of_other_sessions_do_not_count(scene: Scene) -> None:
    scene.session("s2").say("question 0", 1.0, "s2")
    scene.export(Kind.JSONL, "s1")
    assert set(scene.sessions()) == {"s1"}
    with open_for_audit(scene.rows.path) as store:
        inventory = take(find_home(scene.root))
        other = assess_session(store, inventory, "s2")
        same = assess_session(store, inventory, "s1")
    assert (other.present, other.display, other.artifacts, other.unheld) == (True, 1, (), (7,))
    assert same == scene.session_coverage("s1")


def test_progress_names_each_session(scene: Scene) -> None:
    scene.session("s2").say("x", 1.0, "s2")
    scene.export(Kind.JSONL, "s1", "s2")
    said: list[str] = []
    inventory = take(find_home(scene.root), progress=said.append)
    with open_for_audit(scene.rows.path) as store:
        assert len(list(assess(store, inventory, said.append))) == 2
    assert said[0] == "looking at file 1 beside the store"
    assert said[-1] == "comparing session 2 of 2 with its exports"


def test_an_artifact_that_vanished_meanwhile_is_undetermined(scene: Scene) -> None:
    path = scene.export(Kind.JSONL)
    inventory = take(find_home(scene.root))
    path.unlink()
    with open_for_audit(scene.rows.path) as store, pytest.raises(Undetermined, match="could not be read"):
        list(assess(store, inventory))


@EACH_TRANSCRIPT
def test_model_only_and_unset_rows_do_no_harm(tmp_path: Path, kind: Kind) -> None:
    scene = Scene(tmp_path / "home", "0.20.1").session().say("one", 1.0).say("two", 2.0)
    scene.say("for the model", 3.0, display_metadata='{"model_only": true}', display_kind="hidden")
    scene.say("undone", 4.0, **REWOUND)
    scene.export(kind, view=View.RAW)
    session = scene.session_coverage()
    (coverage,) = session.artifacts
    assert (session.display, coverage.exact + coverage.lossy) == (2, 2)
    assert (coverage.rewound, coverage.extra) == (2, 0)


@EACH_TRANSCRIPT
def test_odd_cells_are_compared_like_others(tmp_path: Path, kind: Kind) -> None:
    scene = Scene(tmp_path / "home").session()
    scene.say({"a": [1, None]}, 1.0).say(None, 2.0, role="assistant")
    scene.rows.message("s1", "no time", at=0.0)
    scene.rows.message("s1", "no number", at="yesterday")
    scene.rows.message("s1", "odd role", at=scene.start + 9, role="weird role")
    scene.export(kind)
    coverage = scene.coverage()
    assert (coverage.records, coverage.missing, coverage.extra, coverage.changed) == (5, (), 0, ())
