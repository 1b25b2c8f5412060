"""``statemend artifacts``: everything that lies beside a store."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from statemend.cli.options import Exports, Format, Home, Live, OwnTexts

HELP = """List everything beside a store that holds messages or traces of sessions.

HOME is a Hermes home or a store file. Of each file: what it is, told from its content, which releases write
such files, what its format leaves out, whose messages it has and how many, and what is wrong with it. Files
that are none of the kinds known are listed with what they begin as, and those not read with the reason. So
are the tables of the store itself that tell of sessions beside their messages: what an old search index kept
of messages that are gone, where chats go, replies that were owed, tasks of subagents. No text of a message is
shown without --with-content, and nothing is written.

\b
Examples:
  statemend artifacts ~/.hermes
  statemend artifacts ~/.hermes --exports ~/exports --format json | jq '.files[].kind'
"""


def register(app: typer.Typer) -> None:
    """Add the verb to ``app``."""
    app.command("artifacts", help=HELP, short_help="List the files beside a store, and whose they are.")(
        artifacts
    )


def artifacts(
    home: Home,
    exports: Exports = None,
    live: Live = False,
    with_content: OwnTexts = False,
    format_: Annotated[Format, typer.Option("--format", help="How to list them.")] = Format.TABLE,
) -> int:
    """List them. A file that could not be read, or a store, leaves something undetermined."""
    from statemend.cli import terminal
    from statemend.errors import StoreUnreadable
    from statemend.evidence.inventory import find_home, take
    from statemend.report.artifact_list import collect
    from statemend.report.artifact_table import renderable
    from statemend.store.connection import open_for_audit

    found = find_home(home)
    with terminal.progress() as tell, ExitStack() as stack:
        store, fault = None, None
        try:
            store = stack.enter_context(open_for_audit(Path(found.store), live=live))
        except StoreUnreadable as error:
            fault = str(error)
        beside = take(found, exports or (), tell, store=store)
        listed = collect(beside, store, fault, with_content=with_content)
    terminal.answer(listed, format_, lambda: renderable(listed))
    unsure = fault is not None or any(skipped.unread for skipped in listed.skipped)
    return StoreUnreadable.exit_code if unsure else 0
