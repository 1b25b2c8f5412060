"""Rows as the dictionaries that Hermes itself hands to its exporters.

Unlike a :class:`~statemend.store.message.Message` a record has every stored column, in the order of the
table, and decodes exactly what the store's era decodes: an export is compared, or written again, from
these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from statemend.store.catalogue import CATALOGUE
from statemend.store.content import decode_content, decode_metadata, parse_json
from statemend.store.display import fold
from statemend.store.message import OF_SESSION
from statemend.store.schema import Era

if TYPE_CHECKING:
    from statemend.store.connection import Store

#: Columns of ``messages`` that 0.22.2 keeps to itself.
_INTERNAL = frozenset({"display_identity", "display_order"})
_SUMMARY_FLAG = "_compressed_summary"
_MARKERS = ("_reset_from", "_branched_from")
_KNOWN = frozenset(column.name for column in CATALOGUE["messages"].columns)


def active_condition(era: Era) -> str:
    """The SQL condition on ``messages`` that the era's ``get_messages`` applies.

    From 0.18 on Hermes heals ``active IS NULL`` on opening, so it returns those rows; 0.16 and 0.17 hide
    them.
    """
    if era is Era.V13:
        return "1"
    return "active = 1" if era is Era.V16 else "(active = 1 OR active IS NULL)"


def message_records(store: Store, session_id: str, condition: str) -> Iterator[dict[str, Any]]:
    """The rows of a session that meet ``condition``, in the order of their ids."""
    columns = table_columns(store, "messages")
    sql = f"SELECT {_listed(columns)} FROM main.messages WHERE {OF_SESSION} AND {condition} ORDER BY id"
    for row in store.rows(sql, (session_id,)) if columns else ():
        yield _message_record(dict(zip(columns, row, strict=True)), store.schema.era)


def display_records(store: Store, session_id: str) -> Iterator[dict[str, Any]]:
    """The row shown of each logical message, in display order."""
    columns = table_columns(store, "messages")
    sql = f"SELECT {_listed(columns)} FROM main.messages WHERE id = ?"
    for shown, _ in fold(store, session_id):
        for row in store.rows(sql, (shown[0],)):
            yield _message_record(dict(zip(columns, row, strict=True)), store.schema.era)


def session_record(store: Store, session_id: str) -> dict[str, Any] | None:
    """The session row as ``get_session`` of the store's era returns it, or ``None`` where there is none.

    Every stored column in the order of the table. From 0.20 on texts that are kept by hash are filled in,
    and 0.22 adds the fork markers of ``model_config`` at the end.
    """
    columns = table_columns(store, "sessions")
    if not columns:
        return None
    row = store.one(f"SELECT {_listed(columns)} FROM main.sessions WHERE id = ?", (session_id,))
    if row is None:
        return None
    record = dict(zip(columns, row, strict=True))
    if "system_prompt" in record and record.get("system_prompt_hash") is not None:
        record["system_prompt"] = _prompt(store, record["system_prompt_hash"], record["system_prompt"])
    if record.get("tool_names") is not None:
        record["tool_names"] = _prompt(store, record["tool_names"], record["tool_names"])
    if store.schema.era >= Era.V22:
        config = parse_json(record.get("model_config"), None)
        for marker in _MARKERS if isinstance(config, dict) else ():
            if isinstance(config.get(marker), str) and config[marker].strip():
                record[marker] = config[marker].strip()
    return record


def table_columns(store: Store, table: str) -> tuple[str, ...]:
    """The stored columns of a table in its own order; none where the store lacks the table."""
    if not store.schema.has(table):
        return ()
    named = "SELECT name FROM pragma_table_info(?, 'main')"
    return store.fact(("columns", table), lambda: tuple(name for (name,) in store.rows(named, (table,))))


def _message_record(record: dict[str, Any], era: Era) -> dict[str, Any]:
    record["content"] = decode_content(record.get("content"))
    if record.get("tool_calls"):
        record["tool_calls"] = parse_json(record["tool_calls"], [])
    if record.get("display_metadata") is not None:
        record["display_metadata"] = decode_metadata(record["display_metadata"])
    if era >= Era.V18 and record.get("active", 1) is None:
        record["active"] = 1  # Hermes heals this when it opens the store
    if era < Era.V22:
        return record
    summary = record.pop(_SUMMARY_FLAG, 0)
    if summary:
        record[_SUMMARY_FLAG] = True
    return {
        name: value
        for name, value in record.items()
        if name not in _INTERNAL and not (isinstance(value, bytes) and name not in _KNOWN)
    }


def _prompt(store: Store, digest: Any, otherwise: Any) -> Any:
    row = store.one("SELECT prompt FROM system_prompts WHERE hash = ?", (digest,))
    return otherwise if row is None or row[0] is None else row[0]


def _listed(columns: tuple[str, ...]) -> str:
    return ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
