"""What depends on the terminal: colour and width, and a line of progress."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from statemend.cli.options import Format
from statemend.cli.output import emit

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.status import Status


def show(content: RenderableType) -> None:
    """Print something of ``rich``: in colour on a terminal, plain in a pipe."""
    if not sys.stdout.isatty():
        from statemend.report.blocks import plain

        emit(plain(content))
        return
    from rich.console import Console

    console = Console(width=min(shutil.get_terminal_size().columns, 140), highlight=False)
    with console.capture() as captured:
        console.print(content, crop=False)
    emit(captured.get())


def answer(value: Any, format_: Format, table: Callable[[], RenderableType]) -> None:
    """Print what a verb found or did, as JSON or as the ``table`` that is made of it."""
    if format_ is Format.JSON:
        from statemend.report.json import dump

        emit(dump(value))
    else:
        show(table())


class Progress:
    """Shows in one line what is being done."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def __call__(self, text: str) -> None:
        from rich.text import Text

        self._status.update(Text(text))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to a question."""
        self._status.stop()
        try:
            yield
        finally:
            self._status.start()


@contextmanager
def progress() -> Iterator[Progress | None]:
    """What shows the progress, or ``None`` when standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text("reading"), spinner="line") as status:
        yield Progress(status)
