"""The families of sessions whose line is not plain, and what export and resume pick in each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from statemend.audit.finding import Finding
from statemend.report.model import Family, FamilyEdge, FamilyNode
from statemend.report.text import iso, words
from statemend.store.history import Census
from statemend.store.lineage import Graph, Node
from statemend.store.schema import Era

#: Rules about lines that part, end or close into a ring; the one that says most about a family comes first.
ABOUT_LINES = ("LIN003", "LIN002", "LIN001", "LIN004", "LIN005", "LIN006", "LIN010", "LIN009", "ORP002")


def ambiguous(
    graph: Graph, findings: Iterable[Finding], counted: Mapping[str, Census], era: Era
) -> tuple[Family, ...]:
    """One entry for each family that a finding about lineage names, ordered by id.

    Picks are those of 0.22.2, the newest release known; a store from before 0.18 has no export by lineage,
    and its own release resumes it.
    """
    named: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        if finding.rule in ABOUT_LINES and finding.subject.session is not None:
            members = _members(graph, finding.subject.session)
            if len(members) > 1:
                named.setdefault(members, []).append(finding)
    found = [_family(graph, members, own, counted, era) for members, own in named.items()]
    return tuple(sorted(found, key=lambda family: family.id))


def _members(graph: Graph, session_id: str) -> tuple[str, ...]:
    """The family of a session, with parents that no longer have a row."""
    members = set(graph.family(session_id))
    members |= {node.parent_id for sid in members if (node := graph.nodes.get(sid)) and node.parent_id}
    return tuple(sorted(members))


def _family(
    graph: Graph, members: Sequence[str], findings: Sequence[Finding], counted: Mapping[str, Census], era: Era
) -> Family:
    first = min(findings, key=lambda finding: (ABOUT_LINES.index(finding.rule), finding.subject.session))
    start = first.subject.session or members[0]
    judge = Era.V22 if era >= Era.V18 else era
    edges = [edge for sid in members if (edge := graph.edge(sid)) is not None]
    return Family(
        id=members[0],
        start=start,
        nodes=tuple(_node(sid, graph.nodes.get(sid), counted.get(sid)) for sid in members),
        edges=tuple(
            FamilyEdge(
                parent=edge.parent_id,
                child=edge.child_id,
                relation=edge.relation.value,
                evidence=edge.evidence,
            )
            for edge in edges
        ),
        export=graph.export_chain(start, judge),
        resume=graph.resume_tip(start, judge),
        findings=tuple(sorted(finding.id for finding in findings)),
    )


def _node(sid: str, node: Node | None, rows: Census | None) -> FamilyNode:
    number = None if rows is None else rows.live + rows.archived + rows.rewound + rows.unset
    if node is None:
        return FamilyNode(id=sid, messages=number, present=False)
    return FamilyNode(
        id=sid,
        title=words(node.title),
        source=words(node.source),
        started_at=iso(node.started_at),
        ended_at=iso(node.ended_at),
        end_reason=words(node.end_reason),
        messages=number or 0,
    )
