"""What the steps of a plan do together, and in which order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import apsw
import pytest
from tests.repair import plans

from statemend.repair.apply import apply
from statemend.repair.plan import Kind, Operation, work_of
from statemend.repair.run import State
from statemend.repair.undo import undo

MESSAGE = Operation(kind=Kind.UPDATE, table="messages", key={"id": 1}, after={"active": 1})


def session(session_id: str) -> Operation:
    return plans.insert("sessions", "id", {"id": session_id})


def test_each_index_is_built_once_behind_the_rows_and_before_the_messages() -> None:
    work = work_of(
        [
            plans.step(MESSAGE, reindex=["messages_fts_trigram"]),
            plans.step(session("a"), reindex=["messages_fts_trigram"]),
            plans.step(reindex=["messages_fts"]),
            plans.step(session("b"), session("a"), reindex=["messages_fts_trigram", "messages_fts"]),
        ]
    )
    assert work.rows == (session("a"), session("b"), session("a"))
    assert work.indexes == ("messages_fts_trigram", "messages_fts")
    assert work.messages == (MESSAGE,)
    assert work.operations == (*work.rows, MESSAGE)


def test_without_steps_there_is_no_work() -> None:
    work = work_of([])
    assert (work.operations, work.indexes) == ((), ())


def test_a_message_comes_into_a_damaged_index_by_the_plan_that_mends_it(
    stores: Mapping[str, Path], tmp_path: Path
) -> None:
    """Its trigger cannot write to the index before that is built anew."""
    store = plans.home_with(tmp_path, stores["0.22.2"])
    ((session_id, message),) = plans.query(store, "SELECT session_id, MAX(id) FROM messages")
    plans.change(store, "DELETE FROM messages_fts_data WHERE id = 10")
    values = {"session_id": session_id, "role": "user", "content": "quokka", "timestamp": 1.5, "active": 0}
    with pytest.raises(apsw.CorruptError):
        plans.change(store, f"INSERT INTO messages ({', '.join(values)}) VALUES {tuple(values.values())}")
    come = plans.insert("messages", "id", {"id": message + 1, **values})
    say = plans.step(come, sessions=[session_id])
    mend = plans.step(reindex=["messages_fts"], finding="TST002-0")
    file = plans.write(plans.plan(store, say, mend), tmp_path / "plan.json")
    old = plans.digest(store)

    run = apply(file, now=plans.NOW)

    assert run.state is State.APPLIED
    found = "SELECT rowid FROM messages_fts WHERE messages_fts MATCH 'quokka'"
    assert plans.query(store, found) == [(message + 1,)]
    assert undo(Path(run.folder), now=plans.NOW).state is State.UNDONE
    assert plans.digest(store) == old
