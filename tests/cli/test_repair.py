"""The verbs that carry a plan out: rehearse, apply, verify, undo."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.audit.builder import HomeBuilder
from tests.cli.conftest import Outcome, snapshot

from statemend.cli.runs import exit_code
from statemend.demo.build import build
from statemend.repair.plan import load
from statemend.repair.run import Run as RunRecord
from statemend.repair.run import State, default_folder
from statemend.store.holders import Holder

Run = Callable[..., Outcome]


@pytest.fixture
def home(tmp_path: Path) -> HomeBuilder:
    """A home with an orphan."""
    home = HomeBuilder(tmp_path / "home", "0.19.0")
    home.chat("gone")
    home.sql("DELETE FROM sessions")
    return home


@pytest.fixture
def plan(home: HomeBuilder, tmp_path: Path, statemend: Run) -> Path:
    file = tmp_path / "plan.json"
    assert statemend("plan", home.root, "-o", file).code == 0
    return file


def sessions(home: HomeBuilder) -> list[tuple[object, ...]]:
    return home.sql("SELECT id, source FROM sessions")


def test_a_rehearsal_changes_nothing_and_says_how_to_go_on(
    home: HomeBuilder, plan: Path, statemend: Run
) -> None:
    before = snapshot(home.root)

    outcome = statemend("rehearse", plan)

    assert (outcome.code, outcome.err) == (0, "")
    assert "The rehearsal passed" in outcome.out
    assert f"statemend apply {plan}" in " ".join(outcome.out.split())
    assert snapshot(home.root) == before


def test_a_plan_is_applied_verified_and_taken_back(
    home: HomeBuilder, plan: Path, tmp_path: Path, statemend: Run
) -> None:
    run = tmp_path / "run"

    applied = statemend("apply", plan, "--run-dir", run)
    assert (applied.code, applied.err) == (0, "")
    assert "Applied and verified." in applied.out
    assert sessions(home) == [("gone", "recovered")]
    assert "nothing to do" in statemend("plan", home.root).out

    assert "Applied and verified." in statemend("verify", run).out

    undone = statemend("undo", run)
    assert (undone.code, undone.err) == (0, "")
    assert sessions(home) == []
    assert statemend("verify", run).out.startswith("Undone.")


def test_by_default_the_run_lies_beside_the_home(home: HomeBuilder, plan: Path, statemend: Run) -> None:
    run = Path(json.loads(statemend("apply", plan, "--format", "json").out)["folder"])

    assert run.parent == home.root.with_name("home.statemend")
    assert (run / "snapshot.db").is_file()


def test_each_verb_speaks_json(plan: Path, tmp_path: Path, statemend: Run) -> None:
    run = tmp_path / "run"

    assert json.loads(statemend("rehearse", plan, "--format", "json").out)["passed"] is True
    applied = json.loads(statemend("apply", plan, "--run-dir", run, "--format", "json").out)
    assert (applied["schema"], applied["state"]) == ("statemend/run/v1", "applied and verified")
    assert json.loads(statemend("verify", run, "--format", "json").out)["state"] == "applied and verified"
    assert json.loads(statemend("undo", run, "--format", "json").out)["state"] == "undone"


def test_applying_again_changes_nothing_and_says_so(home: HomeBuilder, plan: Path, statemend: Run) -> None:
    statemend("apply", plan)
    before = snapshot(home.root)

    again = statemend("apply", plan)

    assert again.code == 0
    assert "already" in again.out
    assert snapshot(home.root) == before


def test_a_plan_that_does_not_fit_the_store_any_more_is_refused(
    home: HomeBuilder, plan: Path, statemend: Run
) -> None:
    home.session("gone", source="telegram")

    for verb in ("rehearse", "apply"):
        outcome = statemend(verb, plan)
        assert outcome.code in (4, 5), verb
        assert outcome.err.count("\n") == 1 or outcome.out
    assert sessions(home) == [("gone", "telegram")]


def test_a_store_in_use_is_refused_by_name(
    home: HomeBuilder, plan: Path, statemend: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = Holder(pid=4711, name="hermes", command="hermes gateway", files=(str(home.store),))
    for module in ("statemend.store.connection", "statemend.repair.preflight"):
        monkeypatch.setattr(f"{module}.find_holders", lambda _: (holder,))

    outcome = statemend("apply", plan)

    assert outcome.code == 4
    assert "4711" in outcome.err
    assert sessions(home) == []


@pytest.mark.parametrize("verb", ["rehearse", "apply"])
def test_a_file_that_is_no_plan_is_a_wrong_request(tmp_path: Path, statemend: Run, verb: str) -> None:
    (tmp_path / "plan.json").write_text('{"schema": "statemend/report/v1"}')

    outcome = statemend(verb, tmp_path / "plan.json")

    assert outcome.code == 2
    assert "not a plan" in outcome.err


@pytest.mark.parametrize("verb", ["verify", "undo"])
def test_a_folder_that_is_no_run_is_a_wrong_request(tmp_path: Path, statemend: Run, verb: str) -> None:
    outcome = statemend(verb, tmp_path)

    assert outcome.code == 2
    assert "not the folder of a run" in outcome.err


def test_an_interrupted_change_says_how_to_learn_what_became_of_it(
    plan: Path, tmp_path: Path, statemend: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    def begin(plan: Path, *, run_dir: Path | None, progress: object) -> None:
        (run_dir or default_folder(load(plan), 0.0)).mkdir(parents=True)
        raise KeyboardInterrupt

    monkeypatch.setattr("statemend.repair.apply.apply", interrupt)
    told = [statemend("apply", plan)]
    monkeypatch.setattr("statemend.repair.apply.apply", begin)
    told += [statemend("apply", plan, "--run-dir", tmp_path / "run"), statemend("apply", plan)]

    beside = default_folder(load(plan), 0.0)
    assert [each.code for each in told] == [130, 130, 130]
    assert [each.err for each in told] == [
        "statemend: interrupted before anything was changed\n",
        f"statemend: interrupted; `statemend verify {tmp_path / 'run'}` tells what became of it\n",
        f"statemend: interrupted; `statemend verify {beside}` tells what became of it\n",
    ]


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (State.APPLIED, 0),
        (State.UNDONE, 0),
        (State.NOTHING, 0),
        (State.NOT_APPLIED, 0),
        (State.CHANGED, 3),
        (State.BEFORE_COMMIT, 5),
        (State.AFTER_COMMIT, 6),
        (State.FAILED, 6),
    ],
)
def test_every_state_of_a_run_has_its_exit_code(state: State, code: int) -> None:
    run = RunRecord(folder="", plan_id="", plan_digest="", state=state, advice="", store="", started_at=0.0)

    assert exit_code(run) == code


def test_findings_that_the_rebuilt_row_reveals_are_told_and_no_failure(
    tmp_path: Path, statemend: Run
) -> None:
    """The orphan begins with a summary: with its row it is a continuation without a parent."""
    home = HomeBuilder(tmp_path / "home", "0.19.0")
    home.session("gone")
    home.message("gone", "user", "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns")
    home.message("gone", "assistant", "ok")
    home.sql("DELETE FROM sessions")
    statemend("plan", home.root, "-o", tmp_path / "plan.json")

    outcome = statemend("apply", tmp_path / "plan.json", "--format", "json")

    assert outcome.code == 0, outcome.err
    run = json.loads(outcome.out)
    assert run["new"] == []
    assert any("LIN009" in note and "plan again" in note for note in run["notes"])


def test_a_plan_that_only_asks_is_to_be_answered_first(demo: Path, tmp_path: Path, statemend: Run) -> None:
    plan = tmp_path / "plan.json"
    planned = statemend("plan", demo, "--recipe", "fork", "-o", plan)
    assert planned.out.endswith(f"Next: answer a choice in {plan}, then statemend rehearse {plan}\n")

    for outcome in (statemend("rehearse", plan), statemend("apply", plan)):
        assert outcome.code == 0
        assert outcome.out.startswith("Nothing to do.\n")
        assert "choose options in it" in outcome.out


def test_choices_without_an_answer_are_counted_when_the_rest_is_done(tmp_path: Path, statemend: Run) -> None:
    plan = tmp_path / "plan.json"
    home = build(tmp_path / "home")
    statemend("plan", home, "--recipe", "fork,untag", "-o", plan)

    applied = statemend("apply", plan, "--run-dir", tmp_path / "run")

    assert applied.code == 0
    assert "left open        1 choice without an answer: `statemend plan` asks again" in applied.out


def test_a_run_is_not_kept_in_the_home_that_it_is_to_save(
    home: HomeBuilder, plan: Path, statemend: Run
) -> None:
    before = snapshot(home.root)
    playbook = ("playbook", "run", "weekly-audit", "--set", f"home={home.root}")
    for verb in (("apply", plan), playbook):
        told = statemend(*verb, "--run-dir", home.root / "backups" / "run")
        assert told.code == 4
        assert (
            f"lies in the audited home, where nothing is written; choose a folder outside {home.root}"
            in told.err
        )
    assert snapshot(home.root) == before
