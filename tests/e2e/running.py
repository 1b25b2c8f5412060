"""Running command lines, and what must hold of everything that they print."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import msgspec

#: A case takes well under a second. One that takes so many hangs.
PATIENCE = 60


class Outcome(msgspec.Struct, frozen=True):
    """What a command line gave."""

    code: int
    out: str
    err: str


Statemend = Callable[..., Outcome]
#: Audits a home in every format, checks what must always hold, and returns the JSON report.
Audit = Callable[..., dict[str, Any]]
#: Runs a command line that must fail, and returns its one line.
Refusal = Callable[..., str]


def assert_harmless(text: str) -> None:
    """Nothing in ``text`` makes a terminal do anything but show it. Emoji and many scripts need joiners."""
    odd = sorted({one for one in text if not one.isprintable() and one not in "\n\u200c\u200d"})
    assert odd == [], [hex(ord(character)) for character in odd]


def rules(document: dict[str, Any], status: str) -> dict[str, str]:
    """The rules of a report that ended so, each with the reason."""
    return {rule["id"]: rule["reason"] for rule in document["rules"] if rule["status"] == status}


def found(document: dict[str, Any], rule: str) -> list[dict[str, Any]]:
    """The findings of one rule."""
    return [finding for finding in document["findings"] if finding["rule"] == rule]


def process(*arguments: object, **options: Any) -> subprocess.Popen[bytes]:
    """``python -m statemend`` in a process of its own, with its output piped."""
    return subprocess.Popen(
        [sys.executable, "-m", "statemend", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **{"env": os.environ.copy(), **options},
    )


def outcome(running: subprocess.Popen[bytes]) -> Outcome:
    """Wait for a process to end."""
    out, err = running.communicate(timeout=PATIENCE)
    return Outcome(running.returncode, out.decode(), err.decode())
