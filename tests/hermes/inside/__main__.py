"""What runs inside a Hermes release: one process per home, driven by JSON lines.

Started by ``process.py`` with nothing on the path but the release, the packages it needs and this folder.
Everything a test asks for is done by the release's own code; this only calls it. Two things are not the
release's: the clock, so that conversations have realistic gaps and tests need not wait, and the far end of
the network, where a stand-in answers the request for a compaction summary.

Requests come on standard input as ``{"op": …, "now": …, "arguments": {…}}``. Answers go to what was standard
output when the process started, as ``{"result": …, "now": …}`` or ``{"error": …, "text": …, "now": …}``.
What the release itself prints goes to the file named by ``HERMES_DRIVER_LOG``.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sqlite3
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from driver_chat import Chat
from driver_world import Clock, CommandLine, forbid_network, stand_in_for_provider


class Inside:
    """The operations a test can ask for."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.command_line = CommandLine(clock)
        self.stores: dict[str, Any] = {}
        self.chats: dict[int, Chat] = {}
        self.gateways: dict[str, Any] = {}

    @property
    def home(self) -> Path:
        return Path(os.environ["HERMES_HOME"])

    def store(self, path: str | None = None) -> Any:
        """The open ``SessionDB`` of ``path``, of this home by default."""
        path = path or str(self.home / "state.db")
        if path not in self.stores:
            self.stores[path] = importlib.import_module("hermes_state").SessionDB(Path(path))
        return self.stores[path]

    def op_store(self, method: str, args: list[Any], options: dict[str, Any], path: str | None) -> Any:
        return getattr(self.store(path), method)(*args, **options)

    def op_batch(self, calls: list[list[Any]], path: str | None) -> list[Any]:
        store = self.store(path)
        return [getattr(store, method)(*args, **options) for method, args, options in calls]

    def op_has(self, method: str) -> bool:
        return hasattr(self.store(), method)

    def op_sql(self, statement: str, bindings: list[Any]) -> list[list[Any]]:
        """Through the release's own connection, where a test needs a damage that only SQL can do."""
        connection = self.store()._conn
        rows = [list(row) for row in connection.execute(statement, bindings).fetchall()]
        connection.commit()
        return rows

    def op_break_next(self, method: str, how: str) -> None:
        """The next call of a ``SessionDB`` method finds a locked database, or the process dies in it."""
        kind = type(self.store())
        real = getattr(kind, method)

        def broken(*_: Any, **__: Any) -> Any:
            if how == "crash":
                os._exit(9)
            setattr(kind, method, real)
            raise sqlite3.OperationalError("database is locked")

        setattr(kind, method, broken)

    def op_close(self, path: str | None) -> None:
        for name in [path] if path else list(self.stores):
            self.stores.pop(name).close()

    def op_rest(self, now: float | None) -> None:
        """Everything that is open is closed and forgotten; the process goes on, at another time if one is
        given. Some releases leave connections of their own open."""
        self.gateways.clear()
        self.chats.clear()
        self.op_close(None)
        gc.collect()
        for left in gc.get_objects():
            if isinstance(left, sqlite3.Connection):
                left.close()
        self.clock.now = self.clock.now if now is None else now

    def op_command_line(self, argv: list[str], cwd: str, output: str) -> int:
        return self.command_line.run(argv, cwd, output, self.clock.now)

    def op_constant(self, module: str, name: str) -> Any:
        return getattr(importlib.import_module(module), name)

    def op_function(
        self, module: str, name: str, args: list[Any], options: dict[str, Any] | None = None
    ) -> Any:
        """A function of the release that stands by itself."""
        return getattr(importlib.import_module(module), name)(*args, **(options or {}))

    def op_keep_response(self, response_id: str, data: dict[str, Any]) -> None:
        """A response as the API server keeps it."""
        store = importlib.import_module("gateway.platforms.api_server").ResponseStore()
        store.put(response_id, data)
        store.close()

    def op_agent(self, chat: int, name: str, args: list[Any], options: dict[str, Any]) -> Any:
        """A method of a chat's agent; newer releases keep some as functions of the agent."""
        agent = self.chats[chat].agent
        agent._session_json_enabled = True
        method = getattr(agent, f"_{name}", None)
        if method is None:
            helpers = importlib.import_module("agent.agent_runtime_helpers")
            return getattr(helpers, name)(agent, *args, **options)
        return method(*args, **options)

    def op_history(self, chat: int) -> list[dict[str, Any]]:
        """What the agent of a chat holds in memory."""
        return self.chats[chat].history

    def op_transcript(self, session_id: str, messages: list[dict[str, Any]]) -> None:
        """Messages of a chat as the gateway adds them to its transcript; its agent had stored them."""
        for message in messages:
            self.gateways["store"].append_to_transcript(session_id, message, skip_db=True)

    def op_verify_export(self, path: str, data: dict[str, Any]) -> Any:
        module = importlib.import_module("hermes_cli.session_export_md")
        return module.verify_export_file(Path(path), data)

    def op_chat(self, session_id: str, platform: str, resume: bool) -> int:
        return self._remember(Chat.open(self.store(), session_id, platform, resume))

    def op_say(self, chat: int, messages: list[dict[str, Any]]) -> str:
        return self.chats[chat].say(messages)

    def op_count_tokens(self, chat: int) -> None:
        self.chats[chat].count_tokens()

    def op_compact(self, chat: int, in_place: bool) -> str:
        return self.chats[chat].compact(in_place)

    def op_prune(self, chat: int) -> int:
        return self.chats[chat].prune()

    def op_command(self, chat: int, name: str, args: list[Any]) -> str:
        return self.chats[chat].command(name, *args)

    def op_delegate(self, chat: int, goal: str) -> list[Any]:
        child = self.chats[chat].delegate(goal)
        return [self._remember(child), child.agent.session_id]

    def op_end_chat(self, chat: int) -> None:
        self.chats.pop(chat).close()

    def op_dispatch(self, chat: int, goal: str) -> str:
        return self.chats[chat].dispatch(goal)

    def op_gateway(
        self, method: str, platform: str, chat_id: str, target: str | None = None
    ) -> dict[str, Any]:
        """A messaging chat's session, found, made, reset, switched or led on as the gateway does it."""
        session = importlib.import_module("gateway.session")
        config = importlib.import_module("gateway.config")
        if "store" not in self.gateways:
            self.gateways["store"] = session.SessionStore(self.home / "sessions", config.GatewayConfig())
        gateway = self.gateways["store"]
        source = session.SessionSource(
            platform=config.Platform(platform), chat_id=chat_id, chat_type="dm", user_id=chat_id
        )
        entry = gateway.get_or_create_session(source)
        if method == "reset":
            entry = gateway.reset_session(entry.session_key)
        elif method == "switch":
            entry = gateway.switch_session(entry.session_key, target)
        elif method == "follow":
            entry.session_id = target
            gateway._save()
        return {"session_id": entry.session_id, "session_key": entry.session_key}

    def _remember(self, chat: Chat) -> int:
        number = len(self.chats) + 1
        while number in self.chats:
            number += 1
        self.chats[number] = chat
        return number


def encode(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"$bytes": value.hex()}
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    return repr(value)


def serve(inside: Inside, clock: Clock, answers: Any) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        clock.now = max(clock.now, request["now"]) if request["now"] is not None else clock.now
        operation: Callable[..., Any] = getattr(inside, f"op_{request['op']}")
        try:
            answer = {"result": operation(**request["arguments"]), "now": clock.now}
        except Exception as error:  # noqa: BLE001 - whatever the release raises is the answer
            traceback.print_exc()
            answer = {"error": type(error).__name__, "text": str(error), "now": clock.now}
        answers.write(json.dumps(answer, default=encode) + "\n")
        answers.flush()


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    log = os.open(os.environ["HERMES_DRIVER_LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    clock = Clock()
    clock.now = float(os.environ["HERMES_DRIVER_NOW"])
    clock.install()
    forbid_network()
    stand_in_for_provider()
    serve(Inside(clock), clock, answers)


if __name__ == "__main__":
    main()
