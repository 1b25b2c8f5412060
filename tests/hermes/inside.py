"""What runs inside a Hermes release: one process per home, driven by JSON lines.

Started by ``process.py`` with nothing on the path but the release and the packages it needs. Everything a
test asks for is done by the release's own code; this file only calls it. Two things are not the release's:
the clock, so that conversations have realistic gaps and tests need not wait, and the far end of the network,
where a stand-in answers the request for a compaction summary.

Requests come on standard input as ``{"op": …, "now": …, "arguments": {…}}``. Answers go to what was standard
output when the process started, as ``{"result": …, "now": …}`` or ``{"error": …, "text": …, "now": …}``.
What the release itself prints goes to the file named by ``HERMES_DRIVER_LOG``.
"""

from __future__ import annotations

import contextlib
import datetime as datetime_module
import functools
import importlib
import inspect
import json
import os
import signal
import socket
import sqlite3
import ssl
import sys
import time
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Clock:
    """The time that the release sees. Each look moves it on by a millisecond, so no two moments are equal."""

    tick = 0.001

    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        self.now += self.tick
        return self.now

    def install(self) -> None:
        real, clock = datetime_module.datetime, self

        class Kind(type(real)):
            def __instancecheck__(cls, instance: object) -> bool:
                return isinstance(instance, real)

        class Datetime(real, metaclass=Kind):
            @classmethod
            def now(cls, tz: Any = None) -> Any:
                return cls.fromtimestamp(clock(), tz)

            @classmethod
            def utcnow(cls) -> Any:
                return cls.fromtimestamp(clock(), datetime_module.UTC).replace(tzinfo=None)

            @classmethod
            def today(cls) -> Any:
                return cls.now()

        time.time = self
        datetime_module.datetime = Datetime


def forbid_network() -> None:
    """No test of this project talks to anything but files."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise ConnectionRefusedError("the network is out of bounds here")

    class LocalSocket(socket.socket):
        def connect(self, address: Any) -> None:
            if self.family != socket.AF_UNIX:
                refuse()
            super().connect(address)

    socket.socket = LocalSocket
    socket.create_connection = refuse
    socket.getaddrinfo = refuse
    ssl.create_default_context = functools.cache(ssl.create_default_context)  # certificates load slowly


def stand_in_for_provider() -> None:
    """An ``openai`` module whose client exists and never answers: agents are built, models are not asked."""
    module = types.ModuleType("openai")

    class Client:
        def __init__(self, **settings: Any) -> None:
            self.__dict__.update(settings)

        def close(self) -> None:
            self.closed = True

    module.OpenAI = module.AsyncOpenAI = Client
    for name in ("APIError", "APIStatusError", "APIConnectionError", "APITimeoutError", "BadRequestError"):
        setattr(module, name, type(name, (Exception,), {}))
    for name in ("AuthenticationError", "NotFoundError", "RateLimitError"):
        setattr(module, name, type(name, (Exception,), {}))
    sys.modules["openai"] = module


class CommandLine:
    """``hermes …`` in a process of its own, forked from one that has the release's modules loaded already."""

    def __init__(self, clock: Clock) -> None:
        to_child, from_parent = os.pipe()
        to_parent, from_child = os.pipe()
        if os.fork() == 0:
            os.close(from_parent)
            os.close(to_parent)
            self._serve(clock, os.fdopen(to_child), os.fdopen(from_child, "w"))
        os.close(to_child)
        os.close(from_child)
        self._requests = os.fdopen(from_parent, "w")
        self._answers = os.fdopen(to_parent)

    def run(self, argv: list[str], cwd: str, output: str, now: float) -> int:
        self._requests.write(json.dumps([argv, cwd, output, now]) + "\n")
        self._requests.flush()
        return int(self._answers.readline())

    def _serve(self, clock: Clock, requests: Any, answers: Any) -> None:
        for line in requests:
            importlib.import_module("hermes_cli.main")
            argv, cwd, output, now = json.loads(line)
            loaded = Path(f"{output}.modules")
            child = os.fork()
            if child == 0:
                clock.now = now
                sys.argv = ["hermes", *argv]
                os.chdir(cwd)
                with open(output, "wb") as sink:
                    os.dup2(sink.fileno(), 1)
                    os.dup2(sink.fileno(), 2)
                try:
                    sys.exit(importlib.import_module("hermes_cli.main").main() or 0)
                finally:
                    loaded.write_text("\n".join(sys.modules))
            _, status = os.waitpid(child, 0)
            self._load(loaded.read_text().split("\n") if loaded.exists() else [])
            answers.write(f"{os.waitstatus_to_exitcode(status)}\n")
            answers.flush()
        os._exit(0)

    def _load(self, names: list[str]) -> None:
        """Have ready what the last command needed, so that the next one need not load it again."""
        for name in names:
            if name not in sys.modules:
                with contextlib.suppress(Exception):
                    importlib.import_module(name)


class Chat:
    """One conversation as a person has it: the agent, the command line around it, the messages in memory."""

    summary = "They worked through the earlier questions; every one of them was answered."

    def __init__(self, agent: Any, store: Any, history: list[dict[str, Any]]) -> None:
        self.agent = agent
        self.store = store
        self.history = history
        self.baseline: list[dict[str, Any]] | None = list(history)

    @classmethod
    def open(cls, store: Any, session_id: str, platform: str, resume: bool) -> Chat:
        run_agent = importlib.import_module("run_agent")
        settings = {
            "base_url": "https://provider.invalid/v1",
            "api_key": "none",
            "provider": "custom",
            "model": "gpt-4o",
            "session_db": store,
            "session_id": session_id,
            "platform": platform,
            "quiet_mode": True,
            "enabled_toolsets": [],
            "skip_context_files": True,
            "skip_memory": True,
        }
        agent = run_agent.AIAgent(**settings)
        history = store.get_messages_as_conversation(session_id) if resume else []
        if resume:
            agent._last_flushed_db_idx = len(history)
        return cls(agent, store, history)

    def persist(self) -> None:
        logging = importlib.import_module("hermes_logging")
        logging.set_session_context(self.agent.session_id)
        self.agent._persist_session(self.history, self.baseline)

    def say(self, messages: list[dict[str, Any]]) -> str:
        self.history.extend(messages)
        self.persist()
        return self.agent.session_id

    def compact(self, in_place: bool) -> str:
        compressor_module = importlib.import_module("agent.context_compressor")
        compressor_module.call_llm = self._answer
        compressor = self.agent.context_compressor
        compressor.protect_last_n = 4
        compressor.tail_token_budget = 60
        self.agent.compression_in_place = in_place
        options: dict[str, Any] = {"approx_tokens": 100_000}
        if "force" in inspect.signature(self.agent._compress_context).parameters:
            options["force"] = True
        self.history, _ = self.agent._compress_context(self.history, "", **options)
        compression = sys.modules.get("agent.conversation_compression")
        after = getattr(compression, "conversation_history_after_compression", lambda *_: None)
        self.baseline = after(self.agent, self.history)
        self.persist()
        return self.agent.session_id

    def _answer(self, *_: Any, **__: Any) -> Any:
        message = types.SimpleNamespace(content=self.summary, reasoning=None, tool_calls=None)
        choice = types.SimpleNamespace(message=message, finish_reason="stop")
        return types.SimpleNamespace(choices=[choice], usage=None, model="gpt-4o")

    def command(self, name: str, *arguments: Any) -> str:
        """A slash command of the interactive shell, run by the release's own handler."""
        shell_class = importlib.import_module("cli").HermesCLI
        shell = shell_class.__new__(shell_class)
        vars(shell).update(
            agent=self.agent,
            session_id=self.agent.session_id,
            conversation_history=self.history,
            model=self.agent.model,
            max_turns=20,
            reasoning_config=None,
            _session_db=self.store,
            _pending_title=None,
            _resumed=False,
        )
        getattr(shell, name)(*arguments)
        self.history = shell.conversation_history
        self.baseline = list(self.history)
        self.agent._last_flushed_db_idx = len(self.history)
        self.agent.session_id = shell.session_id
        return shell.session_id

    def delegate(self, goal: str) -> Chat:
        tool = importlib.import_module("tools.delegate_tool")
        child = tool._build_child_agent(
            task_index=0,
            goal=goal,
            context=None,
            toolsets=None,
            model=None,
            max_iterations=5,
            task_count=1,
            parent_agent=self.agent,
        )
        return Chat(child, self.store, [])

    def close(self) -> None:
        self.agent.close()


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

    def op_command_line(self, argv: list[str], cwd: str, output: str) -> int:
        return self.command_line.run(argv, cwd, output, self.clock.now)

    def op_constant(self, module: str, name: str) -> Any:
        return getattr(importlib.import_module(module), name)

    def op_verify_export(self, path: str, data: dict[str, Any]) -> Any:
        module = importlib.import_module("hermes_cli.session_export_md")
        return module.verify_export_file(Path(path), data)

    def op_chat(self, session_id: str, platform: str, resume: bool) -> int:
        return self._remember(Chat.open(self.store(), session_id, platform, resume))

    def op_say(self, chat: int, messages: list[dict[str, Any]]) -> str:
        return self.chats[chat].say(messages)

    def op_compact(self, chat: int, in_place: bool) -> str:
        return self.chats[chat].compact(in_place)

    def op_command(self, chat: int, name: str, args: list[Any]) -> str:
        return self.chats[chat].command(name, *args)

    def op_delegate(self, chat: int, goal: str) -> list[Any]:
        child = self.chats[chat].delegate(goal)
        return [self._remember(child), child.agent.session_id]

    def op_end_chat(self, chat: int) -> None:
        self.chats.pop(chat).close()

    def op_gateway(self, method: str, platform: str, chat_id: str) -> dict[str, Any]:
        """A messaging chat's session, found, made or reset as the gateway does it."""
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
