"""The step that audits: which rules it leaves out."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.playbook.conftest import run

TEXT = """
schema: statemend/playbook/v1
name: some
title: Some rules
purpose: Leaves rules out.
inputs:
  home: {type: path, help: The home.}
steps:
  - {do: scan, ignore: [LIN, messages-without-session]}
"""


def test_a_scan_leaves_out_what_the_step_ignores_and_says_so(home: Path) -> None:
    done = run(TEXT, home)

    (result,) = done.steps
    assert result.folder is not None
    report = json.loads((Path(done.folder) / result.folder / "report.json").read_text("utf-8"))
    ignored = {rule["id"]: rule["reason"] for rule in report["rules"] if rule["status"] == "ignored"}
    assert {id_[:3] for id_ in ignored} == {"LIN", "ORP"}
    assert set(ignored.values()) == {"left out by step scan of playbook some"}
    assert not {finding["rule"] for finding in report["findings"]} & ignored.keys()


def test_an_unknown_rule_is_a_problem_of_the_step(home: Path) -> None:
    done = run(TEXT.replace("LIN,", "LIX,"), home)

    assert done.exit_code == 2
    assert "there is no rule 'LIX'" in done.steps[0].summary


def test_of_a_home_with_profiles_the_store_is_audited_that_the_other_steps_work_on(home: Path) -> None:
    work = home / "profiles" / "work"
    work.mkdir(parents=True)
    shutil.copyfile(home / "state.db", work / "state.db")

    for place in (home, work):
        done = run(TEXT, place)
        (result,) = done.steps
        assert result.folder is not None
        report = json.loads((Path(done.folder) / result.folder / "report.json").read_text("utf-8"))
        assert [store["path"] for store in report["stores"]] == [str(place / "state.db")]
