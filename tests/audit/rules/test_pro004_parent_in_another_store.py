"""A link to a parent that another store of the home has."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.audit.builder import facts
from tests.audit.houses import House

from statemend.audit.engine import audit
from statemend.audit.finding import Verdict
from statemend.repair.planner import make_plan

RULE = "PRO004"


@pytest.mark.fires("PRO004")
def test_the_store_that_has_the_parent_is_named(tmp_path: Path) -> None:
    house = House(tmp_path, profiles=("a", "b"))
    house["b"].chat("parent", 4, title="Before", end_reason="compression", ended_at=1_790_000_100.0)
    house.root.chat("child", 2, parent_session_id="parent")

    (found,) = house.findings(RULE, "ORP002")

    assert (found.rule, found.verdict) == (RULE, Verdict.FAULT)
    assert (found.subject.store, found.subject.session) == (str(house.root.store), "child")
    told = facts(found)
    assert told["stores that have it"] == [str(house["b"].store)]
    assert (told["title of the parent"], told["rows of the parent there"]) == ("Before", 4)
    assert found.remedy.command == f"statemend show {house['b'].store} parent"


def test_every_store_that_has_the_parent_is_named(tmp_path: Path) -> None:
    house = House(tmp_path, profiles=("a", "b"))
    known = {"source": "telegram", "session_key": "agent:a:telegram:dm:1", "profile_name": "a"}
    house["a"].chat("parent", 2, title="Before", end_reason="compression", ended_at=1_790_000_100.0, **known)
    house["b"].chat("parent", 1)
    house.root.chat("child", 2, parent_session_id="parent", title="After")

    (found,) = house.findings(RULE)

    assert "of profile a and b, not" in found.summary
    told = facts(found)
    assert (told["source of the parent"], told["label of the parent"]) == ("telegram", "a")
    assert (told["key of the parent"], told["title"]) == ("agent:a:telegram:dm:1", "After")


@pytest.mark.near_miss("PRO004")
def test_a_parent_that_is_here_or_nowhere(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.root.chat("parent")
    house.root.chat("child", parent_session_id="parent")
    house["work"].chat("lost", parent_session_id="nowhere")
    house["work"].chat("parent")

    (found,) = house.findings(RULE, "ORP002")

    assert (found.rule, found.subject.session) == ("ORP002", "lost")


def test_where_the_parents_messages_are_here_its_row_is_rebuilt_here(tmp_path: Path) -> None:
    house = House(tmp_path)
    house["work"].chat("parent")
    house.root.chat("child", parent_session_id="parent")
    house.root.message("parent")

    assert [each.rule for each in house.findings(RULE, "ORP002")] == ["ORP002"]


def test_messages_without_a_row_are_enough_to_have_it(tmp_path: Path) -> None:
    house = House(tmp_path)
    house["work"].message("parent")
    house.root.chat("child", parent_session_id="parent")

    (found,) = house.findings(RULE, "ORP002")

    assert facts(found)["session row of the parent there"] is False


@pytest.mark.parametrize("profile", [False, True])
def test_a_plan_does_not_offer_to_cut_it_off(tmp_path: Path, profile: bool) -> None:
    house = House(tmp_path)
    here, there = (house["work"], house.root) if profile else (house.root, house["work"])
    there.chat("parent")
    here.chat("child", parent_session_id="parent")

    plan = make_plan(here.root, rules=["ORP002", RULE], now=1_800_000_000.0)

    assert (plan.steps, plan.choices) == ((), ())
    assert [left.rule for left in plan.left] == [RULE]


def test_one_store_alone_says_that_the_parent_is_not_in_it(tmp_path: Path) -> None:
    house = House(tmp_path)
    house["work"].chat("parent")
    house.root.chat("child", parent_session_id="parent")

    found = audit(house.root.store, rules=["ORP002", RULE])

    assert [each.rule for each in found.findings] == ["ORP002"]
    assert {result.id: result.status for result in found.rules}[RULE] == "not applicable"


def test_a_store_that_cannot_be_read_may_have_it(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.root.chat("child", parent_session_id="parent")
    house["work"].store.write_bytes(bytes(8192))

    root, _ = house.survey(RULE)

    assert [(result.status, result.findings) for result in root.rules] == [("could not run", 0)]


@pytest.mark.parametrize("order", ["lost first", "lost last"])
def test_one_lost_parent_is_enough_to_need_every_store_and_none_needs_none(
    tmp_path: Path, order: str
) -> None:
    house = House(tmp_path, profiles=("broken", "work"))
    house["work"].chat("parent")
    house["broken"].store.write_bytes(bytes(8192))
    house.root.chat("m", parent_session_id="parent")
    assert [result.status for result in house.survey(RULE)[0].rules] == ["findings"]
    house.root.chat("a" if order == "lost first" else "z", parent_session_id="nowhere")
    assert [result.status for result in house.survey(RULE)[0].rules] == ["could not run"]
