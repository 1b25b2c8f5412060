"""Which store of a home a file tells of, where files of several lie together."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.audit.builder import NOW, facts
from tests.audit.houses import House

from statemend.audit.engine import audit
from statemend.repair.reexport import reexport


@pytest.fixture
def exports(tmp_path: Path) -> Path:
    folder = tmp_path / "exports"
    folder.mkdir()
    return folder


@pytest.fixture
def house(tmp_path: Path, exports: Path) -> House:
    """A home of which sessions of both stores, and one that is gone since, were exported to one folder."""
    house = House(tmp_path / "home")
    house.root.chat("of-root", 4)
    house["work"].chat("of-work", 4)
    house["work"].chat("gone", 4)
    for home, session in ((house.root, "of-root"), (house["work"], "of-work"), (house["work"], "gone")):
        reexport(home.root, [session], exports, now=NOW)
    house["work"].sql(
        "DELETE FROM messages WHERE session_id = 'gone'", "DELETE FROM sessions WHERE id = 'gone'"
    )
    return house


def test_an_export_counts_for_the_store_that_has_its_session(house: House, exports: Path) -> None:
    root, work = house.survey("EXP", "ORP003", exports=[exports])

    assert {one.session_id for one in root.coverage} == {"of-root", "gone"}
    assert {one.session_id for one in work.coverage} == {"of-work"}
    assert [one.rule for one in work.findings] == []
    (gone,) = [one for one in root.findings if one.rule == "ORP003"]
    assert facts(gone)["ids"] == ["gone"]


def test_one_store_alone_knows_nothing_of_the_others(house: House, exports: Path) -> None:
    found = audit(house.root.store, rules=["ORP003"], exports=[exports], now=NOW).findings

    assert [facts(one)["ids"] for one in found] == [["gone", "of-work"]]


def test_what_lies_in_a_profiles_folder_is_the_profiles(house: House, exports: Path) -> None:
    exports.rename(house["work"].root / "session-exports")

    root, work = house.survey("ORP003")

    assert [one.rule for one in root.findings] == []
    (gone,) = work.findings
    assert facts(gone)["ids"] == ["gone"]
