"""How often a scan reads a log, whoever asks what it tells, and what one that cannot be read leaves open."""

from __future__ import annotations

import builtins
import gzip
import io
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.audit.builder import START, HomeBuilder

from statemend.formats import files
from statemend.formats.logs import render_line
from statemend.repair.planner import make_plan
from statemend.report.produce import produce

Build = Callable[..., HomeBuilder]

CLOCK = "2026-09-21 10:00:00,000"
#: The rules that ask what the logs tell.
ASKING = ["ORP003", "ORP004", "STO005"]


def begun(session_id: str) -> str:
    text = f"conversation turn: session={session_id} model=m provider=p platform=cli history=0"
    return render_line(CLOCK, "INFO", "agent", text)


def failed(session_id: str) -> str:
    text = "Session DB append_message failed: database is locked"
    return render_line(CLOCK, "WARNING", "run_agent", text, session_id)


@pytest.fixture
def home(build: Build) -> HomeBuilder:
    """A home whose logs give each of the rules something to tell."""
    home = build()
    home.sql("DELETE FROM sqlite_sequence")  # the first row of all is there
    home.session("kept", started_at=START + 90_000)
    home.message("kept", timestamp=START + 90_000)
    filling = render_line(CLOCK, "INFO", "agent", "x" * 200) * 1000  # more than tells its kind
    assert len(filling) > 2 * files.HEAD_BYTES
    home.file("logs/agent.log", filling + begun("talked") + failed("failed"))
    home.file("logs/agent.log.1.gz", gzip.compress((filling + begun("packed")).encode()))
    return home


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often each file is opened."""
    times: Counter[str] = Counter()

    def counted(opener: Callable[..., Any]) -> Callable[..., Any]:
        def open_(path: Any, *arguments: Any, **options: Any) -> Any:
            if not isinstance(path, int):
                times[Path(os.fsdecode(path)).name] += 1
            return opener(path, *arguments, **options)

        return open_

    monkeypatch.setattr(builtins, "open", counted(open))
    monkeypatch.setattr(io, "open", counted(io.open))
    monkeypatch.setattr(os, "open", counted(os.open))
    return times


@pytest.mark.parametrize("rules", [None, ASKING, ["LIF"]], ids=["all", "asking", "others"])
def test_a_scan_opens_each_log_for_its_kind_and_once_for_all_that_it_tells(
    home: HomeBuilder, opened: Counter[str], rules: list[str] | None
) -> None:
    report = produce(home.root, rules=rules)

    assert (opened["agent.log"], opened["agent.log.1.gz"]) == (2, 2)
    assert any(event.kind == "append-failed" for event in report.timeline)
    if rules != ["LIF"]:
        assert {finding.rule for finding in report.findings} >= set(ASKING)


def test_a_plan_opens_each_log_as_often_as_a_scan(home: HomeBuilder, opened: Counter[str]) -> None:
    """Of an orphan's row the logs tell the model and the platform, and whether it was deleted."""
    home.message("talked", timestamp=START + 90_000)

    plan = make_plan(home.root)

    (step,) = (step for step in plan.steps if step.recipe == "rebuild-session")
    (source,) = (source for source in step.sources if source.column == "sessions.model")
    assert (source.artifact, source.locator) == (str(home.root / "logs/agent.log"), "line 1001")
    assert (opened["agent.log"], opened["agent.log.1.gz"]) == (2, 2)


def test_a_log_that_cannot_be_read_leaves_undetermined_what_it_may_tell(
    home: HomeBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may read no file may still be root: the system's refusal is played."""

    def refused(path: Path) -> bytes:
        if path.name == "agent.log":
            raise files.Undetermined(f"{path}: could not be read: Permission denied")
        return head(path)

    head = files.head
    monkeypatch.setattr(files, "head", refused)

    outcome = home.audit(*ASKING)

    assert [Path(each.path).name for each in outcome.unread] == ["agent.log"]
    told = {finding.subject.session for finding in outcome.findings if finding.rule == "ORP004"}
    assert told == set()
    assert outcome.undetermined != ()
