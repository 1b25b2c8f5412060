"""Sessions whose key names another profile than the one whose store they are in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.audit.builder import HomeBuilder, facts
from tests.audit.houses import House

from statemend.audit.finding import Verdict

Build = Callable[..., HomeBuilder]
RULE = "PRO002"
KEY = "agent:{}:telegram:dm:{}"


def row(home: HomeBuilder, name: str, profile: str, label: str | None = None, chat: int = 1) -> None:
    home.chat(name, 2, source="telegram", session_key=KEY.format(profile, chat), profile_name=label)


def route(home: HomeBuilder, profile: str, session_id: str, chat: int = 1) -> None:
    entry = json.dumps({"session_id": session_id})
    home.insert(
        "gateway_routing",
        scope="/sessions",
        session_key=KEY.format(profile, chat),
        entry_json=entry,
        updated_at=1.0,
    )


@pytest.mark.fires("PRO002")
@pytest.mark.parametrize(
    ("version", "verdict"), [("0.22.2", Verdict.FAULT), ("0.20.1", Verdict.RISK), ("0.18.2", Verdict.RISK)]
)
def test_a_profiles_sessions_in_the_homes_store(tmp_path: Path, version: str, verdict: Verdict) -> None:
    house = House(tmp_path, version)
    for name in ("one", "two"):
        row(house.root, name, "work")
    row(house.root, "own", "main")

    (found,) = house.findings(RULE)

    assert (found.verdict, found.subject.store) == (verdict, str(house.root.store))
    assert facts(found)["ids"] == ["one", "two"]
    assert facts(found)["messages in them"] == 4


def test_rows_of_every_state_are_counted_and_other_stores_do_not_matter_to_what_is_right(
    tmp_path: Path,
) -> None:
    house = House(tmp_path, profiles=("work", "broken"))
    row(house.root, "one", "work")
    house.root.turns("one", 2, active=0)
    house.root.turns("one", 5, active=0, compacted=1)
    row(house["work"], "own", "main")
    route(house["work"], "main", "own")
    house["broken"].store.write_bytes(bytes(8192))

    root, _, work = house.survey(RULE)

    assert facts(root.findings[0])["messages in them"] == 9
    assert [result.status for result in (*root.rules, *work.rules)] == ["could not run", "clean"]


def test_the_default_key_is_the_profiles_own_where_it_has_a_route_and_the_homes_store_cannot_be_read(
    tmp_path: Path,
) -> None:
    house = House(tmp_path)
    row(house["work"], "routed here", "main")
    route(house["work"], "main", "routed here")
    row(house["work"], "own", "work", chat=2)
    house.root.store.write_bytes(bytes(8192))

    assert [each.findings for each in house.survey(RULE)] == [(), ()]
    house.root.store.unlink()
    assert house.findings(RULE) == []
    assert house["work"].findings(RULE) == []


def test_the_sessions_of_each_profile_are_told_apart(tmp_path: Path) -> None:
    house = House(tmp_path, profiles=("a", "b", "c"))
    for profile in ("a", "b", "c"):
        row(house["a"], f"of {profile}", profile)

    assert {facts(each)["profile by the keys"] for each in house.findings(RULE)} == {"b", "c"}


@pytest.mark.parametrize("renamed", ["gone", "../work", "WORK"])
def test_a_profile_that_is_not_there_may_have_been_renamed(tmp_path: Path, renamed: str) -> None:
    house = House(tmp_path)
    row(house["work"], "one", renamed)

    (found,) = house.findings(RULE)

    assert found.verdict is Verdict.UNDECIDABLE
    assert "does not have" in found.summary


@pytest.mark.near_miss("PRO002")
def test_sessions_in_their_profiles_store_are_right(tmp_path: Path) -> None:
    house = House(tmp_path, profiles=("work", "main"))
    row(house["work"], "one", "work", "work")
    row(house["main"], "two", "main~", "main")
    row(house.root, "three", "main", "default")
    house.root.chat("four", 2, session_key=None)
    house.root.chat("five", 2, session_key="room:work:1")
    route(house.root, "work", "one")

    assert house.findings(RULE) == []


def test_what_the_profiles_own_store_has_too_is_told_by_another_rule(tmp_path: Path) -> None:
    house = House(tmp_path)
    row(house.root, "one", "work")
    row(house["work"], "one", "work")

    assert {each.rule for each in house.findings("PRO")} == {"PRO003"}


@pytest.mark.parametrize("version", ["0.18.2", "0.22.2"])
def test_the_default_key_in_a_profiles_store_is_usual_where_each_has_its_gateway(
    tmp_path: Path, version: str
) -> None:
    house = House(tmp_path, version)
    row(house["work"], "one", "main")

    assert house.findings(RULE) == []


def test_the_default_key_in_a_profiles_store_is_never_decided(tmp_path: Path) -> None:
    house = House(tmp_path)
    route(house.root, "work", "routed")
    row(house["work"], "labelled", "main", "work", chat=1)
    row(house["work"], "routed here", "main", chat=2)
    route(house["work"], "main", "routed here", chat=2)
    row(house["work"], "unclear", "main", chat=3)
    row(house["work"], "led to from the home", "main", chat=4)
    route(house["work"], "main", "led to from the home", chat=4)
    route(house.root, "main", "led to from the home", chat=4)

    (found,) = house.findings(RULE)

    assert found.verdict is Verdict.UNDECIDABLE
    told = facts(found)
    assert told["ids"] == ["unclear", "led to from the home"]
    assert told["of these the home's own store routes a chat to"] == 1


def test_a_store_of_which_nothing_says_whose_it_is_is_not_judged(build: Build) -> None:
    home = build("0.22.2")
    row(home, "one", "work")

    result = home.result(RULE)

    assert (result.status, result.reason) == (
        "not applicable",
        "nothing says which profile the store is of",
    )
    (home.root / "profiles").mkdir()
    assert home.result(RULE).status == "findings"


def test_a_profiles_store_that_cannot_be_read_leaves_it_open(tmp_path: Path) -> None:
    house = House(tmp_path)
    row(house.root, "one", "work")
    house["work"].store.write_bytes(bytes(8192))

    root, _ = house.survey(RULE)

    assert [(result.status, result.findings) for result in root.rules] == [("could not run", 1)]


def test_the_id_stays_when_the_release_changes(tmp_path: Path) -> None:
    ids = set()
    for version in ("0.20.1", "0.22.2"):
        house = House(tmp_path / version, version)
        row(house.root, f"of {version}", "work")
        ids.add(house.findings(RULE)[0].id)

    assert len(ids) == 1
