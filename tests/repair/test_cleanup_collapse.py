"""A collapse takes rows that only repeat others, and nothing that anybody sees."""

from __future__ import annotations

import itertools
import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import msgspec
import pytest
from tests.audit.builder import START, VERSIONS, HomeBuilder
from tests.repair import plans
from tests.repair.cleanups import NOW, at
from tests.repair.copies import compacted
from tests.repair.faults import faults

from statemend.audit.engine import audit
from statemend.errors import Refused, RolledBack, StatemendError, Undetermined, UsageError
from statemend.repair import cleanup_check, cleanup_plan
from statemend.repair.cleanup import apply
from statemend.repair.cleanup_perform import CleanupFolder, perform
from statemend.repair.cleanup_plan import CleanupPlan, Collapse
from statemend.repair.collapse_planner import make_collapse_plan
from statemend.repair.reexport import Format, reexport
from statemend.repair.run import RunFolder, State
from statemend.repair.undo import undo
from statemend.repair.verify import verify
from statemend.store.connection import open_for_audit
from statemend.store.history import View, display, messages

WITH_ARCHIVE = VERSIONS[VERSIONS.index("0.18.2") :]
MESSAGES, TIMES = 3, 4
STEPS = ("fence entered", "changed and proven", "undo record written", "committed", "receipt written")


class Scene(msgspec.Struct, frozen=True):
    """A home with a conversation that was archived again and again, and another beside it."""

    home: HomeBuilder

    @property
    def store(self) -> Path:
        return self.home.store

    @property
    def generations(self) -> list[list[int]]:
        """The rows of ``chat``, oldest first, one list for each time that they were written."""
        rows = [
            row for (row,) in self.home.sql("SELECT id FROM messages WHERE session_id = 'chat' ORDER BY id")
        ]
        return [rows[start : start + MESSAGES] for start in range(0, len(rows), MESSAGES)]

    def rows(self) -> dict[int, tuple[object, ...]]:
        """Every row of every session, whole, by id."""
        return {row[0]: row for row in plans.query(self.store, "SELECT * FROM messages")}

    def views(self, session_id: str = "chat") -> list[object]:
        """What the session shows: to a person, with the place of each message, and to the model."""
        with open_for_audit(self.store) as store:
            shown = [each.shown for each in display(store, session_id)]
            return [shown, list(messages(store, session_id, View.ACTIVE))]

    def plan(self, *sessions: str, **options: object) -> CleanupPlan:
        named = {"sessions": sessions or ("chat",), "now": NOW, **options}
        return make_collapse_plan(self.home.root, **named)  # type: ignore[arg-type]

    def collapse(self) -> Collapse:
        ((collapse),) = self.plan().collapses
        return collapse

    def file(self, plan: CleanupPlan | None = None) -> Path:
        path = self.home.root.with_name("collapse.json")
        path.write_bytes(cleanup_plan.dump(plan or self.plan()))
        return path

    def reason(self) -> str:
        """Why the session is kept as it is when a plan is made."""
        made = self.plan()
        assert made.collapses == ()
        return made.kept[0].reason


def multiplied(folder: Path, release: str) -> Scene:
    home = HomeBuilder(folder / "home", release)
    home.chat("before")
    compacted(home, "chat", messages=MESSAGES, times=TIMES)
    home.chat("after")
    return Scene(home)


@pytest.fixture
def newest(tmp_path: Path) -> Scene:
    return multiplied(tmp_path, "0.22.2")


def words(store: Path) -> list[tuple[int, ...]]:
    """What a search finds, after SQLite compared the indexes with the rows."""
    for index in ("messages_fts", "messages_fts_trigram"):
        plans.query(store, f"INSERT INTO {index}({index}, rank) VALUES ('integrity-check', 1)")
    return plans.query(store, "SELECT rowid FROM messages_fts WHERE messages_fts MATCH 'words' ORDER BY 1")


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("release", WITH_ARCHIVE)
def test_the_copies_go_and_nobody_sees_it(tmp_path: Path, release: str, mode: str) -> None:
    scene = multiplied(tmp_path, release)
    plans.query(scene.store, f"PRAGMA journal_mode = {mode}")
    first, *middle, live = scene.generations
    before, views, old = scene.rows(), scene.views(), plans.digest(scene.store)
    sequence = plans.query(scene.store, "SELECT * FROM sqlite_sequence ORDER BY name")
    found = words(scene.store)

    done = apply(scene.file(), run_dir=tmp_path / "run", now=NOW)

    assert done.run is not None
    assert done.receipt is not None
    assert (done.run.state, done.exit_code, done.run.new) == (State.APPLIED, 0, ())
    gone = set(itertools.chain(*middle))
    assert scene.rows() == {row: values for row, values in before.items() if row not in gone}
    assert scene.views() == views
    assert words(scene.store) == [each for each in found if each[0] not in gone]
    assert {row for (row,) in words(scene.store)} >= {*first, *live}
    assert plans.query(scene.store, "SELECT * FROM sqlite_sequence ORDER BY name") == sequence
    ((told),) = done.receipt.collapsed
    assert (told.session, told.copies, told.messages) == ("chat", len(gone), MESSAGES)
    assert (done.receipt.deleted, done.receipt.rows) == ((), {"messages": len(gone)})
    assert scene.plan().kept[0].reason == "no archived row of it only repeats another"
    assert verify(tmp_path / "run", now=NOW).state is State.APPLIED

    assert undo(tmp_path / "run", now=NOW).state is State.UNDONE
    assert (plans.digest(scene.store), scene.rows(), words(scene.store)) == (old, before, found)


def test_the_finding_is_gone_and_the_command_that_it_names_does_it(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path / "home", "0.20.1")
    compacted(home, "chat", messages=8, times=16)
    ((finding),) = home.findings("MSG003", now=NOW)
    command = shlex.split(finding.remedy.command or "")
    place = command.index("-o") + 1
    command[place] = str(tmp_path / "cleanup.json")
    run = [sys.executable, "-m", "statemend"]
    subprocess.run([*run, *command[1:]], check=True, capture_output=True)
    done = apply(tmp_path / "cleanup.json", now=NOW)
    assert done.exit_code == 0
    assert home.findings("MSG003", now=NOW) == []
    assert make_collapse_plan(home.root, now=NOW).collapses == ()


def test_without_a_name_those_are_chosen_in_which_copies_multiplied(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path / "home", "0.20.1")
    compacted(home, "few", messages=3, times=4)
    compacted(home, "many", messages=8, times=16)
    made = make_collapse_plan(home.root, now=NOW)
    assert [(each.session, len(each.copies)) for each in made.collapses] == [("many", 8 * 15)]
    assert made.kept == ()


# What is no copy


@pytest.mark.parametrize(
    "column", ["content", "tool_calls", "reasoning", "timestamp", "api_content", "observed"]
)
@pytest.mark.parametrize("release", ["0.19.0", "0.22.2"])
def test_a_row_that_differs_stays(tmp_path: Path, release: str, column: str) -> None:
    """Also where it is one of many, and the only one that has what it has."""
    scene = multiplied(tmp_path, release)
    value = {"timestamp": "timestamp + 0.5", "observed": "1"}.get(column, "'only here'")
    odd = scene.generations[2][1]
    with closing(apsw.Connection(str(scene.store))) as plain:
        plain.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        plain.execute(f"UPDATE messages SET {column} = {value} WHERE id = {odd}")
        for index in ("messages_fts", "messages_fts_trigram"):
            plain.execute(f"INSERT INTO {index}({index}) VALUES ('rebuild')")
    views = scene.views()
    copies = scene.collapse().copies
    assert odd not in copies
    assert len(copies) == MESSAGES * (TIMES - 1) - 1
    assert apply(scene.file(), run_dir=tmp_path / "run", now=NOW).exit_code == 0
    assert (scene.views(), odd in scene.rows()) == (views, True)


def test_two_rows_of_another_kind_among_the_copies_both_stay(newest: Scene) -> None:
    """The first of them places the message, the last of them is shown: none is in between."""
    second, third = newest.generations[1][0], newest.generations[2][0]
    newest.home.sql(f"UPDATE messages SET reasoning = 'a thought' WHERE id IN ({second}, {third})")
    assert {second, third}.isdisjoint(newest.collapse().copies)


@pytest.mark.parametrize(
    "state", ["active = 1", "compacted = 0", "active = NULL", "active = 1, compacted = 0", "active = 2"]
)
def test_only_archived_rows_go(newest: Scene, state: str) -> None:
    odd = newest.generations[2][1]
    newest.home.sql(
        "DROP TRIGGER messages_display_visibility_update",
        *(["PRAGMA ignore_check_constraints = ON"] if "NULL" in state else []),
    )
    if "NULL" in state:
        newest.home.sql(
            "PRAGMA writable_schema = ON",
            "UPDATE sqlite_schema SET sql = replace(sql, 'active INTEGER NOT NULL', 'active INTEGER') "
            "WHERE name = 'messages'",
        )
    newest.home.sql(f"UPDATE messages SET {state} WHERE id = {odd}")
    assert odd not in newest.collapse().copies


def test_where_no_row_is_live_the_newest_is_shown_and_stays(newest: Scene, tmp_path: Path) -> None:
    first, *_, last = newest.generations
    newest.home.sql(
        "UPDATE messages SET active = 0, compacted = 1 WHERE session_id = 'chat'",
        "UPDATE sessions SET message_count = 0 WHERE id = 'chat'",
    )
    views = newest.views()
    apply(newest.file(), run_dir=tmp_path / "run", now=NOW)
    assert newest.generations == [first, last]
    assert newest.views() == views


def test_a_place_that_a_release_gave_by_hand_is_kept(newest: Scene, tmp_path: Path) -> None:
    """0.22 puts a copy that it knows under another identity into the place of its original. The trigger that
    follows a deletion would give it a place of its own."""
    place = newest.generations[0][0]
    odd = [generation[1] for generation in newest.generations]
    listed = ", ".join(map(str, odd))
    newest.home.sql(f"UPDATE messages SET display_order = {place} WHERE id IN ({listed})")
    views, before = newest.views(), newest.rows()
    assert apply(newest.file(), run_dir=tmp_path / "run", now=NOW).exit_code == 0
    assert newest.views() == views
    assert all(before[row] == values for row, values in newest.rows().items())
    assert len(newest.rows()) < len(before)


# What names a row


def test_a_row_that_another_table_names_stays(newest: Scene, tmp_path: Path) -> None:
    named = newest.generations[2][1]
    newest.home.sql(
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, about INTEGER REFERENCES messages)",
        f"INSERT INTO notes VALUES (1, {named})",
    )
    collapse = newest.collapse()
    assert (named in collapse.copies, collapse.left) == (False, {"a row of notes names it": 1})
    assert apply(newest.file(), run_dir=tmp_path / "run", now=NOW).exit_code == 0
    assert newest.home.sql("SELECT about FROM notes") == [(named,)]


@pytest.mark.parametrize("action", ["CASCADE", "SET NULL"])
def test_rows_that_would_follow_keep_it(newest: Scene, action: str) -> None:
    newest.home.sql(f"CREATE TABLE notes (about INTEGER REFERENCES messages ON DELETE {action})")
    assert newest.reason() == "rows of notes are made to follow a message that goes"


@pytest.mark.parametrize("cell", ['["one", "uid-{}"]', "not JSON: uid-{}"])
def test_a_row_that_another_message_took_in_stays(newest: Scene, cell: str) -> None:
    named = newest.generations[2][1]
    newest.home.sql(
        "UPDATE messages SET message_uid = 'uid-' || id WHERE session_id = 'chat'",
        f"UPDATE messages SET absorbed_message_uids = '{cell.format(named)}' WHERE session_id = 'after'",
    )
    collapse = newest.collapse()
    assert (named in collapse.copies, collapse.left) == (False, {"another message took it in": 1})


@pytest.mark.parametrize(
    ("table", "column"), [("session_turn_leases", "conversation_id"), ("compression_locks", "session_id")]
)
@pytest.mark.parametrize("key", ["chat", "first"])
def test_a_live_lease_keeps_it(newest: Scene, tmp_path: Path, table: str, column: str, key: str) -> None:
    """Also one on the conversation above."""
    newest.home.chat("first", ended_at=START + 5, end_reason="compression")
    newest.home.sql("UPDATE sessions SET parent_session_id = 'first' WHERE id = 'chat'")
    file, old = newest.file(), plans.digest(newest.store)
    values = {column: key, "holder": "elsewhere", "acquired_at": NOW - 9, "expires_at": NOW + 60}
    newest.home.insert(table, **values)
    assert f"on {key} is live, held by elsewhere" in newest.reason()
    done = apply(file, run_dir=tmp_path / "run", now=NOW)
    assert (done.receipt, done.exit_code) == (None, Refused.exit_code)
    assert plans.digest(newest.store) != old  # the lease
    assert len(newest.generations) == TIMES + 1


def test_a_counter_of_archived_rows_keeps_it(newest: Scene) -> None:
    rows = MESSAGES * (TIMES + 1)
    newest.home.sql(f"UPDATE sessions SET source = 'recovered', message_count = {rows} WHERE id = 'chat'")
    assert "counts archived rows" in newest.reason()


def test_rows_without_a_session_are_rebuilt_first(newest: Scene) -> None:
    newest.home.sql("DELETE FROM sessions WHERE id = 'chat'")
    assert newest.reason() == "the store has no row of it"


def test_text_that_only_another_sqlite_can_take_out_of_the_index_stays(tmp_path: Path) -> None:
    scene = multiplied(tmp_path, "0.19.0")
    images = [generation[1] for generation in scene.generations]
    listed = ", ".join(map(str, images))
    scene.home.sql(
        f"UPDATE messages SET content = char(0) || 'json:[]' WHERE id IN ({listed})",
        "INSERT INTO messages_fts_trigram(messages_fts_trigram) VALUES ('rebuild')",
    )
    assert scene.collapse().left == {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("statemend.repair.collapse_planner.index_fits", lambda bundle: False)
        collapse = scene.collapse()
    assert set(images).isdisjoint(collapse.copies)
    assert list(collapse.left.values()) == [TIMES - 1]


def test_a_plan_has_a_limit_and_the_next_one_goes_on(
    newest: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = newest.collapse()
    monkeypatch.setattr("statemend.repair.collapse_planner.LARGEST_RUN", whole.size // 2)
    views, taken = newest.views(), []
    for number in itertools.count():
        made = newest.plan()
        if not made.collapses:
            break
        taken += made.collapses[0].copies
        assert apply(newest.file(made), run_dir=tmp_path / f"run-{number}", now=NOW).exit_code == 0
    assert (sorted(taken), number > 1) == (sorted(whole.copies), True)
    assert newest.views() == views


# Between the plan and the commit

MEANWHILE = {
    "append": "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('chat', 'user', 'a', 1.0)",
    "edit": "UPDATE messages SET content = 'edited' WHERE session_id = 'chat' AND active = 0",
    "undo": "UPDATE messages SET active = 0 WHERE session_id = 'chat' AND active = 1",
    "rename": "UPDATE sessions SET title = 'Renamed' WHERE id = 'chat'",
}


@pytest.mark.parametrize("what", MEANWHILE)
@pytest.mark.parametrize("step", ["", "rehearsal passed"])
def test_what_happened_since_the_plan_keeps_it(newest: Scene, tmp_path: Path, what: str, step: str) -> None:
    file = newest.file()
    found: list[str] = []

    def write() -> None:
        plans.change(newest.store, MEANWHILE[what])
        found.append(plans.digest(newest.store))

    if not step:
        write()
    done = apply(file, run_dir=tmp_path / "run", now=NOW, steps=at(step, write))
    assert done.receipt is None
    assert done.kept[0].reason == "it changed since the plan was made: plan again"
    assert found == [plans.digest(newest.store)]


def test_what_happens_between_snapshot_and_fence_refuses_everything(newest: Scene, tmp_path: Path) -> None:
    hook = at("snapshot verified", lambda: plans.change(newest.store, MEANWHILE["append"]))
    with pytest.raises(Refused, match="another process wrote to it since the snapshot"):
        apply(newest.file(), run_dir=tmp_path / "run", now=NOW, steps=hook)
    assert len(newest.rows()) == MESSAGES * (TIMES + 1) + 9


def test_a_repair_that_is_not_verified_comes_first(newest: Scene, tmp_path: Path) -> None:
    first = apply(newest.file(), now=NOW)
    assert first.run is not None
    undo(Path(first.run.folder), now=NOW)
    folder = RunFolder(Path(first.run.folder))
    again = apply(newest.file(), run_dir=tmp_path / "again", now=NOW)
    assert again.run is not None
    RunFolder(tmp_path / "again").save(msgspec.structs.replace(again.run, state=State.FAILED))
    assert verify(folder.path, now=NOW).state is not State.FAILED
    compacted(newest.home, "more", messages=2, times=3)
    with pytest.raises(Refused, match="nothing is deleted before it is verified"):
        apply(newest.file(newest.plan("more", runs=[tmp_path / "again"])), run_dir=tmp_path / "run", now=NOW)


# Edited plans


def edited(scene: Scene, change: Callable[[dict[str, object]], object]) -> Path:
    file = scene.file()
    plan = json.loads(file.read_bytes())
    change(plan["collapses"][0])
    file.write_text(json.dumps(plan))
    return file


@pytest.mark.parametrize("generation", [0, TIMES])
def test_a_plan_that_names_a_row_that_must_stay_is_not_followed(
    newest: Scene, tmp_path: Path, generation: int
) -> None:
    row = newest.generations[generation][0]
    file = edited(newest, lambda collapse: collapse["copies"].append(row))  # type: ignore[attr-defined]
    done = apply(file, run_dir=tmp_path / "run", now=NOW)
    assert (done.receipt, row in newest.rows()) == (None, True)
    assert "not every row that the plan names only repeats another" in done.kept[0].reason


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("the first", "would not show what it showed"),
        ("of its own", "nothing repeats"),
        ("a live one", "instead of"),
        ("of another session", "instead of"),
    ],
)
def test_the_fence_itself_lets_no_row_go_that_is_missed(
    newest: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str, said: str
) -> None:
    """Even if every check before it is wrong."""
    first, _, third, *_, live = newest.generations
    newest.home.sql(f"UPDATE messages SET reasoning = 'only here' WHERE id = {third[1]}")
    ((other,),) = newest.home.sql("SELECT MIN(id) FROM messages WHERE session_id = 'after'")
    wrong = {
        "the first": first[0],
        "of its own": third[1],
        "a live one": live[0],
        "of another session": other,
    }
    file = edited(newest, lambda collapse: collapse["copies"].append(wrong[row]))  # type: ignore[attr-defined]
    if row == "the first":
        newest.home.sql("UPDATE messages SET display_identity = NULL WHERE session_id = 'chat'")
        file = edited(newest, lambda collapse: collapse["copies"].append(wrong[row]))  # type: ignore[attr-defined]
    monkeypatch.setattr(cleanup_check, "_check_same_copies", lambda planned, found: None)
    old = newest.store.read_bytes()
    with pytest.raises(RolledBack, match=said):
        apply(file, run_dir=tmp_path / "run", now=NOW)
    assert newest.store.read_bytes() == old


def test_a_session_is_not_deleted_and_collapsed_at_once(newest: Scene) -> None:
    plan = newest.plan()
    file = newest.file(msgspec.structs.replace(plan, collapses=plan.collapses * 2))
    with pytest.raises(UsageError, match="in it twice"):
        apply(file, now=NOW)


# Whatever fails


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step(newest: Scene, tmp_path: Path, step: str) -> None:
    file, run, old = newest.file(), tmp_path / "run", plans.digest(newest.store)
    views = newest.views()
    done = subprocess.run(
        [sys.executable, "-m", "tests.repair.cleanup_killed", str(file), step, str(run)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    in_store = STEPS.index(step) >= STEPS.index("committed")
    assert (plans.digest(newest.store) == old) is not in_store
    assert newest.views() == views
    assert verify(run, now=NOW).state is (State.AFTER_COMMIT if in_store else State.BEFORE_COMMIT)
    again = apply(run if in_store else file, run_dir=None if in_store else tmp_path / "again", now=NOW + 1)
    assert again.run is not None
    assert again.run.state is State.APPLIED
    assert undo(Path(again.run.folder), now=NOW).state is State.UNDONE
    assert plans.digest(newest.store) == old


@pytest.mark.parametrize("dead", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize(("release", "stride"), [("0.22.2", 5), ("0.19.0", 13)])
def test_a_collapse_is_whole_whatever_fails(tmp_path: Path, release: str, stride: int, dead: bool) -> None:
    """The n-th write, sync, truncate, open, lock or delete fails, and maybe all after it."""
    scene = multiplied(tmp_path, release)
    plan = scene.plan()
    old, pristine, new = plans.digest(scene.store), scene.store.read_bytes(), None
    for number in itertools.count(1, stride):
        scene.store.write_bytes(pristine)
        RunFolder.create(tmp_path / f"run-{number}", plan.envelope())
        folder = CleanupFolder(tmp_path / f"run-{number}")
        folder.cleanup.write_bytes(cleanup_plan.dump(plan))
        error: Exception | None = None
        with faults(tmp_path, number, dead=dead) as injected:
            try:
                new = perform(plan, scene.store, folder, folder.log(), now=NOW).undo.digest_after
            except (StatemendError, SystemError) as caught:
                error = caught
        digest = plans.digest(scene.store)
        assert digest in (old, new) or isinstance(error, Undetermined), injected.happened
        assert plans.query(scene.store, "PRAGMA quick_check") == [("ok",)]
        state = verify(folder.path, now=NOW).state
        assert (digest == old) is (state in (State.NOT_APPLIED, State.BEFORE_COMMIT)), injected.happened
        if digest != old:
            assert undo(folder.path, now=NOW).state is State.UNDONE
            assert plans.digest(scene.store) == old
        if not injected.happened:
            break
    assert error is None
    assert new is not None


@pytest.mark.parametrize("view", [View.RAW, View.DISPLAY, View.ACTIVE])
def test_no_finding_comes_of_it(newest: Scene, tmp_path: Path, view: View) -> None:
    """Nor of a file that was exported before and has rows that are gone now."""
    exports = newest.home.root / "session-exports"
    written = reexport(
        newest.home.root, ["chat", "after"], tmp_path / "out", form=Format.JSONL, view=view, now=NOW
    )
    exports.mkdir()
    for file in written.files:
        Path(file.path).rename(exports / Path(file.path).name)
    before = {finding.id for finding in audit(newest.home.root, now=NOW).findings}
    apply(newest.file(), run_dir=tmp_path / "run", now=NOW)
    assert {finding.id for finding in audit(newest.home.root, now=NOW).findings} <= before
