"""``statemend show``: one session."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from statemend.cli.options import Exports, Format, Live, OwnTexts, Store

HELP = """Show one session: its rows by state, its views, its place in a family, and the files that hold it.

STORE is a Hermes home or a store file. SESSION is an id, or a beginning that no other session shares. No text
of a message is shown, unless --with-content asks for those that tables of the store keep beside its messages:
in an old search index, in replies that were owed to a chat, in tasks of subagents.

\b
Examples:
  statemend show ~/.hermes 20260812_091500_4f1d2c
  statemend show state.db 20260812 --exports ~/exports --format json
"""


def register(app: typer.Typer) -> None:
    """Add the verb to ``app``."""
    app.command("show", help=HELP, short_help="Show one session and the files that hold it.")(show)


def show(
    store: Store,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="A session id, or the beginning of one.")],
    exports: Exports = None,
    live: Live = False,
    with_content: OwnTexts = False,
    format_: Annotated[Format, typer.Option("--format", help="How to show it.")] = Format.TABLE,
) -> int:
    """Show one session."""
    from statemend.cli import terminal
    from statemend.cli.profiles import with_session
    from statemend.errors import UsageError
    from statemend.evidence.inventory import find_home, take
    from statemend.report.session import NoSuchSession, read, resolve
    from statemend.report.session_table import renderable
    from statemend.report.text import listed
    from statemend.store.connection import open_for_audit

    home = find_home(store)
    with terminal.progress() as tell, open_for_audit(Path(home.store), live=live) as opened:
        inventory = take(home, exports or (), tell, store=opened)
        try:
            wanted = resolve(opened, inventory, session)
        except NoSuchSession as error:
            folders = with_session(store, session)
            if not folders:
                raise
            raise UsageError(
                f"{home.store}: no session {session!r}; it is of a profile: name {listed(folders)}"
            ) from error
        report = read(opened, inventory, wanted, with_content=with_content)
    terminal.answer(report, format_, lambda: renderable(report))
    return 0
