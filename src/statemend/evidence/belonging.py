"""Which store of a home a file tells of, where the home has several.

What lies in a profile's folder is that profile's, and what lies anywhere else is the home's own; but a part
that names sessions belongs to the store that has them, and an export of them too, wherever it lies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from statemend.evidence.inventory import Inventory
from statemend.formats.artifact import FILTERED, TRANSCRIPTS, Artifact, Kind, Section

#: Somebody chose where these lie. What an agent writes by itself lies beside its own store.
ASKED_FOR = TRANSCRIPTS | FILTERED | {Kind.TRACE, Kind.SAVE_JSON, Kind.SAVE_MARKDOWN, Kind.DESKTOP_JSON}

Holds = Callable[[str], bool]
A = TypeVar("A", bound=Artifact)


def share(
    inventory: Inventory, others: Iterable[Inventory] = (), *, here: Holds, elsewhere: Holds, first: bool
) -> Inventory:
    """The part of ``inventory`` that is of its own store, of several of one home, and the exports of this
    store's sessions that lie beside the ``others``. ``here`` and ``elsewhere`` say whether that store, and
    whether another, has a session. The ``first`` takes what is nobody's."""
    root = Path(inventory.home.root)

    def own(artifacts: Iterable[A]) -> tuple[A, ...]:
        return tuple(
            kept
            for artifact in artifacts
            if (kept := _part(artifact, first or Path(artifact.path).is_relative_to(root), here, elsewhere))
        )

    seen = {artifact.path for artifact in inventory.artifacts}
    exports = (each for other in others for each in other.artifacts if each.kind in ASKED_FOR)
    found = (_part(each, False, here, elsewhere) for each in exports if each.path not in seen)
    return msgspec.structs.replace(
        inventory,
        artifacts=(*own(inventory.artifacts), *filter(None, found)),
        logs=own(inventory.logs),
        manifests=own(inventory.manifests),
        stores=own(inventory.stores),
    )


def _part(artifact: A, mine: bool, here: Holds, elsewhere: Holds) -> A | None:
    """What remains of an artifact, if anything: nothing of one that tells of other stores' sessions alone, or
    that lies elsewhere (not ``mine``) and tells of none of this one's."""

    def belongs(section: Section) -> bool:
        ids = list(filter(None, (section.session_id, *section.lineage)))
        if any(map(here, ids)):
            return True
        return mine and not any(map(elsewhere, ids))

    kept = tuple(filter(belongs, artifact.sections))
    if len(kept) == len(artifact.sections):
        return artifact if kept or mine else None
    return msgspec.structs.replace(artifact, sections=kept) if kept else None
