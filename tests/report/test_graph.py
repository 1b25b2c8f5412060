from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from tests.report.sample import LINEAGE

from statemend.report import graph
from statemend.report.model import Family, FamilyEdge, FamilyNode


def family(links: list[tuple[str, str]], **changes: object) -> Family:
    names = sorted({name for link in links for name in link})
    values: dict[str, object] = {
        "id": names[0],
        "start": names[0],
        "nodes": tuple(FamilyNode(id=name) for name in names),
        "edges": tuple(
            FamilyEdge(parent=parent, child=child, relation="continuation") for parent, child in links
        ),
    }
    values.update(changes)
    return Family(**values)  # type: ignore[arg-type]


def test_parents_stand_above_children_and_forks_beside_each_other() -> None:
    drawing = graph.drawing(LINEAGE[0])
    places = {row.node.id: row for row in drawing.rows}
    root, exported = places["20260905_101500_aa0001"], places["20260905_114000_aa0002"]
    resumed = places["20260906_080000_aa0003"]
    assert root.y < exported.y < resumed.y
    assert exported.x == root.x < resumed.x
    assert exported.export_ends
    assert not exported.resume_opens
    assert resumed.resume_opens
    assert not resumed.exported
    assert {link.relation for link in drawing.links if link.exported} == {"continuation"}


def test_a_plain_stretch_is_folded() -> None:
    names = [f"s{number:03}" for number in range(60)]
    drawing = graph.drawing(family(list(pairwise(names))))
    folded = [row.folded for row in drawing.rows if row.folded]
    assert folded == [58]
    assert [row.node.id for row in drawing.rows] == ["s000", "s058", "s059"]
    assert len(drawing.links) == 2


def test_a_wide_family_says_how_many_are_not_drawn() -> None:
    drawing = graph.drawing(family([("a", f"b{number:03}") for number in range(70)]))
    assert len(drawing.rows) == graph.MOST_ROWS
    assert drawing.left_out == 71 - graph.MOST_ROWS


names = st.sampled_from("abcdefghijklm")


@given(st.lists(st.tuples(names, names), min_size=1, max_size=25))
def test_cycles_and_tangles_are_drawn_without_end_and_each_session_once(links: list[tuple[str, str]]) -> None:
    drawing = graph.drawing(family(links, resume="a", export=("a", "b")))
    shown = [row.node.id for row in drawing.rows]
    assert len(shown) == len(set(shown))
    assert sum(row.folded or 1 for row in drawing.rows) == len({name for link in links for name in link})
