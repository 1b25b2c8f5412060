"""Whose the texts are that an old search index kept."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.audit.builder import START, HomeBuilder
from tests.audit.rules.test_sto005_store_younger_than_evidence import export, keep
from tests.store.test_index_texts import forgotten

from statemend.evidence.index_leftovers import Leftover, leftovers
from statemend.evidence.inventory import Inventory, find_home, take
from statemend.store.connection import open_for_audit


@pytest.fixture
def home(tmp_path: Path) -> HomeBuilder:
    made = HomeBuilder(tmp_path / "home", "0.19.0")
    made.chat("stays", 2)
    made.chat("goes", 3)
    return made


def told(home: HomeBuilder) -> list[Leftover]:
    with open_for_audit(home.store) as store:
        return list(leftovers(store, take(find_home(home.root), store=store)))


def deep(home: HomeBuilder) -> Inventory:
    with open_for_audit(home.store) as store:
        return take(find_home(home.root), store=store, deep=True)


def test_without_an_artifact_they_are_nobodys(home: HomeBuilder) -> None:
    forgotten(home, "goes")
    assert [each.session_id for each in told(home)] == [None] * 3


def test_an_export_with_row_ids_names_the_session(home: HomeBuilder) -> None:
    path = export(home, "goes")
    home.message("goes", content="after the export", timestamp=START + 9)
    forgotten(home, "goes")
    assert [(each.session_id, each.artifact) for each in told(home)] == [
        *[("goes", str(path))] * 3,
        (None, None),
    ]


def test_another_store_names_the_session(home: HomeBuilder) -> None:
    path = keep(home)
    forgotten(home, "goes")
    assert {(each.session_id, each.artifact) for each in told(home)} == {("goes", str(path))}


def test_the_same_ids_with_other_texts_name_nobody(home: HomeBuilder) -> None:
    export(home, "goes")
    keep(home)
    home.sql("UPDATE messages SET content = 'rewritten ' || id WHERE session_id = 'goes'")
    forgotten(home, "goes")
    assert [each.session_id for each in told(home)] == [None] * 3


def test_a_deep_look_counts_them_in_other_stores(home: HomeBuilder) -> None:
    copy = home.root / "state-snapshots" / "1" / "state.db"
    copy.parent.mkdir(parents=True)
    forgotten(home, "goes")
    shutil.copyfile(home.store, copy)
    inventory = deep(home)
    ((section,),) = [each.sections for each in inventory.stores]
    assert (section.session_id, section.held) == ("", 3)
    assert section.damage is not None
    assert section.damage.startswith("texts of 3 messages whose rows are gone")
    assert inventory.stores_by_session() == {}
