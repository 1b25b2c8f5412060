from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.audit.builder import HomeBuilder
from tests.audit.rules.test_sto005_store_younger_than_evidence import export
from tests.cli.conftest import Outcome, snapshot
from tests.evidence.test_own_tables import CHAT, delegate, owe
from tests.store.test_index_texts import forgotten

Run = Callable[..., Outcome]


def fork_of(statemend: Run, demo: Path) -> str:
    document = json.loads(statemend("scan", demo, "--format", "json").out)
    session = next(
        finding["subject"]["session"] for finding in document["findings"] if finding["rule"] == "LIN003"
    )
    assert isinstance(session, str)
    return session


def test_a_session_is_found_by_the_beginning_of_its_id(statemend: Run, demo: Path) -> None:
    session = fork_of(statemend, demo)
    whole = statemend("show", demo, session)
    assert whole.code == 0, whole.err
    assert whole.out.startswith(session + "\n")
    assert statemend("show", demo, session[:-2]).out == whole.out
    assert statemend("show", demo / "state.db", session).out == whole.out


def test_a_beginning_of_several_lists_them(statemend: Run, demo: Path) -> None:
    told = statemend("show", demo, "2026")
    assert told.code == 2
    assert told.err.startswith("statemend: '2026' begins ")
    assert "more; give more of the id" in told.err
    assert told.err.count("2026") > 5


def test_an_unknown_session_is_a_wrong_request(statemend: Run, demo: Path) -> None:
    told = statemend("show", demo, "nobody")
    assert told.code == 2
    assert "no session 'nobody', neither in the store nor in a file beside it; " in told.err
    assert told.err.endswith("`hermes sessions list` names those in use\n")


def test_lineage_says_what_export_and_resume_pick(statemend: Run, demo: Path) -> None:
    session = fork_of(statemend, demo)
    document = json.loads(statemend("show", demo, session, "--format", "json").out)
    lineage = document["lineage"]
    assert document["schema"] == "statemend/session/v1"
    assert lineage["parent"] is None
    assert {edge["relation"] for edge in lineage["children"]} == {"continuation"}
    assert len(lineage["children"]) == 2
    assert lineage["resume"] != lineage["export"][-1]


def test_files_that_hold_a_session_are_listed(statemend: Run, demo: Path) -> None:
    document = json.loads(statemend("scan", demo, "--format", "json").out)
    compacted = next(
        entry
        for entry in document["sessions"]
        if entry["present"] and entry["archived"] and entry["artifacts"]
    )
    shown = json.loads(statemend("show", demo, compacted["id"], "--format", "json").out)
    assert shown["artifacts"] == compacted["artifacts"]
    assert shown["views"]["archived"] == compacted["archived"]
    assert shown["views"]["display"] == compacted["display"]
    assert len(shown["unheld"]) == compacted["display"] - compacted["held"]
    assert compacted["artifacts"][0]["artifact"] in statemend("show", demo, compacted["id"]).out.replace(
        "\n", ""
    )


def test_a_session_without_a_row_is_shown_from_its_messages(statemend: Run, demo: Path) -> None:
    document = json.loads(statemend("scan", demo, "--format", "json").out)
    orphan = next(
        finding["subject"]["session"] for finding in document["findings"] if finding["rule"] == "ORP001"
    )
    told = statemend("show", demo, orphan)
    assert told.code == 0, told.err
    assert "none: the store has no row for this session" in told.out


def test_nothing_is_written(statemend: Run, demo: Path) -> None:
    before = snapshot(demo)
    statemend("show", demo, fork_of(statemend, demo))
    assert snapshot(demo) == before


def test_what_could_be_restored_of_a_session_that_is_gone(statemend: Run, demo: Path) -> None:
    document = json.loads(statemend("scan", demo, "--format", "json").out)
    gone = next(finding["subject"] for finding in document["findings"] if finding["rule"] == "EXP002")
    found = json.loads(statemend("show", demo, gone["session"], "--format", "json").out)["salvage"]
    assert found["messages"] == found["exact"] + found["lossy"] + found["masked"] > 0
    assert gone["artifact"] in {source["artifact"] for source in found["sources"]}
    assert [gap["lack"] for gap in found["gaps"]] == ["compacted"]
    told = statemend("show", demo, gone["session"]).out
    assert "What could be restored" in told
    assert "an unknown number, that a summary stands for" in told


def test_nothing_is_said_of_restoring_a_session_that_is_there(statemend: Run, demo: Path) -> None:
    session = fork_of(statemend, demo)
    assert json.loads(statemend("show", demo, session, "--format", "json").out).get("salvage") is None
    assert "What could be restored" not in statemend("show", demo, session).out


@pytest.fixture
def traced(tmp_path: Path) -> HomeBuilder:
    """A store that an old search index, routes, tasks and replies tell more of than its messages."""
    home = HomeBuilder(tmp_path / "home", "0.19.0")
    home.chat("talk", 2, session_key=CHAT)
    home.chat("goes", 2)
    export(home, "goes")
    forgotten(home, "goes")
    route = {"session_id": "talk"}
    home.insert("gateway_routing", scope="", session_key=CHAT, entry_json=route, updated_at=1.0)
    owe(home, "never stored")
    delegate(home, "nowhere else", {"goal": "a hidden task"})
    return home


def test_what_the_store_tells_beside_its_messages(statemend: Run, traced: HomeBuilder) -> None:
    shown = statemend("show", traced.root, "talk")
    assert shown.code == 0, shown.err
    assert "What the store tells of it beside its messages" in shown.out
    assert f"the chat {CHAT} goes to it, since 1970-01-01T00:00:01Z" in " ".join(shown.out.split())
    assert "they may be of another session of that chat" in " ".join(shown.out.split())
    document = json.loads(statemend("show", traced.root, "talk", "--format", "json").out)
    assert [(each["kind"], each["texts"], each["certain"]) for each in document["traces"]] == [
        ("routing-table", 0, True),
        ("owed-replies", 1, False),
    ]
    assert "2 texts of messages that are gone" in " ".join(statemend("show", traced.root, "goes").out.split())
    assert statemend("show", traced.root, "nowhere").out.startswith("nowhere else\n")


@pytest.mark.parametrize(
    ("session", "said"), [("talk", "never stored"), ("goes", "turn 1 of goes"), ("nowhere", "a hidden task")]
)
def test_texts_of_tables_are_shown_only_where_they_are_asked_for(
    statemend: Run, traced: HomeBuilder, session: str, said: str
) -> None:
    for options in ((), ("--format", "json")):
        assert said not in statemend("show", traced.root, session, *options).out
        assert said in statemend("show", traced.root, session, "--with-content", *options).out


def test_what_files_show_beyond_the_store(statemend: Run, tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path / "home", "0.19.0")
    home.chat("talk", 4)
    export(home, "talk")
    assert "The files also show" not in statemend("show", home.root, "talk").out
    first, *_, last = [row for (row,) in home.sql("SELECT id FROM messages ORDER BY id")]
    home.sql(f"DELETE FROM messages WHERE id = {first}", f"UPDATE messages SET active = 0 WHERE id = {last}")
    said = " ".join(statemend("show", home.root, "talk").out.split())
    assert "The files also show 1 message undone since, 1 message deleted or written anew" in said
    document = json.loads(statemend("show", home.root, "talk", "--format", "json").out)
    assert document["beyond"] == {"undone": 1, "deleted": 1, "unstored": 0, "untold": 0}
