"""Damage on the level of pages: which table or index of the store is broken, told apart.

SQLite's own checks name a b-tree by its root page. What stands there decides what the damage means: a table
holds the rows themselves, an index or a search index can be built again from them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec

from statemend.errors import StoreUnreadable
from statemend.store.connection import Store
from statemend.store.schema import CATALOGUE

#: At most this many of SQLite's lines are kept for one object, each cut to so many characters.
LINES = 5
LINE_LENGTH = 200

#: A damaged schema may hold blobs for names, and anything for a root page.
OBJECTS = """
    SELECT CAST(type AS TEXT), CAST(name AS TEXT), CAST(tbl_name AS TEXT), CAST(rootpage AS INTEGER),
           COALESCE(sql, '') LIKE 'CREATE VIRTUAL TABLE%USING fts5%'
    FROM main.sqlite_master
    WHERE type IN ('table', 'index')
"""

#: Text with a NUL in it. SQLite releases disagree on how the trigram tokenizer splits it, so an index that
#: another release built from such text always differs from what this one would build.
TEXT_WITH_NUL = "SELECT EXISTS (SELECT 1 FROM messages WHERE instr(CAST(content AS BLOB), x'00') > 0)"

_TREE = re.compile(r"^(?:On tree|Tree) (\d+)\b")
#: Lines that name a page and no b-tree.
_PAGE = re.compile(r"^(?:Fragmentation|Multiple uses) .* page (\d+)$")
_INDEX = re.compile(r"\bindex (\S+)$")
#: Lines that say that an index and its table disagree: where the table is broken, that is all they say.
_DISAGREES = re.compile(
    r"^wrong # of entries in index |^row \d+ missing from index |^rowid not at end-of-record "
)
_COMPARED = re.compile(r"inverted index for FTS5 table (?:main\.)?(\S+)$")
_SEARCH = re.compile(r"^fts5: .*\btable \"?([^\s\"]+)\"?")
#: A search index whose tokenizer this SQLite does not have: nothing is known about it.
_UNCHECKED = re.compile(r"^unable to validate the inverted index ")
_VALUE = re.compile(
    r"^(?:NULL|TEXT|NUMERIC|numeric|non-\S+) value in (\S+?)\.|^CHECK constraint failed in (\S+)$"
)
_UNUSED = re.compile(r"^Page \d+(?:\.\.\d+)?: (?:page )?never used$")


class Part(StrEnum):
    """What a damaged object is, worst first."""

    FILE = "file"  # no one object can be named
    TABLE = "table"  # rows themselves
    INDEX = "index"  # can be built again from the rows
    SEARCH = "search index"  # can be built again from the rows
    VALUES = "values"  # pages are sound, cells hold what the schema forbids
    UNUSED = "unused pages"  # space that nothing uses


class Damage(msgspec.Struct, frozen=True):
    """One broken object. ``table`` is the table it belongs to, empty for the file. ``lines`` are SQLite's own
    words, shortened, and ``total`` is how many there were (SQLite itself stops at 100)."""

    name: str
    part: Part
    table: str
    lines: tuple[str, ...]
    total: int


class Structure(msgspec.Struct, frozen=True):
    """What the structure check found, and by which ``method``."""

    method: str
    damages: tuple[Damage, ...] = ()

    @property
    def untrusted(self) -> dict[str, str]:
        """The tables that a query must not be believed about, each with the reason: their own pages are
        damaged, or those of an index that SQLite would read instead of them."""
        reasons: dict[str, str] = {}
        for damage in self.damages:
            if damage.part is Part.TABLE:
                reasons[damage.table] = f"the table {damage.table} is damaged"
            elif damage.part is Part.INDEX:
                reasons.setdefault(damage.table, f"its index {damage.name} is damaged")
        return reasons


class _Object(msgspec.Struct, frozen=True):
    name: str
    part: Part
    table: str


class _Map:
    """Names what a line of SQLite's check is about."""

    def __init__(self, rows: Iterable[tuple[str, str, str, int, int]]) -> None:
        rows = list(rows)
        searches = [name for _, name, _, _, virtual in rows if virtual]
        self._by_root: dict[int, _Object] = {}
        self._by_name: dict[str, _Object] = {}
        for kind, name, table, root, _ in rows:
            search = next((s for s in searches if table == s or table.startswith(s + "_")), None)
            if search is not None:
                entry = _Object(search, Part.SEARCH, search)
            else:
                entry = _Object(name, Part.INDEX if kind == "index" else Part.TABLE, table)
            self._by_name[name] = entry
            if root:
                self._by_root[root] = entry

    def locate(self, line: str, checked: str | None) -> _Object:
        """The object of ``line``; ``checked`` is the one table that was asked about, if it was one."""
        if tree := _TREE.match(line):
            return self._by_root.get(int(tree[1])) or _Object("the file", Part.FILE, "")
        if (page := _PAGE.match(line)) and int(page[1]) in self._by_root:
            return self._by_root[int(page[1])]
        if search := _COMPARED.search(line) or _SEARCH.search(line):
            return _Object(search[1], Part.SEARCH, search[1])
        if value := _VALUE.match(line):
            table = value[1] or value[2]
            return _Object(table, Part.VALUES, table)
        if (index := _INDEX.search(line)) and index[1] in self._by_name:
            return self._by_name[index[1]]
        if _UNUSED.match(line):
            return _Object("the file", Part.UNUSED, "")
        return self._by_name.get(checked or "") or _Object("the file", Part.FILE, "")


def _lines(store: Store, pragma: str) -> Iterator[str]:
    """Each line of a check, without SQLite's heading; nothing when it says ``ok``."""
    for (text,) in store.rows(pragma):
        for line in str(text).splitlines():
            if line != "ok" and not line.startswith("*** in database") and not _UNCHECKED.match(line):
                yield line


def _gather(found: list[tuple[_Object, str]]) -> tuple[Damage, ...]:
    broken = {entry.table for entry, _ in found if entry.part is Part.TABLE}
    grouped: dict[_Object, list[str]] = {}
    for entry, line in found:
        if entry.part is Part.INDEX and entry.table in broken and _DISAGREES.match(line):
            continue
        grouped.setdefault(entry, []).append(line)
    order = list(Part)
    return tuple(
        Damage(
            name=entry.name,
            part=entry.part,
            table=entry.table,
            lines=tuple(line[:LINE_LENGTH] for line in lines[:LINES]),
            total=len(lines),
        )
        for entry, lines in sorted(
            grouped.items(), key=lambda item: (order.index(item[0].part), item[0].name)
        )
    )


def examine(store: Store, *, deep: bool = False) -> Structure:
    """Check the structure of ``store``.

    By default each canonical table with its overflow pages, and every index of it against its rows, for the
    rules are answered from those indexes; ``deep`` the whole file and the search indexes. Raises
    ``StoreUnreadable`` when the list of objects itself cannot be read.
    """
    objects = list(store.rows(OBJECTS))
    names = _Map(objects)
    if not deep:
        canonical = (table for table in CATALOGUE if store.table_exists(table))
        found = [line for table in canonical for line in _check(store, names, table)]
        method = "integrity_check of each canonical table with its indexes and overflow pages"
        return Structure(method=method, damages=_gather(found))
    method = "integrity_check of the whole file, search indexes included"
    found, whole = _try(store, names, "integrity_check", None)
    if not whole:  # it stops at the first page that is not what it should be: ask about each table alone
        tables = sorted(name for kind, name, _, root, _ in objects if kind == "table" and root)
        found = [line for table in tables for line in _check(store, names, table)]
    readable = not any(entry.part is Part.TABLE and entry.table == "messages" for entry, _ in found)
    if readable and any(_COMPARED.search(line) for _, line in found) and store.value(TEXT_WITH_NUL):
        found = [(entry, line) for entry, line in found if not _COMPARED.search(line)]
        method += ", those over text with NULs not compared with it"
    return Structure(method=method, damages=_gather(found))


def _check(store: Store, names: _Map, table: str) -> list[tuple[_Object, str]]:
    """What a check of one table says. Where it stops without a word, an index of the table is at fault, or it
    itself is."""
    found, whole = _try(store, names, "integrity_check", table)
    if whole:
        return found
    # It gives up where it cannot read what an index holds. quick_check looks up no row in an index.
    more, sound = _try(store, names, "quick_check", table)
    found = list(dict.fromkeys([*found, *more]))
    if all(entry.part is Part.VALUES for entry, _ in found):
        unnamed = _Object(f"of {table} that SQLite does not name", Part.INDEX, table)
        found.append(
            (unnamed if sound else names.locate("", table), "the check stopped at an unreadable page")
        )
    return found


def _try(store: Store, names: _Map, pragma: str, table: str | None) -> tuple[list[tuple[_Object, str]], bool]:
    """The lines of a check, each with what it is about, and whether the check came to its end."""
    found = []
    argument = "" if table is None else "('" + table.replace("'", "''") + "')"
    try:
        for line in _lines(store, f"PRAGMA main.{pragma}{argument}"):
            found.append((names.locate(line, table), line))  # noqa: PERF401 - keeps what precedes an error
    except StoreUnreadable:
        return found, False
    return found, True
