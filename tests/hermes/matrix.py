"""A home in which every format of a release is exported, before and after what can happen to a session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.hermes.home import HermesHome, assistant, user

LIVED, MASKED, DELETED = "20260801_090000_aaaaaa", "20260801_100000_bbbbbb", "20260801_110000_cccccc"
SECRET = (
    "my key is sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789abcdefghijklmnopqrstuvwxyz-AA, keep it safe"
)
#: What a format takes: the rows that are live, those of the display view, every row, or what the agent holds.
LIVE, DISPLAY, EVERY, MEMORY = "live", "display", "every", "memory"


@dataclass(frozen=True)
class Format:
    """``since`` and ``until`` are releases (``until`` excluded). ``views`` says what it takes from which
    release on, oldest first."""

    name: str
    since: str
    views: dict[str, str]
    until: str = "9"
    prompts: bool = False
    stages: tuple[str, ...] = ("before", "after", "masked", "deleted")

    def written_by(self, release: Any) -> bool:
        return bool(release.at_least(self.since)) and not release.at_least(self.until)

    def view(self, release: Any) -> str:
        return [view for since, view in self.views.items() if release.at_least(since)][-1]

    def memory(self, release: Any) -> bool:
        return self.view(release) == MEMORY

    def masks(self, release: Any) -> bool:
        """Whether a secret is masked in the file of the session that is exported so."""
        return bool(release.at_least("0.15" if self.name == "snapshot" else "0.18"))


_FIXED = {"0.18": LIVE, "0.22": DISPLAY}
FORMATS = (
    Format("jsonl", "0.13", {"0.13": EVERY, "0.16": LIVE, "0.22": EVERY}),
    Format("md", "0.18", _FIXED),
    Format("qmd", "0.18", _FIXED, stages=("after",)),  # all but one word as md
    Format("html", "0.18", _FIXED),
    Format("prompts-jsonl", "0.18", _FIXED, prompts=True),
    Format("prompts-md", "0.18", _FIXED, prompts=True),
    Format("trace", "0.18", {"0.18": LIVE}),
    Format("save json", "0.13", {"0.13": MEMORY, "0.20": LIVE, "0.22": DISPLAY}),
    Format("save md", "0.20", {"0.20": LIVE, "0.22": DISPLAY}),
    Format("save html", "0.20", {"0.20": LIVE, "0.22": DISPLAY}),
    Format("snapshot", "0.13", {"0.13": MEMORY}, until="0.22"),
    Format("request dump", "0.13", {"0.13": MEMORY}),
)


@dataclass
class File:
    """One file: when it was made and what of. ``rows`` are those that its release takes: id, role, content,
    tool calls, id of the call, name of the tool. ``last`` is the highest id that there was."""

    path: str
    format: str
    session: str
    stage: str
    at: float
    last: int
    rows: list[list[Any]]


@dataclass
class Facts:
    home: str
    version: str
    now: float
    files: list[File] = field(default_factory=list)

    @classmethod
    def load(cls, text: str) -> Facts:
        made = json.loads(text)
        return cls(made["home"], made["version"], made["now"], [File(**each) for each in made["files"]])

    def dump(self) -> str:
        return json.dumps(asdict(self))


def live_through(home: HermesHome) -> Facts:
    """Export, undo, compact, rename, append, export again, append; export masked; export and delete."""
    facts = Facts(str(home.path), home.release.version, home.now)
    maker = _Maker(home, facts)
    chat = home.chat(LIVED)
    chat.turns(8, "plan")
    chat.tool_turn("How far are we?", "wc -l plan.md", "12 plan.md", "Twelve lines.")
    home.title(LIVED, "Plan")
    chat.say(user("take this back"), assistant("it will be"))
    maker.write(chat, "before")
    chat.undo()
    if home.release.at_least("0.18"):
        chat.compact()
    home.title(LIVED, "Another plan")
    chat.say(user("and the end?"), assistant("The end."))
    maker.write(chat, "after")
    chat.say(user("one more?"), assistant("No."))

    masked = home.chat(MASKED)
    masked.say(user(SECRET), assistant("I will."), user("good"), assistant("Yes."))
    maker.write(masked, "masked")

    deleted = home.chat(DELETED)
    deleted.say(user("short"), assistant("chat"))
    deleted.tool_turn("What is here?", "ls", "README.md", "A readme.")
    maker.write(deleted, "deleted")
    home.delete(DELETED)
    facts.now = home.now
    return facts


class _Maker:
    def __init__(self, home: HermesHome, facts: Facts) -> None:
        self.home = home
        self.facts = facts

    def write(self, chat: Any, stage: str) -> None:
        """One file of each format that the release has."""
        for form in FORMATS:
            if form.written_by(self.home.release) and stage in form.stages:
                before = self._files()
                self.home.advance(2.0)
                if self._make(chat, form, stage):
                    (path,) = [each for each in self._files() - before if each.name != "manifest.jsonl"]
                    rows = self._held(chat) if form.memory(self.home.release) else self._rows(chat, form)
                    last = self.home.value("SELECT MAX(id) FROM messages", [])
                    made = File(str(path), form.name, chat.session_id, stage, self.home.now, last, list(rows))
                    self.facts.files.append(made)

    def _make(self, chat: Any, form: Format, stage: str) -> bool:
        """Write it; ``False`` where the release cannot mask this format."""
        masked = stage == "masked"
        what, _, suffix = form.name.partition(" ")
        if form.name in ("snapshot", "request dump"):
            self._from_memory(chat, form, stage)
        elif what == "save":
            if not self.home.release.at_least("0.20"):
                chat._command("save_conversation")
                return not masked
            name = f"{stage}-{chat.session_id}.{suffix}"
            words = [
                "/save",
                suffix,
                str(self.home.path / "sessions" / name),
                *(["redact"] if masked else []),
            ]
            (self.home.path / "sessions").mkdir(exist_ok=True)
            chat._command("save_conversation", " ".join(words))
        else:
            options = ["--redact"] if masked and form.name not in ("trace",) else []
            options += ["--no-redact"] if form.name == "trace" and not masked else []
            if masked and not self.home.release.at_least("0.18"):
                return False
            name = f"{stage}.{chat.session_id}.{form.name}"
            done = self.home.export(chat.session_id, form.name, *options, name=name)
            assert done.code == 0, done.said
        return True

    def _from_memory(self, chat: Any, form: Format, stage: str) -> None:
        call = self.home.process.call
        history = call("history", chat=chat._number)
        if form.name == "snapshot":
            written = self.home.path / "sessions" / f"session_{chat.session_id}.json"
            written.unlink(missing_ok=True)  # it is never replaced by a shorter one
            call("agent", chat=chat._number, name="save_session_log", args=[history], options={})
            written.rename(written.with_name(f"{stage}.{written.name}"))
        else:
            body = {"model": "gpt-4o", "messages": history}
            options = {"reason": "max_retries"}
            call("agent", chat=chat._number, name="dump_api_request_debug", args=[body], options=options)

    def _files(self) -> set[Path]:
        return {
            path
            for path in self.home.path.rglob("*")
            if path.is_file() and {"session-exports", "sessions"} & {*path.parts}
        }

    def _held(self, chat: Any) -> Iterator[list[Any]]:
        """What the agent holds in memory, in the shape of rows."""
        for message in self.home.process.call("history", chat=chat._number):
            calls = message.get("tool_calls")
            told = [message.get("content"), json.dumps(calls) if calls else None, message.get("tool_call_id")]
            yield [None, message["role"], *told, message.get("tool_name")]

    def _rows(self, chat: Any, form: Format) -> Iterator[list[Any]]:
        """The rows that the release takes for this format now, as the store has them."""
        known = {name for (_, name, *_) in self.home.rows("PRAGMA main.table_info(messages)")}
        view = form.view(self.home.release)
        wanted = "active = 1" if view == LIVE and "active" in known else "1"
        if view == DISPLAY:
            shown = "(active = 1 OR compacted = 1)"
            alone = form.name == "save json"  # it shows both of a row and its copy
            folded = f"SELECT MAX(id) FROM messages WHERE {shown} GROUP BY display_order"
            wanted = shown if alone else f"id IN ({folded})"
        if form.prompts:
            wanted += " AND role = 'user'"
        names = "id, role, content, tool_calls, tool_call_id, tool_name"
        yield from self.home.rows(
            f"SELECT {names} FROM messages WHERE session_id = ? AND {wanted} ORDER BY id",
            chat.session_id,
        )
