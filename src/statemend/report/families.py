"""The families of sessions whose line is not plain, and what export and resume pick in each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from statemend.audit import candidates
from statemend.audit.finding import Finding
from statemend.report.model import Family, FamilyEdge, FamilyNode, MessageText, Report
from statemend.report.text import iso, words
from statemend.store.history import Census
from statemend.store.lineage import Graph, Node
from statemend.store.schema import Era

#: So many families are shown; the JSON form has every one.
MOST_FAMILIES = 12
#: Rules about lines that part, end or close into a ring; the one that says most about a family comes first.
ABOUT_LINES = (
    "LIN003",
    "LIN002",
    "LIN001",
    "LIN004",
    "LIN005",
    "LIN006",
    "LIN010",
    "LIN009",
    "LIN014",
    "ORP002",
    "PRO004",
)


class Candidate(msgspec.Struct, frozen=True):
    """One of the sessions between which a finding leaves the choice: ``lines`` say what is known of it,
    ``first`` is its first message where texts were asked for."""

    session: str
    lines: tuple[str, ...]
    first: MessageText | None


def ambiguous(
    graph: Graph, findings: Iterable[Finding], counted: Mapping[str, Census], era: Era
) -> tuple[Family, ...]:
    """One entry for each family that a finding about lineage names, ordered by id.

    Picks are those of 0.22.2, the newest release known; a store from before 0.18 has no export by lineage,
    and its own release resumes it.
    """
    named: dict[tuple[str, ...], list[Finding]] = {}
    family_of: dict[str, tuple[str, ...]] = {}
    for finding in findings:
        session = finding.subject.session
        if finding.rule in ABOUT_LINES and session is not None:
            if session not in family_of:
                kin = graph.family(session)
                family_of |= dict.fromkeys(kin, _with_parents(graph, kin))
            if len(family_of[session]) > 1:
                named.setdefault(family_of[session], []).append(finding)
    found = [_family(graph, members, own, counted, era) for members, own in named.items()]
    return tuple(sorted(found, key=lambda family: family.id))


class Candidates:
    """The candidates that the findings of a report tell of. Those of a family that is shown are told there,
    once for all findings about it; any other finding tells its own."""

    def __init__(self, report: Report) -> None:
        self._findings = {finding.id: finding for finding in report.findings}
        self._firsts = {(said.store, said.session): said for said in report.contents or () if said.first}
        #: The place among the families of the one that tells the candidates of a finding, by its id.
        self.told_in = {
            id_: place
            for place, family in enumerate(report.lineage[:MOST_FAMILIES], start=1)
            for id_ in family.findings
        }

    def of_finding(self, finding: Finding) -> tuple[Candidate, ...]:
        """The candidates of one finding."""
        store = finding.subject.store
        return tuple(
            Candidate(session, lines, self._firsts.get((store, session)))
            for session, lines in candidates.of(finding)
        )

    def of_family(self, family: Family) -> tuple[Candidate, ...]:
        """The candidates of a family, each once, with the evidence that the findings about it give."""
        found: dict[str, Candidate] = {}
        for id_ in family.findings:
            if id_ in self._findings:
                for candidate in self.of_finding(self._findings[id_]):
                    found.setdefault(candidate.session, candidate)
        return tuple(found.values())


def _with_parents(graph: Graph, family: Iterable[str]) -> tuple[str, ...]:
    """A family with parents that no longer have a row."""
    members = set(family)
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
    number = None if rows is None else rows.total
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
