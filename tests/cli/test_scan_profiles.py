"""``scan`` of a home with profiles, from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.audit.houses import House
from tests.cli.conftest import Outcome

Run = Callable[..., Outcome]


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path / "home", profiles=("job", "work"))
    house["work"].chat("parent", 2)
    house["work"].message("gone")
    house.root.chat("child", 2, parent_session_id="parent")
    return house


def test_the_worst_store_gives_the_exit_code(statemend: Run, house: House) -> None:
    root, work = house.path, house.path / "profiles" / "work"

    assert statemend("scan", root, "--rules", "ORP001,PRO").code == 1
    assert statemend("scan", root / "state.db", "--rules", "ORP001,PRO").code == 0
    assert statemend("scan", work, "--rules", "ORP001").code == 1
    assert statemend("scan", root / "profiles" / "job").code == 0

    house["job"].store.write_bytes(bytes(8192))
    assert statemend("scan", root).code == 3
    assert statemend("scan", work, "--rules", "ORP001").code == 1


def test_each_command_works_on_the_store_of_its_finding(statemend: Run, house: House) -> None:
    report = json.loads(statemend("scan", house.path, "--format", "json").out)

    assert [store["profile"] for store in report["stores"]] == ["default", "job", "work"]
    commands = {finding["rule"]: finding["remedy"]["command"] for finding in report["findings"]}
    work = house["work"].root
    assert commands["ORP001"] == f"statemend plan -o plan.json {work}"
    assert commands["PRO004"] == f"statemend show {work / 'state.db'} parent"
    assert statemend(*commands["PRO004"].split()[1:]).code == 0
    planned = json.loads(statemend("plan", work, "--format", "json").out)
    (finding,) = (each for each in report["findings"] if each["rule"] == "ORP001")
    assert [each["id"] for each in planned["findings"]] == [finding["id"]]


def test_a_verb_for_one_store_says_where_the_others_are(statemend: Run, house: House, tmp_path: Path) -> None:
    job, work = house["job"].root, house["work"].root
    note = (
        f"statemend: {house.root.store}: this store alone; for those of its profiles name {job} and {work}\n"
    )
    exported = ("export", house.path, "--at-risk", "-o", tmp_path / "exports")
    cleanup = ("cleanup", "plan", house.path, "--collapse", "-o", tmp_path / "cleanup.json")
    playbook = ("playbook", "run", "weekly-audit", "--set", f"home={house.path}", "--dry-run")
    for told in (statemend("plan", house.path), statemend(*exported), statemend(*cleanup)):
        assert (told.code, told.err) == (0, note)
    assert statemend(*playbook).err == note
    assert statemend("plan", work).err == ""
    assert statemend("scan", house.path, "--rules", "PRO").err == ""


def test_a_session_of_a_profile_is_shown_from_its_own_store(statemend: Run, house: House) -> None:
    told = statemend("show", house.path, "paren")
    assert told.code == 2
    assert told.err.endswith(f"no session 'paren'; it is of a profile: name {house['work'].root}\n")
    assert statemend("show", house["work"].root, "paren").code == 0

    house["work"].store.write_bytes(bytes(8192))
    told = statemend("show", house.path, "nobody")
    assert told.code == 2
    assert "neither in the store nor in a file beside it" in told.err
