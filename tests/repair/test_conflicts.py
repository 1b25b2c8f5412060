from __future__ import annotations

from typing import Any

import msgspec

from statemend.repair.conflicts import Claims, in_order
from statemend.repair.plan import Choice, Kind, Operation, Option, Step, StepClass


def step(name: str, *operations: Operation) -> Step:
    return Step(
        id=name,
        recipe="r",
        finding=f"f-{name}",
        step_class=StepClass.SAFE,
        title="",
        why="",
        operations=operations,
    )


def update(session: str, **after: Any) -> Operation:
    return Operation(kind=Kind.UPDATE, table="sessions", key={"id": session}, after=after)


def insert(session: str, parent: str | None = None) -> Operation:
    after = {"id": session, **({} if parent is None else {"parent_session_id": parent})}
    return Operation(kind=Kind.INSERT, table="sessions", key={"id": session}, after=after)


def held(first: Step, second: Step | Choice) -> str | None:
    claims = Claims()
    claims.add([first])
    return claims.held_by_another([second])


def test_two_steps_never_set_one_cell() -> None:
    assert held(step("a", update("s", title="x")), step("b", update("s", title="y", cwd=None))) == "a"


def test_two_steps_may_set_different_cells_of_a_row() -> None:
    assert held(step("a", update("s", title="x")), step("b", update("s", cwd="y"))) is None
    assert held(step("a", update("s", title="x")), step("b", update("t", title="y"))) is None


def test_a_row_that_is_made_belongs_to_its_step_whole() -> None:
    assert held(step("a", insert("s")), step("b", update("s", cwd="y"))) == "a"
    assert held(step("a", update("s", cwd="y")), step("b", insert("s"))) == "a"


def test_what_an_option_would_change_counts_too() -> None:
    option = Option(id="o", title="", steps=(step("b", update("s", title="y")),))
    choice = Choice(id="c", finding="f", question="", options=(option,))
    assert held(step("a", update("s", title="x")), choice) == "a"


def test_the_options_of_one_choice_may_set_the_same_cell() -> None:
    options = tuple(
        Option(id=name, title="", steps=(step(name, update("s", title=name)),)) for name in ("x", "y")
    )
    claims = Claims()
    assert claims.held_by_another([Choice(id="c", finding="f", question="", options=options)]) is None


def test_a_search_index_may_be_rebuilt_by_several() -> None:
    both = [msgspec.structs.replace(step(name), reindex=("messages_fts",)) for name in ("a", "b")]
    assert held(*both) is None


def names(*steps: Step) -> list[str]:
    return [each.id for each in in_order(steps)]


def test_a_parent_is_made_before_its_children_and_all_else_stays_in_order() -> None:
    child, grandchild = step("child", insert("c", "p")), step("grandchild", insert("g", "c"))
    parent, other = step("parent", insert("p")), step("other", update("z", title="t"))
    assert names(grandchild, other, child, parent) == ["parent", "child", "grandchild", "other"]


def test_a_link_to_a_new_row_is_set_after_that_row_is_made() -> None:
    assert names(step("link", update("c", parent_session_id="p")), step("parent", insert("p"))) == [
        "parent",
        "link",
    ]


def test_a_circle_of_parents_keeps_every_step() -> None:
    assert sorted(names(step("a", insert("a", "b")), step("b", insert("b", "a")))) == ["a", "b"]


def test_a_chain_of_thousands_is_put_in_order() -> None:
    chain = [step(str(number), insert(str(number), str(number + 1))) for number in range(5000)]
    assert names(*chain) == [str(number) for number in reversed(range(5000))]
