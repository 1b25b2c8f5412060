"""The fence holds no longer than it must, and nothing that comes before it is trusted past a write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.repair import plans

from statemend.errors import Refused, RolledBack
from statemend.repair import apply, bounds, digests, perform, rehearse, undo
from statemend.repair.run import RunFolder, State
from statemend.store.writing import open_for_repair

BOTH = ("messages_fts", "messages_fts_trigram")


def folder_of(tmp_path: Path, file: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run", bounds.read(file))


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_writer_between_the_last_look_and_the_fence_is_refused(
    stores: Mapping[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    store, file = plans.mixed(tmp_path, stores["0.22.2"])
    plans.query(store, f"PRAGMA journal_mode = {mode}")
    look, theirs = perform.look_ahead, []

    def look_and_lose(*arguments: Any) -> Any:
        before = look(*arguments)
        plans.change(store, "UPDATE messages SET content = 'theirs' WHERE role = 'user'")
        theirs.append(plans.digest(store))
        return before

    monkeypatch.setattr(perform, "look_ahead", look_and_lose)
    folder = folder_of(tmp_path, file)
    with pytest.raises(Refused, match="another process wrote to it since the snapshot"):
        perform.perform(bounds.read(file), store, folder, folder.log(), now=plans.NOW)
    assert [plans.digest(store)] == theirs
    assert not folder.changeset.exists()


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_writer_before_the_fence_of_an_undo_is_refused(
    stores: Mapping[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    store, file = plans.mixed(tmp_path, stores["0.22.2"])
    plans.query(store, f"PRAGMA journal_mode = {mode}")
    apply.apply(file, run_dir=tmp_path / "run", now=plans.NOW)
    look, theirs = undo.look_ahead, []

    def look_and_lose(*arguments: Any) -> Any:
        before = look(*arguments)
        plans.change(store, "INSERT INTO state_meta(key, value) VALUES ('late', '1')")
        theirs.append(plans.digest(store))
        return before

    monkeypatch.setattr(undo, "look_ahead", look_and_lose)
    with pytest.raises(Refused, match="another process wrote to it since the snapshot"):
        undo.undo(tmp_path / "run", now=plans.NOW)
    assert [plans.digest(store)] == theirs


@pytest.mark.parametrize(
    ("release", "table", "expected"),
    [
        ("0.13.0", "messages", BOTH),
        ("0.13.0", "sessions", ()),
        ("0.22.2", "messages", BOTH),
        ("0.22.2", "sessions", BOTH[1:]),
        ("0.22.2", "state_meta", ()),
    ],
)
def test_which_indexes_hang_on_a_table(
    stores: Mapping[str, Path], tmp_path: Path, release: str, table: str, expected: tuple[str, ...]
) -> None:
    with open_for_repair(plans.home_with(tmp_path, stores[release])) as connection:
        assert digests.indexes_of(connection.store, {table}) == expected


def test_an_index_on_a_view_of_a_view_hangs_on_its_table(stores: Mapping[str, Path], tmp_path: Path) -> None:
    store = plans.home_with(tmp_path, stores["0.22.2"])
    plans.change(
        store,
        "CREATE VIEW inner_view AS SELECT * FROM State_Meta",
        "CREATE VIEW outer_view AS SELECT rowid AS id, value AS content FROM inner_view",
        "DROP TABLE messages_fts",
        "CREATE VIRTUAL TABLE messages_fts USING fts5(content, content = 'outer_view', content_rowid=id)",
    )
    with open_for_repair(store) as connection:
        assert digests.indexes_of(connection.store, {"state_meta"}) == ("messages_fts",)


def test_rows_are_read_once_inside_the_fence(
    stores: Mapping[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, file = plans.mixed(tmp_path, stores["0.22.2"])
    read, content = [], digests.content

    def counted(store: Any) -> Any:
        read.append(store.path)
        return content(store)

    monkeypatch.setattr(digests, "content", counted)
    folder = folder_of(tmp_path, file)
    done = perform.perform(bounds.read(file), store, folder, folder.log(), now=plans.NOW)
    assert len(read) == 1
    assert done.undo.digest_before == done.snapshot.digest == plans.digest(folder.snapshot)
    assert done.undo.digest_after == plans.digest(store)


def test_an_index_that_a_change_makes_wrong_is_no_repair(stores: Mapping[str, Path], tmp_path: Path) -> None:
    """A session that comes back brings its messages into the view of the index, which lacks them."""
    store, file = plans.orphaned(tmp_path, stores["0.22.2"])
    plans.change(store, "INSERT INTO messages_fts_trigram(messages_fts_trigram) VALUES ('rebuild')")
    old, folder = plans.digest(store), folder_of(tmp_path, file)
    with pytest.raises(RolledBack, match="messages_fts_trigram no longer fits"):
        perform.perform(bounds.read(file), store, folder, folder.log(), now=plans.NOW, rehearsed="other")
    assert plans.digest(store) == old


@pytest.mark.parametrize("same", [True, False])
def test_an_index_built_anew_is_checked_unless_the_rehearsal_made_the_same_rows(
    stores: Mapping[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same: bool
) -> None:
    store, file = plans.orphaned(tmp_path, stores["0.22.2"])
    made = bounds.read(file)
    (step,) = made.steps
    made = msgspec.structs.replace(made, steps=(msgspec.structs.replace(step, reindex=BOTH[1:]),))
    expected = rehearse.rehearse(plans.write(made, file), now=plans.NOW).after
    assert expected is not None
    checked: list[str] = []
    health = digests.search_health

    def noted(connection: Any, indexes: Any = None) -> Any:
        checked.extend(indexes)
        return health(connection, indexes)

    monkeypatch.setattr(digests, "search_health", noted)
    folder = folder_of(tmp_path, file)
    rehearsed = expected if same else "0" * 64
    done = perform.perform(made, store, folder, folder.log(), now=plans.NOW, rehearsed=rehearsed)
    assert done.undo.digest_after == expected
    assert checked == ([] if same else ["messages_fts_trigram"])


def test_a_run_says_how_long_it_kept_others_waiting(
    stores: Mapping[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, file = plans.mixed(tmp_path, stores["0.22.2"])
    for module in (apply, rehearse):
        monkeypatch.setattr(module, "LONG_LOCK", 0.0)
    told: list[str] = []
    before = rehearse.rehearse(file, now=plans.NOW)
    assert any("will lock the store for writing for about" in note for note in before.notes)
    run = apply.apply(file, run_dir=tmp_path / "run", now=plans.NOW, progress=told.append)
    assert any("which locks it for about" in line for line in told)
    assert run.state is State.APPLIED
    assert run.locked_seconds is not None
    assert 0 < run.locked_seconds < 60
    assert run == RunFolder(tmp_path / "run").load()
    assert any("was locked for writing for" in note for note in run.notes)
