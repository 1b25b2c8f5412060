"""Damages to what is counted."""

from __future__ import annotations

from tests.hermes.damage.catalogue import Steps, Told, damage
from tests.hermes.damage.means import SESSION, talk
from tests.hermes.home import HermesHome


@damage("CNT001")
def the_counter_is_wrong(home: HermesHome) -> Steps:
    talk(home)
    yield
    home.rows("UPDATE sessions SET message_count = 0 WHERE id = ?", SESSION)
    return [Told("CNT001", SESSION)]
