"""How much memory an audit takes when what it reads is large, measured over a whole process."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")

SID = "20260801_090000_aaaaaa"
LARGE = 50_000_000


#: Runs a command line, then says on standard error how much memory the process ever had.
_MEASURED = """
import re, sys
from statemend.cli.app import run
code = run(sys.argv[1:])
with open("/proc/self/status") as status:
    print(re.search(r"VmHWM:\\s*(\\d+) kB", status.read())[1], file=sys.stderr)
sys.exit(code)
"""


def peak(home: Path, *options: str) -> tuple[int, float]:
    """The exit code of an audit, and the most memory (MB) that its process ever had."""
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, "scan", str(home), "--format", "html", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.endswith("</html>")
    return done.returncode, int(done.stderr) / 1000


def set_cell(home: Path, sql: str, text: str) -> None:
    connection = apsw.Connection(str(home / "state.db"))
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    connection.execute(sql, {"text": text})
    connection.close()


def failing(number: int, session: str) -> str:
    """A failed append, its traceback, and what another process wrote meanwhile: 8 kB."""
    clock = f"2026-08-{number // 1440 % 28 + 1:02d} {number // 60 % 24:02d}:{number % 60:02d}:00"
    said = "Session DB append_message failed: FOREIGN KEY constraint failed"
    trace = "Traceback (most recent call last):\n" + '  File "run_agent.py", line 1, in say\n' * 6
    other = f"{clock},500 INFO [other] agent.loop: {'word ' * 30}\n"
    return f"{clock},000 WARNING [{session}] run_agent: {said}\n{trace}{other * 40}"


CELLS = {
    "content": ("UPDATE messages SET content = :text WHERE id = 1", "x" * LARGE),
    "structured content": (
        "UPDATE messages SET content = :text WHERE id = 1",
        '\0json:["' + "x" * LARGE + '"]',
    ),
    "calls": (
        "UPDATE messages SET tool_calls = :text WHERE id = 1",
        json.dumps([{"id": "a", "function": {"name": "x", "arguments": "x" * LARGE}}]),
    ),
    "title": ("UPDATE sessions SET title = :text WHERE id = '" + SID + "'", "x" * LARGE),
}


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_of_50_mb_takes_a_few_times_its_size(home: Path, name: str) -> None:
    set_cell(home, *CELLS[name])
    code, most = peak(home, "--with-content")
    assert code == 0
    assert most < 350


def test_an_export_with_a_line_of_50_mb_is_compared_in_bounded_memory(home: Path) -> None:
    text = "x" * LARGE
    set_cell(home, "UPDATE messages SET content = :text WHERE id = 1", text)
    (home / "session-exports").mkdir()
    message = {"id": 1, "role": "user", "content": text, "timestamp": 1.79e9}
    (home / "session-exports" / "x.jsonl").write_text(
        json.dumps({"id": SID, "source": "cli", "messages": [message]}) + "\n"
    )
    code, most = peak(home)
    assert code == 0
    assert most < 400


def test_logs_that_unpack_to_250_mb_are_never_held(home: Path) -> None:
    (home / "logs").mkdir()
    with gzip.open(home / "logs" / "agent.log.1.gz", "wb", compresslevel=1) as file:
        file.write(b"2026-08-01 10:00:00,123 INFO agent: started\n")
        for _ in range(250):
            file.write(bytes(1_000_000))
    code, most = peak(home)
    assert code == 0
    assert most < 120


def test_long_logs_with_failures_all_over_are_never_held(home: Path) -> None:
    """60 MB, half of it packed, with 8,000 failures of two sessions."""
    (home / "logs").mkdir()
    with (
        gzip.open(home / "logs" / "agent.log.1.gz", "wb", compresslevel=1) as old,
        open(home / "logs" / "agent.log", "wb") as new,
    ):
        for number in range(8_000):
            text = failing(number, ("20260801_100000_bbbbbb", "20260801_110000_cccccc")[number % 2])
            (old if number < 4_000 else new).write(text.encode())
    code, most = peak(home)
    assert code == 1
    assert most < 120
