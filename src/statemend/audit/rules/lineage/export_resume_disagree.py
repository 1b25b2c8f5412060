"""Resume and export follow different sessions from here.

What it means
Hermes walks a compressed conversation in two ways. Resume looks for the newest segment; export (with
--lineage logical) and the dashboard's delete collect the chain of segments. For this conversation they end
in different sessions, or resume ends in what looks like a subagent's private transcript: what is exported
is not what one goes on with, and a deletion by chain takes the wrong segments.

How it happens
There are several continuations (see fork): export takes the oldest, resume the liveliest. Or an empty
continuation was left by a crash and the real one came after it. Or the store was upgraded from 0.13-0.16,
whose subagent runs carry no marker, straight to 0.18 or newer: the test that would have marked them spares
the children of a compressed session, and resume then takes such a run for the continuation.

How we know
Both walks are computed with the predicates of 0.22.2, the newest known, for the first session of each
chain. The evidence also names what the release that wrote this store would follow. Two differences are
written by releases themselves and not reported: an inherited marker (one that names another session than
the parent) makes resume stop while export goes on; and a branch or a subagent's session is exported alone,
also when compression gave it a continuation that resume follows. Releases before 0.18 have no export by
lineage, so nothing is said about their stores.

What to do
Decide which continuation is right; give the other one the marker it lacks (_branched_from or _delegate_from
naming its parent). Until then export both by their own ids and do not delete by chain.

When it is a false alarm
When the chosen session is the intended one and the other is known to be abandoned. The store says neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from statemend.audit.candidates import READS, told, ways
from statemend.audit.context import Context
from statemend.audit.eras import written_by
from statemend.audit.facts import listed, words
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import READS_MESSAGES, READS_SESSIONS, Family, Level, Rule
from statemend.store.lineage import Graph, Node
from statemend.store.schema import Era


def first_segments(graph: Graph) -> Iterator[Node]:
    """The sessions that begin a chain: ended by compression, and not themselves a continuation."""
    for node in sorted(graph.nodes.values(), key=lambda node: node.id):
        if node.compressed and not graph.continues(node.parent_id, node.id):
            yield node


def path(graph: Graph, start: str, tip: str) -> tuple[str, ...]:
    """The sessions from ``start`` to ``tip``, told from the parent links of ``tip``."""
    way = {tip: None}
    here = tip
    while here != start:
        node = graph.nodes.get(here)
        if node is None or node.parent_id is None or node.parent_id in way:
            return (start, tip)
        here = node.parent_id
        way[here] = None
    return tuple(reversed(way))


def parting(graph: Graph, resumed: tuple[str, ...], exported: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Where two ways from one session part, or where the first comes to one that does not qualify; and the
    sessions that they go on with there."""
    later = exported[exported.index(resumed[0]) :] if resumed[0] in exported else exported
    for place, here in enumerate(resumed):
        ahead, beside = resumed[place + 1 : place + 2], later[place + 1 : place + 2]
        if ahead != beside or (ahead and not graph.continues(here, ahead[0])):
            return here, tuple(dict.fromkeys((*beside, *ahead)))
    return resumed[0], ()


def inherited_marker(node: Node) -> bool:
    """Whether ``node`` carries a marker that names another session than its parent."""
    markers = (node.branched_from, node.delegate_from, node.reset_from)
    return any(marker is not None for marker in markers) and node.parent_id not in markers


def subagents_on(graph: Graph, way: tuple[str, ...]) -> list[str]:
    """Sessions on a resume path that do not qualify as continuation of the one before them."""
    return [child for parent, child in pairwise(way) if not graph.continues(parent, child)]


def lawful(graph: Graph, resumed: tuple[str, ...], exported: tuple[str, ...]) -> bool:
    """Whether the two ways part only because resume stops at a continuation with an inherited marker."""
    if exported[: len(resumed)] != resumed or len(exported) == len(resumed):
        return False
    following = graph.nodes.get(exported[len(resumed)])
    return following is not None and inherited_marker(following)


def exported_alone(node: Node, exported: tuple[str, ...]) -> bool:
    """Whether export takes this session alone because it is marked as a branch or a subagent's."""
    markers = (node.branched_from, node.delegate_from)
    marked = node.parent_id in markers if node.parent_id else any(marker is not None for marker in markers)
    return exported == (node.id,) and (marked or node.source == "tool")


def check(context: Context) -> Iterator[Finding]:
    """One finding for each chain, named after its first session."""
    era = context.store.schema.era
    if era < Era.V18:
        return
    graph = context.graph
    for node in first_segments(graph):
        resumed = path(graph, node.id, graph.resume_tip(node.id, Era.V22))
        exported = graph.export_chain(node.id, Era.V22) or (node.id,)
        strangers = subagents_on(graph, resumed)
        agreed = resumed[-1] == exported[-1] or lawful(graph, resumed, exported)
        if not strangers and (agreed or exported_alone(node, exported)):
            continue
        if strangers:
            summary = "Resume ends in what is probably a subagent's transcript instead of the continuation."
        else:
            summary = "Resume and export of this conversation end in different sessions."
        own_export = graph.export_chain(node.id, era)
        point, rivals = parting(graph, resumed, exported)
        yield RULE.finding(
            context,
            session=node.id,
            summary=summary,
            evidence=(
                ("title", words(node.title)),
                ("resume goes to", resumed[-1]),
                ("export ends in", exported[-1]),
                ("path of resume", listed(resumed)),
                ("chain of export", listed(exported)),
                ("probable subagent runs on the way", listed(strangers)),
                ("resume in the store's own release", graph.resume_tip(node.id, era)),
                ("export in the store's own release", own_export[-1] if own_export else None),
                written_by(context.store),
                *ways(graph, node.id),
                *told(context, rivals, parent=point),
            ),
            remedy="Decide which session continues this one; mark the other as a branch or a subagent run.",
        )


RULE = Rule(
    id="LIN003",
    slug="export-resume-disagree",
    family=Family.LINEAGE,
    level=Level.LINEAGE,
    severity=Severity.MEDIUM,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
    recipe="fork",
    reads=(READS_SESSIONS, READS_MESSAGES, *READS),
)
