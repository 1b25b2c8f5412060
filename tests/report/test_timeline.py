from __future__ import annotations

import os
from pathlib import Path

from tests.report.sample import finding

from statemend.evidence.inventory import Home, take
from statemend.formats.logs import render_line
from statemend.report.model import Event
from statemend.report.timeline import events
from statemend.store.history import Census

FAILED = "Session DB append_message failed: FOREIGN KEY constraint failed"
MARKDOWN = Path(__file__).parents[1] / "data" / "exports"


def home(root: Path, **logs: list[tuple[str, str]]) -> Home:
    (root / "logs").mkdir(parents=True)
    for name, lines in logs.items():
        text = "".join(render_line(clock, "WARNING", "run_agent", FAILED, sid) for clock, sid in lines)
        (root / "logs" / f"{name}.log").write_text(text)
    return Home(str(root), str(root / "state.db"))


def test_a_burst_is_one_event_and_a_later_one_another(tmp_path: Path) -> None:
    place = home(
        tmp_path,
        agent=[
            ("2026-09-24 03:00:00,000", "a"),
            ("2026-09-24 03:00:30,000", "a"),
            ("2026-09-24 03:00:40,000", "b"),
            ("2026-09-24 03:01:20,000", "a"),
            ("2026-09-24 05:00:00,000", "a"),
        ],
    )
    found = events(take(place), (), {}, ())
    assert [(event.session, event.count, event.clock, event.until) for event in found] == [
        ("a", 3, "2026-09-24 03:00:00,000", "2026-09-24 03:01:20,000"),
        ("b", 1, "2026-09-24 03:00:40,000", None),
        ("a", 1, "2026-09-24 05:00:00,000", None),
    ]
    assert all(event.kind == "append-failed" and event.at is None for event in found)


def test_one_failure_in_two_logs_is_told_once(tmp_path: Path) -> None:
    line = [("2026-09-24 03:00:00,000", "a")]
    found = events(take(home(tmp_path, agent=line, errors=line)), (), {}, ())
    assert [event.count for event in found] == [1]


def test_an_export_without_a_time_has_that_of_its_file(tmp_path: Path) -> None:
    place = home(tmp_path)
    source = next(MARKDOWN.rglob("*.jsonl"))
    target = tmp_path / "session-exports" / "one.jsonl"
    target.parent.mkdir()
    target.write_bytes(source.read_bytes())
    os.utime(target, (1_790_000_000, 1_790_000_000))
    exported = [event for event in events(take(place), (), {}, ()) if event.kind == "exported"]
    assert exported
    assert exported[0].at == "2026-09-21T14:13:20Z" or "by the file's own time" not in exported[0].detail


def test_deletions_are_told_by_the_last_moment_known(tmp_path: Path) -> None:
    rows = {"a": Census("a", 3, 0, 0, 0, 1.0, 1_790_000_000.0)}
    compacted = Event(kind="compacted", at="2026-09-01T00:00:00Z", source="messages")
    found = events(take(home(tmp_path)), [finding("ORP001", "a", "…")], rows, [compacted])
    assert [(event.kind, event.at) for event in found] == [
        ("compacted", "2026-09-01T00:00:00Z"),
        ("deleted", "2026-09-21T14:13:20Z"),
    ]
