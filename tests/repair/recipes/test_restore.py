"""The recipe ``restore``: a session that is gone, or of which only the tail is left, comes back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.audit.builder import NOW, START, VERSIONS, HomeBuilder
from tests.repair import plans
from tests.repair.planning import only_choice, option_steps, plan_of, text_of

from statemend.errors import Refused, UsageError
from statemend.evidence.attribution import said
from statemend.formats import jsonl, markdown, prompts
from statemend.formats.artifact import Artifact, Kind, Section
from statemend.formats.save_markdown import render_message
from statemend.repair.apply import apply
from statemend.repair.plan import Plan, dump
from statemend.repair.rehearse import rehearse
from statemend.repair.run import State
from statemend.repair.statements import script
from statemend.repair.texts import find
from statemend.repair.undo import undo
from statemend.repair.verify import verify
from statemend.store.connection import open_for_audit
from statemend.store.history import View, messages, records, session_record
from statemend.store.identity import session_digest, store_digest

Build = Callable[..., HomeBuilder]

SID = "20260801_090000_aaaaaa"
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were summarized."
ROWS = "SELECT * FROM messages ORDER BY id"
FLAGS = "SELECT id, content, active, compacted FROM messages ORDER BY id"
CALL = [{"id": "c1", "type": "function", "function": {"name": "sh", "arguments": '{"command": "ls"}'}}]
COMPACTING = ("0.18.2", "0.19.0", "0.20.1", "0.22.2")


def talk(home: HomeBuilder, **columns: Any) -> None:
    """Six rows, one of them a call, one its result, one of parts, behind another session's."""
    home.sql("DELETE FROM sqlite_sequence")
    home.chat("other", 2)
    home.session(SID, title="A plan", message_count=6, tool_call_count=1, **columns)
    home.message(SID, content="what is next?")
    home.message(SID, "assistant", "Let me look.", tool_calls=CALL, reasoning="I need it.")
    home.message(SID, "tool", "12 plan.md", tool_call_id="c1", tool_name="sh")
    home.message(SID, "assistant", "Twelve lines.", finish_reason="stop", token_count=7)
    home.message(SID, content='\0json:[{"type": "text", "text": "and now?"}]')
    home.message(SID, "assistant", "Done — ünïcode \U0001f642 and ''quotes''")


def compact(home: HomeBuilder) -> None:
    """In place: every row archived, a summary, the last two rows again."""
    tail = home.sql("SELECT role, content, timestamp FROM messages WHERE session_id = ?", bindings=(SID,))[
        -2:
    ]
    home.sql("UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ?", bindings=(SID,))
    home.message(SID, content=SUMMARY, timestamp=START + 300)
    for role, content, at in tail:
        home.message(SID, role, content, timestamp=at)
    home.sql("UPDATE sessions SET message_count = 3, tool_call_count = 0 WHERE id = ?", bindings=(SID,))


def export(
    home: HomeBuilder, name: str, *, kind: Kind = Kind.JSONL, view: View = View.ACTIVE, sid: str = SID
) -> Path:
    with open_for_audit(home.store) as store:
        row = session_record(store, sid) or {"id": sid}
        if kind is Kind.JSONL:
            text = "".join(jsonl.render(row, list(records(store, sid, view))))
        else:
            shown = list(messages(store, sid, view))
            text = markdown.render(row, [(sid, shown)], kind=kind, exported_at=START + 400, lineage=())
    return home.file(f"session-exports/{name}", text)


def delete(home: HomeBuilder, *, sid: str = SID) -> None:
    home.sql("DELETE FROM messages WHERE session_id = ?", bindings=(sid,))
    home.sql("DELETE FROM sessions WHERE id = ?", bindings=(sid,))


def beheaded(home: HomeBuilder) -> None:
    """Deleted, and made again in passing, with what the agent said next."""
    delete(home)
    home.session(SID, source="unknown", started_at=START + 500, message_count=2)
    home.message(SID, content="one more thing", timestamp=START + 500)
    home.message(SID, "assistant", "Gladly.", timestamp=START + 501)


def healed(home: HomeBuilder) -> None:
    """Deleted under its agent, and made again with what that had in memory, and what it said next."""
    live = home.sql(
        "SELECT role, content, timestamp FROM messages WHERE session_id = ? AND active = 1", bindings=(SID,)
    )
    delete(home)
    home.session(SID, source="cli", started_at=START + 500, message_count=len(live) + 1)
    for role, content, at in live:
        home.message(SID, role, content, timestamp=at)
    home.message(SID, content="one more thing", timestamp=START + 500)


def chosen(plan: Plan, option: str) -> Plan:
    choices = tuple(msgspec.structs.replace(each, chosen=option) for each in plan.choices)
    return msgspec.structs.replace(plan, choices=choices)


def written(plan: Plan, tmp_path: Path) -> Path:
    file = tmp_path / "plan.json"
    file.write_bytes(dump(plan))
    return file


def digest(home: HomeBuilder) -> str:
    with open_for_audit(home.store) as store:
        return store_digest(store)


def shown(home: HomeBuilder, view: View = View.DISPLAY) -> str:
    with open_for_audit(home.store) as store:
        return session_digest(store, SID, view)


@contextmanager
def restored(home: HomeBuilder, tmp_path: Path, option: str = "restore", **options: Any) -> Iterator[None]:
    """The home with a plan carried out; afterwards it is taken back, exactly."""
    before = digest(home)
    plan = chosen(plan_of(home, **options), option)
    run = apply(written(plan, tmp_path), run_dir=tmp_path / "run", now=NOW)
    assert (run.state, run.remaining, run.new, run.troubles) == (State.APPLIED, (), (), ())
    assert plan_of(home).choices == ()
    yield
    assert undo(tmp_path / "run", now=NOW).state is State.UNDONE
    assert digest(home) == before


@pytest.mark.parametrize("version", VERSIONS)
def test_an_export_of_whole_rows_gives_back_the_very_rows(build: Build, tmp_path: Path, version: str) -> None:
    home = build(version)
    talk(home)
    export(home, "whole.jsonl", view=View.RAW)
    rows, display = home.sql(FLAGS if version > "0.18" else ROWS), shown(home)
    delete(home)
    with restored(home, tmp_path, restore=[SID]):
        assert home.sql(FLAGS if version > "0.18" else ROWS) == rows
        assert shown(home) == display
        (row,) = home.sql(
            "SELECT source, title, started_at, message_count, tool_call_count FROM sessions WHERE id = ?",
            bindings=(SID,),
        )
        assert row == ("cli", "A plan", START, 6, 1)


def test_a_store_whose_index_only_hermes_can_write_is_left(build: Build) -> None:
    home = build("0.22.2")
    talk(home)
    export(home, "whole.jsonl", view=View.RAW)
    delete(home)
    plans.with_foreign_index(home.store)
    plan = plan_of(home, restore=[SID])
    assert plan.choices == ()
    assert any("messages_fts_cjk takes in each message" in left.reason for left in plan.left)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_tail_is_put_behind_what_came_before(build: Build, tmp_path: Path, version: str) -> None:
    home = build(version)
    talk(home)
    export(home, "whole.jsonl", view=View.RAW)
    before = home.sql("SELECT id, content FROM messages ORDER BY id")
    beheaded(home)
    tail = home.sql("SELECT * FROM messages WHERE session_id = ? ORDER BY id", bindings=(SID,))
    with restored(home, tmp_path):
        now = home.sql("SELECT id, content FROM messages ORDER BY id")
        assert now[: len(before)] == before
        assert [content for _, content in now[len(before) :]] == ["one more thing", "Gladly."]
        assert home.sql("SELECT * FROM messages WHERE id > 8 ORDER BY id") == tail
        assert home.sql(
            "SELECT source, title, started_at, message_count FROM sessions WHERE id = ?", bindings=(SID,)
        ) == [("cli", "A plan", START, 8)]


def test_a_tail_is_put_behind_rows_of_which_no_file_tells_the_ids(build: Build, tmp_path: Path) -> None:
    """They get numbers of rows that are gone, from the time when they were stored; other rows keep theirs."""
    home = build("0.19.0")
    home.chat("older", 3)
    talk(home)
    export(home, "whole.md", kind=Kind.MARKDOWN)
    others = home.sql("SELECT id, session_id, content FROM messages WHERE session_id <> ?", bindings=(SID,))
    beheaded(home)
    with restored(home, tmp_path):
        ids = [row[0] for row in home.sql("SELECT id FROM messages WHERE session_id = ?", bindings=(SID,))]
        rows = home.sql(
            "SELECT role, tool_call_id FROM messages WHERE session_id = ? ORDER BY id", bindings=(SID,)
        )
        assert len(ids) == 8
        assert [role for role, _ in rows[:4]] == ["user", "assistant", "tool", "assistant"]
        assert rows[2] == ("tool", "c1")
        assert home.sql("SELECT content FROM messages WHERE id >= ?", bindings=(sorted(ids)[-2],)) == [
            ("one more thing",),
            ("Gladly.",),
        ]
        stored = "SELECT id, session_id, content FROM messages WHERE session_id <> ?"
        assert home.sql(stored, bindings=(SID,)) == others


def test_made_up_ids_are_said_to_be(build: Build) -> None:
    home = build("0.19.0")
    talk(home)
    export(home, "whole.md", kind=Kind.MARKDOWN)
    beheaded(home)
    (step,) = option_steps(only_choice(plan_of(home)), "restore")
    origins = {each.column: each.origin for each in step.sources}
    assert "its id is made up: a free number" in origins["messages.3"]
    assert origins["messages.5.tool_call_id"].startswith("its place: the result stands behind the call")


def test_a_tail_without_room_in_front_of_it_is_left_as_it_is(build: Build) -> None:
    home = build("0.19.0")
    talk(home)
    export(home, "whole.md", kind=Kind.MARKDOWN)
    delete(home)
    home.sql("DELETE FROM sqlite_sequence")
    home.session(SID, source="unknown", started_at=START + 500, message_count=1)
    home.message(SID, content="one more thing", timestamp=START + 500)
    plan = plan_of(home)
    assert plan.choices == ()
    (left,) = [each for each in plan.left if each.rule == "ORP005"]
    assert "there are not enough free numbers" in left.reason


@pytest.mark.parametrize("version", COMPACTING)
def test_what_was_archived_comes_back_archived(build: Build, tmp_path: Path, version: str) -> None:
    home = build(version)
    talk(home)
    export(home, "before.jsonl")
    compact(home)
    export(home, "after.jsonl")
    rows, display, active = home.sql(FLAGS), shown(home), shown(home, View.ACTIVE)
    delete(home)
    with restored(home, tmp_path, restore=[SID]):
        assert home.sql(FLAGS) == rows
        assert (shown(home), shown(home, View.ACTIVE)) == (display, active)


@pytest.mark.parametrize("version", COMPACTING)
def test_a_display_export_gives_back_both_views(build: Build, tmp_path: Path, version: str) -> None:
    """Its rows do not name the archived originals of what was kept: all rows get new ids, in their order."""
    home = build(version)
    talk(home)
    compact(home)
    export(home, "display.jsonl", view=View.DISPLAY)
    display, active, highest = shown(home), shown(home, View.ACTIVE), home.sql("SELECT MAX(id) FROM messages")
    delete(home)
    with restored(home, tmp_path, restore=[SID]):
        assert (shown(home), shown(home, View.ACTIVE)) == (display, active)
        assert home.sql("SELECT MIN(id) FROM messages WHERE session_id = ?", bindings=(SID,)) > highest


def test_what_no_file_holds_is_counted_and_stays_lost(build: Build, tmp_path: Path) -> None:
    home = build("0.19.0")
    talk(home)
    compact(home)
    export(home, "after.md", kind=Kind.MARKDOWN)
    active = shown(home, View.ACTIVE)
    delete(home)
    choice = only_choice(plan_of(home))
    said = " ".join(choice.options[0].evidence)
    assert "3 messages come back in 3 rows" in said
    assert "3 messages only in a form that drops some of a message" in said
    assert "An unknown number of messages between" in said
    assert "a summary stands for turns that nothing shows" in said
    with restored(home, tmp_path):
        assert shown(home, View.ACTIVE) == active


def test_an_older_export_fills_what_a_newer_lossy_one_lacks(build: Build, tmp_path: Path) -> None:
    home = build("0.19.0")
    talk(home)
    export(home, "before.md", kind=Kind.MARKDOWN)
    compact(home)
    export(home, "after.md", kind=Kind.MARKDOWN)
    active = [
        row[0] for row in home.sql("SELECT role FROM messages WHERE active = 1 AND session_id <> 'other'")
    ]
    delete(home)
    with restored(home, tmp_path, restore=[SID]):
        states = home.sql(
            "SELECT role, active, compacted FROM messages WHERE session_id = ? ORDER BY id", bindings=(SID,)
        )
        assert [role for role, live, _ in states if live] == active
        assert [(live, archived) for _, live, archived in states] == [(0, 1)] * 6 + [(1, 0)] * 3


def test_a_plan_holds_no_text_and_each_row_names_where_it_comes_from(build: Build, tmp_path: Path) -> None:
    home = build("0.22.2")
    talk(home)
    path = export(home, "whole.jsonl", view=View.RAW)
    beheaded(home)
    plan = plan_of(home)
    for text in ("what is next", "Let me look", "12 plan.md", "command", "and now", "I need it", "quotes"):
        assert text not in text_of(plan)
    (step,) = option_steps(only_choice(plan), "restore")
    named = {each.column: each for each in step.sources if each.column.startswith("messages.")}
    assert list(named) == [f"messages.{number}" for number in range(3, 9)]
    assert {each.artifact for each in named.values()} == {str(path)}
    assert named["messages.4"].locator == "byte 0, message 2, row 4"
    assert named["messages.4"].origin == "jsonl, exact"
    assert all(len(each.digest or "") == 64 for each in named.values())


def test_a_call_whose_result_no_file_holds_is_said(build: Build) -> None:
    home = build("0.19.0")
    talk(home)
    home.sql("DELETE FROM messages WHERE role = 'tool'")
    export(home, "cut.jsonl")
    beheaded(home)
    choice = only_choice(plan_of(home))
    told = " ".join(choice.options[0].evidence)
    assert "1 message calls a tool of which no file holds a result." in told
    (step,) = option_steps(choice, "restore")
    assert told in step.why
    (said,) = [each for each in step.sources if each.column == "messages.4"]
    assert said.origin == "jsonl, exact; no file holds the result of a tool that it calls"


def test_a_file_that_no_longer_holds_a_text_is_no_source(build: Build, tmp_path: Path) -> None:
    home = build("0.19.0")
    talk(home)
    path = export(home, "whole.jsonl", view=View.RAW)
    beheaded(home)
    file = written(chosen(plan_of(home), "restore"), tmp_path)
    path.write_bytes(path.read_bytes().replace(b"Twelve lines", b"Eleven lines"))
    before = digest(home)
    with pytest.raises(Refused, match="the plan is stale: 1 text"):
        rehearse(file, now=NOW)
    with pytest.raises(Refused, match="the plan is stale: 1 text"):
        apply(file, run_dir=tmp_path / "run", now=NOW)
    assert digest(home) == before


def test_what_came_back_is_known_and_undone_without_the_file(build: Build, tmp_path: Path) -> None:
    home = build("0.19.0")
    talk(home)
    path = export(home, "whole.jsonl", view=View.RAW)
    beheaded(home)
    before = digest(home)
    file = written(chosen(plan_of(home), "restore"), tmp_path)
    apply(file, run_dir=tmp_path / "run", now=NOW)
    path.unlink()
    assert verify(tmp_path / "run", now=NOW).state is State.APPLIED
    assert undo(tmp_path / "run", now=NOW).state is State.UNDONE
    assert digest(home) == before


def test_contradicting_files_are_a_choice_with_an_option_for_each(build: Build, tmp_path: Path) -> None:
    home = build("0.19.0")
    talk(home)
    one = export(home, "one.jsonl", view=View.RAW)
    two = home.file("session-exports/two.jsonl", one.read_bytes().replace(b"Twelve lines", b"Eleven lines"))
    delete(home)
    choice = only_choice(plan_of(home, restore=[SID]))
    assert [option.id for option in choice.options] == ["restore-1", "restore-2", "leave"]
    by_file = {path: option for option in choice.options for path in (one, two) if str(path) in option.title}
    with restored(home, tmp_path, by_file[two].id, restore=[SID]):
        assert home.sql("SELECT content FROM messages WHERE id = 6") == [("Eleven lines.",)]


def test_ids_that_this_store_never_gave_are_not_used(build: Build, tmp_path: Path) -> None:
    home = build("0.19.0")
    talk(home)
    export(home, "whole.jsonl", view=View.RAW)
    delete(home)
    home.sql("UPDATE sqlite_sequence SET seq = 4 WHERE name = 'messages'")
    with restored(home, tmp_path, restore=[SID]):
        ids = [row[0] for row in home.sql("SELECT id FROM messages WHERE session_id = ?", bindings=(SID,))]
        assert ids[0] > 4
        assert ids == sorted(ids)


def test_an_id_that_another_row_has_is_not_used(build: Build, tmp_path: Path) -> None:
    home = build("0.19.0")
    talk(home)
    export(home, "whole.jsonl", view=View.RAW)
    delete(home)
    home.message("other", "user", "later", id=5)
    home.sql("UPDATE sessions SET message_count = 3 WHERE id = 'other'")
    with restored(home, tmp_path, restore=[SID]):
        assert home.sql("SELECT session_id FROM messages WHERE id = 5") == [("other",)]
        assert home.sql("SELECT COUNT(*), MIN(id) FROM messages WHERE session_id = ?", bindings=(SID,)) == [
            (6, 9)
        ]


def test_a_deleted_session_is_left_alone_unless_it_is_asked_for(build: Build) -> None:
    home = build("0.19.0")
    talk(home)
    export(home, "whole.jsonl", view=View.RAW)
    delete(home)
    plan = plan_of(home)
    assert (plan.steps, plan.choices) == ((), ())
    (left,) = [each for each in plan.left if each.rule == "ORP003"]
    assert left.reason.startswith("lawful as it is")
    with pytest.raises(UsageError, match="nothing to restore of session nobody"):
        plan_of(home, restore=["nobody"])


@pytest.mark.parametrize("place", ["session-exports/whole.jsonl", "state-snapshots/1/state.db"])
def test_a_chat_that_is_routed_to_it_finds_it_again(build: Build, tmp_path: Path, place: str) -> None:
    home = build("0.19.0")
    talk(home)
    if place.endswith(".db"):
        home.file(place, home.store.read_bytes())
    else:
        export(home, "whole.jsonl", view=View.RAW)
    delete(home)
    route = json.dumps({"session_id": SID})
    home.sql("INSERT INTO gateway_routing VALUES ('', 'agent:main:cli:dm:1', ?, 1.0)", bindings=(route,))
    plan = plan_of(home, restore=[SID])
    assert sorted(choice.finding.partition("-")[0] for choice in plan.choices) == ["ORP003", "ORP006"]
    assert plan.steps == ()
    choices = tuple(
        msgspec.structs.replace(each, chosen="restore" if each.finding.startswith("ORP003") else "leave")
        for each in plan.choices
    )
    file = written(msgspec.structs.replace(plan, choices=choices), tmp_path)
    run = apply(file, run_dir=tmp_path / "run", now=NOW)
    assert (run.state, run.remaining, run.new, run.troubles) == (State.APPLIED, (), (), ())
    assert [left.rule for left in plan_of(home).left] == []


def test_prompts_alone_come_back_where_they_are_asked_for(build: Build, tmp_path: Path) -> None:
    home = build("0.19.0")
    talk(home)
    with open_for_audit(home.store) as store:
        text = "".join(prompts.render_jsonl(SID, list(messages(store, SID, View.ACTIVE))))
    home.file("session-exports/prompts.jsonl", text)
    delete(home)
    (left,) = [each for each in plan_of(home).left if each.rule == "EXP008"]
    assert "nothing is restored from such files unasked" in left.reason
    told = " ".join(only_choice(plan_of(home, restore=[SID])).options[0].evidence)
    assert "stays lost: only what the user said is left" in told
    with restored(home, tmp_path, restore=[SID]):
        assert home.sql("SELECT role FROM messages WHERE session_id = ?", bindings=(SID,)) == [("user",)] * 2


@pytest.mark.parametrize("best", [Kind.JSONL, Kind.MARKDOWN])
def test_a_save_without_calls_doubles_no_message(build: Build, tmp_path: Path, best: Kind) -> None:
    home = build("0.22.2")
    talk(home)
    home.message(SID, "assistant", "", tool_calls=[{**CALL[0], "id": "c2"}])
    home.message(SID, "tool", "", tool_call_id="c2", tool_name="sh")
    home.message(SID, "assistant", "That was all.")
    said = "SELECT role, content, tool_calls, tool_name FROM messages WHERE session_id = ? ORDER BY id"
    before = home.sql(said, bindings=(SID,))
    export(home, "whole", kind=best)
    with open_for_audit(home.store) as store:
        shown = "".join(map(render_message, messages(store, SID, View.DISPLAY)))
    home.file("sessions/saved.md", f"# Session: A plan\n- Session ID: `{SID}`\n\n{shown.rstrip()}\n")
    delete(home)
    with restored(home, tmp_path, restore=[SID]):
        after = home.sql(said, bindings=(SID,))
        assert [
            (role, text or "", calls and json.loads(calls), name) for role, text, calls, name in after
        ] == [(role, text or "", calls and json.loads(calls), name) for role, text, calls, name in before]


def test_of_several_deleted_sessions_one_comes_back(build: Build, tmp_path: Path) -> None:
    home = build("0.19.0")
    talk(home)
    home.chat("second", 2)
    export(home, "whole.jsonl", view=View.RAW)
    export(home, "second.jsonl", sid="second")
    delete(home)
    delete(home, sid="second")
    with restored(home, tmp_path, restore=[SID]):
        assert home.sql("SELECT id FROM sessions ORDER BY id") == [(SID,), ("other",)]


def test_statements_to_read_hold_no_text(build: Build) -> None:
    home = build("0.19.0")
    talk(home)
    export(home, "whole.jsonl", view=View.RAW)
    beheaded(home)
    (step,) = option_steps(only_choice(plan_of(home)), "restore")
    sql = script([step])
    assert sql.count('INSERT INTO "main"."messages"') == 6
    assert ":text_" in sql
    assert "what is next" not in sql


def test_rows_of_which_a_file_tells_the_ids_keep_them_among_others(build: Build, tmp_path: Path) -> None:
    home = build("0.19.0")
    talk(home)
    export(home, "whole.md", kind=Kind.MARKDOWN)
    home.sql("DELETE FROM messages WHERE session_id = ? AND id NOT IN (4, 6)", bindings=(SID,))
    export(home, "part.jsonl", view=View.RAW)
    beheaded(home)
    with restored(home, tmp_path):
        rows = home.sql("SELECT id, role FROM messages WHERE session_id = ? ORDER BY id", bindings=(SID,))
        assert rows[:6] == list(
            zip(range(3, 9), ("user", "assistant", "tool", "assistant", "user", "assistant"), strict=True)
        )


def test_an_id_that_is_known_is_never_another_messages(build: Build) -> None:
    home = build("0.19.0")
    talk(home)
    export(home, "whole.md", kind=Kind.MARKDOWN)
    home.sql("DELETE FROM messages WHERE session_id = ? AND id <> 8", bindings=(SID,))
    home.sql("UPDATE messages SET id = 3 WHERE id = 8")
    export(home, "part.jsonl", view=View.RAW)
    beheaded(home)
    (left,) = [each for each in plan_of(home).left if each.rule == "ORP005"]
    assert "not enough free numbers" in left.reason


@pytest.mark.parametrize("version", COMPACTING)
def test_what_was_archived_is_put_before_what_was_written_again(
    build: Build, tmp_path: Path, version: str
) -> None:
    home = build(version)
    talk(home)
    compact(home)
    export(home, "whole.jsonl", view=View.RAW)
    archived = home.sql(FLAGS)[:8]
    display = home_display(home)
    healed(home)
    written_again = home.sql("SELECT * FROM messages WHERE session_id = ? ORDER BY id", bindings=(SID,))
    with restored(home, tmp_path):
        assert home.sql(FLAGS)[:8] == archived
        assert home.sql("SELECT * FROM messages WHERE id > 11 ORDER BY id") == written_again
        assert home_display(home) == [*display, "one more thing"]
        assert home.sql(
            "SELECT title, started_at, message_count FROM sessions WHERE id = ?", bindings=(SID,)
        ) == [("A plan", START, 4)]


def test_rows_that_were_archived_of_live_ones_are_said_to_be(build: Build) -> None:
    home = build()
    talk(home)
    compact(home)
    export(home, "whole.jsonl", view=View.RAW)
    healed(home)
    option = only_choice(plan_of(home)).options[0]
    assert option.title == "restore 6 messages of it"
    assert any(each.startswith("2 messages are live in the store already") for each in option.evidence)


def test_what_was_archived_is_left_where_its_ids_are_taken(build: Build) -> None:
    home = build()
    talk(home)
    compact(home)
    export(home, "whole.jsonl", view=View.RAW)
    delete(home)
    home.sql("DELETE FROM sqlite_sequence")
    home.session(SID, source="cli", started_at=START + 500)
    home.message(SID, content=SUMMARY, timestamp=START + 300)
    plan = plan_of(home)
    assert plan.choices == ()
    (left,) = [each for each in plan.left if each.rule == "ORP005"]
    assert "there are not enough free numbers" in left.reason


def home_display(home: HomeBuilder) -> list[Any]:
    with open_for_audit(home.store) as store:
        return [each.content for each in messages(store, SID, View.DISPLAY)]


def test_what_names_no_session_is_read_as_often_for_each_however_many_come_back(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = build("0.22.2")
    gone = [f"20260801_09000{number}_aaaaaa" for number in range(3)]
    for sid in gone:
        home.chat(sid, 6)
        said_in = home.sql("SELECT role, content FROM messages WHERE session_id = ?", bindings=(sid,))
        export(home, f"{sid}.jsonl", sid=sid)
        saved = [{"role": role, "content": content} for role, content in said_in]
        home.file(
            f"sessions/saved/hermes_conversation_{sid}.json", json.dumps({"model": "m", "messages": saved})
        )
    for sid in gone:
        delete(home, sid=sid)
    read: list[str] = []

    def counting(artifact: Artifact, section: Section) -> Iterator[tuple[str, str]]:
        read.append(Path(artifact.path).name)
        return said(artifact, section)

    monkeypatch.setattr("statemend.evidence.nameless.said", counting)
    plan = chosen(plan_of(home, restore=gone), "restore")
    assert len(plan.choices) == 3
    assert len(set(read)) == 6
    assert set(Counter(read).values()) == {2}
    read.clear()
    assert len(find(plan, home.store)) == 18
    assert set(Counter(read).values()) == {2}
