"""What verbs that work on one store say of a home in which there are several."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from statemend.evidence.inventory import Home

_BEGINS = """
    SELECT 1 FROM sessions WHERE substr(id, 1, ?2) = ?1
    UNION ALL SELECT 1 FROM messages WHERE substr(session_id, 1, ?2) = ?1
    LIMIT 1
"""


def say_alone(path: Path) -> None:
    """Say on standard error which folders to name for the stores of profiles, where the home at ``path`` has
    such."""
    from statemend.cli.output import complain
    from statemend.report.text import listed

    others = [home.root for home in _others(path)]
    if others:
        store = _own(path)
        complain(f"{store}: this store alone; for those of its profiles name {listed(others)}", 0)


def with_session(path: Path, session: str) -> list[str]:
    """The folders of the profiles at ``path`` whose store has a session, or messages of one, whose id begins
    so. A store that cannot be read has none to tell of."""
    from statemend.errors import StatemendError
    from statemend.store.connection import open_for_audit

    found = []
    for home in _others(path):
        with suppress(StatemendError), open_for_audit(Path(home.store)) as store:
            if store.one(_BEGINS, (session, len(session))) is not None:
                found.append(home.root)
    return found


def _own(path: Path) -> str:
    from statemend.evidence.inventory import find_home

    return find_home(path).store


def _others(path: Path) -> Iterator[Home]:
    from statemend.evidence.profiles import find_homes

    own = _own(path)
    return (home for home in find_homes(path).homes if home.store != own)
