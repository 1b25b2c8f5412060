"""The commands that show a statement of a story again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from statemend.report.model import Report


def again(report: Report, rule: str | None = None) -> str:
    """The command that makes a report like this one."""
    options = [option for folder in report.exports for option in ("--exports", folder)]
    options += ["--rules", rule] if rule else []
    options += ["--deep"] if any(store.deep for store in report.stores) else []
    return command("scan", report.home, *options)


def show(report: Report, session: str | None) -> str:
    return again(report) if session is None else command("show", report.home, session)


def export_again(store: str, sessions: Sequence[str], form: str) -> str:
    return command("export", store, *sessions[:3], "--format", form, "-o", "DIR")


def command(verb: str, *arguments: str) -> str:
    return shlex.join(["statemend", *verb.split(), *arguments])
