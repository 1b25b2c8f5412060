from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.audit.builder import NOW, HomeBuilder
from tests.repair.planning import carry_out

from statemend.errors import RolledBack, VerificationFailed
from statemend.repair import record
from statemend.repair.apply import apply
from statemend.repair.perform import settle
from statemend.repair.plan import Plan, dump
from statemend.repair.planner import draft
from statemend.repair.rehearse import rehearse
from statemend.repair.run import State
from statemend.repair.verify import verify

Build = Callable[..., HomeBuilder]


def deep_plan(home: HomeBuilder) -> Plan:
    return draft(home.root, now=NOW, deep=True).plan


def damaged(home: HomeBuilder, index: str = "messages_fts") -> None:
    """The index loses what it knows of a message."""
    home.sql(f"UPDATE {index}_data SET block = zeroblob(length(block)) WHERE id > 10")


@pytest.mark.parametrize("version", ["0.13.0", "0.19.0", "0.20.1", "0.22.2"])
@pytest.mark.parametrize("index", ["messages_fts", "messages_fts_trigram"])
def test_a_damaged_search_index_is_built_anew(build: Build, version: str, index: str) -> None:
    home = build(version)
    home.chat("a", 6)
    damaged(home, index)

    plan = deep_plan(home)

    assert plan.deep
    assert [(step.operations, step.reindex) for step in plan.steps] == [((), (index,))]
    carry_out(home, plan.steps)
    again = deep_plan(home)
    assert (again.steps, again.left) == ((), ())


@pytest.mark.parametrize("version", ["0.19.0", "0.22.2"])
def test_the_engine_rebuilds_it(build: Build, tmp_path: Path, version: str) -> None:
    home = build(version)
    home.chat("a", 6)
    damaged(home)
    file = tmp_path / "plan.json"
    file.write_bytes(dump(deep_plan(home)))

    assert apply(file, run_dir=tmp_path / "run", now=NOW).state is State.APPLIED

    assert deep_plan(home).steps == ()
    found = home.sql("SELECT COUNT(*) FROM messages_fts WHERE messages_fts MATCH 'turn'")
    assert found == [(6,)]


def test_an_index_that_is_damaged_again_after_the_commit_is_no_success(build: Build, tmp_path: Path) -> None:
    home = build("0.22.2")
    home.chat("a", 6)
    damaged(home)
    file = tmp_path / "plan.json"
    file.write_bytes(dump(deep_plan(home)))

    def harm(step: str) -> None:
        if step == "committed":
            damaged(home)

    with pytest.raises(VerificationFailed, match=r"STO003-[0-9a-f]+ is still there"):
        apply(file, run_dir=tmp_path / "run", now=NOW, steps=harm)
    assert verify(tmp_path / "run", now=NOW).state is State.FAILED


def rebuilt(build: Build, tmp_path: Path, *, harm: bool = True) -> tuple[HomeBuilder, Path, Path]:
    """A home, the plan that builds its index anew, and the folder of the run that did."""
    home, file, run = build("0.22.2"), tmp_path / "plan.json", tmp_path / "run"
    home.chat("a", 6)
    damaged(home)
    made = deep_plan(home)
    if not harm:
        home.sql("INSERT INTO messages_fts(messages_fts) VALUES ('rebuild')")
        made = msgspec.structs.replace(made, deep=False)
    file.write_bytes(dump(made))
    assert apply(file, run_dir=run, now=NOW).state is State.APPLIED
    return home, file, run


def forgotten(run: Path) -> None:
    """Neither the journal nor the run says any more that it was committed."""
    lines = (run / "journal.jsonl").read_bytes().splitlines(keepends=True)
    kept = lines[: next(number for number, line in enumerate(lines) if b'"committed"' in line)]
    (run / "journal.jsonl").write_bytes(b"".join(kept))
    (run / "run.json").unlink()


def test_the_index_itself_tells_that_it_was_built(build: Build, tmp_path: Path) -> None:
    home, file, run = rebuilt(build, tmp_path)
    forgotten(run)
    assert verify(run, now=NOW).state is State.AFTER_COMMIT
    assert apply(file, run_dir=run, now=NOW).state is State.APPLIED
    (run / "run.json").unlink()
    damaged(home)
    assert verify(run, now=NOW).state is State.BEFORE_COMMIT


def test_an_index_that_is_damaged_again_later_is_told_and_built_again(build: Build, tmp_path: Path) -> None:
    home, file, run = rebuilt(build, tmp_path)
    assert verify(run, now=NOW).state is State.APPLIED
    damaged(home)

    told = verify(run, now=NOW)
    assert (told.state, "plan anew" in told.advice) == (State.CHANGED, True)

    assert apply(file, run_dir=tmp_path / "second", now=NOW).state is State.APPLIED
    assert deep_plan(home).steps == ()


def test_what_a_failed_commit_left_is_told_from_the_index(build: Build, tmp_path: Path) -> None:
    home, _, run = rebuilt(build, tmp_path)
    undo, _ = record.load(run / "undo.json", run / "undo.changeset")
    failed = OSError("the disk")
    settle(home.store, undo, failed)
    damaged(home)
    with pytest.raises(RolledBack, match="COMMIT failed and was taken back"):
        settle(home.store, undo, failed)


def test_where_only_the_journal_can_tell_that_is_said(build: Build, tmp_path: Path) -> None:
    _, _, run = rebuilt(build, tmp_path, harm=False)
    told = verify(run, now=NOW)
    assert told.state is State.APPLIED
    assert any("nothing in the store tells" in note for note in told.notes)
    forgotten(run)
    told = verify(run, now=NOW)
    assert told.state is State.BEFORE_COMMIT
    assert any("nothing in the store tells" in note for note in told.notes)


def test_a_plan_that_builds_another_index_than_the_damaged_one_does_not_pass_its_rehearsal(
    build: Build, tmp_path: Path
) -> None:
    home = build("0.22.2")
    home.chat("a", 6)
    damaged(home)
    file = tmp_path / "plan.json"
    file.write_bytes(dump(deep_plan(home)).replace(b'"messages_fts"', b'"messages_fts_trigram"'))

    found = rehearse(file, now=NOW)

    assert not found.passed
    assert any("STO003" in reason and "still there" in reason for reason in found.reasons)


def test_a_sound_search_index_is_left_alone(build: Build) -> None:
    home = build("0.19.0")
    home.chat("a", 6)

    plan = deep_plan(home)

    assert (plan.steps, plan.left) == ((), ())


def test_an_index_over_text_with_nuls_is_left_to_hermes(build: Build) -> None:
    home = build("0.19.0")
    home.chat("a", 6)
    home.message("a", content='\0json:[{"type": "text", "text": "x"}]')
    home.sql("UPDATE sessions SET message_count = 7")
    damaged(home)

    plan = deep_plan(home)

    assert not plan.steps
    assert any("have Hermes rebuild it" in left.reason for left in plan.left)


def test_an_index_that_is_no_search_index_is_left_with_what_to_do(build: Build) -> None:
    home = build("0.19.0")
    home.chat("a", 40)
    (page,) = home.sql("SELECT rootpage FROM sqlite_schema WHERE name = 'idx_sessions_started'")[0]
    (size,) = home.sql("PRAGMA page_size")[0]
    with home.store.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * 64)

    plan = deep_plan(home)

    assert not plan.steps
    assert any(
        "idx_sessions_started" in left.reason or "tables of the store are damaged" in left.reason
        for left in plan.left
    )
