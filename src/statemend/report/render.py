"""A report in the form that was asked for, by its name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Final

from statemend.report.model import Report

#: The module that makes each form. They are imported when they are needed: some take long to import.
_MODULES: Final = {
    "html": "html",
    "json": "json",
    "jsonl": "jsonlines",
    "junit": "junit",
    "md": "markdown",
    "sarif": "sarif",
    "summary": "summary",
    "table": "table",
}


def render(report: Report, form: str) -> str:
    """``report`` in one of the forms ``html``, ``json``, ``jsonl``, ``junit``, ``md``, ``sarif``, ``summary``
    and ``table`` (plain text)."""
    made: Callable[[Report], str] = import_module(f"statemend.report.{_MODULES[form]}").render
    return made(report)
