"""What answers at a terminal are made of: facts by label, rows that end in prose, and the next step."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress

from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from statemend.report import text

PLAIN_WIDTH = 100
_GAP = 2
_LEAST_PROSE = 24


def plain(content: RenderableType, width: int = PLAIN_WIDTH) -> str:
    """``content`` without colour, for a file or a pipe; no blanks at the ends of lines."""
    written = io.StringIO()
    console = Console(file=written, width=width, color_system=None, force_terminal=False, highlight=False)
    console.print(content, crop=False)
    return "".join(f"{line.rstrip()}\n" for line in written.getvalue().splitlines())


def unbroken(*parts: str | tuple[str, str]) -> Text:
    """One line however narrow the terminal is, so that a command or a path in it can be copied. It takes a
    console that does not crop."""
    return Text.assemble(*parts, no_wrap=True, overflow="ignore")


def next_step(said: str, *, label: str = "Next", style: str = "bold") -> Text:
    """What to do next: a command, or advice with one in it."""
    return unbroken((f"{label}: ", "dim"), (text.clip(said, 600), style))


def facts(pairs: Iterable[tuple[str, str]], *, indent: int = 2, limit: int | None = 600) -> Table:
    """A label and a value in each line; what has no value is left out, and a value is cut at ``limit``."""
    table = Table.grid(padding=(0, _GAP, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold", ratio=1)
    for label, value in pairs:
        if value:
            shown = text.visible(value) if limit is None else text.clip(value, limit)
            table.add_row(Text(" " * indent + text.clip(label, 60)), Text(shown))
    return table


class Rows:
    """Rows of short cells and, last in each, prose. Where the short ones leave no room for prose, each row
    becomes a line of them with the prose below: nothing is cut off. A column that is empty is left out."""

    def __init__(self, rows: Sequence[Sequence[Text]], *, head: Sequence[str] = ()) -> None:
        filled = [any(cell.plain for cell in column) for column in zip(*rows, strict=True)]
        self._rows = [list(compress(row, filled)) for row in rows]
        self._head = [Text(title, style="dim") for title in compress(head, filled)]

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        lines = [self._head, *self._rows] if self._head else self._rows
        widths = [max(cell.cell_len for cell in column) for column in zip(*lines, strict=True)][:-1]
        if options.max_width - sum(widths) - _GAP * len(widths) >= _LEAST_PROSE:
            yield self._table(lines)
        else:
            yield from self._stacked()

    def _table(self, lines: Sequence[Sequence[Text]]) -> Table:
        table = Table.grid(padding=(0, _GAP, 0, 0))
        for _ in lines[0][:-1]:
            table.add_column(no_wrap=True)
        table.add_column(ratio=1, overflow="fold")
        for line in lines:
            table.add_row(*line)
        return table

    def _stacked(self) -> Iterator[RenderableType]:
        for *short, prose in self._rows:
            yield Text(" " * _GAP).join(cell for cell in short if cell.plain)
            yield Padding(prose, (0, 0, 0, _GAP))
