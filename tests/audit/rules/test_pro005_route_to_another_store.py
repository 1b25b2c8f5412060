"""Routes of a profile's own chats that lead into the store of another profile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.audit.builder import HomeBuilder, facts
from tests.audit.houses import House

from statemend.audit.finding import Verdict

RULE = "PRO005"
KEY = "agent:{}:telegram:dm:1"


def route(home: HomeBuilder, profile: str, session_id: str) -> None:
    entry = json.dumps({"session_id": session_id})
    key = KEY.format(profile)
    home.insert("gateway_routing", scope="/s", session_key=key, entry_json=entry, updated_at=1.0)


def filed(home: HomeBuilder, profile: str, session_id: str) -> None:
    key = KEY.format(profile)
    home.file("sessions/sessions.json", json.dumps({key: {"session_key": key, "session_id": session_id}}))


@pytest.mark.fires("PRO005")
@pytest.mark.parametrize(
    ("version", "verdict"), [("0.18.2", Verdict.RISK), ("0.20.1", Verdict.RISK), ("0.22.2", Verdict.LEFTOVER)]
)
def test_a_session_that_another_store_has(tmp_path: Path, version: str, verdict: Verdict) -> None:
    house = House(tmp_path, version)
    house["work"].chat("one")
    route(house.root, "main", "one")
    filed(house.root, "main", "one")

    (found,) = house.findings("PRO005", "ORP003", "ORP006")

    assert (found.rule, found.verdict, found.subject.session) == (RULE, verdict, "one")
    told = facts(found)
    assert told["stores that have the session"] == [str(house["work"].store)]
    assert told["routes in the store"] == told["keys in sessions.json"] == [KEY.format("main")]


def test_a_route_alone_and_what_both_stores_have(tmp_path: Path) -> None:
    house = House(tmp_path)
    house["work"].chat("one")
    for home in (house.root, house["work"]):
        home.chat("two")
    route(house.root, "main", "one")
    filed(house.root, "main", "two")

    (found,) = house.findings(RULE)

    assert found.subject.session == "one"
    assert "keys in sessions.json" not in facts(found)


@pytest.mark.parametrize("profile", ["main", "work"])
def test_the_file_of_a_profile_alone_tells_it_too(tmp_path: Path, profile: str) -> None:
    house = House(tmp_path)
    house.root.chat("one")
    filed(house["work"], profile, "one")

    (found,) = house.findings(RULE)

    assert found.subject.store == str(house["work"].store)


@pytest.mark.near_miss("PRO005")
def test_the_routes_of_all_profiles_are_in_the_homes_store(tmp_path: Path) -> None:
    house = House(tmp_path)
    house["work"].chat("one")
    route(house.root, "work", "one")
    filed(house.root, "work", "one")
    house.root.chat("two")
    route(house.root, "main", "two")

    assert house.findings("PRO005", "ORP003", "ORP006") == []


def test_a_session_of_no_store_is_gone(tmp_path: Path) -> None:
    house = House(tmp_path)
    route(house.root, "main", "nowhere")

    assert [found.rule for found in house.findings("PRO005", "ORP006")] == ["ORP006"]


def test_a_store_that_cannot_be_read_does_not_matter_where_no_route_leads_to_nothing(tmp_path: Path) -> None:
    house = House(tmp_path, profiles=("broken", "work"))
    house["work"].chat("one")
    route(house.root, "main", "one")
    house["broken"].store.write_bytes(bytes(8192))

    assert [result.status for result in house.survey(RULE)[0].rules] == ["findings"]


def test_a_store_that_cannot_be_read_may_have_it(tmp_path: Path) -> None:
    house = House(tmp_path)
    route(house.root, "main", "nowhere")
    house["work"].store.write_bytes(bytes(8192))

    root, _ = house.survey(RULE)

    assert [(result.status, result.findings) for result in root.rules] == [("could not run", 0)]
