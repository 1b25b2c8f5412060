"""The world as a release sees it: a clock, no network, a provider that never answers, a command line."""

from __future__ import annotations

import contextlib
import datetime as datetime_module
import functools
import importlib
import json
import os
import socket
import ssl
import sys
import time
import types
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
