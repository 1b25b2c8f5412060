"""The ``statemend`` command: its verbs, and the one place where an error becomes a line and an exit code."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

import typer

from statemend.cli import (
    apply,
    artifacts,
    bundle,
    cleanup,
    demo,
    diff,
    explain,
    export,
    plan,
    playbook,
    rehearse,
    report,
    rules,
    scan,
    show,
    undo,
    verify,
)
from statemend.cli.output import complain, emit, only_help, open_streams, settle
from statemend.errors import StatemendError, StoreUnreadable, UsageError

EPILOG = """\b
Exit codes, the worst wins:
  0  clean, or done
  1  findings at or above --fail-on
  2  the request itself is wrong
  3  something could not be determined
  4  refused, to keep data safe
  5  failed and taken back: the store is as it was
  6  committed, but not as promised: undo is offered

\b
Start here:
  statemend scan ~/.hermes
  statemend scan ~/.hermes -o report.html
  statemend plan ~/.hermes -o plan.json
"""

#: How a system asks a program to end, as far as this one has such signals.
_ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
#: What a shell reports for a program that Ctrl-C ended; ``typer`` returns it too.
_INTERRUPTED = 130

app = typer.Typer(
    name="statemend",
    help="Audit and repair the session store of Hermes Agent, offline. Only apply, undo, cleanup and "
    "playbook run change a store; nothing is read from a network.",
    epilog=EPILOG,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
VERBS = (
    scan,
    diff,
    show,
    artifacts,
    explain,
    rules,
    plan,
    rehearse,
    apply,
    verify,
    undo,
    export,
    cleanup,
    playbook,
    report,
    bundle,
    demo,
)
for verb in VERBS:
    verb.register(app)


def _version(asked: bool) -> None:
    if asked:
        import statemend

        emit(f"statemend {statemend.__version__}\n")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    only_help(context)


class Ended(BaseException):
    """The system asked this process to end. Not an ``Exception``: what is open is closed, and nothing else
    is tried."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. No error leaves this function but one that
    ``STATEMEND_TRACEBACK=1`` asks for."""
    code = _run(arguments)
    try:
        settle()
    except StatemendError as error:
        return complain(str(error), error.exit_code)
    return code


def _run(arguments: Sequence[str]) -> int:
    try:
        result = app(args=list(arguments), prog_name="statemend", standalone_mode=False)
        if result == _INTERRUPTED:
            return complain("interrupted before it was done", _INTERRUPTED)
        return result if isinstance(result, int) else 0
    except StoreUnreadable as error:
        return complain(_with_advice(str(error)), error.exit_code)
    except StatemendError as error:
        return complain(str(error), error.exit_code)
    except typer.TyperException as error:
        return complain(f"{_lower(error.format_message())}; see `{_help(error)}`", UsageError.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return complain("interrupted before it was done", _INTERRUPTED)
    except Ended as end:
        return complain(
            f"ended by {signal.Signals(end.number).name} before it was done; run it again", 128 + end.number
        )
    except BrokenPipeError:
        return 0
    except OSError as error:
        place = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
        return complain(f"{place}{error.strerror or error}", StatemendError.exit_code)
    except Exception as error:
        if os.environ.get("STATEMEND_TRACEBACK") == "1":
            raise
        return complain(
            f"unexpected {type(error).__name__}; set STATEMEND_TRACEBACK=1 to see where, and report it",
            StatemendError.exit_code,
        )


def _with_advice(message: str) -> str:
    """What an unreadable store says, with what to do next unless it says so itself."""
    return message if "; " in message else f"{message}; `statemend scan` tells what can be done"


def _lower(message: str) -> str:
    """A message of the argument parser as part of a line: no class of an error in it, no capital at the
    start, no second sentence, no full stop at the end."""
    message = message.replace(": Value error, ", ": ").replace(". Did you mean ", "; did you mean ")
    return message[:1].lower() + message[1:].rstrip(".?")


def _help(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context is not None else 'statemend'} --help"


def main() -> None:
    """The entry point of the console script."""
    open_streams()
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _end)
    sys.exit(run(sys.argv[1:]))


def _end(number: int, _: FrameType | None) -> None:
    """Close everything on the way out: a private copy of a store is not to be left in a temporary folder."""
    for each in _ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise Ended(number)
