"""What exports and other stores tell of the row of a session, and which of them is believed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.audit.builder import START, HomeBuilder
from tests.repair.planning import option_steps, plan_of, values

from statemend.formats import markdown
from statemend.formats.artifact import Kind
from statemend.repair.plan import Step
from statemend.store.connection import open_for_audit
from statemend.store.history import View, messages, session_record

SID = "20260801_090000_aaaaaa"


@pytest.fixture
def home(tmp_path: Path) -> HomeBuilder:
    """A session that a snapshot has, and that was renamed and ended since."""
    home = HomeBuilder(tmp_path / "home", "0.20.1")
    home.session(SID, title="First", model="gpt-4o", user_id="u1", message_count=2)
    home.message(SID, content="what is next?")
    home.message(SID, "assistant", "Nothing.")
    snapshot = home.file("state-snapshots/1/state.db", home.store.read_bytes())
    os.utime(snapshot, (START + 100, START + 100))
    home.sql(
        "UPDATE sessions SET title = 'Second', ended_at = ?, end_reason = 'cli_close'",
        bindings=(START + 200,),
    )
    return home


def exported(home: HomeBuilder) -> Path:
    with open_for_audit(home.store) as store:
        row, shown = session_record(store, SID), list(messages(store, SID, View.ACTIVE))
    text = markdown.render(row, [(SID, shown)], kind=Kind.MARKDOWN, exported_at=START + 300, lineage=())
    return home.file("session-exports/newer.md", text)


def row_of(step: Step) -> tuple[dict[str, object], dict[str, str | None]]:
    """The session row that a step makes, and the file that each column of it is from."""
    (made,) = [operation for operation in step.operations if operation.table == "sessions"]
    return values(made), {each.column.removeprefix("sessions."): each.artifact for each in step.sources}


def test_another_store_tells_the_row_and_a_newer_export_what_changed_since(home: HomeBuilder) -> None:
    path = exported(home)
    home.sql("DELETE FROM messages")
    home.sql("DELETE FROM sessions")

    (choice,) = plan_of(home, restore=[SID]).choices
    (step,) = option_steps(choice, "restore")

    row, files = row_of(step)
    told = ("title", "ended_at", "model", "user_id", "started_at", "source")
    assert [row[name] for name in told] == ["Second", START + 200, "gpt-4o", "u1", START, "cli"]
    snapshot = str(home.root / "state-snapshots/1/state.db")
    newer = {"title", "ended_at", "model"}
    assert [files[name] for name in told] == [str(path) if name in newer else snapshot for name in told]


def test_a_row_that_is_gone_from_its_messages_is_looked_for_in_other_stores(home: HomeBuilder) -> None:
    home.sql("DELETE FROM sessions")

    (step,) = plan_of(home).steps

    row, files = row_of(step)
    assert (row["title"], row["model"], row["user_id"]) == ("First", "gpt-4o", "u1")
    assert files["title"] == str(home.root / "state-snapshots/1/state.db")
    (source,) = [each for each in step.sources if each.column == "sessions.title"]
    assert (source.origin, source.locator) == ("the session as another store has it", f"sessions {SID}")


def test_a_store_that_can_no_longer_be_read_tells_nothing(home: HomeBuilder) -> None:
    home.sql("DELETE FROM sessions")
    path = home.root / "state-snapshots/1/state.db"
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])

    (step,) = plan_of(home).steps

    row, _ = row_of(step)
    assert (row["source"], row.get("title")) == ("recovered", None)
