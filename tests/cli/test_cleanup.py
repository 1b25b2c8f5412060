"""``statemend cleanup`` on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from tests.audit.builder import HomeBuilder
from tests.cli.conftest import Outcome, snapshot
from tests.repair import plans
from tests.repair.cleanups import Cleaned, cleaned
from tests.repair.copies import compacted

from statemend.repair import schemas

Run = Callable[..., Outcome]


@pytest.fixture
def scene(tmp_path: Path) -> Cleaned:
    return cleaned(tmp_path, "0.22.2")


def planned(scene: Cleaned, statemend: Run, *options: object) -> tuple[Outcome, Path]:
    file = scene.folder / "plan.json"
    given = ("--artifact", scene.exports, "-o", file, *options)
    return statemend("cleanup", "plan", scene.home.root, *given), file


def test_planned_deleted_and_had_back(scene: Cleaned, tmp_path: Path, statemend: Run) -> None:
    before = snapshot(scene.home.root)
    outcome, file = planned(scene, statemend, "--session", "alpha")
    assert (outcome.code, outcome.err) == (0, "")
    said = " ".join(outcome.out.split())
    assert "2 sessions would be deleted, 0 kept." in said
    assert "2 live, 2 archived, 1 rewound, ids 4 to 8" in said
    assert "branch stays, and loses its parent link" in said
    assert f"statemend cleanup apply {file}" in said
    assert snapshot(scene.home.root) == before
    old = plans.digest(scene.store)
    inside = scene.home.root / "run"
    assert statemend("cleanup", "apply", file, "--run-dir", inside).code == 4
    assert not inside.exists()

    done = statemend("cleanup", "apply", file, "--run-dir", tmp_path / "run")
    assert (done.code, done.err) == (0, "")
    assert "2 sessions deleted and verified." in done.out
    assert scene.sessions() == {"beta": None, "branch": None, "other": None}

    told = statemend("verify", tmp_path / "run")
    assert (told.code, "Applied and verified." in told.out) == (0, True)
    assert statemend("undo", tmp_path / "run").code == 0
    assert plans.digest(scene.store) == old
    assert "cleanup apply" in statemend("verify", tmp_path / "run").out


def test_who_is_kept_is_told_one_by_one_and_the_others_go(
    scene: Cleaned, tmp_path: Path, statemend: Run
) -> None:
    outcome, file = planned(scene, statemend, "--session", "alpha", "--session", "beta", "--session", "other")
    assert outcome.code == 4
    assert "it was never ended" in outcome.out
    scene.home.sql("UPDATE sessions SET title = 'Renamed' WHERE id = 'beta'")

    done = statemend("cleanup", "apply", file, "--run-dir", tmp_path / "run", "--format", "json")

    assert done.code == 4
    document = json.loads(done.out)
    assert [each["session"] for each in document["receipt"]["deleted"]] == ["alpha", "worker"]
    assert [each["session"] for each in document["kept"]] == ["beta"]
    assert scene.sessions().keys() == {"beta", "branch", "other"}


def test_copies_collapsed_and_had_back(tmp_path: Path, statemend: Run) -> None:
    home = HomeBuilder(tmp_path / "home", "0.22.2")
    compacted(home, "chat", messages=3, times=5)
    compacted(home, "busy", messages=3, times=5)
    home.insert(
        "session_turn_leases", conversation_id="busy", holder="elsewhere", acquired_at=1.0, expires_at=4e9
    )
    old, file = plans.digest(home.store), tmp_path / "plan.json"
    given = ("--collapse", "--session", "chat", "--session", "busy", "-o", file)
    outcome = statemend("cleanup", "plan", home.root, *given)
    assert (outcome.code, outcome.err) == (4, "")
    said = " ".join(outcome.out.split())
    assert "12 copies of rows in 1 session would be deleted, 1 kept." in said
    assert "3 live, 15 archived" in said
    assert "12 copies of 3 rows" in said
    assert "a turn lease on busy is live, held by elsewhere" in said
    assert "words to find" not in outcome.out + file.read_text()
    assert plans.digest(home.store) == old

    done = statemend("cleanup", "apply", file, "--run-dir", tmp_path / "run")
    assert (done.code, done.err) == (0, "")
    assert "12 copies in 1 session deleted and verified." in done.out
    schema = json.loads((schemas.FOLDER / "cleanup-v1.json").read_text("utf-8"))
    jsonschema.validate(json.loads(file.read_bytes()), schema)
    schema = json.loads((schemas.FOLDER / "receipt-v1.json").read_text("utf-8"))
    jsonschema.validate(json.loads((tmp_path / "run" / "receipt.json").read_bytes()), schema)
    assert "Applied and verified." in statemend("verify", tmp_path / "run").out
    story = json.loads(statemend("report", tmp_path / "run", "--format", "json").out)
    assert story["events"][0]["detail"] == "12 copies in 1 session deleted; applied and verified"
    assert story["changed"][0]["sessions"] == ["chat"]
    assert story["decisions"][0]["answer"] == "12 copies in 1 session deleted, 1 session kept"
    home.sql("DELETE FROM session_turn_leases")
    assert statemend("undo", tmp_path / "run").code == 0


def test_where_nothing_multiplied_there_is_nothing_to_collapse(scene: Cleaned, statemend: Run) -> None:
    outcome = statemend("cleanup", "plan", scene.home.root, "--collapse", "-o", scene.folder / "plan.json")
    assert (outcome.code, outcome.err) == (0, "")
    assert "There is nothing to delete." in outcome.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--session", "beta"), "name the exports that hold the sessions with --artifact DIR"),
        (("--collapse", "--older-than", "3"), "--collapse takes sessions by --session, or all"),
        (("--collapse", "--artifact", "."), "needs no --artifact"),
    ],
)
def test_what_does_not_go_together_is_said_in_a_line(
    scene: Cleaned, statemend: Run, arguments: tuple[str, ...], said: str
) -> None:
    outcome = statemend("cleanup", "plan", scene.home.root, *arguments, "-o", scene.folder / "plan.json")
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert said in outcome.err


def test_when_nothing_may_go_nothing_is_made(scene: Cleaned, statemend: Run) -> None:
    _, file = planned(scene, statemend, "--session", "beta")
    scene.home.sql("UPDATE sessions SET ended_at = NULL WHERE id = 'beta'")
    before = snapshot(scene.home.root)
    done = statemend("cleanup", "apply", file)
    assert done.code == 4
    assert "Nothing was deleted." in done.out
    assert "never ended" in done.out
    assert snapshot(scene.home.root) == before
    assert not scene.home.root.with_name("home.statemend").exists()


def test_an_age_selects(scene: Cleaned, statemend: Run) -> None:
    outcome, file = planned(scene, statemend, "--older-than", "1", "--format", "json")
    made = json.loads(outcome.out)
    assert [entry["session"] for entry in made["entries"]] == ["alpha", "beta"]
    assert made == json.loads(file.read_bytes())


def test_files_obey_the_published_schemas(scene: Cleaned, tmp_path: Path, statemend: Run) -> None:
    _, file = planned(scene, statemend, "--session", "alpha")
    statemend("cleanup", "apply", file, "--run-dir", tmp_path / "run")
    published = {
        "cleanup-v1.json": (file, tmp_path / "run" / "cleanup.json"),
        "receipt-v1.json": (tmp_path / "run" / "receipt.json",),
        "plan-v1.json": (tmp_path / "run" / "plan.json",),
        "run-v1.json": (tmp_path / "run" / "run.json",),
    }
    for name, paths in published.items():
        schema = json.loads((schemas.FOLDER / name).read_text("utf-8"))
        for path in paths:
            jsonschema.validate(json.loads(path.read_bytes()), schema)


def test_no_message_is_shown(scene: Cleaned, tmp_path: Path, statemend: Run) -> None:
    outcome, file = planned(scene, statemend, "--session", "alpha")
    done = statemend("cleanup", "apply", file, "--run-dir", tmp_path / "run")
    assert "words to find" not in outcome.out + done.out + file.read_text()
    assert "words to find" not in (tmp_path / "run" / "receipt.json").read_text()


def test_nothing_is_written_into_the_home(scene: Cleaned, statemend: Run) -> None:
    target = scene.home.root / "plan.json"
    given = ("--session", "beta", "--artifact", scene.exports, "-o", target)
    outcome = statemend("cleanup", "plan", scene.home.root, *given)
    assert outcome.code == 4
    assert not target.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name the sessions, or an age in days"),
        (("--session", "beta", "--older-than", "3"), "and not both"),
        (("--session", "nobody"), "no session"),
        (("--older-than", "-3"), "an age in days"),
    ],
)
def test_wrong_requests_are_said_in_a_line(
    scene: Cleaned, statemend: Run, arguments: tuple[str, ...], said: str
) -> None:
    outcome, file = planned(scene, statemend, *arguments)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert said in outcome.err
    assert not file.exists()


def test_a_repair_plan_is_no_cleanup_plan(scene: Cleaned, statemend: Run) -> None:
    file = plans.write(plans.plan(scene.store), scene.folder / "repair.json")
    outcome = statemend("cleanup", "apply", file)
    assert outcome.code == 2
    assert outcome.err.endswith(
        "repair.json: a plan of `statemend plan`; carry it out with `statemend apply`\n"
    )


def test_a_cleanup_is_nothing_that_apply_carries_out(scene: Cleaned, tmp_path: Path, statemend: Run) -> None:
    _, file = planned(scene, statemend, "--session", "beta")
    for verb in ("rehearse", "apply"):
        outcome = statemend(verb, file)
        assert outcome.code == 2
        assert outcome.err.endswith("carry it out with `statemend cleanup apply`\n")
    statemend("cleanup", "apply", file, "--run-dir", tmp_path / "run")
    statemend("undo", tmp_path / "run")
    outcome = statemend("apply", tmp_path / "run" / "plan.json")
    assert "no step to carry out" in " ".join(outcome.out.split())
    assert "beta" in scene.sessions()
