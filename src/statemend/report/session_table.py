"""One session for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from statemend.formats.artifact import Kind
from statemend.report import blocks, text
from statemend.report.model import FamilyEdge, Holding
from statemend.report.session import Beyond, OwnTrace, Salvaged, SessionReport


def renderable(report: SessionReport) -> RenderableType:
    """The session for a ``rich`` console; nothing in it is read as markup."""
    return Group(*_parts(report))


def _parts(report: SessionReport) -> Iterator[RenderableType]:
    node = report.node
    yield Text(text.clip(node.id, 200), style="bold")
    if node.title:
        yield Text(text.clip(node.title, 200))
    yield Text()
    yield blocks.facts(_facts(report), indent=0)
    yield Text()
    yield Text("Lineage", style="bold")
    yield blocks.facts(_lineage(report), indent=0)
    yield Text()
    yield Text("Files that hold it", style="bold")
    yield from _files(report)
    if report.traces:
        yield Text()
        yield Text("What the store tells of it beside its messages", style="bold")
        yield blocks.facts(_traces(report.traces), indent=0)
        for trace in report.traces:
            yield from (Text(text.visible(each, lines=True)) for each in trace.contents or ())
    if report.salvage is not None:
        yield Text()
        yield Text("What could be restored", style="bold")
        yield blocks.facts(_salvage(report.salvage), indent=0)


_TOLD = {
    Kind.INDEX.value: "of messages that are gone, kept by the search index",
    Kind.DELEGATIONS.value: "of tasks that it gave to subagents, and of their results",
    Kind.REPLIES.value: "of replies to its chat",
}


def _traces(traces: Iterable[OwnTrace]) -> Iterator[tuple[str, str]]:
    for trace in traces:
        chat = text.clip(trace.chat, 100) if trace.chat else ""
        if trace.kind == Kind.ROUTES.value:
            yield trace.kind, f"the chat {chat} goes to it, since {trace.last_at or 'unknown'}"
            continue
        told = f"{text.count(trace.texts, 'text')} {_TOLD[trace.kind]}{f' {chat}' if chat else ''}"
        times = f", {trace.first_at or 'unknown'} to {trace.last_at or 'unknown'}" if trace.first_at else ""
        doubt = "" if trace.certain else "; they may be of another session of that chat"
        yield trace.kind, f"{told}{times}{doubt}"


def _salvage(found: Salvaged) -> Iterator[tuple[str, str]]:
    quality = (
        (found.exact, "exact"),
        (found.lossy, "without some fields"),
        (found.masked, "masked"),
        (found.suspect, "perhaps redacted"),
        (found.cut, "cut off"),
    )
    told = ", ".join(f"{number:,} {word}" for number, word in quality if number)
    yield "messages", f"{found.messages:,}: {told}" if told else "none"
    if found.messages:
        yield "from", f"{found.first_at or 'unknown'} to {found.last_at or 'unknown'}"
    if found.conflicts:
        yield "sources disagree", f"on {text.count(found.conflicts, 'message')}"
    for source in found.sources:
        alone = len(found.sources) > 1 and source.records and not source.shared
        stranger = "; shares none with any other, so it may be of another store" if alone else ""
        shows = f"shows {source.records:,}, best of {source.best:,}{stranger}"
        yield source.kind, f"{text.clip(source.artifact, 200)}: {shows}"
    for gap in found.gaps:
        number = "an unknown number" if gap.count is None else f"at least {gap.count:,}"
        yield "lost", f"{number}, {_LACKS[gap.lack]}: {gap.first_at or '?'} to {gap.last_at or '?'}"
    if not found.gaps:
        yield "lost", "nothing here tells of more"


_LACKS = {
    "cut": "behind the end of a file that is cut off",
    "compacted": "that a summary stands for",
    "filtered": "of all but the user",
}


def _facts(report: SessionReport) -> Iterator[tuple[str, str]]:
    node, views = report.node, report.views
    if not node.present:
        yield "row", "none: the store has no row for this session"
    else:
        yield "source", node.source or "none"
        yield "started", node.started_at or "unknown"
        yield "ended", f"{node.ended_at} ({node.end_reason or 'no reason'})" if node.ended_at else "open"
        yield "message_count", "none" if node.messages is None else f"{node.messages:,}"
    yield (
        "messages",
        f"{report.first_at or 'unknown'} to {report.last_at or 'unknown'}" if views.raw else "none",
    )
    yield (
        "rows",
        (
            f"{views.raw:,}: {views.live:,} live, {views.archived:,} archived, {views.rewound:,} rewound"
            + (f", {views.unset:,} in no state" if views.unset else "")
        ),
    )
    yield "active view", text.count(views.active, "message")
    yield "display view", text.count(views.display, "message")
    yield "shape", f"as {report.era} writes it"


def _lineage(report: SessionReport) -> Iterator[tuple[str, str]]:
    lineage = report.lineage
    yield "parent", _link(lineage.parent, lineage.parent.parent) if lineage.parent else "none"
    for number, edge in enumerate(lineage.children):
        yield "" if number else "children", _link(edge, edge.child)
    if not lineage.children:
        yield "children", "none"
    yield "export writes", text.listed(lineage.export, 6) if lineage.export else "this session alone"
    yield "resume opens", lineage.resume
    for number, line in enumerate(lineage.by_release):
        yield "by release" if number == 0 else "", line
    others = [sid for sid in lineage.deleted if sid != report.node.id]
    yield "a delete takes", "this session" + (f", {text.listed(others, 6)}" if others else "")
    if lineage.detached:
        yield "and cuts off", text.listed(lineage.detached, 6)


def _link(edge: FamilyEdge, sid: str) -> str:
    why = f": {'; '.join(edge.evidence)}" if edge.evidence else ""
    return f"{sid} ({edge.relation}{why})"


def _files(report: SessionReport) -> Iterator[RenderableType]:
    if not report.artifacts:
        yield Text("  none in the folders named; name others with --exports", style="dim")
        return
    for holding in report.artifacts:
        yield Text(f"  {text.clip(holding.artifact, 300)}", overflow="fold")
        yield Text(f"    {holding.kind}, {_view(holding)}: {_holds(holding)}", style="dim")
    if report.unheld:
        yield Text(
            f"{text.count(len(report.unheld), 'message')} in no file: rows {text.ranges(report.unheld)}",
            style="bold",
        )
    elif report.views.display:
        yield Text("Every message of the display view is in some file.")
    if report.beyond is not None:
        yield Text(f"The files also show {_beyond(report.beyond)}, each counted once.")


def _beyond(found: Beyond) -> str:
    parts = (
        (found.undone, "undone since"),
        (found.deleted, "deleted or written anew"),
        (found.unstored, "never stored"),
        (found.untold, "of which nothing tells whether it was stored"),
    )
    return ", ".join(f"{text.count(number, 'message')} {word}" for number, word in parts if number)


def _view(holding: Holding) -> str:
    return "view not told" if holding.scope == "unknown" else f"{holding.scope} view"


def _holds(holding: Holding) -> str:
    """What of the display view the file holds, in words; only what is there."""
    parts = (
        (holding.exact, "exact"),
        (holding.lossy, "without some fields"),
        (holding.masked, "masked"),
        (holding.changed, "with another text"),
        (holding.missing, "missing"),
        (holding.extra, "that the store does not have"),
    )
    return ", ".join(f"{number:,} {word}" for number, word in parts if number) or "nothing of it"
