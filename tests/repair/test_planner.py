from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.audit.builder import NOW, START, VERSIONS, HomeBuilder
from tests.audit.test_structure import flip
from tests.repair.planning import plan_of, text_of

from statemend.audit.finding import finding_id
from statemend.errors import StatemendError, StoreUnreadable, UsageError
from statemend.formats.logs import render_line
from statemend.repair.apply import apply
from statemend.repair.plan import dump, load
from statemend.repair.planner import draft, make_plan
from statemend.repair.recipe import Recipe
from statemend.repair.run import State
from statemend.store.holders import Holder


@pytest.fixture
def home(tmp_path: Path) -> HomeBuilder:
    """A home with an orphan, a wrong counter and a parent that does not exist."""
    home = HomeBuilder(tmp_path / "home", "0.19.0")
    home.chat("gone")
    home.sql("DELETE FROM sessions")
    home.chat("child", parent_session_id="nobody")
    home.chat("miscounted")
    home.sql("UPDATE sessions SET message_count = 77 WHERE id = 'miscounted'")
    return home


@pytest.mark.parametrize("version", VERSIONS)
def test_a_healthy_store_has_an_empty_plan(tmp_path: Path, version: str) -> None:
    home = HomeBuilder(tmp_path / "home", version, empty=False)

    plan = plan_of(home)

    assert (plan.findings, plan.steps, plan.choices, plan.left) == ((), (), (), ())


def test_findings_become_steps_and_choices_in_the_order_of_the_rules(home: HomeBuilder) -> None:
    plan = plan_of(home)

    assert [planned.rule for planned in plan.findings] == ["ORP001", "ORP002", "CNT001"]
    assert [step.recipe for step in plan.steps] == ["rebuild-session", "counters"]
    assert [choice.id.partition("-")[0] for choice in plan.choices] == ["ORP002"]
    served = {step.finding for step in plan.steps} | {choice.finding for choice in plan.choices}
    assert served == {planned.id for planned in plan.findings}


def test_the_same_store_gives_the_same_plan_whenever_it_is_asked(home: HomeBuilder) -> None:
    first, later = make_plan(home.root, now=NOW), make_plan(home.root, now=NOW + 86400)

    assert (first.id, first.steps, first.choices) == (later.id, later.steps, later.choices)
    assert first.made_at == "2027-01-15T08:00:00Z"
    assert later.made_at == "2027-01-16T08:00:00Z"


def test_the_id_changes_with_what_is_to_be_done(home: HomeBuilder) -> None:
    first = plan_of(home)
    home.sql("UPDATE sessions SET message_count = 78 WHERE id = 'miscounted'")

    assert plan_of(home).id != first.id


def test_the_home_and_its_store_have_one_plan(home: HomeBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home.root.parent)

    plans = [make_plan(Path(path), now=NOW) for path in ("home", "home/state.db", home.root)]

    assert plans[0] == plans[1] == plans[2]
    assert plans[0].store.path == str(home.store)


def test_source_date_epoch_fixes_the_time_that_a_plan_bears(
    home: HomeBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")

    assert make_plan(home.root).made_at == "1970-01-01T00:00:00Z"


def test_a_plan_is_read_back_as_it_was_made(home: HomeBuilder, tmp_path: Path) -> None:
    plan = plan_of(home)
    file = tmp_path / "plan.json"
    file.write_text(text_of(plan))

    assert load(file) == plan


def test_only_the_recipes_that_were_asked_for_are_used(home: HomeBuilder) -> None:
    plan = plan_of(home, recipes=["counters"])

    assert [step.recipe for step in plan.steps] == ["counters"]
    reasons = {left.rule: left.reason for left in plan.left}
    assert reasons == {"ORP001": "rebuild-session was not asked for", "ORP002": "parents was not asked for"}


def test_a_finding_that_no_recipe_mends_is_left_with_what_to_do(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path / "home", "0.19.0")
    home.chat("a", session_key="k")
    home.chat("b", session_key="k")
    home.sql("UPDATE messages SET timestamp = timestamp + 500 WHERE id IN (4, 8)")

    plan = plan_of(home)

    assert (plan.steps, plan.choices, plan.findings) == ((), (), ())
    (left,) = [left for left in plan.left if left.rule == "LIN012"]
    assert left.reason.startswith("no recipe mends it: ")


def test_turns_that_were_never_stored_are_left_with_where_to_look(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path / "home", "0.19.0")
    home.message("cut")
    home.chat("later", 2)
    clock = datetime.fromtimestamp(START - 3 * 86400, UTC).strftime("%Y-%m-%d %H:%M:%S,000")
    said = "Session DB append_message failed: FOREIGN KEY constraint failed"
    home.log([render_line(clock, "WARNING", "run_agent", said, name) for name in ("gone", "cut", "later")])

    plan = plan_of(home)

    assert [step.recipe for step in plan.steps] == ["rebuild-session"]
    reasons = {one.id: one.reason for one in plan.left if one.rule == "ORP004"}
    gone, cut, later = (reasons[finding_id("ORP004", name, None, None)] for name in ("gone", "cut", "later"))
    assert gone.startswith("restore has no answer to it: What was not stored is in no export: look for it in")
    assert "Rebuild the session row (ORP001), of which the store still has 1 message" in cut
    assert cut.endswith(gone.removeprefix("restore has no answer to it: "))
    assert later.startswith("lawful as it is: 1 write to the store failed, and later rows")


def test_a_parent_that_is_rebuilt_takes_the_broken_link_with_it(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path / "home", "0.19.0")
    home.chat("gone")
    home.sql("DELETE FROM sessions")
    home.chat("child", parent_session_id="gone")

    plan = plan_of(home)

    (step,) = plan.steps
    (left,) = plan.left
    assert (left.rule, step.finding in left.reason) == ("ORP002", True)


def test_what_is_beside_the_store_but_not_in_the_home_is_named_for_the_next_look(
    home: HomeBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)

    assert plan_of(home, exports=[Path("elsewhere")]).exports == (str(tmp_path / "elsewhere"),)


def test_planning_leaves_no_trace_in_the_home(home: HomeBuilder) -> None:
    before = {path: path.stat().st_mtime_ns for path in home.root.rglob("*")}

    plan_of(home)

    assert {path: path.stat().st_mtime_ns for path in home.root.rglob("*")} == before


def test_a_store_that_cannot_be_read_has_no_plan(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path / "home", "0.19.0")
    home.store.write_bytes(b"\0" * 8192)

    with pytest.raises(StoreUnreadable):
        plan_of(home)


def test_a_store_in_use_has_no_plan(home: HomeBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = Holder(pid=4711, name="hermes", command="hermes gateway", files=(str(home.store),))
    monkeypatch.setattr("statemend.store.connection.find_holders", lambda _: (holder,))

    with pytest.raises(StatemendError, match="4711") as refusal:
        plan_of(home)
    assert refusal.value.exit_code == 4


def test_no_plan_can_hold_a_name_that_is_no_text(home: HomeBuilder, tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/odd\xff"))
    odd.mkdir()

    with pytest.raises(UsageError, match="not a valid name in UTF-8"):
        plan_of(home, exports=[odd])


def test_an_export_with_a_name_that_is_no_text_is_named_with_its_bytes_spelled_out(
    home: HomeBuilder,
) -> None:
    folder = home.root / "session-exports"
    folder.mkdir()
    line = '{"id": "gone", "source": "telegram", "messages": [{"role": "user", "content": "x"}]}\n'
    Path(os.fsdecode(os.fsencode(folder) + b"/a\xff.jsonl")).write_text(line)

    step = plan_of(home).steps[0]

    assert any((source.artifact or "").endswith("a\\udcff.jsonl") for source in step.sources)


def test_what_the_audit_could_not_tell_comes_with_the_plan(home: HomeBuilder) -> None:
    assert draft(home.root, now=NOW).undetermined == ()
    (home.root / "config.yaml").mkdir()

    (reason,) = draft(home.root, now=NOW).undetermined

    assert "config.yaml" in reason


def test_a_recipe_that_cannot_read_what_it_needs_leaves_the_finding_with_the_reason(
    home: HomeBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def propose(*_: Any) -> Any:
        raise StoreUnreadable("a page is damaged")
        yield

    broken = Recipe(name="broken", serves=("CNT001",), doc="", propose=propose)
    monkeypatch.setattr("statemend.repair.planner.select", lambda _: (broken,))

    reasons = {left.rule: left.reason for left in plan_of(home).left}

    assert reasons["CNT001"] == "broken could not read what it needs: a page is damaged"


@pytest.mark.parametrize(
    ("damaged", "said"),
    [
        (
            ["idx_messages_session"],
            "the index idx_messages_session is damaged: REINDEX a copy of the store, check it, and put it in "
            "place first",
        ),
        (
            ["messages", "idx_sessions_source"],
            "the table messages and the index idx_sessions_source are damaged: salvage the store into a new "
            "file first",
        ),
    ],
    ids=["index", "table-and-index"],
)
def test_what_is_damaged_is_named_where_no_recipe_may_be_asked(
    home: HomeBuilder, damaged: list[str], said: str
) -> None:
    for name in damaged:
        flip(home, name, 0)

    reasons = {(left.rule, left.reason) for left in plan_of(home).left}

    assert {reason for rule, reason in reasons if rule == "STO003"} == {said}


def test_a_table_that_is_missing_is_named_where_no_recipe_may_be_asked(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path / "home", "0.22.2")
    said = "Session DB append_message failed: FOREIGN KEY constraint failed"
    home.log([render_line("2026-09-21 14:13:20,000", "WARNING", "run_agent", said, "gone")])
    home.sql("DROP TABLE messages")

    reasons = {left.rule: left.reason for left in plan_of(home).left}

    assert reasons["ORP004"] == "the store has no table messages: salvage it into a new file first"


def test_text_that_is_not_valid_is_left_and_does_not_stop_the_rest(home: HomeBuilder, tmp_path: Path) -> None:
    home.sql("UPDATE sessions SET message_count = CAST(x'ff' AS TEXT) WHERE id = 'miscounted'")
    file = tmp_path / "plan.json"
    file.write_bytes(dump(plan_of(home)))

    reasons = {left.rule: left.reason for left in plan_of(home).left}

    assert "its message_count is no valid text" in reasons["CNT001"]
    assert apply(file, run_dir=tmp_path / "run", now=NOW).state is State.APPLIED
