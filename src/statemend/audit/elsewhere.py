"""What a rule says of other stores that have what it misses."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from statemend.audit.context import Context
from statemend.audit.facts import listed
from statemend.audit.finding import Value
from statemend.evidence.coverage import SessionCoverage
from statemend.evidence.other_stores import is_passing


def stores_with(
    context: Context, session: SessionCoverage | None, message_ids: Iterable[int]
) -> list[tuple[str, Value]]:
    """Evidence that other stores have some of these messages of a session that is here; none where none
    has."""
    wanted = frozenset(message_ids)
    holding = [
        copy.artifact
        for copy in (session.copies if session else ())
        if wanted - {each.message_id for each in copy.missing} - set(copy.changed)
    ]
    return _told(context, "other stores that have some of them", holding)


def stores_with_session(context: Context, session: SessionCoverage) -> list[tuple[str, Value]]:
    """Evidence that other stores still have rows of a session that is gone."""
    facts = _told(context, "other stores that still have it", [each.artifact for each in session.elsewhere])
    if facts:
        facts.append(("messages in the fullest of them", max(each.records for each in session.elsewhere)))
    return facts


def _told(context: Context, label: str, paths: list[str]) -> list[tuple[str, Value]]:
    if not paths:
        return []
    passing = sum(is_passing(Path(context.home.root), path) for path in paths)
    return [(label, listed(paths)), ("of these Hermes deletes in turn", passing)]
