"""Command lines from end to end: each one must end, in one of the ways that are documented."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.e2e.folder import snapshot
from tests.e2e.running import PATIENCE, Audit, Outcome, Refusal, Statemend, assert_harmless

from statemend.cli.app import run
from statemend.report.json import SCHEMA_FILE

DATA = Path(__file__).resolve().parent.parent / "data"
FORMATS = ("json", "table", "md", "html")
#: How each of them begins and ends.
_SHAPES = {
    "json": ("{\n", "}\n"),
    "table": ("statemend ", "\n"),
    "md": ("<!-- statemend/report/v1 -->", "\n"),
    "html": ("<!DOCTYPE html>", "</html>"),
}
CONTRACT = jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))


class HangError(BaseException):
    """A command line did not end. No handler of ordinary errors may swallow this."""


@pytest.fixture(autouse=True)
def _watchdog() -> Iterator[None]:
    def bark(*_: object) -> None:
        raise HangError(f"still running after {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, bark)
    signal.alarm(PATIENCE)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def statemend(capfd: pytest.CaptureFixture[str]) -> Statemend:
    """Runs one command line in this process."""

    def call(*arguments: object) -> Outcome:
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def audit(statemend: Statemend) -> Audit:
    """Audits a home, or the store ``of`` which a folder is the home, in the four formats."""

    def call(target: Path, *options: object, code: int, home: Path | None = None) -> dict[str, Any]:
        folder = home or (target if target.is_dir() else target.parent)
        before = snapshot(folder)
        outputs = {}
        for name in FORMATS:
            told = statemend("scan", target, "--format", name, *options)
            assert (told.code, told.err) == (code, ""), f"{name}: {told.err or told.out[:2000]}"
            assert "Traceback" not in told.out
            assert told.out.startswith(_SHAPES[name][0])
            assert told.out.endswith(_SHAPES[name][1])
            assert_harmless(told.out)
            outputs[name] = told.out
        assert snapshot(folder) == before, "the audited folder changed"
        document: dict[str, Any] = json.loads(outputs["json"])
        CONTRACT.validate(document)
        assert document["exit_code"] == code
        assert document["tool"]["name"] == "statemend"
        return document

    return call


@pytest.fixture
def refusal(statemend: Statemend) -> Refusal:
    """Checks that a command line fails with one line on standard error and nothing else."""

    def call(*arguments: object, code: int, folder: Path | None = None) -> str:
        before = snapshot(folder) if folder else None
        told = statemend(*arguments)
        assert (told.code, told.out) == (code, ""), told.err or told.out[:2000]
        assert told.err.startswith("statemend: ")
        assert told.err.count("\n") == 1
        assert_harmless(told.err)
        assert folder is None or snapshot(folder) == before, "the audited folder changed"
        return told.err.removeprefix("statemend: ").rstrip("\n")

    return call


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with the store of 0.22.2 that the exports under ``tests/data`` were made from, without them."""
    folder = tmp_path / "home"
    folder.mkdir()
    shutil.copyfile(DATA / "exports" / "0.22.2" / "state.db", folder / "state.db")
    return folder
