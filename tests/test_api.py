"""The public names, and what importing the package costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import statemend
from statemend.demo.build import build


@pytest.mark.parametrize("name", sorted(set(statemend.__all__) - {"__version__"}))
def test_each_public_name_can_be_called(name: str) -> None:
    assert callable(getattr(statemend, name))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = statemend.nothing


@pytest.mark.parametrize("name", ["scan", "survey", "plan"])
def test_a_keyword_that_there_is_not_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'rule'"):
        getattr(statemend, name)(tmp_path, rule=["ORP001"])


def test_importing_loads_nothing_heavy() -> None:
    code = "import sys, statemend; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"apsw", "sqlglot", "jinja2", "typer", "rich"} & set(done.stdout.split())


def test_the_whole_way_from_a_finding_to_its_repair_and_back(tmp_path: Path) -> None:
    from statemend.repair.plan import dump

    home = build(tmp_path / "home")
    found = {finding.id for finding in statemend.scan(home).findings}
    plan = statemend.plan(home)
    (tmp_path / "plan.json").write_bytes(dump(plan))
    assert statemend.rehearse(tmp_path / "plan.json").passed

    run = statemend.apply(tmp_path / "plan.json", run_dir=tmp_path / "run")
    mended = {finding.id for finding in statemend.scan(home).findings}
    assert run.served
    assert not mended & set(run.served)
    assert statemend.verify(tmp_path / "run").state == run.state

    statemend.undo(tmp_path / "run")
    assert {finding.id for finding in statemend.scan(home).findings} == found
