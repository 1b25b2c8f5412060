"""The same rows in another file: other pages, another order, another encoding. Written with the standard
library's SQLite, which is not the one under test, as another program copies a store."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlglot
from sqlglot import exp

Row = tuple[object, ...]
Arrange = Callable[[list[Row]], list[Row]]


@dataclass(frozen=True)
class Variant:
    """How a copy differs: what is set ``before`` there is a table and run ``after`` the last row, how the
    rows of each table are ordered, whether columns stand in reverse or are added late, and whether the copy
    is taken from a process that never closed it."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    arrange: Arrange = list
    reverse_columns: bool = False
    late_columns: bool = False
    crashed: bool = False


def _shuffled(rows: list[Row]) -> list[Row]:
    return random.Random(7).sample(rows, len(rows))


_JUNK = (
    "CREATE TABLE junk (x)",
    "INSERT INTO junk SELECT zeroblob(3000) FROM messages",
    "DROP TABLE junk",
)

VARIANTS = {
    "rows-reversed": Variant(("PRAGMA journal_mode = PERSIST",), arrange=lambda rows: rows[::-1]),
    "rows-shuffled": Variant(("PRAGMA page_size = 512", "PRAGMA auto_vacuum = FULL"), arrange=_shuffled),
    "columns-reversed": Variant(("PRAGMA journal_mode = TRUNCATE",), reverse_columns=True),
    "columns-added-late": Variant((), _JUNK, late_columns=True),
    "largest-pages": Variant(("PRAGMA page_size = 65536", "PRAGMA auto_vacuum = INCREMENTAL"), _JUNK),
    "analyzed": Variant((), ("ANALYZE",)),
    "utf-16le": Variant(("PRAGMA page_size = 1024", "PRAGMA encoding = 'UTF-16le'")),
    "utf-16be": Variant(("PRAGMA encoding = 'UTF-16be'", "PRAGMA journal_mode = WAL")),
    "all-in-the-log": Variant(("PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0"), crashed=True),
}


#: Kind, name and statement of everything, in the order in which it was made.
_OBJECTS = """
    SELECT iif(type = 'table' AND rootpage = 0, 'virtual', type), name, sql
    FROM sqlite_schema
    WHERE sql IS NOT NULL
    ORDER BY rowid
"""


def copy(source: Path, target: Path, variant: Variant) -> None:
    """Write every row of the store ``source`` into ``target``, which must not exist. The tables of a search
    index are copied row by row, so that it is as stale as it was."""
    with closing(sqlite3.connect(source)) as old, _writing(target, variant) as new:
        for pragma in variant.before:
            new.execute(pragma)
        new.execute("BEGIN")
        objects = old.execute(_OBJECTS).fetchall()
        virtual = tuple(f"{name}_" for kind, name, _ in objects if kind == "virtual")
        tables = [(name, sql) for kind, name, sql in objects if kind == "table"]
        shadows = [name for name, _ in tables if name.startswith(virtual)]
        for name, sql in tables:
            if name not in shadows and name != "sqlite_sequence":
                _table(old, new, name, sql, variant)
        _fill(old, new, "sqlite_sequence", list)
        for wanted in ("index", "view", "virtual"):
            for kind, _, sql in objects:
                if kind == wanted:
                    new.execute(sql)
        for shadow in shadows:
            _fill(old, new, shadow, list)
        for kind, _, sql in objects:
            if kind == "trigger":
                new.execute(sql)
        new.execute("COMMIT")
        for statement in variant.after:
            new.execute(statement)
    shutil.copystat(source, target)


@contextmanager
def _writing(target: Path, variant: Variant) -> Iterator[sqlite3.Connection]:
    """A connection to the new store, or to one elsewhere whose files are copied while it is open."""
    path = target.with_name("running.db") if variant.crashed else target
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        yield connection
        if variant.crashed:
            for suffix in ("", "-wal"):
                shutil.copyfile(f"{path}{suffix}", f"{target}{suffix}")
    if variant.crashed:
        path.unlink()


def _table(old: sqlite3.Connection, new: sqlite3.Connection, name: str, sql: str, variant: Variant) -> None:
    """Create a table and fill it. Columns that come late are added to the rows that are there by then."""
    if not (variant.reverse_columns or variant.late_columns):
        new.execute(sql)
        _fill(old, new, name, variant.arrange)
        return
    tree = sqlglot.parse_one(sql, dialect="sqlite")
    columns = [part for part in tree.this.expressions if isinstance(part, exp.ColumnDef)]
    others = [part for part in tree.this.expressions if not isinstance(part, exp.ColumnDef)]
    late = _addable(old, name, columns) if variant.late_columns else []
    early = [column for column in columns if column not in late]
    tree.this.set("expressions", (early[::-1] if variant.reverse_columns else early) + others)
    new.execute(tree.sql(dialect="sqlite"))
    _fill(old, new, name, list, [column.name for column in early])
    for column in late:
        new.execute(f'ALTER TABLE "{name}" ADD COLUMN {column.sql(dialect="sqlite")}')
        cells = old.execute(f'SELECT "{column.name}", rowid FROM "{name}" ORDER BY rowid').fetchall()
        update = f'UPDATE "{name}" SET "{column.name}" = ?1 WHERE rowid = ?2 AND "{column.name}" IS NOT ?1'
        kept = [rowid for (rowid,) in new.execute(f'SELECT rowid FROM "{name}" ORDER BY rowid')]
        new.executemany(update, [(cell, rowid) for (cell, _), rowid in zip(cells, kept, strict=True)])


def _addable(old: sqlite3.Connection, table: str, columns: Sequence[exp.ColumnDef]) -> list[exp.ColumnDef]:
    """The later half of the columns, without those that ``ALTER TABLE`` cannot add."""
    tied = {row[3] for row in old.execute(f"PRAGMA foreign_key_list('{table}')")}
    facts = {row[1]: row for row in old.execute(f"PRAGMA table_info('{table}')")}
    return [
        column
        for column in columns[len(columns) // 2 :]
        if column.name not in tied
        and not facts[column.name][5]
        and not (facts[column.name][3] and facts[column.name][4] is None)
    ]


def _fill(
    old: sqlite3.Connection,
    new: sqlite3.Connection,
    table: str,
    arrange: Arrange,
    names: Sequence[str] | None = None,
) -> None:
    if names is None:
        names = [name for _, name, *_ in old.execute(f"PRAGMA table_info('{table}')")]
    listed = ", ".join(f'"{name}"' for name in names)
    rows = arrange(old.execute(f'SELECT {listed} FROM "{table}"').fetchall())
    new.execute(f'DELETE FROM "{table}"')
    new.executemany(f'INSERT INTO "{table}" ({listed}) VALUES ({", ".join("?" for _ in names)})', rows)
