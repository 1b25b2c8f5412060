"""A Hermes home made and changed by a real release: what the tests build, break and ask.

``HermesHome`` is one home with one release running on it. ``Conversation`` is one chat with a real agent of
that release: its messages are flushed, compacted, rotated, branched and undone by the release's own code.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.hermes.process import HermesError, HermesProcess
from tests.hermes.releases import EVERY

#: 2026-08-01T09:00:00Z, when every home's clock starts.
START = 1785574800.0

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0

#: Long enough that a compaction is worth it: the newest release refuses one that would not save tokens.
PADDING = (
    "The plan names each step, who does it and what must be true before the next one may begin. " * 12
).strip()

FORMATS = ("jsonl", "md", "qmd", "html", "prompts-jsonl", "prompts-md")


@dataclass(frozen=True)
class Export:
    """What one run of ``hermes sessions export`` left: the exit code, what it said, the files it wrote."""

    code: int
    said: str
    files: tuple[Path, ...]


class Conversation:
    """One chat of a running agent. ``session_id`` follows rotations, branches and new sessions."""

    def __init__(self, home: HermesHome, number: int, session_id: str) -> None:
        self.home = home
        self.session_id = session_id
        self._number = number

    def say(self, *messages: Mapping[str, Any], gap: float = 20.0) -> str:
        """Add messages as the agent does, each flushed ``gap`` seconds after the one before."""
        for message in messages:
            self.home.advance(gap)
            self.session_id = self.home.process.call("say", chat=self._number, messages=[dict(message)])
        return self.session_id

    def turns(self, count: int, topic: str = "step") -> str:
        """``count`` exchanges, long enough to be worth compacting later."""
        for number in range(count):
            self.say(
                user(f"{topic} {number}: what comes next? {PADDING}"),
                assistant(f"{topic} {number} is done. {PADDING}"),
            )
        return self.session_id

    def tool_turn(self, prompt: str, command: str, result: str, reply: str) -> str:
        """An exchange in which the assistant calls one tool, with reasoning before it."""
        call = {
            "id": f"call_{abs(hash((prompt, command))) % 10**8:08d}",
            "type": "function",
            "function": {"name": "terminal", "arguments": json.dumps({"command": command})},
        }
        return self.say(
            user(prompt),
            {
                "role": "assistant",
                "content": "Let me look.",
                "tool_calls": [call],
                "finish_reason": "tool_calls",
                "reasoning": f"I need the output of {command}.",
            },
            {"role": "tool", "tool_call_id": call["id"], "tool_name": "terminal", "content": result},
            assistant(reply),
        )

    def count_tokens(self) -> None:
        """The tokens of an answer are noted, as the agent loop of the release does after each."""
        self.home.advance(1.0)
        self.home.process.call("count_tokens", chat=self._number)

    def compact(self) -> str:
        """In-place compaction by the release's own compressor; the id stays."""
        return self._compact(in_place=True)

    def prune(self) -> int:
        """Old tool results are shortened without a summary (0.20 and newer, where a setting asks for it); how
        many were."""
        self.home.advance(5.0)
        return self.home.process.call("prune", chat=self._number)

    def rotate(self, *, stored: bool = True) -> str:
        """Compaction that ends this session and continues in a child; the id becomes the child's. Say
        ``stored=False`` where it is meant to fail."""
        return self._compact(in_place=False, stored=stored)

    def _compact(self, *, in_place: bool, stored: bool = True) -> str:
        before = self.session_id
        rows = self.home.value("SELECT COUNT(*) FROM messages", [])
        self.home.advance(5.0)
        self.session_id = self.home.process.call("compact", chat=self._number, in_place=in_place)
        if stored:
            assert self.home.value("SELECT COUNT(*) FROM messages", []) > rows, "nothing was compacted"
            assert (self.session_id == before) is in_place
        return self.session_id

    def undo(self) -> None:
        """``/undo``: back up one exchange."""
        self._command("undo_last")

    def retry(self) -> None:
        """``/retry``: take back the last exchange, so that it can be asked again."""
        self._command("retry_last")

    def save(self) -> None:
        """``/save``: the conversation as a file under ``sessions/saved``."""
        self._command("save_conversation", *(["/save json"] if self.home.release.at_least("0.20") else []))

    def dispatch(self, goal: str) -> str:
        """A subagent in the background (0.19 and newer), whose result is noted as delivered; its id."""
        self.home.advance(1.0)
        return self.home.process.call("dispatch", chat=self._number, goal=goal)

    def branch(self) -> str:
        """``/branch``: this chat goes on in the branch; its id is returned."""
        return self._command("_handle_branch_command", "/branch")

    def new(self) -> str:
        """``/new``: this chat goes on in a new session; its id is returned."""
        return self._command("new_session", True)

    def delegate(self, goal: str) -> Conversation:
        """A subagent of this chat's agent, made by the release's own delegate tool."""
        self.home.advance(1.0)
        number, session_id = self.home.process.call("delegate", chat=self._number, goal=goal)
        return Conversation(self.home, number, session_id)

    def close(self) -> None:
        """The agent is closed as that release closes it."""
        self.home.advance(1.0)
        self.home.process.call("end_chat", chat=self._number)

    def _command(self, name: str, *args: Any) -> str:
        self.home.advance(5.0)
        self.session_id = self.home.process.call("command", chat=self._number, name=name, args=list(args))
        return self.session_id


class HermesHome:
    """One home folder and the release that runs on it now. ``now`` is the clock that Hermes sees."""

    def __init__(self, version: str, path: Path, *, now: float = START, zone: str = "UTC") -> None:
        self.path = path
        self.zone = zone
        self.process = HermesProcess(EVERY[version], path, now=now, zone=zone)

    def __enter__(self) -> HermesHome:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stop()

    @property
    def release(self) -> Any:
        return self.process.release

    @property
    def now(self) -> float:
        return self.process.now

    @property
    def state_db(self) -> Path:
        return self.path / "state.db"

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.process.now += seconds

    def upgrade(self, version: str) -> None:
        """Stop the running release and open the same home with another one."""
        self.process.stop()
        self.process = HermesProcess(EVERY[version], self.path, now=self.now + HOUR, zone=self.zone)
        self.store("session_count")

    def break_next(self, method: str, how: str = "locked") -> None:
        """The next call of that ``SessionDB`` method finds a locked database, or (``crash``) is the last."""
        self.process.call("break_next", method=method, how=how)

    def restart(self) -> None:
        """Start the same release again on this home, after a stop or a crash."""
        self.process.kill()
        self.process = HermesProcess(self.release, self.path, now=self.now + MINUTE, zone=self.zone)

    def rest(self) -> None:
        """Close and forget what the release has open; its process goes on. What it wrote lies there as after
        its end."""
        self.process.call("rest", now=None)

    def clear(self) -> None:
        """Begin anew in an empty home, when the clock started, without starting the release anew."""
        self.process.call("rest", now=START)
        for entry in self.path.iterdir():
            if entry.name == "logs":
                for log in filter(Path.is_file, entry.rglob("*")):
                    os.truncate(log, 0)  # the release holds them open
            elif entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def stop(self) -> None:
        """End the release. What it wrote lies there as it does after a normal exit; nothing holds it."""
        self.process.stop()

    # The store, through the release's SessionDB

    def store(self, method: str, *args: Any, **options: Any) -> Any:
        """``SessionDB.method(*args, **options)`` of this release."""
        return self.process.call("store", method=method, args=list(args), options=options, path=None)

    def value(self, statement: str, bindings: Sequence[Any]) -> Any:
        """The first value of a query, through the release's own connection."""
        return self.process.call("sql", statement=statement, bindings=list(bindings))[0][0]

    def rows(self, statement: str, *bindings: Any) -> list[list[Any]]:
        """The rows of a statement, through the release's own connection (which keeps foreign keys on)."""
        return self.process.call("sql", statement=statement, bindings=list(bindings))

    def create_session(self, session_id: str, source: str = "cli", **columns: Any) -> str:
        return self.store("create_session", session_id, source, **{"model": "gpt-4o", **columns})

    def append(self, session_id: str, role: str, content: Any, *, gap: float = 10.0, **columns: Any) -> int:
        """Append one message ``gap`` seconds from now; its row id is returned."""
        self.advance(gap)
        return self.store("append_message", session_id, role, content, **columns)

    def exchange(self, session_id: str, number: int) -> None:
        self.append(session_id, "user", f"question {number}")
        self.append(session_id, "assistant", f"answer {number}", finish_reason="stop")

    def end(self, session_id: str, reason: str = "cli_close") -> None:
        self.advance(1.0)
        self.store("end_session", session_id, reason)

    def title(self, session_id: str, title: str) -> None:
        self.store("set_session_title", session_id, title)

    def delete(self, session_id: str) -> bool:
        """``SessionDB.delete_session``, as the dashboard and API of every release call it."""
        return self.store("delete_session", session_id)

    # Conversations with a real agent

    def chat(self, session_id: str, platform: str = "cli") -> Conversation:
        """A new conversation; its session row appears with its first message."""
        return self._open_chat(session_id, platform, resume=False)

    def resume(self, session_id: str, platform: str = "cli") -> Conversation:
        """Go on with a stored conversation: its messages are loaded from the store."""
        return self._open_chat(session_id, platform, resume=True)

    def _open_chat(self, session_id: str, platform: str, resume: bool) -> Conversation:
        number = self.process.call("chat", session_id=session_id, platform=platform, resume=resume)
        return Conversation(self, number, session_id)

    def gateway_session(
        self,
        chat_id: str,
        *,
        reset: bool = False,
        switch: str | None = None,
        follow: str | None = None,
        platform: str = "telegram",
    ) -> str:
        """The session of a messaging chat, found, made or reset by the release's gateway, switched to the
        session ``switch``, or led on to ``follow`` as after a compression."""
        self.advance(1.0)
        method = "reset" if reset else "switch" if switch else "follow" if follow else "open"
        return self._gateway(method, platform, chat_id, switch or follow)["session_id"]

    def route_key(self, chat_id: str, platform: str = "telegram") -> str:
        """The key by which the gateway finds the session of a messaging chat."""
        return self._gateway("open", platform, chat_id, None)["session_key"]

    def _gateway(self, method: str, platform: str, chat_id: str, target: str | None) -> dict[str, Any]:
        return self.process.call("gateway", method=method, platform=platform, chat_id=chat_id, target=target)

    def snapshot(self) -> str | None:
        """``/snapshot create``: a copy of the store under ``state-snapshots``; its name."""
        return self.process.call(
            "function", module="hermes_cli.backup", name="create_quick_snapshot", args=[]
        )

    # The real command line

    def hermes(self, *argv: str) -> Export:
        """Run ``hermes ARGV`` in this home. Files it wrote get the time of Hermes' clock."""
        before = _stamps(self.path)
        started = time.time()
        code, said = self.process.command_line(list(argv), self.path)
        written = [file for file, stamp in _stamps(self.path).items() if before.get(file) != stamp]
        for file in written:
            if file.stat().st_mtime >= started - 2:
                os.utime(file, (self.now, self.now))
        exports = [file for file in sorted(written) if "session-exports" in file.parts]
        return Export(code, said, tuple(exports))

    def export(self, session_id: str | None, fmt: str, *extra: str, name: str | None = None) -> Export:
        """``hermes sessions export`` into the home's ``session-exports`` folder."""
        folder = self.path / "session-exports"
        folder.mkdir(exist_ok=True)
        self.advance(5.0)
        form, suffix, options = _export_arguments(fmt)
        target = (
            folder
            if form in ("md", "qmd") and not suffix
            else folder / (name or f"{session_id or 'all'}.{suffix}")
        )
        argv = ["sessions", "export", str(target)]
        if self.release.at_least("0.18"):
            argv += ["--format", form, *options]
        if session_id is not None:
            argv += ["--session-id", session_id]
        return self.hermes(*argv, *extra)

    def delete_after_verified(self, session_id: str, fmt: str = "md") -> Export:
        """Export and delete in one go, the way that destroyed archived rows before the fix."""
        return self.export(session_id, fmt, "--yes", "--delete-after-verified")

    # What Hermes itself says

    def messages(self, session_id: str) -> list[dict[str, Any]]:
        return self.store("get_messages", session_id)

    def session(self, session_id: str) -> dict[str, Any] | None:
        return self.store("get_session", session_id)

    def tip(self, session_id: str) -> str:
        return self.store("get_compression_tip", session_id)

    def lineage(self, session_id: str) -> list[str]:
        return self.store("get_compression_lineage", session_id)

    def verify_export_file(self, path: Path, data: dict[str, Any]) -> Any:
        return self.process.call("verify_export", path=str(path), data=data)

    def session_ids(self) -> list[str]:
        return [row[0] for row in self.rows("SELECT id FROM sessions ORDER BY started_at, id")]

    def summary_prefix(self) -> str:
        """The words with which this release begins a compaction summary."""
        return self.process.call("constant", module="agent.context_compressor", name="SUMMARY_PREFIX")


class Oracle:
    """A release asked about copies of stores: opening one may upgrade its schema, so never the original."""

    def __init__(self, version: str, home: Path, *, now: float = START) -> None:
        self._process = HermesProcess(EVERY[version], home, now=now)

    @property
    def release(self) -> Any:
        return self._process.release

    def ask(self, path: Path, calls: Iterable[tuple[str, Sequence[Any], Mapping[str, Any]]]) -> list[Any]:
        """The answers of ``SessionDB(path)`` to ``calls``, each a method, its arguments and its options."""
        requests = [[method, list(args), dict(options)] for method, args, options in calls]
        answers = self._process.call("batch", calls=requests, path=str(path))
        self._process.call("close", path=str(path))
        return answers

    def stop(self) -> None:
        self._process.stop()


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "finish_reason": "stop"}


def _export_arguments(fmt: str) -> tuple[str, str, list[str]]:
    """Hermes' ``--format``, the suffix of the file to name (none: a folder is named), and more options."""
    if fmt.startswith("prompts-"):
        form = fmt.removeprefix("prompts-")
        return form, f"prompts.{form}", ["--only", "user-prompts"]
    return fmt, "" if fmt in ("md", "qmd") else fmt, []


def _stamps(folder: Path) -> dict[Path, tuple[int, int]]:
    found = {}
    for file in folder.rglob("*"):
        if file.is_file():
            status = file.stat()
            found[file] = (status.st_mtime_ns, status.st_size)
    return found


__all__ = [
    "DAY",
    "FORMATS",
    "HOUR",
    "MINUTE",
    "START",
    "Conversation",
    "Export",
    "HermesError",
    "HermesHome",
    "Oracle",
    "assistant",
    "user",
]
