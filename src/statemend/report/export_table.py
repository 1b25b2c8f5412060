"""What an export run did, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from statemend.repair.export_result import ExportedFile, Reexport, State
from statemend.report import blocks, text
from statemend.store.history import View

_WRITTEN = frozenset({State.COMPLETE, State.INCOMPLETE})


def renderable(done: Reexport) -> RenderableType:
    """The run for a ``rich`` console; nothing in it is read as markup."""
    return Group(*_parts(done))


def _parts(done: Reexport) -> Iterator[RenderableType]:
    for file in done.files:
        yield Text(text.clip(file.session, 200), style="bold")
        yield blocks.facts(_facts(file, done))
        yield Text()
    for reason in done.trouble:
        yield Text(f"Not determined: {text.clip(reason, 600)}", overflow="fold")
    yield Text(_verdict(done), style="bold")


def _facts(file: ExportedFile, done: Reexport) -> Iterator[tuple[str, str]]:
    yield "result", file.state.value
    if file.state in _WRITTEN:
        yield "file", file.path
        unit = "row" if done.view is View.RAW else "message"
        yield "holds", f"{text.count(file.messages, unit)}, {file.archived:,} archived"
        yield "view", f"{done.view.value}, as {done.format.value}"
        yield "size", text.size(file.size)
        yield "sha256", file.sha256 or ""
        yield "proof", _proof(file)
        if file.drops:
            yield "left out", ", ".join(file.drops)
    for number, reason in enumerate(file.reasons):
        yield "" if number else "because", reason
    for number, note in enumerate(file.notes):
        yield "" if number else "note", note


def _proof(file: ExportedFile) -> str:
    """What comparing the file with the store found."""
    parts = ((file.exact, "exact"), (file.lossy, "without the fields left out"))
    held = ", ".join(f"{number:,} {word}" for number, word in parts if number) or "none"
    return f"read back; messages of the display view in it: {held}"


def _verdict(done: Reexport) -> str:
    if not done.files:
        return "No session is at risk." if not done.trouble else "No session at risk was found."
    complete = sum(file.state is State.COMPLETE for file in done.files)
    said = f"{complete:,} of {text.count(len(done.files), 'session')} exported whole"
    others = [
        f"{number:,} {state.value}"
        for state in (State.INCOMPLETE, State.REFUSED, State.FAILED)
        if (number := sum(file.state is state for file in done.files))
    ]
    return f"{said}; {', '.join(others)}." if others else f"{said}."
