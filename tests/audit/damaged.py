"""One home with as much damage as a release allows, and with many things that are alike but for their names:
what is only told apart by the order of rows shows."""

from __future__ import annotations

import json
import shutil
from typing import Any

from tests.audit.builder import DATA, NOW, START, HomeBuilder
from tests.audit.unset import WITH_ARCHIVE, WITH_STATE, loosen
from tests.repair.copies import compacted

SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."
END = START + 100
KEY = "agent:main:telegram:dm:"
CALL = json.dumps([{"id": "call_1", "type": "function", "function": {"name": "sh", "arguments": "{}"}}])
#: Ids that sort one way by their characters and another by their bytes in UTF-16.
ODD = ("\uff5e", "\U0001f409")


def damage(home: HomeBuilder) -> HomeBuilder:
    """Damage a home in every way that its release has rows for."""
    if home.version in WITH_STATE:
        loosen(home)
    with home.opened():
        for name in ("y", *ODD):
            _families(home, name)
            _messages(home, name)
            _orphans(home, name)
        for number in range(10):
            home.session(f"cron_{number}", source="cron")
            home.session(f"ghost_{number}", source="telegram")
        if home.version in WITH_ARCHIVE:
            for name in ("long", "longer"):
                compacted(home, name, messages=10, times=15, ended_at=END, end_reason="cli_close")
        _files(home)
        _index(home)
    return home


def _families(home: HomeBuilder, name: str) -> None:
    ended = {"ended_at": END, "end_reason": "compression"}
    home.chat(f"{name} dead end", 4, **ended, title=f"Plan {name}")
    home.chat(f"{name} forked", 6, **ended)
    # Begun one after another: of those that began at once, Hermes exports the one whose row lies first.
    for after, letter in ((4, "d"), (1, "a"), (3, "c"), (2, "b")):
        _child(home, f"{name} fork {letter}", f"{name} forked", started_at=END + after)
    home.sql(
        f"UPDATE sessions SET ended_at = {END + 50}, end_reason = 'agent_close' WHERE id = '{name} fork a'"
    )
    home.chat(f"{name} cycle 1", 2, parent_session_id=f"{name} cycle 2")
    home.chat(f"{name} cycle 2", 2, parent_session_id=f"{name} cycle 1")
    home.chat(f"{name} no parent", 2, parent_session_id=f"{name} nobody")
    marks = dict.fromkeys(("_branched_from", "_delegate_from"), f"{name} forked")
    _child(home, f"{name} marked", f"{name} forked", model_config=marks)
    home.chat(f"{name} mistag", 4, model_config={"_delegate_from": "__orphaned__"})
    _child(home, f"{name} cut", None)
    home.message(f"{name} forked", "user", f"late {name}", timestamp=END + 500)
    home.chat(f"{name} torn", 4, ended_at=END, end_reason="compression")
    _child(home, f"{name} torn 1", f"{name} torn")
    _child(home, f"{name} torn 2", f"{name} torn", started_at=END + 2)
    home.sql(
        f"UPDATE sessions SET ended_at = {END + 9}, end_reason = 'agent_close' WHERE id = '{name} torn 1'"
    )
    home.chat(f"{name} copied", 4)
    home.session(f"{name} copy", parent_session_id=f"{name} copied", started_at=END)
    for number in range(4):
        text = f"turn {number} of {name} copied"
        home.message(f"{name} copy", ("user", "assistant")[number % 2], text, timestamp=END)
    home.message(f"{name} copy", "user", "Another way.", timestamp=END + 60)
    home.session(f"{name} tip", source="telegram", session_key=KEY, system_prompt_hash=f"no {name}")
    for at in (0, 5000):
        home.message(f"{name} tip", timestamp=START + at)
    home.session(f"{name} cron", source="cron")
    home.session(f"{name} ghost", source="telegram")


def _child(home: HomeBuilder, session_id: str, parent: str | None, **values: Any) -> None:
    home.session(session_id, **{"parent_session_id": parent, "started_at": END + 1, **values})
    home.message(session_id, "user", SUMMARY, timestamp=END + 1)
    home.message(session_id, "assistant", "And so on.", timestamp=END + 2)


def _messages(home: HomeBuilder, name: str) -> None:
    home.chat(f"{name} odd", 4)
    home.message(f"{name} odd", timestamp=-1.0)
    home.message(f"{name} odd", "assistant", tool_calls=CALL[:-2])
    home.message(f"{name} odd", "user", '\0json:[{"type": "text"')
    home.message(f"{name} odd", "user", b"bytes")
    home.session(f"{name} tools")
    home.message(f"{name} tools", "assistant", "Running.", tool_calls=CALL)
    home.message(f"{name} tools", "user", "Did it?")
    home.message(f"{name} tools", "tool", "Done.", tool_call_id="call_9")
    home.message(f"{name} tools", "assistant", "Yes.")
    if home.version in WITH_STATE:
        home.chat(f"{name} hidden", 2)
        home.turns(f"{name} hidden", 3, active=None)
        home.message(f"{name} odd", active=2)
    home.chat(f"{name} half", 2, ended_at=END)
    home.chat(f"{name} counted", 4, ended_at=END, end_reason="cli_close")
    home.sql(f"UPDATE sessions SET message_count = 9 WHERE id = '{name} counted'")
    home.message(f"{name} counted", "user", '\0json:[{"type": "text", "text": "a ☔"}]')


def _orphans(home: HomeBuilder, name: str) -> None:
    home.chat(f"{name} orphan", 4)
    home.sql(f"DELETE FROM sessions WHERE id = '{name} orphan'")
    if home.columns("gateway_routing"):
        entry = {"session_id": "routed", "session_key": KEY + name}
        home.insert("gateway_routing", scope="", session_key=KEY + name, entry_json=entry, updated_at=1.0)
    if home.columns("session_model_usage"):
        home.insert("session_model_usage", session_id=f"{name} used", model="m", billing_provider="p")
    if home.columns("compression_locks"):
        home.insert(
            "compression_locks", session_id=f"{name} lock", holder="h", acquired_at=1.0, expires_at=NOW + 9e8
        )


def _files(home: HomeBuilder) -> None:
    """Exports of which some no longer hold what the store has, logs, and a configuration that prunes."""
    exports = DATA / "exports" / home.version
    for path in sorted(exports.rglob("*")):
        if path.is_file() and path.suffix in {".md", ".jsonl", ".html"}:
            target = home.root / "session-exports" / path.relative_to(exports)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    gone = [row for (row,) in home.sql("SELECT id FROM sessions WHERE id LIKE '2026%' ORDER BY id")][1::3]
    for session_id in gone:
        home.sql(
            f"DELETE FROM messages WHERE session_id = '{session_id}'",
            f"DELETE FROM sessions WHERE id = '{session_id}'",
        )
    home.sql("UPDATE messages SET content = 'rewritten' WHERE id % 7 = 2 AND id < 30")
    home.file("config.yaml", "sessions:\n  auto_prune: true\n  retention_days: 30\n")
    home.log(
        f"2026-09-21 14:13:2{number},000 WARNING [{name} orphan] run_agent: "
        "Session DB append_message failed: FOREIGN KEY constraint failed"
        for number, name in enumerate(("y", *ODD))
    )


def _index(home: HomeBuilder) -> None:
    """Rows that the search index lacks, and entries whose row is gone."""
    (trigger,) = home.sql("SELECT sql FROM sqlite_schema WHERE name = 'messages_fts_insert'")[0]
    home.sql("DROP TRIGGER messages_fts_insert")
    home.chat("unindexed", 2)
    home.sql(trigger)
    (trigger,) = home.sql("SELECT sql FROM sqlite_schema WHERE name = 'messages_fts_delete'")[0]
    home.sql("DROP TRIGGER messages_fts_delete")
    row = home.message("unindexed")
    home.sql(f"DELETE FROM messages WHERE id = {row}", trigger)
