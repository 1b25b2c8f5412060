"""A bundle as it is shown at a terminal: what is in it, and what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from statemend.report.text import count, size, visible


class File(Protocol):
    """A file of a run."""

    @property
    def path(self) -> str: ...
    @property
    def size(self) -> int: ...


class LeftOut(File, Protocol):
    """A file that is not in the bundle."""

    @property
    def reason(self) -> str: ...


def of_bundle(path: str, bytes_: int, files: Sequence[File], left_out: Sequence[LeftOut]) -> RenderableType:
    """The file, how much is in it, and each file that is not."""
    parts: list[RenderableType] = [
        Text(visible(path), style="bold", overflow="fold"),
        Text(f"{count(len(files), 'file')}, {size(bytes_)}"),
    ]
    if left_out:
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column(overflow="fold")
        table.add_column(justify="right", no_wrap=True)
        table.add_column(overflow="fold")
        for each in left_out:
            table.add_row(Text(visible(each.path)), Text(size(each.size)), Text(each.reason, style="dim"))
        parts += [Text(""), Text("Left out (--with-content packs these too):"), table]
    return Group(*parts)
