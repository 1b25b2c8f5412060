"""What a person at a terminal sees."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from statemend.cli import terminal


def on_a_terminal(*arguments: object) -> tuple[int, str]:
    """Exit code and everything written, with a terminal as standard output and standard error."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "statemend", *map(str, arguments)],
        stdout=theirs,
        stderr=theirs,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "90", "NO_COLOR": ""},
    )
    os.close(theirs)
    seen = bytearray()
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux ends a terminal whose other side is closed with an error
            break
        if not part:
            break
        seen += part
    os.close(ours)
    return process.wait(), seen.decode("utf-8", "replace")


def test_a_scan_shows_colour_progress_and_the_findings(demo: Path) -> None:
    code, seen = on_a_terminal("scan", demo)
    assert code == 1
    assert "\x1b[" in seen
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen)
    assert "reading" in plain, "progress"
    assert "ORP001-" in plain
    assert "Next: statemend" in plain


def test_an_error_after_progress_is_still_one_line(demo: Path) -> None:
    code, seen = on_a_terminal("show", demo, "nobody")
    assert code == 2
    assert "Traceback" not in seen
    assert "statemend: " in seen


def test_nothing_moves_where_nobody_looks(capfd: pytest.CaptureFixture[str]) -> None:
    with terminal.progress() as tell:
        assert tell is None
    assert capfd.readouterr().err == ""
