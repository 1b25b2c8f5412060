"""As much of a shell as the pages need: a line with one command runs in this process, more goes to bash."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from tests.docs.blocks import Block

_COMMENT = re.compile(r"\s+# (?P<said>.*)$|^# .*$")
_EXIT = re.compile(r"exit (\d+)(?: or (\d+))?")
#: What only a shell understands.
_SHELL = re.compile(r"[$`*;&\\]|^\s")
#: Verbs whose exit code says what was found.
_FINDING = frozenset({"scan", "diff", "playbook"})


class Command(msgspec.Struct, frozen=True):
    """One line: what to run, where it stands, and the exit codes that the page allows."""

    text: str
    line: int
    codes: frozenset[int]

    @property
    def words(self) -> list[str]:
        """The words of the first command, without where its output goes."""
        words = shlex.split(self.text)
        ends = [words.index(sign) for sign in ("|", ">", ">>", "<") if sign in words]
        return words[: min(ends, default=len(words))]


def is_script(block: Block) -> bool:
    """Whether the block is more than commands, one a line."""
    return any(_SHELL.search(_bare(line)) for line in block.text.splitlines())


def commands(block: Block) -> Iterator[Command]:
    """The commands of a block."""
    for number, line in enumerate(block.text.splitlines(), start=block.line):
        text = _bare(line)
        if text:
            yield Command(text, number, _codes(line, text))


def statemends(block: Block) -> Iterator[list[str]]:
    """The words of every statemend command in a block, scripts included, without the command itself."""
    for line in re.sub(r"\\\n\s*", "", block.text).splitlines():
        for words in _simple_commands(_bare(line)):
            if words and Path(words[0]).name == "statemend":
                yield words[1:]


def _simple_commands(line: str) -> Iterator[list[str]]:
    """The words between pipes, semicolons and the like, without where output goes."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&()<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if set(word) <= set("|;&()<>"):
            yield words
            words = [">"] if "<" in word or ">" in word else []
        else:
            words.append(word)
    yield words


def target(command: Command) -> Path | None:
    """What a command writes."""
    words = command.words
    return Path(os.path.expanduser(words[words.index("-o") + 1])) if "-o" in words else None


def run(command: Command, statemend: Callable[[list[str]], tuple[int, str]], folder: Path) -> int:
    """Run one line in ``folder``; returns the exit code of its first command."""
    if command.words[0] != "statemend":
        return script(command.text, folder).returncode
    code, out = statemend([os.path.expanduser(word) for word in command.words[1:]])
    rest = shlex.split(command.text)[len(command.words) :]
    if rest[:1] == [">"]:
        (folder / os.path.expanduser(rest[1])).write_text(out, encoding="utf-8")
    elif rest[:1] == ["|"] and shutil.which(rest[1]):
        piped = command.text.split("|", 1)[1]
        subprocess.run(
            ["bash", "-c", piped], cwd=folder, input=out, text=True, check=True, capture_output=True
        )
    return code


def script(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script in bash, with this statemend as the one that it finds."""
    tools = folder / ".tools"
    if not tools.is_dir():
        tools.mkdir()
        program = tools / "statemend"
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m statemend "$@"\n')
        program.chmod(0o755)
    return subprocess.run(
        ["bash", "-c", text],
        cwd=folder,
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"},
        text=True,
        capture_output=True,
        check=False,
        timeout=120,
    )


def _bare(line: str) -> str:
    return _COMMENT.sub("", line).rstrip()


def _codes(line: str, text: str) -> frozenset[int]:
    comment = _COMMENT.search(line)
    told = _EXIT.search(comment["said"] or "") if comment else None
    if told:
        return frozenset(int(code) for code in told.groups() if code)
    words = text.split()
    return frozenset({0, 1}) if len(words) > 1 and words[1] in _FINDING else frozenset({0})
