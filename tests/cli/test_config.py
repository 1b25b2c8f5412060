"""The configuration of a project, and leaving rules out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Outcome

from statemend.audit.registry import all_rules

Run = Callable[..., Outcome]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the current one."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def report(statemend: Run, *arguments: object) -> dict[str, Any]:
    told = statemend("scan", *arguments, "--format", "json")
    assert told.code in (0, 1), told.err
    document: dict[str, Any] = json.loads(told.out)
    return document


def ignored(document: dict[str, Any]) -> dict[str, str]:
    return {rule["id"]: rule["reason"] for rule in document["rules"] if rule["status"] == "ignored"}


def test_an_ignored_rule_is_shown_as_ignored_and_by_whom(statemend: Run, demo: Path, project: Path) -> None:
    document = report(statemend, demo, "--ignore", "LIN,orphans", "--ignore", "messages-without-session")

    left_out = ignored(document)
    assert left_out.keys() == {rule.id for rule in all_rules() if rule.id[:3] in ("LIN", "ORP")}
    assert set(left_out.values()) == {"left out by --ignore"}
    assert not {finding["rule"] for finding in document["findings"]} & left_out.keys()
    assert document["verdict"].endswith(f"; {len(left_out)} rules ignored.")


@pytest.mark.parametrize("form", ["table", "md", "html", "sarif", "junit", "summary"])
def test_every_form_tells_what_was_left_out(statemend: Run, sound: Path, project: Path, form: str) -> None:
    told = statemend("scan", sound, "--ignore", "LIN004", "--format", form)

    assert told.code == 0
    assert "left out by --ignore" in " ".join(told.out.split())
    assert "LIN004" in told.out


def test_the_file_of_the_folder_is_followed_and_named(statemend: Run, demo: Path, project: Path) -> None:
    file = project / "statemend.toml"
    file.write_text('ignore = ["LIN"]\nfail-on = "never"\ndeep = true\n', encoding="utf-8")

    told = statemend("scan", demo, "--format", "json")
    document = json.loads(told.out)
    assert told.code == 0
    assert document["fail_on"] == "never"
    assert document["stores"][0]["deep"] is True
    assert set(ignored(document).values()) == {f"left out by {file}"}


def test_what_the_rules_of_a_file_leave_out_is_told_too(statemend: Run, demo: Path, project: Path) -> None:
    file = project / "pyproject.toml"
    file.write_text(
        '[project]\nname = "x"\n[tool.statemend]\nrules = ["STO", "CNT"]\nignore = ["STO005"]\n',
        encoding="utf-8",
    )

    left_out = ignored(report(statemend, demo))
    assert left_out["STO005"] == f"left out by {file}"
    assert left_out["LIN001"] == f"left out by the rules of {file}"
    assert {rule.id for rule in all_rules()} - left_out.keys() == {
        rule.id for rule in all_rules() if rule.id[:3] in ("STO", "CNT") and rule.id != "STO005"
    }


def test_the_command_line_goes_before_the_file(statemend: Run, demo: Path, project: Path) -> None:
    (project / "statemend.toml").write_text(
        'rules = ["STO"]\nignore = ["CNT001"]\nfail-on = "never"\ndeep = true\n', encoding="utf-8"
    )

    document = report(statemend, demo, "--rules", "CNT001", "--fail-on", "fault", "--no-deep")
    assert [(rule["id"], rule["status"]) for rule in document["rules"]] == [
        ("CNT001", document["rules"][0]["status"])
    ]
    assert ignored(document) == {}
    assert document["fail_on"] == "fault"
    assert document["stores"][0]["deep"] is False


def test_statemend_toml_goes_before_pyproject_and_config_before_both(
    statemend: Run, sound: Path, project: Path, tmp_path: Path
) -> None:
    (project / "pyproject.toml").write_text('[tool.statemend]\nignore = ["LIF"]\n', encoding="utf-8")
    assert all(id_.startswith("LIF") for id_ in ignored(report(statemend, sound)))

    (project / "statemend.toml").write_text('ignore = ["MSG"]\n', encoding="utf-8")
    assert all(id_.startswith("MSG") for id_ in ignored(report(statemend, sound)))

    named = tmp_path / "other.toml"
    named.write_text('ignore = ["EXP"]\n', encoding="utf-8")
    assert all(id_.startswith("EXP") for id_ in ignored(report(statemend, sound, "--config", named)))
    assert ignored(report(statemend, sound, "--config", "/dev/null")) == {}


def test_paths_are_those_of_the_folder_of_the_file(
    statemend: Run, demo: Path, project: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "settings"
    (folder / "exports").mkdir(parents=True)
    statemend("scan", demo, "--write-baseline", folder / "known.json")
    (folder / "ci.toml").write_text('exports = ["exports"]\nbaseline = "known.json"\n', encoding="utf-8")

    document = report(statemend, demo, "--config", folder / "ci.toml")
    assert document["exports"] == [str(folder / "exports")]
    assert document["findings"] == []
    assert document["exit_code"] == 0


def test_a_file_among_the_evidence_settles_nothing(
    statemend: Run, sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sound / "statemend.toml").write_text('ignore = ["STO"]\n', encoding="utf-8")
    monkeypatch.chdir(sound)

    told = statemend("scan", ".", "--format", "json")
    assert ignored(json.loads(told.out)) == {}
    assert told.err.count("\n") == 1
    assert re.search(r"statemend\.toml: not followed, since it lies in what is audited", told.err)
    assert ignored(report(statemend, ".", "--config", "statemend.toml"))


@pytest.mark.parametrize("text", ["", "[tool.other]\nstatemend = 1\n", "[tool.other]\nx = [\n"])
def test_a_pyproject_without_our_table_is_not_ours(
    statemend: Run, sound: Path, project: Path, text: str
) -> None:
    (project / "pyproject.toml").write_text(text, encoding="utf-8")

    assert ignored(report(statemend, sound)) == {}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('ignores = ["LIF"]', "there is no key 'ignores'; did you mean 'ignore'?"),
        ('fail_on = "risk"', "there is no key 'fail_on'; did you mean 'fail-on'?"),
        ("zzz = 1", "there is no key 'zzz'; the keys are rules, ignore, exports, fail-on, baseline, deep"),
        ('rules = "LIF"', 'rules takes ids, names or families, as ["LIF"]'),
        ("ignore = [1]", 'ignore takes ids, names or families, as ["LIF"]'),
        ('fail-on = "always"', 'fail-on takes "fault", "risk" or "never"'),
        ('deep = "yes"', "deep takes true or false"),
        ("rules = []", "rules: no rule is named"),
        ('ignore = ["linaege"]', "ignore: there is no rule 'linaege': nearest are lineage"),
        ("rules = [", "not valid TOML"),
        ("\x00", "not valid TOML"),
    ],
)
def test_a_wrong_key_is_refused_with_file_key_and_nearest_name(
    statemend: Run, sound: Path, project: Path, text: str, told: str
) -> None:
    (project / "statemend.toml").write_text(text, encoding="utf-8")

    for verb in ("scan", "plan"):
        refused = statemend(verb, sound)
        assert refused.code == 2
        assert refused.out == ""
        assert refused.err.startswith(f"statemend: {project / 'statemend.toml'}: {told}"), refused.err
        assert refused.err.count("\n") == 1


@pytest.mark.parametrize("name", ["nowhere.toml", "folder.toml", "large.toml", "pyproject.toml"])
def test_a_file_that_cannot_be_followed_is_a_usage_error(
    statemend: Run, sound: Path, project: Path, name: str
) -> None:
    (project / "folder.toml").mkdir()
    (project / "large.toml").write_text("#" * 2_000_000, encoding="utf-8")
    (project / "pyproject.toml").write_text("[tool.other]\n", encoding="utf-8")

    refused = statemend("scan", sound, "--config", name)
    assert refused.code == 2
    assert refused.err.startswith(f"statemend: {name}: ")
    assert refused.err.count("\n") == 1


@pytest.mark.parametrize("verb", ["scan", "plan"])
def test_an_unknown_name_is_refused_with_the_nearest(
    statemend: Run, sound: Path, project: Path, verb: str
) -> None:
    refused = statemend(verb, sound, "--ignore", "half-stamped-ends")

    assert refused.code == 2
    assert "there is no rule 'half-stamped-ends': nearest are half-stamped-end" in refused.err


def test_leaving_out_everything_is_refused(statemend: Run, sound: Path, project: Path) -> None:
    refused = statemend("scan", sound, "--rules", "LIF001", "--ignore", "LIF")

    assert refused.code == 2
    assert "nothing is left to look for" in refused.err


def test_a_plan_follows_too_and_says_what_it_does_not_plan_for(
    statemend: Run, demo: Path, project: Path
) -> None:
    (project / "statemend.toml").write_text('ignore = ["ORP001"]\n', encoding="utf-8")

    told = statemend("plan", demo, "--format", "json")
    plan = json.loads(told.out)
    rules = {each["rule"] for each in (*plan["findings"], *plan["left"])}
    assert "ORP001" not in rules
    assert rules
    assert "not planned for: ORP001 messages-without-session was left out by" in told.err
    assert "ORP001" in {
        each["rule"]
        for each in json.loads(statemend("plan", demo, "--config", "/dev/null", "--format", "json").out)[
            "findings"
        ]
    }


def test_a_later_report_does_not_call_an_ignored_rules_finding_gone(
    statemend: Run, demo: Path, project: Path
) -> None:
    statemend("scan", demo, "--write-baseline", "known.json")

    document = report(statemend, demo, "--baseline", "known.json", "--ignore", "ORP001")
    assert any(id_.startswith("ORP001-") for id_ in document["baseline"]["unknown"])
    assert document["baseline"]["gone"] == []
