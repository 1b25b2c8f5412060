from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.audit.builder import HomeBuilder
from tests.cli.conftest import Outcome, snapshot

from statemend.repair.plan import load

Run = Callable[..., Outcome]


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


def test_a_plan_is_shown_and_written_for_its_owner_alone(
    home: HomeBuilder, tmp_path: Path, statemend: Run
) -> None:
    file = tmp_path / "plan.json"
    before = snapshot(home.root)

    outcome = statemend("plan", home.root, "-o", file)

    assert (outcome.code, outcome.err) == (0, "")
    assert "2 steps ready, 1 choice for you to make." in outcome.out
    assert "Rebuild the row of session gone" in outcome.out
    assert f"statemend rehearse {file}" in " ".join(outcome.out.split())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(load(file).steps) == 2
    assert snapshot(home.root) == before


def test_the_line_that_is_named_answers_the_choice(home: HomeBuilder, tmp_path: Path, statemend: Run) -> None:
    file = tmp_path / "plan.json"
    said = " ".join(statemend("plan", home.root, "-o", file).out.split())
    number = int(said.partition("line ")[2].partition(",")[0])

    lines = file.read_text().splitlines(keepends=True)
    assert lines[number - 1].strip() == '"chosen": null'
    lines[number - 1] = lines[number - 1].replace("null", '"detach"')
    file.write_text("".join(lines))

    plan = load(file)
    assert [choice.chosen for choice in plan.choices] == ["detach"]
    assert len(plan.selected()) == 3


def test_without_a_file_the_plan_is_only_shown(home: HomeBuilder, statemend: Run) -> None:
    outcome = statemend("plan", home.root)

    assert outcome.code == 0
    assert "write the plan into a file with -o" in outcome.out


def test_as_json_the_plan_itself_is_shown(home: HomeBuilder, tmp_path: Path, statemend: Run) -> None:
    outcome = statemend("plan", home.root, "--format", "json")

    (tmp_path / "shown.json").write_text(outcome.out)
    assert [step.recipe for step in load(tmp_path / "shown.json").steps] == ["rebuild-session", "counters"]


def test_a_search_index_that_many_steps_ask_for_is_built_once(tmp_path: Path, statemend: Run) -> None:
    home = HomeBuilder(tmp_path / "home", "0.22.2")
    for number in range(3):
        home.chat(f"gone-{number}")
    home.sql("DELETE FROM sessions")
    home.sql("UPDATE messages_fts_trigram_data SET block = zeroblob(length(block)) WHERE id > 10")

    out = statemend("plan", home.root, "--deep", "--sql").out
    assert out.count("'rebuild'") == 1
    assert out.count('INSERT INTO "main"."sessions"') == 3
    assert "Build the search index messages_fts_trigram anew (safe)" in out
    assert "once (steps: 4)" in out
    assert statemend("plan", home.root, "--deep").out.count("is built anew, once") == 1
    shown = statemend("plan", home.root, "--deep", "--format", "json").out
    assert [step["reindex"] for step in json.loads(shown)["steps"]] == [["messages_fts_trigram"]] * 4


def test_as_sql_the_statements_are_shown_and_those_not_chosen_as_comments(
    home: HomeBuilder, statemend: Run
) -> None:
    out = statemend("plan", home.root, "--sql").out

    active = [line for line in out.splitlines() if not line.startswith("--")]
    assert [line.split(" ")[0] for line in active] == ["INSERT", "UPDATE"]
    assert any(line.startswith("-- UPDATE") and "parent_session_id" in line for line in out.splitlines())
    home.sql(*active)
    assert home.sql("SELECT source FROM sessions WHERE id = 'gone'") == [("recovered",)]


def test_no_message_is_shown(home: HomeBuilder, statemend: Run) -> None:
    for options in ((), ("--sql",), ("--format", "json")):
        assert "turn 0 of gone" not in statemend("plan", home.root, *options).out


def test_a_session_of_which_nothing_is_left_cannot_be_restored(home: HomeBuilder, statemend: Run) -> None:
    outcome = statemend("plan", home.root, "--restore", "nobody")

    assert outcome.code == 2
    assert "nothing to restore of session nobody" in outcome.err


def test_a_healthy_store_has_nothing_to_do(sound: Path, statemend: Run) -> None:
    outcome = statemend("plan", sound)

    assert outcome.code == 0
    assert "there is nothing to do" in outcome.out


def test_findings_that_no_plan_mends_are_listed_with_the_reason(tmp_path: Path, statemend: Run) -> None:
    home = HomeBuilder(tmp_path / "home", "0.19.0")
    home.chat("a", 2)
    home.sql("UPDATE messages SET timestamp = -5")

    out = statemend("plan", home.root).out

    assert "Nothing can be mended by a plan" in out
    assert "no recipe mends it" in out


def test_recipes_are_named_by_comma_or_again(home: HomeBuilder, statemend: Run) -> None:
    def recipes(*options: str) -> list[Any]:
        shown = json.loads(statemend("plan", home.root, "--format", "json", *options).out)
        return [step["recipe"] for step in shown["steps"]]

    assert recipes("--recipe", "counters") == ["counters"]
    assert recipes("--recipe", "counters,rebuild-session") == ["rebuild-session", "counters"]
    assert recipes("--recipe", "parents", "--recipe", "counters") == ["counters"]


def test_a_recipe_that_does_not_exist_is_a_wrong_request(home: HomeBuilder, statemend: Run) -> None:
    outcome = statemend("plan", home.root, "--recipe", "magic")

    assert (outcome.code, outcome.out) == (2, "")
    assert "no recipe 'magic'" in outcome.err


@pytest.mark.parametrize("place", ["plan.json", "session-exports/plan.json"])
def test_no_plan_is_written_into_the_home(home: HomeBuilder, statemend: Run, place: str) -> None:
    (home.root / "session-exports").mkdir()

    outcome = statemend("plan", home.root, "-o", home.root / place)

    assert outcome.code == 4
    assert not (home.root / place).exists()


def test_a_file_that_is_there_is_not_replaced_unless_that_is_said(
    home: HomeBuilder, tmp_path: Path, statemend: Run
) -> None:
    file = tmp_path / "plan.json"
    statemend("plan", home.root, "-o", file)
    file.write_text(file.read_text().replace('"chosen": null', '"chosen": "detach"'))
    answered = file.read_bytes()

    outcome = statemend("plan", home.root, "-o", file)

    assert outcome.code == 4
    assert "may hold choices you made" in outcome.err
    assert file.read_bytes() == answered
    assert statemend("plan", home.root, "-o", file, "--force").code == 0
    assert file.read_bytes() != answered


def test_what_could_not_be_told_is_said_and_sets_the_exit_code(
    home: HomeBuilder, tmp_path: Path, statemend: Run
) -> None:
    (home.root / "config.yaml").mkdir()

    outcome = statemend("plan", home.root, "-o", tmp_path / "plan.json")

    assert outcome.code == 3
    assert "config.yaml" in outcome.err
    assert (tmp_path / "plan.json").exists()


def test_names_that_would_steer_a_terminal_are_shown_harmless(tmp_path: Path, statemend: Run) -> None:
    home = HomeBuilder(tmp_path / "home", "0.19.0")
    home.chat("evil\x1b[31m\u202eid")
    home.sql("DELETE FROM sessions")

    for options in ((), ("--sql",), ("--format", "json")):
        out = statemend("plan", home.root, *options).out
        assert "\x1b" not in out, options
        assert "\u202e" not in out, options


def test_rules_that_could_not_run_for_one_reason_are_told_in_one_line(
    home: HomeBuilder, statemend: Run
) -> None:
    ((root,),) = home.sql("SELECT rootpage FROM sqlite_master WHERE name = 'idx_messages_session'")
    data = bytearray(home.store.read_bytes())
    data[(root - 1) * 4096] ^= 0xFF
    home.store.write_bytes(bytes(data))

    told = statemend("plan", home.root, "--ignore", "PRO,MSG001")

    assert told.code == 3
    undetermined, ignored = sorted(told.err.splitlines())
    assert " more could not run: it reads messages, and its index idx_messages_session is" in undetermined
    assert (
        ignored == "statemend: not planned for: MSG001, PRO001, PRO002 and 3 more were left out by --ignore"
    )
