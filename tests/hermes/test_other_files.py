"""Everything else that releases write of a session, beside their exports: each is known for what it is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.hermes.home import START, Conversation, HermesHome, assistant, user

from statemend.audit.engine import audit
from statemend.evidence.coverage import ArtifactCoverage, assess_session
from statemend.evidence.inventory import find_home, take
from statemend.formats import read, routing_file
from statemend.formats.artifact import Kind
from statemend.store.connection import open_for_audit

Make = Callable[..., HermesHome]

TALK = "20260801_090000_aaaaaa"
SECRET = (
    "my key is sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789abcdefghijklmnopqrstuvwxyz-AA, keep it safe"
)


def talked(home: HermesHome) -> Conversation:
    chat = home.chat(TALK)
    chat.say(user("  What is in the folder?\n"), assistant("Let me see. \n\n"))
    chat.tool_turn("List it.", "ls -la", '{"output": "total 4", "exit_code": 0}', "One file.")
    chat.say(user(SECRET), assistant("Noted."))
    return chat


def history(home: HermesHome, chat: Conversation) -> list[dict[str, Any]]:
    return home.process.call("history", chat=chat._number)


def agent(home: HermesHome, chat: Conversation, name: str, *args: Any, **options: Any) -> Any:
    return home.process.call("agent", chat=chat._number, name=name, args=list(args), options=options)


def function(home: HermesHome, module: str, name: str, *args: Any) -> Any:
    return home.process.call("function", module=module, name=name, args=list(args))


def coverage(home: HermesHome, session_id: str, kind: Kind) -> ArtifactCoverage:
    inventory = take(find_home(home.path))
    with open_for_audit(home.state_db) as store:
        (found,) = [e for e in assess_session(store, inventory, session_id).artifacts if e.kind is kind]
    return found


def quiet_about_exports(home: HermesHome) -> None:
    outcome = audit(home.path, now=home.now)
    assert [(each.rule, each.summary) for each in outcome.findings if each.rule.startswith("EXP")] == []


@pytest.mark.parametrize("version", ["0.13.0", "0.18.2", "0.22.2"])
def test_a_dump_of_a_request_holds_what_was_sent(hermes_home: Make, version: str) -> None:
    home = hermes_home(version)
    chat = talked(home)
    sent = [{"role": "system", "content": "You are Hermes."}, *history(home, chat)]
    agent(home, chat, "dump_api_request_debug", {"model": "gpt-4o", "messages": sent}, reason="max_retries")
    home.stop()

    found = coverage(home, TALK, Kind.REQUEST_DUMP)

    masks = home.release.at_least("0.18")
    assert (found.lossy, found.masked, found.missing, found.extra) == (
        (7, 1, (), 0) if masks else (8, 0, (), 0)
    )
    quiet_about_exports(home)


@pytest.mark.parametrize("version", ["0.13.0", "0.20.1"])
def test_a_snapshot_of_a_session_holds_it_until_the_next_turn(hermes_home: Make, version: str) -> None:
    home = hermes_home(version)
    chat = talked(home)
    agent(home, chat, "save_session_log", history(home, chat))
    snapshot = home.path / "sessions" / f"session_{TALK}.json"
    before = snapshot.read_bytes()
    chat.say(user("And then?"), assistant("Nothing."))
    home.stop()
    snapshot.write_bytes(before)

    found = coverage(home, TALK, Kind.SNAPSHOT_JSON)

    assert found.lossy + found.masked == found.declared == 8
    assert [each.cause.value for each in found.missing] == ["not-in-context"] * 2
    quiet_about_exports(home)


SAVED = [
    ("0.13.0", Kind.SAVE_JSON, [], False),
    ("0.19.0", Kind.SAVE_JSON, [], True),
    ("0.20.1", Kind.SAVE_MARKDOWN, ["/save md"], True),
    ("0.22.2", Kind.SAVE_MARKDOWN, ["/save md"], False),
]


@pytest.mark.parametrize(("version", "kind", "words", "loses"), SAVED)
def test_a_save_behind_a_compaction_holds_what_that_release_put_into_it(
    hermes_home: Make, version: str, kind: Kind, words: list[str], loses: bool
) -> None:
    home = hermes_home(version)
    chat = home.chat(TALK)
    chat.turns(9, "essay")
    if home.release.at_least("0.18"):
        chat.compact()
    chat.say(user("  And now? \n"), assistant("We go on. \n\n"))
    chat._command("save_conversation", *words)
    home.stop()

    found = coverage(home, TALK, kind)

    archived = [each.message_id for each in found.missing]
    assert {each.cause.value for each in found.missing} == ({"archived-not-exported"} if loses else set())
    assert (found.extra, found.changed, found.cut) == (0, (), False)
    outcome = audit(home.path, now=home.now, rules=["EXP"])
    told = {each.rule: list(each.subject.message_ids) for each in outcome.findings}
    assert told == ({"EXP001": archived} if loses else {})


@pytest.mark.parametrize("version", ["0.13.0", "0.22.2"])
def test_a_trajectory_is_found_to_be_of_its_session(hermes_home: Make, version: str, tmp_path: Path) -> None:
    home = hermes_home(version)
    chat = talked(home)
    home.chat("20260801_100000_bbbbbb").say(user("List it."), assistant("One file."))
    turns = agent(
        home, chat, "convert_to_trajectory_format", history(home, chat), "What is in the folder?", True
    )
    folder = home.path / "session-exports"
    folder.mkdir()
    function(home, "agent.trajectory", "save_trajectory", turns, "gpt-4o", True, str(folder / "t.jsonl"))
    home.stop()

    found = coverage(home, TALK, Kind.TRAJECTORY)

    assert (found.lossy, found.missing, found.extra) == (8, (), 0)


def test_the_transcript_of_a_gateway_is_its_session(hermes_home: Make) -> None:
    home = hermes_home("0.13.0")
    session_id = home.gateway_session("77")
    said = [user("hi from telegram"), assistant("hi!")]
    home.resume(session_id, "telegram").say(*said)
    meta = {"role": "session_meta", "tools": [], "model": "gpt-4o", "platform": "telegram"}
    at = datetime.fromtimestamp(START).isoformat()
    lines = [{**line, "timestamp": at} for line in (meta, *said)]
    home.process.call("transcript", session_id=session_id, messages=lines)
    home.stop()

    found = coverage(home, session_id, Kind.TRANSCRIPT_JSONL)

    assert (found.lossy, found.missing, found.extra, found.records) == (2, (), 0, 2)
    routes = read(home.path / "sessions" / "sessions.json")
    assert (routes.kind, routes.sections, routes.damage) == (Kind.ROUTING, (), None)
    assert [each.session_id for each in routing_file.entries(Path(routes.path))] == [session_id]
    quiet_about_exports(home)


@pytest.mark.parametrize("version", ["0.20.1", "0.22.2"])
def test_what_could_not_be_stored_is_told_apart_from_what_was(hermes_home: Make, version: str) -> None:
    home = hermes_home(version)
    chat = talked(home)
    unstored = [user("One that never arrived."), assistant("Nor its answer.")]
    module = "gateway.shutdown_flush"
    function(home, module, "flush_agent_history_to_file", TALK, [*history(home, chat), *unstored])
    function(home, module, "spool_dropped_transcript_message", TALK, user("dropped"))
    function(home, module, "flush_pending_to_file", {"agent:main:telegram:dm:77": "are you there?"})
    home.stop()
    for path in (home.path / "pending_messages").iterdir():
        path.rename(path.with_name(path.name + ".bad"))
    inventory = take(find_home(home.path))
    sections = [section for _, section in inventory.sections()]
    assert {each.kind for each in inventory.artifacts} == {Kind.PENDING}
    assert sorted((each.session_id, each.held) for each in sections) == [("", 1), (TALK, 1), (TALK, 10)]

    with open_for_audit(home.state_db) as store:
        covered = assess_session(store, inventory, TALK).artifacts

    assert sorted((each.lossy, each.extra) for each in covered) == [(0, 1), (8, 2)]
    quiet_about_exports(home)


def test_what_was_put_aside_of_a_replaced_store_is_read(hermes_home: Make) -> None:
    home = hermes_home("0.22.2")
    chat = talked(home)
    said = [{**each, "timestamp": START} for each in (user("put aside"), assistant("and its answer"))]
    row = {"tool_name": None, "tool_calls": None, "_compressed_summary": False, "observed": False}
    rows = [{**each, **row} for each in said]
    function(home, "hermes_state", "divert_session_transcript_jsonl", chat.session_id, rows)
    home.stop()

    found = coverage(home, TALK, Kind.RESCUE_JSONL)

    assert (found.records, found.extra, found.lossy) == (2, 2, 0)
    quiet_about_exports(home)
