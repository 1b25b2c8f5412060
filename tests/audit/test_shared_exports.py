"""Exports that lie beside another store of the home than the one that has their sessions."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.audit.builder import DATA
from tests.audit.houses import House

COMPACTED = ("20260801_120000_ffffff", "20260801_123000_f2f2f2")
PLACES = ("", "profiles/other", "profiles/work")


def house(folder: Path, version: str, owner: str, place: str) -> House:
    """A home whose store at ``owner`` has real sessions, all of them exported into a folder at ``place``."""
    made = House(folder, version=version, profiles=("other", "work"))
    data = DATA / "exports" / version
    shutil.copyfile(data / "state.db", folder / owner / "state.db")
    (folder / owner / "config.yaml").write_text("sessions:\n  auto_prune: true\n")
    exports = folder / place / "session-exports"
    exports.mkdir()
    shutil.copyfile(data / "jsonl/all.jsonl", exports / "all.jsonl")
    return made


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("owner", ["", "profiles/work"])
def test_what_they_hold_is_at_no_risk(tmp_path: Path, owner: str, place: str) -> None:
    assert house(tmp_path, "0.22.2", owner, place).findings("EXP", "ORP003") == []


@pytest.mark.parametrize("place", PLACES)
def test_what_they_leave_out_is_told_once_with_the_store_that_has_it(tmp_path: Path, place: str) -> None:
    found = house(tmp_path, "0.19.0", "profiles/work", place).findings("EXP001")
    assert [finding.subject.session for finding in found] == list(COMPACTED)
    assert {finding.subject.store for finding in found} == {str(tmp_path / "profiles/work/state.db")}
    assert {finding.subject.artifact for finding in found} == {
        str(tmp_path / place / "session-exports/all.jsonl")
    }
