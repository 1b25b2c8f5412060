"""The search indexes of a store: which rows each of them should hold, and which it does.

An index knows each row that it holds by its id, in a table of its own with the sizes of the texts. That is an
ordinary table, so it can be read where the index itself cannot (a tokenizer that is not here). Which messages
an index is meant to hold is told from its source: the messages, or a view that leaves some out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum

import msgspec

from statemend.audit.context import Context
from statemend.store.connection import Store
from statemend.store.schema import Era

#: The indexes that releases keep, and the prefix of the notes in ``state_meta`` about a rebuild of each.
_NAMES = {
    "messages_fts": "fts_rebuild",
    "messages_fts_trigram": "fts_rebuild",
    "messages_fts_cjk": "fts_cjk_rebuild",
}
_OBJECTS = """
    SELECT type, name, substr(sql, 1, 8192)
    FROM main.sqlite_schema
    WHERE name GLOB 'messages_fts*' AND type IN ('table', 'view', 'trigger') AND rootpage = 0
"""
_EVENTS = ("insert", "update", "delete")
_NOTES = "SELECT key, value FROM state_meta WHERE key GLOB 'fts_*'"
_CONTENT = re.compile(r"[(,]\s*content\s*=\s*'?([\w]*)'?")
_WHERE = re.compile(r"\bWHERE\b(.*)$", re.DOTALL | re.IGNORECASE)
_NOT_TOOLS = re.compile(r"^(m\.)?role <> 'tool'$")
_NOT_MACHINES = re.compile(r"^m\.role <> 'tool' AND s\.source NOT IN \('cron', 'subagent'\)")


class Scope(StrEnum):
    """Which messages an index is meant to hold."""

    ALL = "every message"
    NO_TOOLS = "every message but tool results"
    NO_MACHINES = "every message but tool results and those of cron and subagent sessions"


class Index(msgspec.Struct, frozen=True):
    """One search index. ``keeps_text`` is whether it has a copy of its own of every text. Rows from
    ``waiting_from`` (exclusive) to ``waiting_to`` wait for a rebuild that is under way. ``detached`` is
    whether the store notes that the index is no longer kept up, until a rebuild. ``lacks`` are the events
    (``insert``, ``update``, ``delete``) after which no trigger brings it up to date; ``unfit`` those whose
    trigger is written for another layout: one with texts of its own deletes rows, one without tells the index
    the text to forget."""

    name: str
    scope: Scope
    keeps_text: bool
    waiting_from: int | None
    waiting_to: int | None
    detached: bool
    lacks: tuple[str, ...]
    unfit: tuple[str, ...] = ()

    @property
    def sizes(self) -> str:
        """The table with one row for each row of the index. The name may stand in a statement."""
        return f"main.{self.name}_docsize"


class Difference(msgspec.Struct, frozen=True):
    """Row ids in which an index and the messages differ, how many and the first of them."""

    count: int
    first: tuple[int, ...]


def indexes(store: Store) -> Iterator[Index]:
    """The indexes of a store whose source is one that a release made."""
    objects = {(kind, name): sql or "" for kind, name, sql in store.rows(_OBJECTS)}
    notes: dict[str, object] = {str(key): value for key, value in store.rows(_NOTES)}
    for name, rebuild in _NAMES.items():
        sql = objects.get(("table", name))
        scope = None if sql is None else _scope(sql, objects)
        if sql is None or scope is None or not store.schema.has(f"{name}_docsize"):
            continue
        pending = f"{rebuild}_high_water" in notes
        keeps_text = _CONTENT.search(sql) is None
        triggers = {event: objects.get(("trigger", f"{name}_{event}")) for event in _EVENTS}
        yield Index(
            name=name,
            scope=scope,
            keeps_text=keeps_text,
            waiting_from=_number(notes.get(f"{rebuild}_progress"), -1) if pending else None,
            waiting_to=_number(notes.get(f"{rebuild}_high_water"), None) if pending else None,
            detached="fts_stale" in notes or (name.endswith("_cjk") and "fts_cjk_stale" in notes),
            lacks=tuple(event for event, trigger in triggers.items() if trigger is None),
            unfit=tuple(
                event
                for event, trigger in triggers.items()
                if trigger is not None and not _fits(name, event, trigger, keeps_text=keeps_text)
            ),
        )


def _fits(name: str, event: str, trigger: str, *, keeps_text: bool) -> bool:
    """Whether a trigger does what the layout of its index asks for: puts in what is new, and takes out what
    is old."""
    said = " ".join(trigger.split())
    puts = f"INSERT INTO {name}(rowid," in said
    takes = f"DELETE FROM {name} WHERE rowid" in said if keeps_text else f"INSERT INTO {name}({name}," in said
    return {"insert": puts, "update": puts and takes, "delete": takes}[event]


def heals(store: Store, index: Index) -> bool:
    """Whether Hermes builds the index anew when it next opens the store: 0.16 and newer do where a trigger
    is missing. No store tells 0.13 from 0.15 by a trigger; those never do."""
    return bool(index.lacks) and store.schema.era >= Era.V16


def looks_alike(context: Context, index: Index) -> bool:
    """Whether a glance shows no difference: as many rows in the index as there are messages. Counting those
    that a scope leaves in means reading every message, which is left to the thorough audit."""
    if context.deep:
        return False
    if index.scope is not Scope.ALL:
        return True
    held = context.store.value(f"SELECT COUNT(*) FROM {index.sizes}")
    messages = sum(each.total for each in context.census.values())
    return bool(held == messages)


def missing(store: Store, index: Index, most: int) -> Difference:
    """The messages that the index should hold and does not, at most ``most`` of them named. Those that wait
    for a rebuild are left out, and so are, where sessions decide, those before the first that it holds of
    their session: that may have been a machine's when they came."""
    waiting = (
        ""
        if index.waiting_from is None
        else f"AND NOT (m.id > {index.waiting_from} AND m.id <= {index.waiting_to or 9223372036854775807})"
    )
    joined, left_in = {
        Scope.ALL: ("", ""),
        Scope.NO_TOOLS: ("", "AND m.role <> 'tool'"),
        Scope.NO_MACHINES: (
            f"""
            JOIN (
                SELECT o.session_id AS session_id, MIN(o.id) AS first
                FROM messages AS o
                JOIN {index.sizes} AS e ON e.id = o.id
                GROUP BY o.session_id
            ) AS indexed ON indexed.session_id = m.session_id AND indexed.first < m.id""",
            """
            AND m.role <> 'tool'
            AND m.session_id IN (
                SELECT s.id
                FROM sessions AS s
                WHERE s.source NOT IN ('cron', 'subagent')
                  AND COALESCE(CASE WHEN json_valid(s.model_config)
                                    THEN json_extract(s.model_config, '$._delegate_from') END, '') = ''
            )""",
        ),
    }[index.scope]
    return _difference(
        store,
        f"SELECT m.id FROM messages AS m {joined} "
        f"WHERE NOT EXISTS (SELECT 1 FROM {index.sizes} AS d WHERE d.id = m.id) {waiting} {left_in}",
        most,
    )


def surplus(store: Store, index: Index, most: int) -> Difference:
    """The rows of the index that belong to no message, at most ``most`` of them named."""
    return _difference(
        store,
        f"SELECT d.id FROM {index.sizes} AS d "
        "WHERE NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.id = d.id)",
        most,
    )


def _difference(store: Store, sql: str, most: int) -> Difference:
    count = 0
    first: list[int] = []
    for (row_id,) in store.rows(sql):
        count += 1
        if len(first) < most:
            first.append(row_id)
    return Difference(count, tuple(sorted(first)))


def _scope(sql: str, objects: dict[tuple[str, str], str]) -> Scope | None:
    """``None`` for a source that no known release made: what such an index should hold cannot be told."""
    content = _CONTENT.search(sql)
    if content is None or content[1] == "messages":
        return Scope.ALL
    view = objects.get(("view", content[1]))
    if view is None:
        return None
    where = _WHERE.search(view)
    if where is None:
        return Scope.ALL
    condition = " ".join(where[1].split())
    if _NOT_TOOLS.match(condition):
        return Scope.NO_TOOLS
    return Scope.NO_MACHINES if _NOT_MACHINES.match(condition) else None


def _number(value: object, otherwise: int | None) -> int | None:
    """A number that a note holds as text."""
    text = str(value)
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) else otherwise
