"""Cells of the wrong type, text that is no text, JSON that is none: an audit reads on and believes none."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import pytest
from tests.e2e.conftest import DATA
from tests.e2e.running import Statemend, rules

EXPORTS = DATA / "exports" / "0.22.2"
KINDS = ("jsonl/all.jsonl", "md", "html/all.html", "only-user-prompts")
FOLDERS = [part for kind in KINDS for part in ("--exports", EXPORTS / kind)]
DEEP = "[" * 100_000 + "]" * 100_000
RATHER_DEEP = "[" * 390 + "]" * 390

#: What each case sets the cells to.
CELLS: dict[str, tuple[str, ...]] = {
    "times that are words": (
        "UPDATE messages SET timestamp = 'noon'",
        "UPDATE sessions SET started_at = 'then'",
    ),
    "times beyond the calendar": (
        "UPDATE messages SET timestamp = 8e252",
        "UPDATE sessions SET started_at = -8e252, ended_at = 8e252",
    ),
    "times without end": (
        "UPDATE messages SET timestamp = 9e999 WHERE id % 2",
        "UPDATE messages SET timestamp = -9e999 WHERE id % 2 = 0",
        "UPDATE sessions SET started_at = 9e999, ended_at = -9e999",
    ),
    "times that are blobs": (
        "UPDATE messages SET timestamp = x'00'",
        "UPDATE sessions SET started_at = x'ff'",
    ),
    "blobs for text": (
        "UPDATE messages SET content = x'00ff80', tool_name = x'80', finish_reason = x''",
        "UPDATE messages SET tool_calls = x'ff' WHERE id % 3 = 0",
        "UPDATE sessions SET title = x'ff' || id, source = x'00', model_config = x'ff00'",
    ),
    "roles that are none": (
        "UPDATE messages SET role = x'ff' WHERE id % 3 = 0",
        "UPDATE messages SET role = '' WHERE id % 3 = 1",
        "UPDATE messages SET role = '### User — now' || char(10) WHERE id % 3 = 2",
    ),
    "flags that are none": (
        "UPDATE messages SET active = 'yes', compacted = x'00', observed = 1.5, _compressed_summary = 'so'",
        "UPDATE messages SET display_order = 'x', display_kind = 3, display_identity = x'00'",
    ),
    "calls that are no list": (
        "UPDATE messages SET tool_calls = '{\"a\": 1}' WHERE id % 4 = 0",
        'UPDATE messages SET tool_calls = \'[{"id": 1}, 3, null, {"function": 7}]\' WHERE id % 4 = 1',
        'UPDATE messages SET tool_calls = \'[{"id": "a", \' WHERE id % 4 = 2',
        "UPDATE messages SET tool_calls = 'NaN' WHERE id % 4 = 3",
    ),
    "metadata that is none": (
        "UPDATE messages SET display_metadata = '{nope' WHERE id % 3 = 0",
        "UPDATE messages SET display_metadata = '[1]' WHERE id % 3 = 1",
        "UPDATE messages SET display_metadata = x'ff' WHERE id % 3 = 2",
    ),
    "markers of every shape": (
        'UPDATE sessions SET model_config = \'{"_branched_from": [1, {}], "_delegate_from": {"a": 1}, '
        '"_reset_from": 17}\'',
    ),
    "configurations that are no JSON": ("UPDATE sessions SET model_config = '{\"_branched_from\": [1, {'",),
    "content with a broken prefix": (
        "UPDATE messages SET content = CAST(x'006a736f6e3a' AS TEXT) || '{bad'",
    ),
    "content that begins with NUL": ("UPDATE messages SET content = CAST(x'00616263' AS TEXT)",),
    "text that is no UTF-8": (
        "UPDATE messages SET content = CAST(x'61ff80c0af' AS TEXT), tool_name = CAST(x'ff' AS TEXT)",
        "UPDATE sessions SET title = CAST(x'ff' AS TEXT) || id, model_config = CAST(x'7bff' AS TEXT)",
    ),
    "lone surrogates": (
        "UPDATE messages SET content = CAST(x'61eda080' AS TEXT)",
        "UPDATE sessions SET title = CAST(x'edb080' AS TEXT) || id",
        'UPDATE messages SET tool_calls = \'[{"id": "\\ud800"}]\'',
    ),
    "JSON without bottom": (
        f"UPDATE sessions SET model_config = '{{\"_delegate_from\": {DEEP}}}'",
        f"UPDATE messages SET tool_calls = '{DEEP}' WHERE id % 2",
        f"UPDATE messages SET display_metadata = '{{\"a\": {DEEP}}}' WHERE id % 5 = 0",
        f"UPDATE messages SET content = CAST(x'006a736f6e3a' AS TEXT) || '{DEEP}' WHERE id % 5 = 1",
    ),
    "JSON just not too deep": (
        f"UPDATE sessions SET model_config = '{{\"_delegate_from\": {RATHER_DEEP}}}'",
        f"UPDATE messages SET tool_calls = '{RATHER_DEEP}' WHERE id % 2",
        f"UPDATE messages SET content = CAST(x'006a736f6e3a' AS TEXT) || '{RATHER_DEEP}' WHERE id % 5 = 1",
    ),
    # What can just be parsed can, further down the stack, not be written again.
    "JSON to the end of the stack": (
        f"UPDATE messages SET tool_calls = substr('{DEEP[:1000]}', 1, 850 + id % 120) || "
        f"substr('{DEEP[-1000:]}', 1, 850 + id % 120)",
    ),
    "counters that are none": (
        "UPDATE sessions SET end_reason = x'80', session_key = 1.5, last_activity_at = 'never'",
    ),
}


def change(store: Path, *statements: str) -> None:
    """Change cells with no constraint and no trigger in the way."""
    connection = apsw.Connection(str(store))
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


@pytest.mark.parametrize("name", CELLS)
def test_an_audit_of_odd_cells_ends_with_every_rule_run(statemend: Statemend, home: Path, name: str) -> None:
    change(home / "state.db", *CELLS[name])
    told = statemend("scan", home, "--format", "json")
    assert told.code in (0, 1), told.err
    assert rules(json.loads(told.out), "could not run") == {}


@pytest.mark.parametrize("name", CELLS)
def test_exports_are_compared_with_odd_cells(statemend: Statemend, home: Path, name: str) -> None:
    change(home / "state.db", *CELLS[name])
    told = statemend("scan", home, *FOLDERS, "--format", "json")
    assert told.code in (0, 1), told.err
    document = json.loads(told.out)
    assert rules(document, "could not run") == {}
    assert len(document["sessions"]) >= 10


@pytest.mark.parametrize("name", CELLS)
def test_a_session_of_odd_cells_is_shown(statemend: Statemend, home: Path, name: str) -> None:
    change(home / "state.db", *CELLS[name])
    for form in ("table", "json"):
        told = statemend(
            "show", home, "20260801_120000_ffffff", "--format", form, "--exports", EXPORTS / "jsonl"
        )
        assert (told.code, told.err) == (0, "")
        assert "20260801_120000_ffffff" in told.out
