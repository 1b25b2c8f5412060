"""Which profile a session is of, as its row says it: by the key of its chat, and by its label."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from statemend.audit.company import Company
from statemend.audit.context import Context
from statemend.evidence.inventory import DEFAULT, PROFILES, Home
from statemend.store.connection import Store

KEYED = """
    SELECT id, session_key, profile_name
    FROM sessions
    WHERE session_key >= 'agent:' AND session_key < 'agent;' AND typeof(id) = 'text'
    ORDER BY session_key, id
"""
#: Whether a chat of another profile than the default one was ever kept here.
_SERVED = """
    SELECT session_key FROM sessions WHERE session_key >= 'agent:' AND session_key < 'agent;'
    UNION ALL
    SELECT session_key FROM gateway_routing WHERE session_key >= 'agent:' AND session_key < 'agent;'
"""
#: Stands in a key for the default profile; a gateway that serves one profile alone writes it for any.
MAIN = "main"
#: Stands in the keys of 0.22 for a profile that is called ``main``.
ESCAPED = "main~"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class Keyed(NamedTuple):
    """A session with the key of a chat. ``namespace`` is the part of the key that stands for a profile,
    ``label`` its ``profile_name``, empty where it has none."""

    session_id: str
    key: str
    namespace: str
    label: str

    @property
    def profile(self) -> str:
        """The profile that the key is of, if a gateway of several profiles made it."""
        return {MAIN: DEFAULT, ESCAPED: MAIN}.get(self.namespace, self.namespace)


def keyed(store: Store) -> Iterator[Keyed]:
    """Every session with the key of a gateway's chat, by key."""
    for session_id, key, label in store.rows(KEYED):
        namespace = namespace_of(key)
        if namespace:
            yield Keyed(session_id, key, namespace, label.strip() if isinstance(label, str) else "")


def namespace_of(key: object) -> str:
    """The part of a chat's key that stands for a profile; empty for a key of another kind."""
    parts = key.split(":", 2) if isinstance(key, str) else []
    return parts[1] if len(parts) == 3 and parts[0] == "agent" else ""


def exists(home: Home, profile: str) -> bool:
    """Whether the home that ``home`` is, or is a profile's of, has that profile."""
    if profile == DEFAULT:
        return True
    root = Path(home.root)
    around = Path(os.path.realpath(root)).parent.parent if home.place else root
    return _NAME.fullmatch(profile) is not None and os.path.isdir(around / PROFILES / profile)


def served_together(context: Context) -> bool:
    """Whether a gateway of several profiles ever kept a chat in this store, or in another of the home. Only
    such a one can put a chat of one profile into the store of another."""
    company = context.company or Company()
    return _served(context.store) or any(company.ask(each, _served, otherwise=False) for each in company)


def _served(store: Store) -> bool:
    return any(namespace_of(key) not in ("", MAIN) for (key,) in store.rows(_SERVED))
