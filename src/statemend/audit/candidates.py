"""The candidates of an ambiguous family, each with the evidence that a person decides by.

Nothing here picks one. What is told of a message is when, by whom and its digest, never its text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from statemend.audit.context import Context
from statemend.audit.eras import RELEASES, RELEASES_BY_ID
from statemend.audit.facts import listed, moment, rows, words
from statemend.audit.finding import Fact, Finding, Value
from statemend.audit.pairing import FIRST_ROWS, LAST_ROWS, shared_rows
from statemend.audit.routes import led_to
from statemend.store.family import lone_node
from statemend.store.history import first_row
from statemend.store.identity import message_digest
from statemend.store.lineage import Graph, Node
from statemend.store.schema import Era

_OF_ONE = "about candidate "
#: So many candidates are told in full; the count beside them says how many there are.
MOST_TOLD = 20
#: So many sessions are named where a deletion takes or cuts off more.
_NAMED = 5
#: What a rule that uses this module reads.
READS = (FIRST_ROWS, LAST_ROWS)


def told(context: Context, candidates: Sequence[str], *, parent: str | None) -> Iterator[tuple[str, Value]]:
    """Evidence about each of the sessions ``candidates``, in their order, at most ``MOST_TOLD``. ``parent``
    is the session that each may continue, if there is one."""
    for session_id in candidates[:MOST_TOLD]:
        yield f"{_OF_ONE}{session_id}", list(lines(context, session_id, parent))


def ways(graph: Graph, start: str) -> Iterator[tuple[str, list[str]]]:
    """Evidence of where the releases of each era go from a session: on resume from a list, on resume by its
    id, and on export."""
    resumed: dict[str, list[Era]] = {}
    opened: dict[str, list[Era]] = {}
    exported: dict[str, list[Era]] = {}
    for era in RELEASES:
        resumed.setdefault(graph.resume_tip(start, era), []).append(era)
        opened.setdefault(graph.opened_by_id(start, era), []).append(era)
        exported.setdefault(_exported(graph, start, era), []).append(era)
    yield "resume goes to, by release", [f"{_releases(eras)}: {tip}" for tip, eras in resumed.items()]
    by_id = [f"{_releases(eras, RELEASES_BY_ID)}: {tip}" for tip, eras in opened.items()]
    yield "resume by its id goes to, by release", by_id
    yield "export goes on with, by release", [f"{_releases(eras)}: {end}" for end, eras in exported.items()]


def deleting(graph: Graph, session_id: str) -> Iterator[tuple[str, Value]]:
    """Evidence of what deleting the session that a finding is about takes with it."""
    yield "deleting it", [line.removeprefix("deleting it ") for line in deletions(graph, session_id)]


def of(finding: Finding) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The candidates that a finding tells of, each with its lines of evidence."""
    for fact in finding.evidence:
        if fact.label.startswith(_OF_ONE) and not isinstance(fact.value, str | int | float | None):
            yield fact.label.removeprefix(_OF_ONE), tuple(map(str, fact.value))


def beside(finding: Finding) -> tuple[Fact, ...]:
    """The evidence of a finding but for what is told of candidates."""
    return tuple(fact for fact in finding.evidence if not fact.label.startswith(_OF_ONE))


def lines(context: Context, session_id: str, parent: str | None) -> Iterator[str]:
    """What is known of one candidate, a line for each kind of evidence."""
    node = context.graph.nodes.get(session_id) or lone_node(context.store, session_id)
    if node is None:
        yield "it has no row"
        return
    yield times(context, node)
    yield f"title: {words(node.title) or 'none'}; source: {words(node.source, 40) or 'none'}"
    yield _first_message(context, session_id)
    if parent is not None and parent != session_id:
        yield _overlap(context, parent, session_id)
        edge = context.graph.edge(session_id)
        if edge is not None and edge.parent_id == parent:
            yield f"its link reads as {edge.relation.value}: {', '.join(edge.evidence)}"
    yield f"marks: {', '.join(_marks(node)) or 'none'}"
    yield f"routing: {', '.join(_routing(context, node)) or 'none'}"
    if parent is not None:
        yield f"chosen by {_choosers(context.graph, parent, session_id)}"
    yield from deletions(context.graph, session_id)


def times(context: Context, node: Node) -> str:
    """When a session was begun, ended and last used, and how many rows it holds."""
    end = (
        f"ended {moment(node.ended_at)} ({words(node.end_reason, 40)})"
        if node.ended_at is not None
        else "open"
    )
    counts = context.census.get(node.id)
    held = 0 if counts is None else counts.total
    last = node.last_active if node.last_active is not None else counts and counts.last_at
    return f"started {moment(node.started_at)}, {end}, {rows(held)}, last activity {moment(last)}"


def deletions(graph: Graph, session_id: str) -> Iterator[str]:
    """What deleting a session takes with it, by the releases that treat it alike."""
    alike: dict[str, list[Era]] = {}
    for era in RELEASES:
        gone = graph.deletion(session_id, era)
        taken = [each for each in gone.deleted if each != session_id]
        takes = f"takes {_several(taken)} with it" if taken else "takes no other session"
        cuts = f" and cuts {_several(gone.detached)} off" if gone.detached else ""
        alike.setdefault(takes + cuts, []).append(era)
    for what, eras in alike.items():
        yield f"deleting it {what} ({_releases(eras)})"


def _several(sessions: Sequence[str]) -> str:
    named = ", ".join(sessions[:_NAMED])
    more = len(sessions) - _NAMED
    return f"{named} and {more:,} more" if more > 0 else named


def _releases(eras: Sequence[Era], releases: Mapping[Era, str] = RELEASES) -> str:
    """Several eras in words: ``0.13 to 0.17, 0.22``."""
    order = list(RELEASES)
    runs: list[list[Era]] = []
    for era in eras:
        if runs and order.index(era) == order.index(runs[-1][-1]) + 1:
            runs[-1].append(era)
        else:
            runs.append([era])
    return ", ".join(_span([releases[era] for era in run]) for run in runs)


def _span(run: Sequence[str]) -> str:
    return run[0] if len(run) == 1 else f"{run[0].split()[0]} to {run[-1].split()[-1]}"


def _choosers(graph: Graph, parent: str, session_id: str) -> str:
    """The releases that go on with a session from its parent."""
    resuming = [era for era in RELEASES if graph.resumes_with(parent, era) == session_id]
    opening = [era for era in RELEASES if era not in resuming and _opens(graph, parent, session_id, era)]
    exporting = [era for era in RELEASES if graph.exports_with(parent, era) == session_id]
    chosen = [f"resume of {_releases(resuming)}"] * bool(resuming)
    chosen += [f"resume by id of {_releases(opening, RELEASES_BY_ID)}"] * bool(opening)
    chosen += [f"export of {_releases(exporting)}"] * bool(exporting)
    return " and ".join(chosen) or "no release"


def _opens(graph: Graph, parent: str, session_id: str, era: Era) -> bool:
    """Whether resume of the parent by its id ends in a session, or behind it."""
    opened = graph.opened_by_id(parent, era)
    return opened == session_id or (opened != parent and graph.is_above(session_id, opened))


def _exported(graph: Graph, start: str, era: Era) -> str:
    if era < Era.V18:
        return "these have no export by lineage"
    return graph.exports_with(start, era) or "nothing"


def _first_message(context: Context, session_id: str) -> str:
    first = first_row(context.store, session_id)
    if first is None:
        return "first message: none"
    what = ", a compaction summary" if first.summary else ""
    digest = message_digest(first).hex()[:16]
    return f"first message: {words(first.role, 20)}, {moment(first.timestamp)}, digest {digest}{what}"


def _overlap(context: Context, parent: str, session_id: str) -> str:
    shared, of_rows = shared_rows(context.store, parent, session_id)
    return f"{shared} of its first {of_rows} rows stand among the last of {parent}"


def _marks(node: Node) -> Iterator[str]:
    marks = (
        ("_branched_from", node.branched_from),
        ("_delegate_from", node.delegate_from),
        ("_reset_from", node.reset_from),
    )
    for name, value in marks:
        if value is not None:
            yield f"{name} names {'its parent' if value == node.parent_id else words(value)}"


def _routing(context: Context, node: Node) -> Iterator[str]:
    if node.session_key:
        yield f"the key {words(node.session_key)}"
    yield from listed(f"led to by {way}" for way in led_to(context.store).get(node.id, ()))
