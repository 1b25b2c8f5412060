"""Holds a command line against the parser, without running it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import typer

from statemend.cli.app import app


def fault(words: Sequence[str], *, whole: bool = True) -> str | None:
    """What the parser says against a command line (without ``statemend``), ``None`` when it takes it. One
    that is not ``whole``, as a text names it, may lack what it needs, but nothing in it may be wrong."""
    command = _root()
    context, name, rest = None, "statemend", list(words)
    try:
        while hasattr(command, "commands"):
            if not (rest or whole):
                return None
            context = command.make_context(name, rest, parent=context)
            rest = [*context._protected_args, *context.args]
            name, command, rest = command.resolve_command(context, rest)
        command.make_context(name, rest, parent=context)
    except typer.TyperException as error:
        lacking = type(error).__name__ == "MissingParameter"
        return None if lacking and not whole else str(error.format_message())
    except typer.Exit:  # --help, --version
        return None
    return None


def verbs() -> Iterator[tuple[str, Any]]:
    """Every verb with its command, those of groups as ``group verb``."""
    yield from _verbs("", _root())


@cache
def _root() -> Any:
    return typer.main.get_command(app)


def _verbs(above: str, group: Any) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        yield f"{above}{name}", command
        if hasattr(command, "commands"):
            yield from _verbs(f"{above}{name} ", command)
