"""The parent's end of a process that runs inside a Hermes release (``inside`` is the other end)."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.hermes.releases import Release, environment_folder, release_folder

#: Seconds after which an operation counts as hung. The slowest real one, an agent's first import, takes two.
PATIENCE = 120.0


class HermesError(Exception):
    """What the release raised: ``kind`` is the class name, the message is the release's own."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind
        self.text = text


class HermesProcess:
    """One running release. ``now`` is its clock in epoch seconds: each call moves it on, none back."""

    def __init__(self, release: Release, home: Path, *, now: float, zone: str = "UTC") -> None:
        self.release = release
        self.home = home
        self.now = now
        self._working = tempfile.TemporaryDirectory(prefix="hermes-driver-")
        self._log = Path(self._working.name) / "log"
        home.mkdir(parents=True, exist_ok=True)
        folders = [release_folder(release), environment_folder()]
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-P", str(Path(__file__).with_name("inside"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={
                "PATH": os.environ.get("PATH", ""),
                "PYTHONPATH": os.pathsep.join(map(str, folders)),
                "PYTHONUTF8": "1",
                "HOME": self._working.name,
                "HERMES_HOME": str(home),
                "HERMES_DRIVER_LOG": str(self._log),
                "HERMES_DRIVER_NOW": repr(now),
                "TERM": "dumb",
                "TZ": zone,
            },
            cwd=self._working.name,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def call(self, op: str, **arguments: Any) -> Any:
        """The answer to one operation; raises :class:`HermesError` with what the release raised."""
        request = {"op": op, "now": self.now, "arguments": arguments}
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        answer = json.loads(self._read_line(op))
        self.now = answer["now"]
        if "error" in answer:
            raise HermesError(answer["error"], answer["text"])
        return _decode(answer["result"])

    def command_line(self, argv: list[str], cwd: Path) -> tuple[int, str]:
        """Exit code and output of ``hermes ARGV`` run in ``cwd``."""
        output = Path(self._working.name) / "output"
        code = self.call("command_line", argv=argv, cwd=str(cwd), output=str(output))
        return code, output.read_text(encoding="utf-8", errors="replace")

    def stop(self) -> None:
        """End the process as an operator would: its open stores are closed first."""
        if self._process.poll() is None:
            self.call("close", path=None)
            self._process.stdin.close()
            self._process.wait(PATIENCE)
        self._release_pipes()

    def kill(self) -> None:
        """End the process as a crash would: nothing is closed, nothing is flushed."""
        self._process.kill()
        self._process.wait(PATIENCE)
        self._release_pipes()

    def _release_pipes(self) -> None:
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._working.cleanup()

    def _read_line(self, op: str) -> bytes:
        ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE)
        line = self._process.stdout.readline() if ready else b""
        if not line:
            state = "ended" if ready else "did not answer"
            log = self._log.read_text(errors="replace")[-4000:] if self._log.exists() else ""
            raise RuntimeError(f"Hermes {self.release.version} {state} during {op!r}\n{log}")
        return line


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"$bytes"}:
            return bytes.fromhex(value["$bytes"])
        return {key: _decode(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_decode(item) for item in value]
    return value
