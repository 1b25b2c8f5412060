"""Damages to exports, and to what they were made from."""

from __future__ import annotations

import os
from pathlib import Path

from tests.hermes.damage.catalogue import LEFTOVER, UNDECIDABLE, Steps, Told, damage
from tests.hermes.damage.means import SESSION, compacted, rows, talk
from tests.hermes.home import HermesHome


@damage("EXP001", since="0.18", before="0.21.5")
def an_export_leaves_out_what_was_archived(home: HermesHome) -> Steps:
    """The loss that the releases up to 0.21.4 write themselves."""
    compacted(home)
    yield
    assert home.export(SESSION, "md").files
    return [Told("EXP001", SESSION)]


@damage("EXP002", since="0.18", before="0.21.5")
def verified_and_deleted(home: HermesHome) -> Steps:
    """The export is verified against its own selection, and all rows are deleted."""
    compacted(home)
    home.end(SESSION)
    yield
    home.delete_after_verified(SESSION)
    assert home.session(SESSION) is None
    return [Told("EXP002", SESSION)]


def _exported(home: HermesHome) -> Path:
    talk(home)
    (file,) = [path for path in home.export(SESSION, "md").files if path.suffix == ".md"]
    return file


@damage("EXP003", since="0.18")
def an_export_is_cut(home: HermesHome) -> Steps:
    file = _exported(home)
    yield
    os.truncate(file, file.stat().st_size - 40)
    return [Told("EXP003")]


@damage("EXP004", since="0.18")
def a_talk_goes_on_after_its_export(home: HermesHome) -> Steps:
    _exported(home)
    yield
    home.store("reopen_session", SESSION)
    home.exchange(SESSION, 99)
    return [Told("EXP004", SESSION, frozenset(rows(home, SESSION)[-2:]), LEFTOVER)]


@damage("EXP005", since="0.18")
def a_text_is_rewritten_after_its_export(home: HermesHome) -> Steps:
    row = rows(home, (talk(home), SESSION)[1])[2]
    assert home.export(SESSION, "jsonl").files
    yield
    home.rows("UPDATE messages SET content = 'never said' WHERE id = ?", row)
    return [Told("EXP005", SESSION, frozenset({row}), UNDECIDABLE)]


@damage("EXP011", since="0.18")
def a_listed_export_is_gone(home: HermesHome) -> Steps:
    file = _exported(home)
    yield
    file.unlink()
    return [Told("EXP011", verdict=LEFTOVER)]
