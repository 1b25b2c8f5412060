"""What logs and routing tell of a session whose row is gone: with whom it was, and whether it was deleted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from statemend.errors import Undetermined
from statemend.evidence.inventory import Inventory
from statemend.formats.files import chunk, size
from statemend.repair.plan import Source
from statemend.store.connection import Store

_ROUTES = "SELECT scope, session_key, entry_json FROM gateway_routing ORDER BY updated_at"
#: Where the gateway keeps its routes too; what the store lacks it takes from there.
ROUTING_FILE = "sessions/sessions.json"
_LARGEST_ROUTING_FILE = 64 * 1024 * 1024


class Line(msgspec.Struct, frozen=True):
    """One log line about a session. ``clock`` is the local time that it bears."""

    path: str
    number: int
    clock: str
    model: str | None = None
    platform: str | None = None

    def source(self, column: str) -> Source:
        """Where a value of this line comes from."""
        return Source(
            column=column,
            origin="the log of its last turn",
            artifact=self.path,
            locator=f"line {self.number}",
        )


class Logged(msgspec.Struct, frozen=True):
    """The last turn of each session, and the deletion of each that was deleted."""

    turns: Mapping[str, Line]
    deletions: Mapping[str, Line]


class Route(msgspec.Struct, frozen=True):
    """A chat that was routed to a session. ``columns`` are those of the session's row that it tells."""

    origin: str
    locator: str
    columns: Mapping[str, str]

    def source(self, column: str) -> Source:
        """Where a value of this route comes from."""
        return Source(column=column, origin=self.origin, locator=self.locator)


def read_logs(inventory: Inventory) -> Logged:
    """What the logs tell, of each session the latest."""
    turns: dict[str, Line] = {}
    deletions: dict[str, Line] = {}
    for log in inventory.logs:
        for turn in log.turns:
            line = Line(log.path, turn.line, turn.last, _named(turn.model), _named(turn.platform))
            _keep_later(turns, turn.session_id, line)
        for removal in log.removals:
            _keep_later(deletions, removal.session_id, Line(log.path, removal.line, removal.clock))
    return Logged(turns, deletions)


def _keep_later(lines: dict[str, Line], session_id: str, line: Line) -> None:
    known = lines.get(session_id, line)
    lines[session_id] = max(known, line, key=lambda each: (each.clock, each.path))


def _named(word: str) -> str | None:
    return None if word in ("", "unknown", "none", "None") else word


def read_routes(store: Store, inventory: Inventory) -> dict[str, Route]:
    """The newest route to each session: of the store, else of ``sessions.json``."""
    found = {
        session_id: Route("a route in the index of the gateway", ROUTING_FILE, columns)
        for session_id, columns in _parsed(_routing_file(Path(inventory.home.root)))
    }
    if store.table_exists("gateway_routing"):
        for scope, key, entry in store.rows(_ROUTES):
            for session_id, columns in _parsed([(str(key), _object(entry))]):
                place = f"gateway_routing, scope {scope!r}, key {key!r}"
                found[session_id] = Route("a route of the gateway", place, columns)
    return found


def filed_routes(root: Path) -> dict[str, str]:
    """The routes that the gateway's file in a home holds: the key of each chat and its session."""
    return {
        key: entry["session_id"]
        for key, entry in _routing_file(root)
        if isinstance(entry, dict) and isinstance(entry.get("session_id"), str)
    }


def _routing_file(root: Path) -> Iterable[tuple[str, Any]]:
    path = root / ROUTING_FILE
    try:
        if not path.is_file() or size(path) > _LARGEST_ROUTING_FILE:
            return ()
        entries = _object(chunk(path, 0, size(path)))
    except (OSError, Undetermined):
        return ()
    return entries.items() if isinstance(entries, dict) else ()


def _object(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None


def _parsed(entries: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, dict[str, str]]]:
    for key, entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("session_id"), str):
            continue
        origin = entry.get("origin")
        origin = origin if isinstance(origin, dict) else {}
        told = {
            "source": entry.get("platform") or origin.get("platform"),
            "session_key": entry.get("session_key") or key,
            "chat_type": entry.get("chat_type") or origin.get("chat_type"),
            "display_name": entry.get("display_name"),
            "chat_id": origin.get("chat_id"),
            "thread_id": origin.get("thread_id"),
            "user_id": origin.get("user_id"),
        }
        yield (
            entry["session_id"],
            {
                name: str(value)
                for name, value in told.items()
                if isinstance(value, str | int) and value != ""
            },
        )
