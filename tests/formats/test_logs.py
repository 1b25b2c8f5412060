"""Logs: which lines tell of a loss, whose it was, and calm in front of hostile files."""

from __future__ import annotations

import gzip
import hashlib
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statemend.formats import log_lines, logs
from statemend.formats.artifact import Kind

CLOCK = "2026-09-01 10:00:00,123"
FOREIGN_KEY = "FOREIGN KEY constraint failed"
APPEND = f"Session DB append_message failed: {FOREIGN_KEY}"
SESSION = "20260901_095900_abcdef"


def append_line(clock: str = CLOCK, session_id: str | None = SESSION, message: str = APPEND) -> str:
    return logs.render_line(clock, "WARNING", "run_agent", message, session_id)


def wrote(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_a_line_is_formatted_as_the_logging_module_does() -> None:
    formatter = logging.Formatter("%(asctime)s %(levelname)s%(session_tag)s %(name)s: %(message)s")
    record = logging.LogRecord("run_agent", logging.WARNING, "", 0, APPEND, (), None)
    record.session_tag = f" [{SESSION}]"
    expected = formatter.format(record) + "\n"
    clock = expected.partition(" WARNING")[0]
    assert logs.render_line(clock, "WARNING", "run_agent", APPEND, SESSION) == expected


def test_an_append_failure_has_its_session_time_and_cause(tmp_path: Path) -> None:
    other = logs.render_line(CLOCK, "INFO", "gateway.run", "Session DB is fine")
    path = wrote(tmp_path / "agent.log", other + append_line() + "Traceback (most recent call last):\n")
    (failure,) = logs.read(path).failures
    assert failure == logs.AppendFailure(
        session_id=SESSION,
        at=1788256800.123,
        clock=CLOCK,
        error=FOREIGN_KEY,
        file=str(path),
        line=2,
        operation="append",
        level="WARNING",
    )


@pytest.mark.parametrize(
    ("message", "operation", "session_id", "error"),
    [
        (APPEND, "append", "tag", FOREIGN_KEY),
        (f"Session DB creation failed (will retry next turn): {FOREIGN_KEY}", "create", "tag", FOREIGN_KEY),
        (
            "Session DB compression split failed — new session will NOT be indexed: disk I/O error",
            "split",
            "tag",
            "disk I/O error",
        ),
        ("Session DB operation failed: database is locked", "append", "tag", "database is locked"),
        ("Incremental tool-call persistence failed after tool result: boom", "append", "tag", "boom"),
        ("finalize_turn: _persist_session failed: boom: x", "append", "tag", "boom: x"),
        (
            "Session DB transcript append failed for s1 (failure_count=2, pending=3); will retry: "
            f"{FOREIGN_KEY}",
            "append",
            "s1",
            FOREIGN_KEY,
        ),
        (
            "Session DB transcript append failed for s1 (failure_count=9, pending=3, spooled_to_disk=3); "
            "session is stalled and needs operator attention: boom",
            "append",
            "s1",
            "boom",
        ),
        (
            "Session DB transcript pending queue full for s1 (cap=100); dropping oldest message to make room",
            "drop",
            "s1",
            "",
        ),
        (
            "Session DB transcript append rejected for compression-ended s1 with no unique live child; "
            "not retrying",
            "drop",
            "s1",
            "",
        ),
        (
            "Session DB refused further writes on this handle for s1 (StateDbReplacedError); stopping SQLite "
            "writes and diverting pending transcripts to the on-disk fallback: replaced",
            "append",
            "s1",
            "replaced",
        ),
        (
            "Session DB row for s1 is missing and could not be recreated; will retry next flush",
            "create",
            "s1",
            "",
        ),
        (
            "codex app-server turn was delivered but could NOT be persisted to the session DB (session=s1) — "
            "this turn will be missing after restart/resume",
            "append",
            "s1",
            "",
        ),
        ("Failed to persist ACP session s1", "append", "s1", ""),
    ],
)
def test_every_way_to_say_it_is_understood(
    tmp_path: Path, message: str, operation: str, session_id: str, error: str
) -> None:
    path = wrote(tmp_path / "gateway.log", append_line(session_id="tag", message=message))
    (failure,) = logs.read(path).failures
    assert (failure.operation, failure.session_id, failure.error) == (operation, session_id, error)


@pytest.mark.parametrize(
    "message",
    [
        "Session DB FTS rebuild failed: x",
        "Session DB transcript pending queue full for s1 (cap=9); spooled oldest message to /x for replay",
        "Session DB row for s1 was removed under the live agent; recreated it and replaying the transcript",
        "Session DB get_session failed for system-prompt restore (session=s): x",
        f"user said: {APPEND}",
        "Failed to persist model switch: x",
    ],
)
def test_what_lost_nothing_is_no_failure(tmp_path: Path, message: str) -> None:
    assert logs.read(wrote(tmp_path / "agent.log", append_line(message=message))).failures == ()


def test_without_a_tag_the_session_is_unknown(tmp_path: Path) -> None:
    (failure,) = logs.read(wrote(tmp_path / "errors.log", append_line(session_id=None))).failures
    assert failure.session_id is None


def test_a_clock_that_is_no_time_has_no_moment(tmp_path: Path) -> None:
    path = wrote(tmp_path / "errors.log", append_line(clock="2026-13-41 99:00:00,123"))
    (failure,) = logs.read(path).failures
    assert (failure.at, failure.clock) == (None, "2026-13-41 99:00:00,123")


def test_one_event_in_two_logs_counts_once(tmp_path: Path) -> None:
    later = append_line(clock="2026-09-01 10:00:01,000")
    agent = wrote(tmp_path / "agent.log", append_line() + later)
    errors = wrote(tmp_path / "errors.log", append_line() + later)
    found = logs.distinct([*logs.read(errors).failures, *logs.read(agent).failures])
    assert [failure.clock for failure in found] == [CLOCK, "2026-09-01 10:00:01,000"]


def test_repeats_within_one_log_and_its_rotations_are_events_of_their_own(tmp_path: Path) -> None:
    old = wrote(tmp_path / "agent.log.1", append_line())
    packed = wrote(tmp_path / "agent.log.2.gz", gzip.compress(append_line().encode()))
    new = wrote(tmp_path / "agent.log", append_line())
    errors = wrote(tmp_path / "errors.log", append_line() * 2)
    failures = [failure for path in (old, packed, new, errors) for failure in logs.read(path).failures]
    assert len(logs.distinct(failures)) == 3


def test_failures_of_two_sessions_at_one_moment_are_two(tmp_path: Path) -> None:
    path = wrote(tmp_path / "agent.log", append_line(session_id="a") + append_line(session_id="b"))
    assert len(logs.distinct(logs.read(path).failures)) == 2


def test_a_gzipped_log_is_read_like_a_plain_one(tmp_path: Path) -> None:
    text = ("x\n" * 50_000 + append_line()).encode()
    path = wrote(tmp_path / "agent.log.1.gz", gzip.compress(append_line().encode()) + gzip.compress(text))
    assert logs.recognise(path.read_bytes()[:65536]) is Kind.LOG
    assert [failure.line for failure in logs.read(path).failures] == [1, 50_002]
    artifact = logs.read(path)
    assert (artifact.kind, artifact.damage) == (Kind.LOG, None)
    assert artifact.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("spoil", "damage"),
    [
        (lambda data: data[:-6], "the gzip is cut off"),
        (lambda data: data[:40] + b"\xff\xff\xff\xff" + data[44:], "the gzip is corrupt"),
        (lambda data: data + b"plain text", "something that is no gzip follows the gzip"),
        (lambda data: data + bytes(512), None),
    ],
)
def test_a_damaged_gzip_is_reported_and_read_as_far_as_it_goes(
    tmp_path: Path, spoil: Any, damage: str | None
) -> None:
    body = append_line() + "".join(f"line {number}\n" for number in range(1000))
    path = wrote(tmp_path / "agent.log.gz", spoil(gzip.compress(body.encode())))
    assert logs.read(path).damage == damage
    assert len(logs.read(path).failures) == (damage != "the gzip is corrupt")


def test_a_gzip_bomb_is_bounded(tmp_path: Path) -> None:
    packed = gzip.compress(append_line().encode() + bytes(3_000_000))
    path = wrote(tmp_path / "agent.log.gz", packed)
    lines = log_lines.LogLines([packed, b"the rest"], longest_unpacked=1_000_000)
    (kept,) = lines.marked([b"Session DB"])
    assert lines.fault == "the gzip unpacks to more than 0.953674 MiB, the rest was not read"
    assert kept == (1, append_line().rstrip("\n").encode())
    assert len(logs.read(path).failures) == 1


def test_hostile_lines_are_passed_over(tmp_path: Path) -> None:
    parts = [
        b"\0" * 300_000 + b"\n",
        b"\xff\xfe invalid Session DB \n",
        b"Session DB " * 20_000 + b"\n",
        append_line().encode(),
        b"\r\n\n",
        append_line(session_id=None, message=APPEND).rstrip("\n").encode() + b" \xff" + b"x" * 200_000,
    ]
    path = wrote(tmp_path / "agent.log", b"".join(parts))
    first, last = logs.read(path).failures
    assert (first.line, first.error) == (4, FOREIGN_KEY)
    assert last.line == 7
    assert last.error.startswith(f"{FOREIGN_KEY} \\xff")
    assert len(last.error) < log_lines.LONGEST_LINE


def test_a_line_behind_zeroes_is_read(tmp_path: Path) -> None:
    """What a power cut leaves: zeroes where the end of the log was, and the next line right behind them."""
    begun = f"conversation turn: session={SESSION} model=m provider=p platform=cli history=0"
    turn = logs.render_line(CLOCK, "INFO", "agent", begun)
    zeroes = bytes(3 * log_lines.LONGEST_LINE)
    parts = [b"started", zeroes, b"\n", zeroes, append_line().encode(), bytes(512), turn.encode(), bytes(9)]
    path = wrote(tmp_path / "agent.log", b"".join(parts))
    log = logs.read(path)
    assert [(one.line, one.session_id) for one in log.failures] == [(2, SESSION)]
    assert [(each.session_id, each.first) for each in log.turns] == [(SESSION, CLOCK)]


def test_the_turns_of_each_session_are_gathered(tmp_path: Path) -> None:
    """A clock can be set back, and one that shows no time tells nothing."""

    def begun(clock: str, session_id: str) -> str:
        text = f"conversation turn: session={session_id} model=m provider=p platform=cli history=0"
        return logs.render_line(clock, "INFO", "agent", text)

    hours = ["2026-09-01 11:00:00,000", "2026-09-01 09:00:00,500", "2026-09-01 10:00:00,000"]
    lines = [begun(hour, "a") for hour in hours]
    lines += [begun(hours[0], "b"), begun("2026-13-41 99:00:00,123", "b")]
    first, second = logs.read(wrote(tmp_path / "agent.log", "".join(lines))).turns
    assert (first.session_id, first.first, first.last) == ("a", hours[1], hours[0])
    assert (first.line, first.model, first.platform) == (1, "m", "cli")
    assert list(first.times) == [1788260400.0, 1788253200.5, 1788256800.0]
    assert (second.session_id, second.first, second.last, len(second.times)) == ("b", hours[0], hours[0], 1)


def test_the_latest_turn_and_the_latest_deletion_of_each_session_are_told(tmp_path: Path) -> None:
    def line(second: int, text: str) -> str:
        return logs.render_line(f"2026-09-01 10:00:0{second},000", "INFO", "gateway.session", text)

    turn = "conversation turn: session=a model={} provider=p platform={} history=0"
    gone = "SessionStore removed {} for deleted session a"
    lines = [
        line(2, turn.format("old", "cli")),
        line(4, turn.format("new", "telegram")),
        line(3, turn.format("back", "cli")),
        line(6, gone.format("1 routing entry")),
        line(7, gone.format("2 routing entries")),
        line(5, gone.format("1 routing entry")),
        gone.format("1 routing entry") + "\n",
    ]
    log = logs.read(wrote(tmp_path / "gateway.log", "".join(lines)))
    (turns,) = log.turns
    assert (turns.line, turns.last[-5:], turns.model, turns.platform) == (2, "4,000", "new", "telegram")
    assert [(each.session_id, each.line, each.clock[-5:]) for each in log.removals] == [("a", 5, "7,000")]


TRACEBACK = f"""Traceback (most recent call last):
  File "/opt/hermes/run_agent.py", line 2041, in _flush
    self._session_db.append_message(session_id, message)
Session DB append_message failed: {FOREIGN_KEY}
{CLOCK} is when it began
sqlite3.IntegrityError: {FOREIGN_KEY}

During handling of the above exception, another exception occurred:

  Session DB operation failed: database is locked
"""


@pytest.mark.parametrize(
    "message", [APPEND, "Failed to persist ACP session s1", "finalize_turn: _persist_session failed: boom"]
)
def test_a_traceback_is_of_the_line_before_it(tmp_path: Path, message: str) -> None:
    path = wrote(tmp_path / "agent.log", (append_line(message=message) + TRACEBACK) * 2)
    lines = TRACEBACK.count("\n") + 1
    assert [failure.line for failure in logs.read(path).failures] == [1, 1 + lines]


def test_an_error_of_several_lines_is_told_by_its_first(tmp_path: Path) -> None:
    path = wrote(tmp_path / "agent.log", append_line(message=f"{APPEND}\n[SQL: INSERT INTO messages]"))
    (failure,) = logs.read(path).failures
    assert failure.error == FOREIGN_KEY


def test_two_processes_that_write_in_turn_keep_their_own_failures(tmp_path: Path) -> None:
    """The lines of one stand between those of the other, also between the lines of its traceback."""
    first, second = TRACEBACK.splitlines(keepends=True), TRACEBACK.splitlines(keepends=True)
    torn = "".join(one + other for one, other in zip(first, second, strict=True))
    text = append_line("2026-09-01 10:00:00,200", "a") + append_line("2026-09-01 10:00:00,100", "b") + torn
    text += append_line("2026-09-01 10:00:00,300", "b") + append_line("2026-09-01 10:00:00,250", "a")
    agent = wrote(tmp_path / "agent.log", text)
    errors = wrote(tmp_path / "errors.log", "".join(sorted(text.splitlines(keepends=True))))
    found = logs.distinct([*logs.read(errors).failures, *logs.read(agent).failures])
    assert [(one.clock[-3:], one.session_id) for one in found] == [
        ("100", "b"),
        ("200", "a"),
        ("250", "a"),
        ("300", "b"),
    ]


def test_rotated_logs_are_put_in_order_of_time(tmp_path: Path) -> None:
    clocks = [f"2026-09-01 10:00:0{second},000" for second in range(4)]
    files = [
        wrote(tmp_path / "agent.log", append_line(clocks[3])),
        wrote(tmp_path / "agent.log.1", append_line(clocks[2])),
        wrote(tmp_path / "agent.log.2", append_line(clocks[1])),
        wrote(tmp_path / "agent.log.3.gz", gzip.compress(append_line(clocks[0]).encode())),
    ]
    found = logs.distinct(failure for path in files for failure in logs.read(path).failures)
    assert [failure.clock for failure in found] == clocks


@pytest.mark.parametrize(("left", "error"), [(1, FOREIGN_KEY), (12, FOREIGN_KEY[:-11]), (30, ""), (33, None)])
def test_a_last_line_that_is_cut_off_is_read_as_far_as_it_goes(
    tmp_path: Path, left: int, error: str | None
) -> None:
    path = wrote(tmp_path / "agent.log", "a line\n" + append_line()[:-left])
    assert [failure.error for failure in logs.read(path).failures] == ([] if error is None else [error])


def test_a_message_made_to_be_slow_is_not(tmp_path: Path) -> None:
    slow = "Session DB transcript append failed for " + "x (failure_count=" * 3500
    path = wrote(tmp_path / "agent.log", append_line(message=slow) * 200)
    assert logs.read(path).failures == ()


@pytest.mark.parametrize(
    "head",
    [
        append_line().encode(),
        b"\0\0\0\n\n" + append_line().encode(),
        gzip.compress(append_line().encode(), mtime=0),
        gzip.compress(append_line().encode(), mtime=0)[:-9],
        append_line().encode()[:70],
        b"2026-09-01 10:00:00,123 INFO gateway.run: started\r\n",
    ],
)
def test_a_log_is_recognised(head: bytes) -> None:
    assert logs.recognise(head) is Kind.LOG


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"text\n" + append_line().encode(),
        gzip.compress(b"text", mtime=0),
        b"\x1f\x8b\x08bad",
        b"2026-09-01 x",
    ],
)
def test_other_files_are_not_taken_for_logs(head: bytes) -> None:
    assert logs.recognise(head) is None


PARTS = st.sampled_from([b"mark", b"other", b"ma", b"rk", b"x", b"xxxxxxx", b"\0", b"\n", b"\n", b"\r\n"])


@given(st.lists(PARTS, max_size=40).map(b"".join), st.integers(1, 20), st.integers(4, 12))
@settings(max_examples=200, deadline=None)
def test_marked_lines_are_the_lines_with_a_mark(content: bytes, chunk: int, longest: int) -> None:
    chunks = [content[start : start + chunk] for start in range(0, len(content), chunk)]
    marks = (b"mark", b"other")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_lines, "LONGEST_LINE", longest)
        found = list(log_lines.LogLines(chunks).marked(marks))
    lines = enumerate((line[:longest] for line in content.replace(b"\0", b"").split(b"\n")), start=1)
    assert found == [(number, line) for number, line in lines if any(mark in line for mark in marks)]


@given(st.binary(max_size=300))
@settings(max_examples=150, deadline=None)
def test_no_content_raises(tmp_path_factory: Any, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("any")
    for start in (b"", append_line().encode(), b"\x1f\x8b\x08"):
        path = wrote(folder / "any.log", start + content)
        logs.recognise(start + content)
        log = logs.read(path)
        assert log.size == len(start + content)
        assert log.sha256 == hashlib.sha256(start + content).hexdigest()
        assert all(failure.clock for failure in log.failures)
