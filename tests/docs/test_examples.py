"""Every example of a file on a page can be read by what it is for."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.docs import parsing, shell
from tests.docs.blocks import PAGES, ROOT, Block, blocks, name

from statemend.cli import config
from statemend.playbook import check, choices, source

_CI = ROOT / "docs" / "ci.md"
_KNOWN = frozenset({"sh", "bash", "console", "yaml", "json", "ini", "toml", "text"})


def _examples(*languages: str) -> Iterator[Any]:
    for page in PAGES:
        for block in blocks(page):
            if block.language in languages:
                yield pytest.param(block, id=f"{name(page)}:{block.line}")


def _file(wanted: str) -> Block:
    return next(block for block in blocks(_CI) if block.file == wanted)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_says_what_it_is(page: Path) -> None:
    assert {block.language for block in blocks(page)} <= _KNOWN


@pytest.mark.parametrize("block", [*_examples("toml")])
def test_a_configuration_is_one(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "statemend.toml"
    file.write_text(block.text, encoding="utf-8")
    assert config.load(file) is not None


@pytest.mark.parametrize("block", [*_examples("yaml")])
def test_yaml_is_what_it_says(block: Block, tmp_path: Path) -> None:
    data = yaml.safe_load(block.text)
    assert isinstance(data, dict)
    if data.get("schema") == "statemend/playbook/v1":
        assert check.problems(source.parse(block.text.encode(), "example.yaml")) == ()
    elif data.get("schema") == choices.SCHEMA:
        file = tmp_path / "choices.yaml"
        file.write_text(block.text, encoding="utf-8")
        assert choices.load(file)
    else:
        assert block.file is not None, "an example of nothing"


@pytest.mark.parametrize("block", [*_examples("json")])
def test_json_can_be_read(block: Block) -> None:
    json.loads(block.text)


def test_the_ci_job_says_what_can_be_said() -> None:
    job: dict[Any, Any] = yaml.safe_load(_file("hermes-store.yml").text)
    assert job["permissions"]["security-events"] == "write"
    assert set(job) == {"name", True, "permissions", "concurrency", "jobs"}  # YAML 1.1 reads "on" as true
    steps = job["jobs"]["audit"]["steps"]
    given = [words for step in steps for words in shell.statemends(Block("sh", step.get("run", ""), 1))]
    assert len(given) == 3
    assert [parsing.fault(words) for words in given] == [None] * 3
    uploaded = next(step["with"]["sarif_file"] for step in steps if "upload-sarif" in step.get("uses", ""))
    assert any(words[-2:] == ["-o", uploaded] for words in given)
    assert "--baseline" in given[-1]
    assert "never" not in given[-1]


def test_the_units_fit_each_other_and_the_command_line() -> None:
    service = _file("statemend-audit.service").text
    timer = _file("statemend-audit.timer").text
    (command,) = re.findall(r"^ExecStart=(.*)$", service, re.MULTILINE)
    words = shlex.split(command)
    assert words[0].endswith("/statemend")
    assert parsing.fault(words[1:]) is None
    assert "[Timer]" in timer
    assert "OnCalendar=" in timer


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not there")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    program = tmp_path / ".local" / "bin" / "statemend"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    units = []
    for wanted in ("statemend-audit.service", "statemend-audit.timer"):
        unit = tmp_path / wanted
        unit.write_text(_file(wanted).text.replace("%h", str(tmp_path)))
        units.append(str(unit))
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    said = [line for line in checked.stderr.splitlines() if "statemend-audit" in line]
    assert not said
