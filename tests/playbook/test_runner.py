"""A run of a playbook: in order, gated, kept whole, and gone on with after a crash."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
from tests.playbook.conftest import Nobody, Yes, passed, run, states

from statemend.errors import Refused, StoreHeld, Undetermined, UsageError
from statemend.playbook import runner, source
from statemend.playbook.env import Env, Outcome
from statemend.playbook.folder import PlaybookFolder, base_of
from statemend.playbook.model import Answer, Step
from statemend.playbook.runner import run_playbook
from statemend.repair import cleanup, cleanup_plan
from statemend.repair.cleanup_planner import make_cleanup_plan
from statemend.repair.lock import hold
from statemend.repair.reexport import reexport
from statemend.report.playbook_run import RunState
from statemend.store import durable
from statemend.store.connection import open_for_audit
from statemend.store.identity import store_digest

HEAD = """
schema: statemend/playbook/v1
name: test
title: A test
purpose: Tries the runner.
inputs:
  home: {type: path, help: The home.}
  days: {type: number, default: 30, help: An age.}
steps:
"""
REPAIR = (
    HEAD
    + """
  - {do: scan}
  - {do: plan, recipes: [rebuild-session]}
  - {do: choose}
  - {do: rehearse}
  - {do: apply}
  - {do: verify}
"""
)


def _digest(home: Path) -> str:
    with open_for_audit(home / "state.db") as store:
        return store_digest(store)


def _tree(folder: Path) -> dict[str, tuple[int, str]]:
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in sorted(folder.rglob("*"))
    }


def test_a_repair_runs_from_the_audit_to_the_proof(home: Path) -> None:
    before = _digest(home)
    operator = Yes()
    done = run(REPAIR, home, operator=operator)
    assert passed(done)
    assert (done.state, done.exit_code) == (RunState.FINISHED, 0)
    assert _digest(home) != before
    assert [question for question in operator.asked if "Change 1 row" in question]


def test_everything_about_a_run_lies_in_one_folder_with_its_checksums(home: Path) -> None:
    done = run(REPAIR, home, operator=Yes())
    folder = Path(done.folder)
    assert folder.parent == base_of(home) / "playbooks"
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {
        "playbook.yaml",
        "inputs.json",
        "resolved.json",
        "versions.json",
        "journal.jsonl",
        "run.json",
        "SHA256SUMS",
        "steps/01-scan/report.json",
        "steps/02-plan/plan.json",
        "steps/04-rehearse/rehearsal.json",
        "steps/05-apply/run/snapshot.db",
        "steps/05-apply/run/undo.json",
    } <= names
    checked = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, check=False)
    assert checked.returncode == 0
    listed = {line.split("  ", 1)[1] for line in (folder / "SHA256SUMS").read_text().splitlines()}
    assert listed == names - {"SHA256SUMS"}
    assert {path.stat().st_mode & 0o077 for path in [folder, *folder.rglob("*")]} == {0}


def test_unattended_nothing_is_changed_and_the_same_goes_on_with_a_yes(home: Path) -> None:
    before = _digest(home)
    waiting = run(REPAIR, home, operator=Nobody())
    assert (waiting.state, waiting.exit_code) == (RunState.WAITING, 4)
    assert states(waiting)["apply"] == "waiting"
    assert _digest(home) == before
    done = run(REPAIR, home, operator=Yes())
    assert passed(done)
    assert done.folder == waiting.folder
    assert done.steps[0] == waiting.steps[0]


def test_a_step_runs_only_if_what_it_needs_passed(home: Path) -> None:
    text = (
        HEAD
        + """
  - {do: scan, fail_on: fault}
  - {do: plan}
  - {id: free, do: plan, needs: []}
  - {id: bound, do: rehearse, plan: free, needs: [free, plan]}
"""
    )
    done = run(text, home)
    assert states(done) == {"scan": "failed", "plan": "skipped", "free": "passed", "bound": "skipped"}
    assert done.exit_code == 1
    assert done.steps[3].summary == "plan did not pass"


def test_a_finished_run_is_not_gone_on_with(home: Path) -> None:
    text = HEAD + "  - {do: scan}\n"
    first, second = run(text, home), run(text, home)
    assert first.folder != second.folder


def test_other_inputs_are_another_run(home: Path) -> None:
    text = HEAD + "  - {do: pause, message: Wait.}\n"
    first = run(text, home)
    assert run(text, home, "days=31").folder != first.folder
    assert run(text, home).folder != run(text, home, new=True).folder


def test_a_finished_step_whose_file_was_changed_is_not_believed(home: Path) -> None:
    waiting = run(REPAIR, home)
    plan = Path(waiting.folder) / "steps" / "02-plan" / "plan.json"
    plan.write_bytes(plan.read_bytes() + b"\n")
    with pytest.raises(Refused, match="is not what the step plan left"):
        run(REPAIR, home, operator=Yes())


def test_two_runs_on_one_home_refuse_each_other(home: Path) -> None:
    base_of(home).mkdir()
    with hold(base_of(home) / "playbook.lock", "another"), pytest.raises(StoreHeld, match="another playbook"):
        run(HEAD + "  - {do: scan}\n", home)


def test_a_folder_that_is_no_run_is_left_alone(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "letter.txt").write_text("mine")
    with pytest.raises(UsageError, match="not the folder of a playbook's run"):
        run(HEAD + "  - {do: scan}\n", home, run_dir=other)
    assert [path.name for path in other.iterdir()] == ["letter.txt"]


def test_a_home_that_is_not_given_is_told(home: Path) -> None:
    text = HEAD.replace("help: The home.", "help: The home., default: null") + "  - {do: scan}\n"
    with pytest.raises(UsageError, match="`home` takes a path, and this is empty"):
        run_playbook(source.parse(text.encode(), "p.yaml"), {"home": None, "days": 1.0}, Nobody())


def test_a_folder_that_cannot_be_made_is_not_told_to_be_there(home: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Undetermined, match="cannot be made"):
        run(HEAD + "  - {do: scan}\n", home, run_dir=tmp_path / "file" / "run")


def test_no_cleanup_without_a_passing_verify_whatever_the_file_says(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verify that claims to have passed and proved nothing does not open the gate."""
    text = (
        HEAD
        + """
  - {do: export, older_than: 0}
  - {do: verify}
  - {do: cleanup, older_than: 0}
"""
    )
    before = _digest(home)
    real = runner.perform

    def perform(step: Step, env: Env) -> Outcome:
        if step.kind == "verify":
            return Outcome(summary="says so", facts={"proven": ""})
        return real(step, env)

    monkeypatch.setattr(runner, "perform", perform)
    operator = Yes()
    done = run(text, home, operator=operator)
    assert states(done)["cleanup"] == "refused"
    assert "export is not verified" in done.steps[-1].summary
    assert operator.asked == []
    assert _digest(home) == before


def test_preserve_then_prune_deletes_only_what_a_file_preserves(home: Path, tmp_path: Path) -> None:
    text = (
        HEAD
        + f"""
  - {{do: export, older_than: "{{{{ days }}}}", into: {tmp_path / "kept"}}}
  - {{do: verify}}
  - {{do: cleanup, older_than: "{{{{ days }}}}"}}
"""
    )
    with open_for_audit(home / "state.db") as store:
        before = store.value("SELECT COUNT(*) FROM sessions")
    done = run(text, home, "days=0", operator=Yes())
    cleanup = done.steps[-1]
    assert cleanup.state.value == "passed"
    deleted = cleanup.facts["deleted"]
    assert isinstance(deleted, int)
    assert deleted > 0
    with open_for_audit(home / "state.db") as store:
        assert store.value("SELECT COUNT(*) FROM sessions") == before - deleted
    assert done.exit_code == (4 if cleanup.facts["kept"] else 0)


CHOICE = (
    HEAD
    + """
  - {do: plan, recipes: [fork]}
  - {do: choose}
  - {do: rehearse}
  - {do: apply}
  - {do: verify}
"""
)


def _open_choices(folder: str) -> list[dict[str, object]]:
    plan = json.loads((Path(folder) / "steps" / "01-plan" / "plan.json").read_text())
    found: list[dict[str, object]] = plan["choices"]
    return found


def test_an_open_choice_waits_and_writes_a_template_to_fill_in(home: Path) -> None:
    waiting = run(CHOICE, home, operator=Yes())
    open_ = _open_choices(waiting.folder)
    assert open_, "the demo has a fork"
    assert waiting.state is RunState.WAITING
    template = Path(waiting.folder) / "steps" / "02-choose" / "choices.yaml"
    assert str(open_[0]["id"]) in template.read_text()
    answers = [Answer(choice=str(each["id"]), option=each["options"][0]["id"]) for each in open_]  # type: ignore[index]
    done = run(CHOICE, home, operator=Yes(), answers=answers)
    assert done.folder == waiting.folder
    assert passed(done)


def test_a_choice_left_out_on_purpose_changes_nothing(home: Path) -> None:
    waiting = run(CHOICE, home, operator=Yes())
    before = _digest(home)
    answers = [Answer(choice=str(each["id"]), skip=True) for each in _open_choices(waiting.folder)]
    done = run(CHOICE, home, operator=Yes(), answers=answers)
    assert passed(done)
    assert _digest(home) == before


def test_a_dry_run_leaves_everything_as_it_is(home: Path, tmp_path: Path) -> None:
    before = _tree(tmp_path)
    done = run(REPAIR, home, operator=Nobody(), dry_run=True)
    assert states(done)["apply"] == "planned"
    assert states(done)["verify"] == "planned"
    assert done.folder == ""
    assert _tree(tmp_path) == before


class Crash(BaseException):
    """Ends a run at once, as a power cut would."""


def _moments(home: Path) -> list[str]:
    names: list[str] = []
    run(REPAIR, home, operator=Yes(), hook=names.append)
    return names


def test_a_run_that_breaks_off_at_any_moment_ends_in_the_same_state(home: Path, tmp_path: Path) -> None:
    clean = tmp_path / "clean" / "home"
    shutil.copytree(home, clean, copy_function=shutil.copy2)
    moments = _moments(clean)
    wanted = _digest(clean)
    assert {"begun", "step begun", "step finished", "committed", "finished"} <= set(moments)
    first = {name: number for number, name in reversed(list(enumerate(moments)))}
    every = os.environ.get("STATEMEND_PLAYBOOK_KILLS") == "1"
    some = {*sorted(first.values())[::3], first["committed"], first["finished"]}
    for number in range(len(moments)) if every else sorted(some):
        copy = tmp_path / str(number) / "home"
        shutil.copytree(home, copy, copy_function=shutil.copy2)
        reached = 0

        def crash(name: str, at: int = number) -> None:
            nonlocal reached
            reached += 1
            if reached == at + 1:
                raise Crash

        with pytest.raises(Crash):
            run(REPAIR, copy, operator=Yes(), hook=crash)
        done = run(REPAIR, copy, operator=Yes())
        if moments[number] == "finished":
            assert done.state is RunState.FINISHED
            continue
        assert passed(done), (number, moments[number], done.steps)
        assert _digest(copy) == wanted, moments[number]
        shutil.rmtree(copy.parent)


def test_a_disk_that_is_full_at_any_write_ends_the_run_in_one_line_and_it_goes_on(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = durable._write
    left = 0

    def write(descriptor: int, data: bytes) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.write(descriptor, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor, data)

    monkeypatch.setattr(durable, "_write", write)
    clean = tmp_path / "clean" / "home"
    shutil.copytree(home, clean, copy_function=shutil.copy2)
    left = most = 10_000
    run(REPAIR, clean, operator=Yes())
    writes, wanted = most - left, _digest(clean)
    every = os.environ.get("STATEMEND_PLAYBOOK_KILLS") == "1"
    for number in range(writes) if every else (4, writes // 2, writes - 1):
        copy = tmp_path / str(number) / "home"
        shutil.copytree(home, copy, copy_function=shutil.copy2)
        left = number
        with pytest.raises(Undetermined, match="No space left on device"):
            run(REPAIR, copy, operator=Yes())
        left = most
        done = run(REPAIR, copy, operator=Yes())
        assert passed(done), (number, done.steps)
        assert _digest(copy) == wanted, number


@pytest.mark.parametrize("name", ["resolved.json", "steps/01-scan/result.json"])
def test_a_kill_while_a_record_is_written_does_not_end_the_run_for_good(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """What is written in place is there, and empty, for a moment."""
    text = HEAD + "  - {do: scan}\n"
    real = durable.write_new

    def killed(path: Path, data: bytes) -> None:
        if path.as_posix().removesuffix(".new").endswith(name):
            path.touch()
            raise Crash
        real(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(durable, "write_new", killed)
        with pytest.raises(Crash):
            run(text, home)
    assert passed(run(text, home))


def test_what_else_lies_in_the_folder_of_a_run_is_no_attempt_of_a_step(home: Path) -> None:
    text = HEAD + "  - {do: scan}\n  - {do: pause, message: Wait.}\n"
    steps = Path(run(text, home).folder) / "steps"
    (steps / "01-scan.bak").mkdir()
    (steps / "02-pause.3").mkdir()
    (steps / "02-pause.3" / "note.txt").touch()
    (steps / "01-scan.old").touch()
    assert passed(run(text, home, operator=Yes()))


@pytest.mark.parametrize("said", ["", "[]", "[" * 100_000], ids=["empty", "no run", "deep"])
def test_a_run_that_cannot_be_read_does_not_hinder_the_next(home: Path, said: str) -> None:
    other = base_of(home) / "playbooks" / "other"
    other.mkdir(parents=True)
    (other / "run.json").write_text(said)
    (other.parent / "pipe").mkdir()
    os.mkfifo(other.parent / "pipe" / "run.json")
    assert passed(run(HEAD + "  - {do: scan}\n", home))


def test_what_an_input_makes_impossible_is_refused_before_anything_is_made(
    home: Path, tmp_path: Path
) -> None:
    text = HEAD + "  - {do: export, older_than: '{{ days }}'}\n"
    with pytest.raises(UsageError, match="expected a number >= 0"):
        run(text, home, "days=-5")
    odd = home.with_name("h\udcff")
    home.rename(odd)
    with pytest.raises(UsageError, match="not valid UTF-8, so no run can hold it"):
        run(text, odd)
    assert not any((base_of(one) / "playbooks").exists() for one in (home, odd))


def test_what_run_json_says_can_be_read_again(home: Path) -> None:
    done = run(REPAIR, home, operator=Yes())
    loaded = PlaybookFolder(Path(done.folder)).load()
    assert msgspec.to_builtins(loaded) == msgspec.to_builtins(done)


def test_a_repair_of_a_playbook_that_broke_off_is_known_to_every_other_command(
    home: Path, tmp_path: Path
) -> None:
    """Committed and not verified: a cleanup must not go on beside it, and `apply` completes it."""

    def crash(name: str) -> None:
        if name == "committed":
            raise Crash

    with pytest.raises(Crash):
        run(REPAIR, home, operator=Yes(), hook=crash)
    exports = tmp_path / "exports"
    with open_for_audit(home / "state.db") as store:
        ended = [sid for (sid,) in store.rows("SELECT id FROM sessions WHERE ended_at IS NOT NULL LIMIT 3")]
    reexport(home, ended, exports)
    plan = make_cleanup_plan(home, sessions=ended, artifacts=[exports])
    assert plan.entries
    file = tmp_path / "cleanup.json"
    file.write_bytes(cleanup_plan.dump(plan))
    with pytest.raises(Refused, match="nothing is deleted before it is verified"):
        cleanup.apply(file, run_dir=tmp_path / "run")
    assert passed(run(REPAIR, home, operator=Yes()))
    assert cleanup.apply(file, run_dir=tmp_path / "run").receipt is not None
