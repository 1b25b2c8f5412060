"""Which profile the key of a chat stands for, and whether the home has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.audit.houses import House

from statemend.audit.context import Context
from statemend.audit.engine import audit
from statemend.audit.ownership import exists, namespace_of, served_together
from statemend.evidence.inventory import find_home


@pytest.mark.parametrize(
    ("key", "namespace"),
    [
        ("agent:work:telegram:dm:42", "work"),
        ("agent:main:telegram", "main"),
        ("agent:work", ""),
        ("chat:work:telegram", ""),
        ("agent::telegram", ""),
        (7, ""),
        (b"agent:work:telegram", ""),
        (None, ""),
    ],
)
def test_a_key_of_another_kind_stands_for_no_profile(key: object, namespace: str) -> None:
    assert namespace_of(key) == namespace


def test_a_home_has_its_own_profile_and_those_in_its_folder(tmp_path: Path) -> None:
    House(tmp_path)
    for home in (find_home(tmp_path), find_home(tmp_path / "profiles" / "work")):
        known = [
            name for name in ("default", "work", "gone", "../profiles/work", "Work") if exists(home, name)
        ]
        assert known == ["default", "work"]


@pytest.mark.parametrize(
    ("key", "served"),
    [("agent:work:telegram:dm:42", True), ("agent:main:telegram:dm:42", False), ("agent:", False)],
)
@pytest.mark.parametrize("kept_by", ["own", "other"])
def test_a_gateway_of_several_profiles_is_told_by_a_key_in_any_store(
    tmp_path: Path, key: str, served: bool, kept_by: str
) -> None:
    house = House(tmp_path, profiles=("work", "unreadable"))
    house["unreadable"].store.write_bytes(b"no database")
    home = house.root if kept_by == "own" else house["work"]
    home.chat("chat", session_key=key)
    told: list[bool] = []

    def note(context: Context, _: object) -> None:
        told.append(served_together(context))

    audit(tmp_path, rules=["STO001"], observe=note)

    assert told == [served]
