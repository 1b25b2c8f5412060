"""A catalogue of damages: each is done to a healthy home in use, and one rule has to tell of it.

There is one module for each family of rules. ``catalogue`` says what a damage is, does it and judges what was
told of it; ``means`` is what damages are done with.
"""

from __future__ import annotations

from tests.hermes.damage import (
    counters,
    exports,
    lifecycle,
    lineage,
    messages,
    orphans,
    profiles,
    search,
    store,
)
from tests.hermes.damage.catalogue import CATALOGUE, Damage, Look, Told, damage, strike, wrongs
from tests.hermes.damage.means import memory

__all__ = [
    "CATALOGUE",
    "Damage",
    "Look",
    "Told",
    "counters",
    "damage",
    "exports",
    "lifecycle",
    "lineage",
    "memory",
    "messages",
    "orphans",
    "profiles",
    "search",
    "store",
    "strike",
    "wrongs",
]
