"""Lives of sessions, drawn by hypothesis and carried out by a release's ``SessionDB``.

The shapes are those that the agent gives to the store: what a compaction hands over is a kept head, a summary
in the release's own words and a carried tail, with or without the times of the messages it copies.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from tests.hermes.home import HermesError, HermesHome

TEXTS = st.sampled_from(
    [
        "ok",
        "ok",
        "what is next?",
        "line one\nline two\r\nline three",
        "ends in spaces   \n\n",
        "### User — 2026-08-01T09:20:07Z",
        "\U0001f642 画像 \u202eabc",
        '{"json": true}',
        "",
    ]
)
CONTENTS = st.one_of(
    TEXTS,
    TEXTS.map(
        lambda text: [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": "x"}}]
    ),
    st.sampled_from([None, {"text": "a part"}, []]),
)
MARKERS = st.sampled_from([None, "_branched_from", "_delegate_from", "_reset_from", "inherited"])
SOURCES = st.sampled_from(["cli", "cli", "telegram", "tool"])
REASONS = st.sampled_from(["compression", "branched", "session_reset", "cli_close"])
CARRIERS = st.sampled_from(["assistant", "user", "merged"])
SESSION = st.sampled_from([0, 1, 0, 2, 0, 1, 3, 4, 5])
#: How a release says no to a step that makes no sense at that moment.
REFUSALS = ("ValueError", "CompressionSessionClosedError")

Family = list[tuple[Any, ...]]


def _steps() -> st.SearchStrategy[tuple[Any, ...]]:
    talk = st.tuples(st.just("talk"), SESSION, st.lists(CONTENTS, min_size=2, max_size=6), st.booleans())
    compact = st.tuples(
        st.just("compact"), SESSION, st.integers(0, 2), st.integers(0, 5), st.booleans(), CARRIERS
    )
    follow = st.tuples(
        st.just("follow"), SESSION, MARKERS, SOURCES, st.sampled_from([-5.0, 0.0, 0.001, 30.0]), st.booleans()
    )
    return st.one_of(
        talk,
        talk,
        compact,
        compact,
        follow,
        st.tuples(st.just("session"), SESSION, MARKERS, SOURCES),
        st.tuples(st.just("call"), SESSION, st.sampled_from(["a", "b"]), TEXTS),
        st.tuples(st.just("undo"), SESSION, st.integers(0, 3)),
        st.tuples(st.just("end"), SESSION, REASONS),
        st.tuples(st.just("reopen"), SESSION),
        st.tuples(st.just("replace"), SESSION, st.integers(0, 3)),
        st.tuples(st.just("wait"), st.sampled_from([0.0, 0.5, 60.0, 86400.0])),
    )


def families(count: int) -> st.SearchStrategy[list[Family]]:
    """The lives of ``count`` families of up to six sessions each."""
    return st.lists(st.lists(_steps(), min_size=12, max_size=24), min_size=count, max_size=count)


class Life:
    """Carries out drawn lives. A step that the release refuses is no step."""

    def __init__(self, home: HermesHome) -> None:
        self.home = home
        self.prefix = home.summary_prefix()
        self._path = ""
        self._family = 0
        self._made: list[str] = []

    def run(self, lives: list[Family], path: Path) -> Path:
        """Make a store at ``path`` in which each family lives its life."""
        path.parent.mkdir(parents=True)
        self._path = str(path)
        for number, life in enumerate(lives):
            self._family, self._made = number, []
            self._do_session(0, None, "cli")
            for name, *arguments in life:
                try:
                    getattr(self, f"_do_{name}")(*arguments)
                except HermesError as refusal:
                    if refusal.kind not in REFUSALS:
                        raise
        self.home.process.call("close", path=self._path)
        return path

    def _store(self, method: str, *args: Any, **options: Any) -> Any:
        return self.home.process.call(
            "store", method=method, args=list(args), options=options, path=self._path
        )

    def _pick(self, number: int) -> str:
        return self._made[number % len(self._made)]

    def _do_wait(self, seconds: float) -> None:
        self.home.advance(seconds)

    def _do_session(self, parent: int, marker: str | None, source: str) -> None:
        session_id = f"20260801_0900{self._family:02}_{len(self._made):06x}"
        options: dict[str, Any] = {"model": "gpt-4o"}
        if self._made:
            options["parent_session_id"] = self._pick(parent)
        if marker == "inherited":
            options["model_config"] = {"_branched_from": "20250101_000000_elsewhere"}
        elif marker:
            options["model_config"] = {marker: options.get("parent_session_id", "__orphaned__")}
        self._store("create_session", session_id, source, **options)
        self._made.append(session_id)

    def _do_follow(self, parent: int, marker: str | None, source: str, gap: float, closed: bool) -> None:
        """A rotation: the parent ends, and a child starts around that moment with the summary."""
        if len(self._made) > 5:
            return
        sid = self._pick(parent)
        self._store("end_session", sid, "compression")
        self.home.process.now += gap
        self._do_session(parent, marker, source)
        child = self._made[-1]
        self._store("append_message", child, "assistant", f"{self.prefix}\n## Goal\nGo on.")
        self._store("append_message", child, "user", "go on")
        if closed:
            self._store("end_session", child, "ws_orphan_reap")

    def _do_talk(self, session: int, contents: list[Any], timed: bool) -> None:
        for number, content in enumerate(contents):
            self.home.advance(7.0)
            options = {"timestamp": self.home.now} if timed else {}
            role = "assistant" if number % 2 else "user"
            self._store("append_message", self._pick(session), role, content, **options)

    def _do_call(self, session: int, name: str, output: str) -> None:
        sid = self._pick(session)
        arguments = json.dumps({"command": name})
        call = {"id": f"call_{name}", "type": "function", "function": {"name": "sh", "arguments": arguments}}
        self.home.advance(1.0)
        self._store("append_message", sid, "user", "run it")
        self._store("append_message", sid, "assistant", "Running.", tool_calls=[call])
        self._store("append_message", sid, "tool", output, tool_call_id=call["id"], tool_name="sh")

    def _do_compact(self, session: int, head: int, tail: int, timed: bool, carrier: str) -> None:
        sid = self._pick(session)
        history = self._store("get_messages_as_conversation", sid)
        if len(history) < 2:
            return
        head, tail = min(head, len(history) // 2), min(tail, len(history) // 2)
        kept = [dict(message) for message in history[:head]]
        carried = [dict(message) for message in history[len(history) - tail :]] if tail else []
        for message in () if timed else (*kept, *carried):
            message.pop("timestamp", None)
        summary = f"{self.prefix}\n## Goal\nCount to {len(history)}."
        if carrier == "merged" and carried and isinstance(carried[0].get("content"), str):
            end = "--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---"
            carried[0]["content"] = f"{summary}\n\n{end}\n\n{carried[0]['content']}"
        else:
            role = carrier if carrier != "merged" else "user"
            carried.insert(0, {"role": role, "content": summary, "_compressed_summary": True})
        options = {"tail_count": tail} if self.home.release.at_least("0.22") and carrier != "merged" else {}
        self.home.advance(2.0)
        self._store("archive_and_compact", sid, [*kept, *carried], **options)

    def _do_undo(self, session: int, back: int) -> None:
        sid = self._pick(session)
        asked = [message["id"] for message in self._store("get_messages", sid) if message["role"] == "user"]
        if asked:
            self._store("rewind_to_message", sid, asked[-1 - back % len(asked)])

    def _do_end(self, session: int, reason: str) -> None:
        self.home.advance(1.0)
        self._store("end_session", self._pick(session), reason)

    def _do_reopen(self, session: int) -> None:
        self._store("reopen_session", self._pick(session))

    def _do_replace(self, session: int, keep: int) -> None:
        sid = self._pick(session)
        history = self._store("get_messages_as_conversation", sid)
        self._store("replace_messages", sid, history[:keep])
