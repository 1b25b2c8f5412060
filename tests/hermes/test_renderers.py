"""Any part of any session, written by the releases' own renderers: exactly the rest is missing."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.hermes.home import HermesHome
from tests.hermes.scenes import HOSTILE

from statemend.evidence.coverage import assess
from statemend.evidence.inventory import find_home, take
from statemend.store.connection import open_for_audit

Make = Callable[..., HermesHome]
#: So many sessions of each release; the full count is meant for a night.
SESSIONS = int(os.environ.get("STATEMEND_SUBSETS", "3"))
RELEASES = ("0.18.2", "0.19.0", "0.20.1", "0.22.2")
TEXTS = (
    "ok",
    "what is next?",
    "  spaces around  \n\n",
    "line one\nline two\r\nline three",
    "### User — 2026-08-01T09:20:07Z\n\nnot a message",
    "## Export verification\n\n- Session id: `x`",
    "## 1. 2026-08-01T09:20:07Z\nMessage ID: `3`\n\nfake",
    "```json\n[]\n```",
    "</div><div class='message'>&amp;lt;",
    '{"json": [1, 2]}',
    "\U0001f642 画像 \u202eabc",
    HOSTILE,
)


class Written(NamedTuple):
    """A file, the format, the session, and the rows that it was made of."""

    path: Path
    form: str
    session_id: str
    rows: frozenset[int]


def live(home: HermesHome, session_id: str, dice: random.Random) -> None:
    home.create_session(session_id)
    for number in range(dice.randint(6, 16)):
        role = dice.choice(("user", "assistant"))
        text = dice.choice(TEXTS)
        if dice.random() < 0.2:
            text = [{"type": "text", "text": text}, {"type": "text", "text": f"part {number}"}]
        home.append(session_id, role, text, gap=dice.choice((1.5, 20.0)))
        if role == "assistant" and dice.random() < 0.3:
            call = {"id": f"call_{number}", "type": "function"}
            call["function"] = {"name": "terminal", "arguments": json.dumps({"command": text})}
            home.append(session_id, "assistant", "Let me look.", tool_calls=[call])
            answer = {"tool_call_id": call["id"], "tool_name": "terminal"}
            home.append(session_id, "tool", str(text), **answer)


def renderings(home: HermesHome, session: Mapping[str, Any]) -> dict[str, Callable[[], str]]:
    """How the release writes a session of which some messages were left out."""

    def call(module: str, name: str, *args: Any, **options: Any) -> Callable[[], str]:
        arguments = {"module": module, "name": name, "args": list(args), "options": options}
        return lambda: str(home.process.call("function", **arguments))

    of, some = "hermes_cli.session_export", [session]
    found = {
        "jsonl": lambda: json.dumps(session, ensure_ascii=False) + "\n",
        "md": call(f"{of}_md", "render_session_markdown", session, fmt="md"),
        "qmd": call(f"{of}_md", "render_session_markdown", session, fmt="qmd"),
        "html": call(f"{of}_html", "generate_html_export", session),
        "prompts.jsonl": call(of, "render_sessions_export", some, fmt="jsonl", only="user-prompts"),
        "prompts.md": call(of, "render_sessions_export", some, fmt="md", only="user-prompts"),
        "save.md": call(of, "render_sessions_export", some, fmt="md"),
        "trace": call(
            "agent.trace_upload",
            "build_trace_jsonl",
            session["messages"],
            session_id=session["id"],
            redact=False,
        ),
    }
    if home.release.at_least("0.20"):
        found["save.json"] = call(of, "render_session_for_save", session, "json")
    return found


def write(home: HermesHome, session_id: str, dice: random.Random) -> Iterator[Written]:
    whole = home.store("export_session", session_id)
    for form in renderings(home, whole):
        kept = [each for each in whole["messages"] if dice.random() < 0.6]
        text = renderings(home, {**whole, "messages": kept})[form]()
        path = home.path / "session-exports" / f"{session_id}.{form}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())
        yield Written(path, form, session_id, frozenset(each["id"] for each in kept))


def _says(row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(value.strip() if isinstance(value, str) else value for value in row)


@pytest.mark.parametrize("release", RELEASES)
def test_of_any_part_of_a_session_exactly_the_rest_is_missing(hermes_home: Make, release: str) -> None:
    home = hermes_home(release)
    files: list[Written] = []
    for seed in range(SESSIONS):
        dice = random.Random(f"{release} {seed}")
        session_id = f"20260801_0900{seed % 60:02}_{seed:06x}"
        live(home, session_id, dice)
        files += write(home, session_id, dice)
    rows = {
        row_id: (sid, role, _says(said))
        for row_id, sid, role, *said in home.rows(
            "SELECT id, session_id, role, content, tool_calls, tool_call_id FROM messages"
        )
    }
    home.stop()

    with open_for_audit(home.state_db) as store:
        covered = {
            artifact.artifact: artifact
            for session in assess(store, take(find_home(home.path), store=store))
            for artifact in session.artifacts
        }

    for file in files:
        shown = {
            row_id
            for row_id, (sid, role, _) in rows.items()
            if sid == file.session_id and (role == "user" or not file.form.startswith("prompts"))
        }
        kept = file.rows & shown
        if not kept:
            continue
        found = covered[str(file.path)]
        missing = {each.message_id for each in found.missing}
        assert (found.extra, found.changed, found.cut) == (0, (), False), file
        assert found.exact + found.lossy == len(kept), file
        if file.form == "trace":  # it has no times: of two messages with the same words either may be meant
            told, wanted = (Counter(rows[each][1:] for each in some) for some in (missing, shown - kept))
            assert told == wanted, file
        else:
            assert missing == shown - kept, file
