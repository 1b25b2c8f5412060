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


def test_logs_that_unpack_to_600_mb_are_never_held(home: Path) -> None:
    (home / "logs").mkdir()
    with gzip.open(home / "logs" / "agent.log.1.gz", "wb", compresslevel=1) as file:
        file.write(b"2026-08-01 10:00:00,123 INFO agent: started\n")
        for _ in range(600):
            file.write(bytes(1_000_000))
    code, most = peak(home)
    assert code == 0
    assert most < 120
