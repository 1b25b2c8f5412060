"""Damages to the file itself."""

from __future__ import annotations

import os

from tests.hermes.damage.catalogue import Steps, Told, damage
from tests.hermes.damage.means import SESSION, elsewhere, talk
from tests.hermes.home import HOUR, HermesHome


@damage("STO001")
def the_file_is_zeroed(home: HermesHome) -> Steps:
    talk(home)
    yield
    size = home.state_db.stat().st_size
    _remove_log(home)
    home.state_db.write_bytes(bytes(size))
    return [Told("STO001")]


@damage("STO001")
def the_file_is_cut_short(home: HermesHome) -> Steps:
    talk(home)
    yield
    _remove_log(home)
    os.truncate(home.state_db, home.state_db.stat().st_size // 2 // 4096 * 4096)
    return [Told("STO001")]


@damage("STO002")
def a_log_of_another_store_lies_there(home: HermesHome) -> Steps:
    """A restore swapped the main file and left a log whose frames follow from nothing."""
    talk(home)
    yield
    home.rest()
    log = home.path / "state.db-wal"
    log.write_bytes(b"\x37\x7f\x06\x82" + bytes(range(28)) + bytes(4096 + 24) * 3)
    return [Told("STO002")]


@damage("STO003")
def a_page_is_overwritten(home: HermesHome) -> Steps:
    talk(home, turns=3)
    yield
    page = home.rows("SELECT rootpage FROM sqlite_master WHERE name = 'idx_messages_session'")[0][0]
    size = home.rows("PRAGMA page_size")[0][0]
    home.rest()
    _remove_log(home)
    with home.state_db.open("r+b") as file:
        file.seek((page - 1) * size + 8)
        file.write(b"\xff" * 200)
    return [Told("STO003", ids=("idx_messages_session",))]


@damage("STO004", since="0.16")
def a_column_is_dropped(home: HermesHome) -> Steps:
    talk(home)
    yield
    elsewhere(home, "ALTER TABLE sessions DROP COLUMN billing_mode")
    return [Told("STO004", ids=("billing_mode",))]


@damage("STO005", follows="ORP003")
def the_store_is_begun_anew(home: HermesHome) -> Steps:
    """The file is gone, a copy of it remains, and the release silently begins an empty one."""
    talk(home, turns=8)
    assert home.snapshot()
    yield
    home.rest()
    _remove_log(home)
    home.state_db.unlink()
    home.advance(HOUR)
    talk(home, "20261201_120000_eeeeee")
    return [Told("STO005", ids=(SESSION,))]


def _remove_log(home: HermesHome) -> None:
    home.rest()
    for suffix in ("-wal", "-shm"):
        (home.path / f"state.db{suffix}").unlink(missing_ok=True)
