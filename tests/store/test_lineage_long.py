"""Long lines, broad families and rings are answered as short ones are, each link looked at a few times."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import START, HomeBuilder

from statemend.store.connection import Store, open_for_audit
from statemend.store.lineage import Graph, Node
from statemend.store.schema import Era
from statemend.store.succession import Succession

ERAS = tuple(Era)


class Counting:
    """The children of sessions, and how often they were asked for."""

    def __init__(self, nodes: list[Node]) -> None:
        self.asked = 0
        self._children: dict[str, list[Node]] = {}
        for node in nodes:
            self._children.setdefault(node.parent_id or "", []).append(node)

    def __call__(self, session_id: str) -> list[Node]:
        self.asked += 1
        return self._children.get(session_id, [])


def node(number: int, parent: int | None, **values: object) -> Node:
    facts = {
        "id": f"s{number}",
        "parent_id": None if parent is None else f"s{parent}",
        "source": "cli",
        "title": None,
        "started_at": START + number * 10,
        "ended_at": START + number * 10 + 10,
        "end_reason": "compression",
        "session_key": None,
        "branched_from": None,
        "delegate_from": None,
        "reset_from": None,
        "position": number,
    }
    return Node(**{**facts, **values})  # type: ignore[arg-type]


def line(length: int) -> list[Node]:
    return [node(number, number - 1 if number else None) for number in range(length)]


def ring(length: int) -> list[Node]:
    return [node(number, (number - 1) % length) for number in range(length)]


@pytest.mark.parametrize("era", ERAS, ids=lambda era: era.name)
@pytest.mark.parametrize("shape", [line, ring])
def test_every_tip_together_asks_once_for_the_children_of_each(
    shape: Callable[[int], list[Node]], era: Era
) -> None:
    nodes = shape(1000)
    asked = Counting(nodes)
    walks = Succession({each.id: each for each in nodes}, asked, era)
    for each in nodes:
        walks.resume_tip(each.id)
    assert asked.asked <= len(nodes)


@pytest.mark.parametrize("era", ERAS, ids=lambda era: era.name)
def test_the_tip_is_as_far_as_the_release_walks(era: Era) -> None:
    nodes = line(1500)
    walks = Succession({each.id: each for each in nodes}, Counting(nodes), era)
    hops = 1000 if era is Era.V22 else 100
    told = [walks.resume_tip(f"s{number}") for number in (0, 1499 - hops, 1498 - hops, 1499)]
    assert told == [f"s{hops}", "s1499", "s1498", "s1499"]


def test_a_way_into_a_ring_is_walked_as_the_release_walks_it() -> None:
    nodes = [node(0, 2), node(1, 0), node(2, 1)]
    into = [*nodes[:2], node(2, 1, end_reason="compression"), node(3, None)]
    walks = Succession({each.id: each for each in into}, Counting(into), Era.V22)
    assert [walks.resume_tip(f"s{number}") for number in range(4)] == ["s2", "s0", "s1", "s3"]


@pytest.mark.parametrize("number", [0, 1, 499, 999])
def test_what_lies_above_is_known_in_a_line_and_in_a_ring(number: int, store: Store) -> None:
    graph = Graph(store, {each.id: each for each in line(1000)})
    assert graph.is_above("s0", f"s{number}") is (number > 0)
    assert not graph.is_above(f"s{number}", "s0")
    assert not graph.is_above(f"s{number}", f"s{number}")
    assert not graph.is_above("gone", f"s{number}")
    around = Graph(store, {each.id: each for each in ring(1000)})
    assert around.is_above("s500", f"s{number}")
    assert not around.is_above("gone", f"s{number}")


def test_a_branch_of_a_ring_is_above_nobody(store: Store) -> None:
    graph = Graph(store, {each.id: each for each in (*ring(3), node(7, 1), node(8, 7))})
    assert graph.is_above("s2", "s8")
    assert graph.is_above("s7", "s8")
    assert not graph.is_above("s8", "s2")


def test_a_deletion_looks_at_the_relatives_alone(store: Store) -> None:
    marked = [node(number, None, delegate_from=f"s{number - 1}") for number in range(1, 1000)]
    others = [node(number, None, delegate_from="s5000") for number in range(2000, 2100)]
    graph = Graph(store, {each.id: each for each in (node(0, None), *marked, *others)})
    assert len(graph.deletion("s0", Era.V22).deleted) == 1000
    assert graph.deletion("s0", Era.V13).deleted == ("s0",)
    assert len(graph.deletion("s5000", Era.V22).deleted) == 101


@pytest.fixture
def store(tmp_path_factory: pytest.TempPathFactory):
    home = HomeBuilder(tmp_path_factory.mktemp("store") / "home", "0.22.2")
    with open_for_audit(home.store) as opened:
        yield opened
