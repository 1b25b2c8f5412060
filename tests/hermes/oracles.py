"""Our answers and Hermes' answers about the same store, side by side."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.hermes.home import Oracle

from statemend.store import history
from statemend.store.connection import Store, open_for_audit
from statemend.store.history import View
from statemend.store.lineage import Graph
from statemend.store.schema import Era

#: The oldest release that reads a store of each era the way the era does.
RELEASE_OF_ERA = {
    Era.V13: "0.13.0",
    Era.V16: "0.16.0",
    Era.V18: "0.19.0",
    Era.V20: "0.20.1",
    Era.V22: "0.22.2",
}
#: Releases that export a lineage, with the era whose rules they follow.
LINEAGE_RELEASES = {
    "0.18.2": Era.V18,
    "0.19.0": Era.V18,
    "0.20.1": Era.V20,
    "0.22.2": Era.V22,
}
#: What makes a message, whatever columns the schema has.
SUBSTANCE = ("id", "session_id", "role", "content", "timestamp", "tool_call_id", "tool_calls", "tool_name")


def copy_store(path: Path, folder: Path) -> Path:
    """A copy of a store that nobody holds open for writing, with what is still in its journal."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "state.db"
    for suffix in ("", "-wal", "-journal"):
        source = path.with_name(path.name + suffix)
        copy = folder / f"state.db{suffix}"
        copy.unlink(missing_ok=True)
        if source.exists():
            shutil.copyfile(source, copy)
    return target


def session_ids(path: Path) -> list[str]:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        named = "SELECT id FROM sessions UNION SELECT session_id FROM messages ORDER BY 1"
        return [row[0] for row in connection.execute(named)]
    finally:
        connection.close()


def schema_version(path: Path) -> int:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute("SELECT version FROM schema_version").fetchone()[0]
    finally:
        connection.close()


def our_active(store: Store, session_id: str) -> list[dict[str, Any]]:
    return plain(list(history.records(store, session_id, View.ACTIVE)))


def our_display(store: Store, session_id: str) -> list[dict[str, Any]]:
    return plain(list(history.records(store, session_id, View.DISPLAY)))


def plain(value: Any) -> Any:
    """As it looks after a trip through JSON, which is how Hermes' answers arrive."""
    return json.loads(json.dumps(value, default=lambda blob: {"$bytes": blob.hex()}))


def substance(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: message[name] for name in SUBSTANCE} for message in messages]


def check_active(path: Path, theirs: Oracle, scratch: Path) -> None:
    """Our active view of every session is what ``get_messages`` returns, column for column."""
    ids = session_ids(path)
    answers = theirs.ask(copy_store(path, scratch), [("get_messages", [sid], {}) for sid in ids])
    with open_for_audit(path) as store:
        for sid, expected in zip(ids, answers, strict=True):
            found = our_active(store, sid)
            common = set(expected[0]) & set(found[0]) if expected and found else set()
            assert _only(found, common) == _only(expected, common), sid
            assert [m.id for m in history.messages(store, sid)] == [m["id"] for m in expected], sid


def check_display(path: Path, theirs: Oracle, scratch: Path) -> None:
    """Our display view of every session is that of ``get_messages(include_compacted=True)`` on a copy, and
    the rows it folds are all the rows that a display may show."""
    ids = session_ids(path)
    calls = [("get_messages", [sid], {"include_compacted": True}) for sid in ids]
    answers = theirs.ask(copy_store(path, scratch), calls)
    with open_for_audit(path) as store:
        for sid, expected in zip(ids, answers, strict=True):
            assert substance(our_display(store, sid)) == substance(expected), sid
            logical = list(history.display(store, sid))
            assert [one.shown.id for one in logical] == [message["id"] for message in expected], sid
            folded = [row_id for one in logical for row_id in one.row_ids]
            assert len(folded) == len(set(folded)), sid


def check_lineage(path: Path, theirs: Oracle, era: Era, scratch: Path) -> None:
    """Our tip, the session that we say is opened, and our export chain of every session are the release's."""
    ids = session_ids(path)
    has_chain = era >= Era.V18
    calls = [("get_compression_tip", [sid], {}) for sid in ids]
    calls += [("resolve_resume_session_id", [sid], {}) for sid in ids]
    calls += [("get_compression_lineage", [sid], {}) for sid in ids if has_chain]
    answers = theirs.ask(copy_store(path, scratch), calls)
    tips, opened, chains = (answers[at * len(ids) : (at + 1) * len(ids)] for at in range(3))
    with open_for_audit(path) as store:
        graph = Graph.load(store)
        for sid, tip in zip(ids, tips, strict=True):
            assert graph.resume_tip(sid, era) == tip, f"tip of {sid}"
        by_id = Era.V13 if era is Era.V16 else era  # in this 0.16 is like 0.13
        for sid, session_id in zip(ids, opened, strict=True):
            assert graph.opened_by_id(sid, by_id) == session_id, f"opened for {sid}"
        for sid, chain in zip(ids if has_chain else [], chains, strict=True):
            assert list(graph.export_chain(sid, era) or ()) == chain, f"chain of {sid}"


def eras(path: Path) -> Iterator[tuple[str, Era]]:
    """The releases whose lineage rules can be asked about this store as it is, with their eras.

    From 0.17 on, opening a store that only older releases have opened changes its markers first, so it is
    no longer the store we read.
    """
    with open_for_audit(path) as store:
        era = store.schema.era
    if era < Era.V18:
        yield RELEASE_OF_ERA[era], era
    if schema_version(path) >= 16:
        yield from LINEAGE_RELEASES.items()


def _only(messages: list[dict[str, Any]], names: set[str]) -> list[dict[str, Any]]:
    return [{name: message[name] for name in message if name in names} for message in messages]
