"""``statemend playbook``, ``bundle`` and ``report`` as a script meets them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Outcome, snapshot

from statemend.playbook import check, shipped

Statemend = Callable[..., Outcome]
SHIPPED = (
    "append-failures",
    "before-upgrade",
    "export-loss",
    "lineage-review",
    "post-mortem",
    "preserve-and-prune",
    "weekly-audit",
)


@pytest.fixture
def home(demo: Path, tmp_path: Path) -> Path:
    """A damaged home of one's own."""
    target = tmp_path / "place" / "home"
    shutil.copytree(demo, target, copy_function=shutil.copy2)
    return target


def test_the_shipped_ones_are_listed_with_what_they_are_for(statemend: Statemend) -> None:
    listed = statemend("playbook", "list")
    assert listed.code == 0
    lines = [line.split(maxsplit=1) for line in listed.out.splitlines()]
    assert [name for name, _ in lines] == list(SHIPPED)
    assert all(title.strip() for _, title in lines)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_one_is_sound_and_shown_as_it_is(statemend: Statemend, name: str) -> None:
    assert statemend("playbook", "check", name).code == 0
    shown = statemend("playbook", "show", name)
    assert shown.out == (Path("playbooks") / f"{name}.yaml").read_text()
    playbook = check.check(shipped.find(name))
    assert playbook.name == name
    assert all(step.title for step in playbook.steps)
    assert set(playbook.inputs) >= {"home"}


@pytest.mark.parametrize("name", SHIPPED)
def test_a_dry_run_leaves_the_home_and_the_folder_as_they_are(
    statemend: Statemend, home: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home.parent)
    before = snapshot(home.parent)
    done = statemend("playbook", "run", name, "--set", f"home={home}", "--dry-run", "--format", "json")
    assert snapshot(home.parent) == before
    run = json.loads(done.out)
    assert run["folder"] == ""
    assert done.code == run["exit_code"] == max(step["exit_code"] for step in run["steps"])
    assert [step["id"] for step in run["steps"]]


def test_each_step_is_one_line_of_json(statemend: Statemend, home: Path) -> None:
    command = ("playbook", "run", "export-loss", "--set", f"home={home}", "--format", "jsonl")
    done = statemend(*command, "--run-dir", home.parent / "run")
    steps = [json.loads(line) for line in done.out.splitlines()]
    assert [step["id"] for step in steps] == ["before", "export", "verify", "after", "report"]
    assert {step["state"] for step in steps} == {"passed"}
    assert done.code == 0


def test_unattended_it_waits_with_four_and_goes_on_with_a_yes(statemend: Statemend, home: Path) -> None:
    command = ("playbook", "run", "append-failures", "--set", f"home={home}")
    waiting = statemend(*command)
    assert waiting.code == 4
    assert "waiting" in waiting.out
    assert "--yes" in waiting.out
    done = statemend(*command, "--yes")
    assert done.code == 0
    assert "goes on with a run that was not finished" in done.out


def test_a_run_is_bundled_and_told(statemend: Statemend, home: Path) -> None:
    folder = home.parent / "run"
    statemend("playbook", "run", "append-failures", "--set", f"home={home}", "--yes", "--run-dir", folder)
    packed = statemend("bundle", folder, "-o", home.parent / "b.tar.gz")
    assert packed.code == 0
    assert "snapshot.db" in packed.out
    assert "holds a store, with its messages" in packed.out
    listed = json.loads(statemend("bundle", folder, "-o", home.parent / "c.tar.gz", "--format", "json").out)
    assert listed["schema"] == "statemend/bundle/v1"
    assert {each["path"].rsplit("/", 1)[-1] for each in listed["left_out"]} == {
        "snapshot.db",
        "undo.changeset",
    }
    told = statemend("report", folder)
    assert told.code == 0
    assert told.out.startswith("<!-- statemend/story/v1 -->\n# ")
    written = statemend("report", folder, "-o", home.parent / "story.html")
    assert written.code == 0
    assert (home.parent / "story.html").read_text().startswith("<!DOCTYPE html>")
    again = statemend("report", folder, "-o", home.parent / "story.html")
    assert again.code == 0, again.err


def test_a_story_is_never_written_into_a_home(statemend: Statemend, home: Path) -> None:
    statemend("scan", home, "-o", home.parent / "r.json")
    refused = statemend("report", home.parent / "r.json", "-o", home / "story.md")
    assert refused.code == 4
    assert "lies in the audited home" in refused.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("run", "nothing"), 2, "no playbook of that name; there are append-failures"),
        (("run", "weekly-audit"), 2, "home"),
        (("run", "weekly-audit", "--set", "home=/nowhere/at/all"), 2, "/nowhere/at/all"),
        (("run", "weekly-audit", "--set", "hme=/x"), 2, "hme"),
        (("run", "weekly-audit", "--set", "home"), 2, "home"),
        (("show", "./missing.yaml"), 2, "missing.yaml"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    statemend: Statemend, arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = statemend("playbook", *arguments)
    assert done.code == code
    assert said in done.err
    assert done.err.count("\n") == 1


def test_check_names_every_mistake_with_its_place(statemend: Statemend, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(
        "schema: statemend/playbook/v1\nname: bad\ntitle: T\npurpose: P\n"
        "inputs:\n  home: {type: path, help: H}\n"
        "steps:\n  - {do: scn}\n  - {do: plan, recipe: [x]}\n  - {do: pause, message: '{{ nobody }}'}\n"
    )
    done = statemend("playbook", "check", file)
    assert done.code == 2
    places = [line.split(": ", 2)[1] for line in done.err.splitlines()]
    assert [place.rsplit(":", 2)[-2] for place in places] == ["8", "9", "10"]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DELETE FROM messages", "one SELECT"),
        ("SELECT 1; SELECT 2", "one SELECT"),
        ("ATTACH '/tmp/x' AS x", "one SELECT"),
    ],
)
def test_sql_that_does_more_than_ask_is_refused_before_anything_runs(
    statemend: Statemend, home: Path, sql: str, said: str
) -> None:
    file = home.parent / "sql.yaml"
    file.write_text(
        "schema: statemend/playbook/v1\nname: sql\ntitle: T\npurpose: P\n"
        "inputs:\n  home: {type: path, help: H}\nsteps:\n"
        f'  - {{do: check, expect: empty, message: M, sql: "{sql}"}}\n'
    )
    before = snapshot(home.parent)
    done = statemend("playbook", "run", file, "--set", f"home={home}")
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert snapshot(home.parent) == before
