from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.audit.builder import DATA, NOW, START, VERSIONS, HomeBuilder
from tests.repair.planning import (
    carry_out,
    only_choice,
    only_step,
    option_steps,
    plan_of,
    sources,
    text_of,
    values,
)

from statemend.formats.logs import render_line
from statemend.repair.apply import apply
from statemend.repair.plan import Kind, StepClass
from statemend.repair.run import State
from statemend.repair.session_row import MARK
from statemend.repair.undo import undo
from statemend.store.connection import open_for_audit
from statemend.store.identity import store_digest

Build = Callable[..., HomeBuilder]
SID = "20260801_093000_1f2e3d"
SECRET = "a secret of the user"


def orphan(home: HomeBuilder, session_id: str = SID, turns: int = 4, **columns: Any) -> None:
    """Messages whose session row another program has deleted."""
    home.chat(session_id, turns, **columns)
    home.message(session_id, content=SECRET)
    home.sql("DELETE FROM sessions WHERE id = ?", bindings=(session_id,))


def exported(home: HomeBuilder, name: str = "all.jsonl", **columns: Any) -> Path:
    """A JSONL export of the session, as it was after its first message."""
    first = {"id": 1, "session_id": SID, "role": "user", "content": f"turn 0 of {SID}", "timestamp": START}
    session = {"id": SID, "source": "cli", "started_at": START, "message_count": 1, **columns}
    return home.file(f"session-exports/{name}", json.dumps({**session, "messages": [first]}) + "\n")


def turn_line(session_id: str = SID, platform: str = "telegram", model: str = "gpt-4o") -> str:
    message = f"conversation turn: session={session_id} model={model} provider=openai platform={platform} "
    return render_line(
        "2026-09-21 14:13:20,000", "INFO", "run_agent", message + "history=0 msg='hello'", session_id
    ).rstrip("\n")


def row_of(home: HomeBuilder, session_id: str = SID) -> dict[str, Any]:
    names = [row[1] for row in home.sql("PRAGMA table_info(sessions)")]
    (row,) = home.sql("SELECT * FROM sessions WHERE id = ?", bindings=(session_id,))
    return dict(zip(names, row, strict=True))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_row_is_made_from_the_messages_alone_as_hermes_own_recovery_makes_it(
    build: Build, version: str
) -> None:
    home = build(version)
    orphan(home)

    plan = plan_of(home)
    step = only_step(plan)

    assert (step.recipe, step.step_class, step.sessions) == ("rebuild-session", StepClass.SAFE, (SID,))
    operation = step.operations[0]
    assert (operation.kind, operation.table, operation.key) == (Kind.INSERT, "sessions", {"id": SID})
    row = values(operation)
    assert (row["source"], row["started_at"]) == ("recovered", START)
    assert (row["message_count"], row["tool_call_count"]) == (5, 0)
    named = sources(step)
    assert set(named) == set(row)
    assert named["source"].startswith("made up: ")
    assert named["started_at"] == "the earliest message"
    assert "model_config" not in row
    carry_out(home, plan.steps)
    assert home.findings("ORP001") == []
    again = plan_of(home)
    assert (again.steps, again.choices) == ((), ())


def test_a_session_with_its_row_is_left_alone(build: Build) -> None:
    home = build()
    home.chat(SID)

    plan = plan_of(home)

    assert (plan.findings, plan.steps, plan.choices, plan.left) == ((), (), (), ())


def test_no_text_of_a_message_is_in_the_plan(build: Build) -> None:
    home = build()
    orphan(home)
    exported(home)

    assert SECRET not in text_of(plan_of(home))


def test_an_export_of_the_session_gives_what_it_has_and_is_named_by_digest(build: Build) -> None:
    home = build("0.19.0")
    orphan(home)
    file = exported(
        home,
        source="telegram",
        model="gpt-4o",
        title="Weekly plan",
        cwd="/srv/project",
        chat_id="42",
        input_tokens=1234,
        estimated_cost_usd=0.5,
        message_count=77,
        handoff_state="pending",
        of_another_release=1,
        started_at=START - 30,
    )

    step = only_step(plan_of(home))
    row = values(step.operations[0])

    taken = ("source", "model", "title", "cwd", "chat_id", "input_tokens", "estimated_cost_usd", "started_at")
    assert [row[name] for name in taken] == [
        "telegram",
        "gpt-4o",
        "Weekly plan",
        "/srv/project",
        "42",
        1234,
        0.5,
        START - 30,
    ]
    assert row["message_count"] == 5
    assert not {"handoff_state", "of_another_release"} & row.keys()
    digests = {source.digest for source in step.sources if source.artifact == str(file)}
    assert digests == {hashlib.sha256(file.read_bytes()).hexdigest()}
    assert json.loads(row["model_config"]) == {MARK: step.finding}


def test_the_configuration_that_an_export_has_keeps_every_key(build: Build) -> None:
    home = build("0.19.0")
    orphan(home)
    exported(home, model_config='{"yolo_mode":true,"_branched_from":"x"}')

    row = values(only_step(plan_of(home)).operations[0])

    config = json.loads(row["model_config"])
    assert (config["yolo_mode"], config["_branched_from"]) == (True, "x")
    assert MARK in config


def test_the_newest_whole_export_counts(build: Build) -> None:
    home = build("0.19.0")
    orphan(home)
    for name, title, at in (("a.jsonl", "new", START + 50), ("b.jsonl", "old", START + 10)):
        os.utime(exported(home, name, title=title), (at, at))

    assert values(only_step(plan_of(home)).operations[0])["title"] == "new"


def test_a_front_matter_is_read_where_there_is_no_whole_export(build: Build) -> None:
    home = HomeBuilder(build().root.parent / "rich", "0.19.0", rich=True)
    sid = "20260801_100000_cccccc"
    (source,) = (DATA / "exports" / "0.19.0").glob("md/*cccccc*.md")
    home.file(f"session-exports/{source.name}", source.read_bytes())
    before = row_of(home, sid)
    home.message(sid, content="later", timestamp=before["started_at"] + 10**7)
    home.sql("DELETE FROM sessions WHERE id = ?", bindings=(sid,))

    step = next(step for step in plan_of(home).steps if step.sessions == (sid,))
    row = values(step.operations[0])

    for column in ("source", "title", "model", "cwd", "started_at"):
        assert row[column] == before[column], column
        assert sources(step)[column] == "the front matter of an export"


def test_an_altered_markdown_export_tells_nothing(build: Build) -> None:
    home = HomeBuilder(build().root.parent / "rich", "0.19.0", rich=True)
    sid = "20260801_100000_cccccc"
    (source,) = (DATA / "exports" / "0.19.0").glob("md/*cccccc*.md")
    altered = source.read_bytes().replace(b'title: "Tools"', b'title: "Forged"')
    assert b"Forged" in altered
    home.file(f"session-exports/{source.name}", altered)
    home.message(sid, content="later", timestamp=START)
    home.sql("DELETE FROM sessions WHERE id = ?", bindings=(sid,))

    step = next(step for step in plan_of(home).steps if step.sessions == (sid,))

    assert "title" not in values(step.operations[0])


def test_a_title_that_another_session_has_is_left_out_and_said(build: Build) -> None:
    home = build("0.19.0")
    orphan(home)
    home.chat("other", title="Weekly plan")
    exported(home, title="Weekly plan")

    step = only_step(plan_of(home))

    assert "title" not in values(step.operations[0])
    assert sources(step)["title"].startswith("left out: another session has it")


def test_two_rebuilt_sessions_never_get_one_title(build: Build) -> None:
    home = build("0.19.0")
    orphan(home)
    orphan(home, "other")
    exported(home, title="Weekly plan")
    exported(home, "other.jsonl", id="other", title="Weekly plan")

    rows = [values(step.operations[0]) for step in plan_of(home).steps]

    assert [row.get("title") for row in rows].count("Weekly plan") == 1
    assert len(rows) == 2


@pytest.mark.parametrize("present", [True, False])
def test_a_parent_is_only_named_where_its_row_is_there(build: Build, present: bool) -> None:
    home = build("0.19.0")
    orphan(home)
    exported(home, parent_session_id="parent")
    if present:
        home.chat("parent")

    step = only_step(plan_of(home))

    assert values(step.operations[0]).get("parent_session_id") == ("parent" if present else None)
    assert sources(step)["parent_session_id"].startswith("the session as" if present else "left out:")


def test_a_parent_that_is_rebuilt_too_comes_first(build: Build) -> None:
    home = build("0.19.0")
    orphan(home)
    orphan(home, "zz-parent")
    exported(home, parent_session_id="zz-parent")

    plan = plan_of(home)

    assert [step.sessions for step in plan.steps] == [("zz-parent",), (SID,)]
    carry_out(home, plan.steps)
    assert row_of(home)["parent_session_id"] == "zz-parent"


@pytest.mark.parametrize(
    ("session_id", "source"),
    [
        ("cron_daily_20260801_093000", "cron"),
        ("api_1790000000_0a1b2c3d", "api_server"),
        ("cron_daily", "recovered"),
    ],
)
def test_the_shape_of_an_id_tells_the_source(build: Build, session_id: str, source: str) -> None:
    home = build("0.19.0")
    orphan(home, session_id)

    assert values(only_step(plan_of(home)).operations[0])["source"] == source


def test_the_log_of_a_turn_tells_source_and_model(build: Build) -> None:
    home = build("0.19.0")
    orphan(home)
    log = home.log([turn_line(platform="cli", model="old"), turn_line(), turn_line("other", "slack")])

    step = only_step(plan_of(home))

    row = values(step.operations[0])
    assert (row["source"], row["model"]) == ("telegram", "gpt-4o")
    places = {source.column: (source.artifact, source.locator) for source in step.sources}
    assert places["sessions.source"] == (str(log), "line 2")


def test_a_log_that_does_not_know_the_platform_tells_none(build: Build) -> None:
    home = build("0.19.0")
    orphan(home)
    home.log([turn_line(platform="unknown")])

    assert values(only_step(plan_of(home)).operations[0])["source"] == "recovered"


ENTRY = {
    "session_id": SID,
    "session_key": "agent:main:telegram:dm:42",
    "platform": "telegram",
    "chat_type": "dm",
    "display_name": "Ana",
    "origin": {"platform": "telegram", "chat_id": "42", "user_id": "7", "thread_id": None},
}


def test_a_route_of_the_gateway_tells_the_chat(build: Build) -> None:
    home = build("0.19.0")
    orphan(home)
    home.insert(
        "gateway_routing",
        scope="",
        session_key=ENTRY["session_key"],
        entry_json=json.dumps(ENTRY),
        updated_at=START,
    )

    step = only_step(plan_of(home))

    row = values(step.operations[0])
    told = ("source", "session_key", "chat_id", "chat_type", "user_id", "display_name")
    assert [row[name] for name in told] == [
        "telegram",
        ENTRY["session_key"],
        "42",
        "dm",
        "7",
        "Ana",
    ]
    assert sources(step)["chat_id"] == "a route of the gateway"


def test_the_index_of_an_old_gateway_tells_what_the_old_columns_hold(build: Build) -> None:
    home = build("0.15.2")
    orphan(home)
    home.file("sessions/sessions.json", json.dumps({ENTRY["session_key"]: ENTRY, "odd": 3}))

    row = values(only_step(plan_of(home)).operations[0])

    assert (row["source"], row["user_id"]) == ("telegram", "7")
    assert "session_key" not in row


def test_an_account_of_tokens_tells_the_model(build: Build) -> None:
    home = build("0.19.0")
    orphan(home)
    for model, task, seen in (("old", "", 1.0), ("new", "", 2.0), ("helper", "title", 3.0)):
        home.insert("session_model_usage", session_id=SID, model=model, task=task, last_seen=seen)

    step = only_step(plan_of(home))

    assert values(step.operations[0])["model"] == "new"
    assert sources(step)["model"] == "its account of tokens"


@pytest.mark.parametrize(
    ("children", "expected"),
    [(["discord"], "discord"), (["discord", "cli"], "recovered"), (["subagent"], "recovered")],
)
def test_children_that_agree_tell_the_source(build: Build, children: list[str], expected: str) -> None:
    home = build("0.19.0")
    orphan(home)
    for number, source in enumerate(children):
        home.chat(f"child{number}", source=source, parent_session_id=SID)

    (step,) = plan_of(home).steps

    assert values(step.operations[0])["source"] == expected


def test_the_time_in_the_id_is_taken_in_the_zone_of_the_ids_beside_it(build: Build) -> None:
    """Ids hold local time: here two hours ahead of UTC, as other sessions show."""
    home = build("0.19.0")
    utc = 1785569400.0  # 2026-08-01T07:30:00Z
    for minute in (0, 10):
        home.chat(f"20260801_09{minute:02}00_aaaaaa", started_at=utc - 1800 + minute * 60)
    home.chat(SID, 0)
    home.message(SID, timestamp=utc + 40)
    home.sql("DELETE FROM sessions WHERE id = ?", bindings=(SID,))

    step = only_step(plan_of(home))

    assert values(step.operations[0])["started_at"] == utc
    assert "+2 h from UTC" in sources(step)["started_at"]


def test_a_time_in_the_id_that_does_not_fit_the_messages_is_not_taken(build: Build) -> None:
    home = build("0.19.0")
    utc = 1785569400.0
    for minute in (0, 10):
        home.chat(f"20260801_09{minute:02}00_aaaaaa", started_at=utc - 1800 + minute * 60)
    orphan(home)

    assert sources(only_step(plan_of(home)))["started_at"] == "the earliest message"


def test_the_end_that_an_export_tells_stands_where_nothing_was_said_after_it(build: Build) -> None:
    home = build("0.19.0")
    orphan(home)
    exported(home, ended_at=START + 1000, end_reason="cli_close")

    row = values(only_step(plan_of(home)).operations[0])

    assert (row["ended_at"], row["end_reason"]) == (START + 1000, "cli_close")


def test_a_session_that_went_on_after_the_exported_end_is_open(build: Build) -> None:
    home = build("0.19.0")
    orphan(home)
    exported(home, ended_at=START + 1, end_reason="cli_close")

    row = values(only_step(plan_of(home)).operations[0])

    assert not {"ended_at", "end_reason"} & row.keys()


def test_no_pruning_that_is_on_can_take_what_was_rebuilt(build: Build) -> None:
    """0.22 prunes by itself and spares pinned sessions; before, an open session is spared."""
    newest = build("0.22.2", name="newest")
    orphan(newest)
    assert values(only_step(plan_of(newest)).operations[0])["pinned"] == 1

    told_not_to = build("0.22.2", name="told")
    orphan(told_not_to)
    told_not_to.file("config.yaml", "sessions:\n  auto_prune: false\n")
    assert "pinned" not in values(only_step(plan_of(told_not_to)).operations[0])

    older = build("0.19.0", name="older")
    orphan(older)
    older.file("config.yaml", "sessions:\n  auto_prune: true\n")
    exported(older, ended_at=START + 1000, end_reason="cli_close")
    assert "ended_at" not in values(only_step(plan_of(older)).operations[0])


@pytest.mark.parametrize("version", ["0.19.0", "0.22.2"])
def test_a_system_prompt_goes_where_the_release_keeps_it(build: Build, version: str) -> None:
    home = build(version)
    orphan(home)
    exported(home, system_prompt="You are helpful.")

    step = only_step(plan_of(home))
    carry_out(home, (step,))

    row = row_of(home)
    digest = hashlib.sha256(b"You are helpful.").hexdigest()
    if version == "0.19.0":
        assert row["system_prompt"] == "You are helpful."
        return
    assert (row["system_prompt"], row["system_prompt_hash"]) == (None, digest)
    assert home.sql("SELECT prompt FROM system_prompts WHERE hash = ?", bindings=(digest,)) == [
        ("You are helpful.",)
    ]


def test_values_that_do_not_fit_their_column_are_not_taken(build: Build) -> None:
    home = build("0.19.0")
    orphan(home)
    exported(home, title=7, input_tokens="many", estimated_cost_usd="free", cwd=["x"], archived=True)

    row = values(only_step(plan_of(home)).operations[0])

    assert not {"title", "input_tokens", "estimated_cost_usd", "cwd"} & row.keys()
    assert row["archived"] == 1


DELETED = "SessionStore removed 1 routing entry for deleted session"


def test_a_deletion_in_the_log_makes_it_a_choice(build: Build) -> None:
    home = build("0.22.2")
    orphan(home)
    line = render_line("2026-09-21 14:13:20,000", "INFO", "gateway.session", f"{DELETED} {SID}")
    home.log([line.rstrip("\n")], name="gateway.log")

    choice = only_choice(plan_of(home))

    assert {option.id: len(option.steps) for option in choice.options} == {"rebuild": 1, "leave": 0}
    assert any("gateway.log, line 1" in line for option in choice.options for line in option.evidence)
    assert choice.chosen is None
    carry_out(home, option_steps(choice, "rebuild"))
    assert home.findings("ORP001") == []


def complete_export(home: HomeBuilder) -> None:
    messages = [
        {"id": row, "session_id": SID, "role": role, "content": content, "timestamp": at}
        for row, role, content, at in home.sql("SELECT id, role, content, timestamp FROM messages")
    ]
    session = {"id": SID, "source": "cli", "started_at": START, "messages": messages}
    home.file("session-exports/all.jsonl", json.dumps(session) + "\n")


def test_a_complete_export_made_after_the_last_message_makes_it_a_choice(build: Build) -> None:
    home = build("0.19.0")
    orphan(home)
    complete_export(home)

    choice = only_choice(plan_of(home))

    assert any("holds every message" in line for option in choice.options for line in option.evidence)


def test_a_session_that_was_still_in_use_was_not_deleted_on_purpose(build: Build) -> None:
    home = build("0.19.0")
    orphan(home)
    complete_export(home)
    failed = "Session DB append_message failed: FOREIGN KEY constraint failed"
    home.log([render_line("2026-09-21 15:00:00,000", "WARNING", "run_agent", failed, SID).rstrip("\n")])

    assert only_step(plan_of(home)).sessions == (SID,)


def test_an_export_that_lacks_a_message_is_no_sign_of_a_deletion(build: Build) -> None:
    home = build("0.19.0")
    orphan(home)
    complete_export(home)
    home.message(SID, content="one more")

    assert only_step(plan_of(home)).sessions == (SID,)


def test_messages_of_no_session_and_of_an_id_that_is_no_text_are_left(build: Build) -> None:
    home = build("0.19.0")
    orphan(home)
    home.sql("UPDATE messages SET session_id = CAST(x'61ff' AS TEXT)")

    plan = plan_of(home)

    assert not plan.steps
    assert ["not valid text" in left.reason for left in plan.left if left.rule == "ORP001"] == [True]


def test_the_substring_index_of_the_newest_release_follows(build: Build) -> None:
    """Its view shows a message only while its session has a row that is no machine's."""
    home = build("0.22.2")
    orphan(home)

    step = only_step(plan_of(home))

    assert [(each.kind, each.table) for each in step.operations] == [(Kind.INSERT, "sessions")]
    assert step.reindex == ("messages_fts_trigram",)


NUL = '\0json:[{"type": "text", "text": "x"}]'


def test_over_text_with_nuls_an_index_that_fits_is_left_as_it_is(build: Build) -> None:
    """Only Hermes' own SQLite splits such text as Hermes' own SQLite does."""
    home = build("0.22.2")
    home.chat("other", 2)
    home.message("other", content=NUL)
    orphan(home)

    step = next(step for step in plan_of(home).steps if step.sessions == (SID,))

    assert [each.kind for each in step.operations] == [Kind.INSERT]


def test_over_text_with_nuls_an_index_that_would_not_fit_leaves_the_finding(build: Build) -> None:
    """The messages were a machine's and not indexed; nothing tells that any more."""
    home = build("0.22.2")
    home.chat("other", 2)
    home.message("other", content=NUL)
    orphan(home, source="cron")

    plan = plan_of(home)

    assert not any(step.sessions == (SID,) for step in plan.steps)
    assert any("only Hermes can index" in left.reason for left in plan.left if left.rule == "ORP001")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_engine_carries_it_out_and_takes_it_back(build: Build, tmp_path: Path, version: str) -> None:
    home = build(version)
    orphan(home)
    exported(home, source="telegram", title="Weekly plan", system_prompt="You are helpful.", model="gpt-4o")
    messages = home.sql("SELECT * FROM messages ORDER BY id")
    before = digest(home)
    file = tmp_path / "plan.json"
    file.write_text(text_of(plan_of(home)))

    run = apply(file, run_dir=tmp_path / "run", now=NOW)

    assert (run.state, run.remaining, run.new, run.troubles) == (State.APPLIED, (), (), ())
    assert home.sql("SELECT * FROM messages ORDER BY id") == messages
    again = plan_of(home)
    assert (again.steps, again.choices) == ((), ())
    assert undo(tmp_path / "run", now=NOW).state is State.UNDONE
    assert digest(home) == before
    assert plan_of(home).steps != ()


def digest(home: HomeBuilder) -> str:
    with open_for_audit(home.store) as store:
        return store_digest(store)
