"""Each layout of a search index that a release made: whole is silent, one row less or more is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import apsw
import pytest
from tests.audit.builder import HomeBuilder, facts

from statemend.audit.indexed import Scope

Build = Callable[..., HomeBuilder]
CJK = "messages_fts_cjk"


class Layout(NamedTuple):
    """An index of a release: whether it has texts of its own, and which messages it is meant to hold."""

    version: str
    index: str
    keeps_text: bool
    scope: Scope


LAYOUTS = [
    Layout("0.13.0", "messages_fts", True, Scope.ALL),
    Layout("0.19.0", "messages_fts_trigram", True, Scope.ALL),
    Layout("0.20.1", "messages_fts", False, Scope.ALL),
    Layout("0.20.1", "messages_fts_trigram", False, Scope.NO_TOOLS),
    Layout("0.22.2", "messages_fts", False, Scope.ALL),
    Layout("0.22.2", "messages_fts_trigram", False, Scope.NO_MACHINES),
    Layout("0.22.2", CJK, False, Scope.NO_TOOLS),
]
EACH = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"{layout.version}-{layout.index}")


def lived(build: Build, layout: Layout) -> HomeBuilder:
    home = build(layout.version)
    if layout.index == CJK:
        _add_cjk(home)
    home.chat("chat", 4)
    home.message("chat", "tool", "x" * 9000, tool_call_id="c")
    home.chat("run", 2, source="cron")
    return home


def _add_cjk(home: HomeBuilder) -> None:
    """The index that 0.20 and newer keep where the tokenizer ``cjk_unicode61`` is loaded. Built with one that
    is always there; :func:`unload` takes it away."""
    pending = " OR ".join(
        f"{{row}}.id {sign} COALESCE((SELECT CAST(value AS INTEGER) FROM state_meta WHERE key = '{key}'), -1)"
        for sign, key in ((">", "fts_cjk_rebuild_high_water"), ("<=", "fts_cjk_rebuild_progress"))
    )
    new, old = (f"WHEN {row}.role <> 'tool' AND ({pending.format(row=row)})" for row in ("new", "old"))
    put = f"INSERT INTO {CJK}(rowid, content, tool_name) VALUES (new.id, new.content, new.tool_name);"
    take = (
        f"INSERT INTO {CJK}({CJK}, rowid, content, tool_name) "
        "VALUES ('delete', old.id, old.content, old.tool_name);"
    )
    home.sql(
        f"CREATE VIEW {CJK}_src AS SELECT id, role, content, tool_name FROM messages WHERE role <> 'tool'",
        f"CREATE VIRTUAL TABLE {CJK} USING fts5(content, tool_name, content='{CJK}_src', content_rowid='id', "
        "tokenize='unicode61')",
        f"CREATE TRIGGER {CJK}_insert AFTER INSERT ON messages {new} BEGIN {put} END",
        f"CREATE TRIGGER {CJK}_delete AFTER DELETE ON messages {old} BEGIN {take} END",
        f"CREATE TRIGGER {CJK}_update AFTER UPDATE OF content, tool_name, role ON messages {old} "
        f"BEGIN {take} {put} END",
    )


def unload(home: HomeBuilder) -> None:
    """From here on the tokenizer of the index is one that is nowhere."""
    home.sql(
        "PRAGMA writable_schema = ON",
        f"UPDATE sqlite_schema SET sql = replace(sql, 'unicode61', 'cjk_unicode61') WHERE name = '{CJK}'",
    )
    with pytest.raises(apsw.SQLError, match="no such tokenizer"):
        home.sql(f"SELECT 1 FROM {CJK} WHERE {CJK} MATCH 'found'")


@contextmanager
def untold(home: HomeBuilder, index: str, event: str) -> Iterator[None]:
    """Within the block the index is not told of what happens."""
    name = f"{index}_{event}"
    ((sql,),) = home.sql("SELECT sql FROM sqlite_schema WHERE name = ?", bindings=(name,))
    home.sql(f"DROP TRIGGER {name}")
    yield
    home.sql(sql)


def told(home: HomeBuilder, layout: Layout) -> list[tuple[str, str]]:
    """Rule and index of each finding of the thorough audit, without the tokenizer; nothing is damaged."""
    if layout.index == CJK:
        unload(home)
    outcome = home.audit("FTS", "STO", deep=True)
    assert outcome.undetermined == ()
    for finding in outcome.findings:
        assert facts(finding)["meant to hold"] == layout.scope.value
        assert facts(finding)["keeps a copy of every text"] is layout.keeps_text
    return [(finding.rule, facts(finding)["name"]) for finding in outcome.findings]


@EACH
def test_an_index_that_is_whole_is_silent(build: Build, layout: Layout) -> None:
    assert told(lived(build, layout), layout) == []


@EACH
def test_a_row_less_is_told(build: Build, layout: Layout) -> None:
    home = lived(build, layout)
    with untold(home, layout.index, "insert"):
        home.message("chat", "user", "never found")
    assert told(home, layout) == [("FTS001", layout.index)]


@EACH
def test_a_row_more_is_told(build: Build, layout: Layout) -> None:
    home = lived(build, layout)
    with untold(home, layout.index, "delete"):
        home.sql("DELETE FROM messages WHERE id = (SELECT MIN(id) FROM messages WHERE session_id = 'chat')")
    assert told(home, layout) == [("FTS002", layout.index)]


@EACH
def test_what_waits_for_a_rebuild_is_not_missing(build: Build, layout: Layout) -> None:
    home = lived(build, layout)
    prefix = "fts_cjk_rebuild" if layout.index == CJK else "fts_rebuild"
    with untold(home, layout.index, "insert"):
        row = home.message("chat", "user", "not found yet")
    home.sql(
        f"INSERT INTO state_meta VALUES ('{prefix}_high_water', '{row}')",
        f"INSERT INTO state_meta VALUES ('{prefix}_progress', '{row - 1}')",
    )
    if layout.index == CJK:
        unload(home)
    assert home.findings("FTS001", deep=True) == []
    waiting = {facts(each)["name"] for each in home.findings("FTS003")}
    assert layout.index in waiting


def test_an_index_that_nothing_here_can_read_is_not_searched(build: Build) -> None:
    """A capability that this program lacks is no damage of the store."""
    layout = LAYOUTS[-1]
    home = lived(build, layout)
    unload(home)
    outcome = home.audit(deep=True)
    assert outcome.undetermined == ()
    assert [one for one in outcome.findings if one.rule[:3] in ("FTS", "STO")] == []
