"""Random lawful use of a release never raises an alarm, and after it one random damage is told of rightly.

A run begins with an empty home and ends with two audits: one of what was lived, which may hold no fault and
no risk, and one after the damage, which has to tell of it and of nothing that is not so. The process of the
release is the same for all runs. STATEMEND_MACHINE_EXAMPLES sets how many runs each release has, and draws
them anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.hermes.damage import CATALOGUE, Damage, memory, strike, wrongs
from tests.hermes.home import DAY, HOUR, Conversation, HermesHome, assistant, user

from statemend.audit.finding import Verdict

#: The default runs are always the same ones; a number asks for others by chance.
ASKED = os.environ.get("STATEMEND_MACHINE_EXAMPLES")
EXAMPLES = int(ASKED or "6")

TEXTS = st.sampled_from(
    ["ok", "ok", "yes", "what is next?", "line one\r\nline two", "\U0001f642 画像", "### User", ""]
)
GAPS = st.sampled_from([0.5, 20.0, 20.0, 90.0, 2 * HOUR])
PICK = st.integers(0, 9)


@pytest.fixture(scope="module", params=["0.19.0", "0.22.2"])
def live(request: pytest.FixtureRequest) -> Iterator[HermesHome]:
    """A release at work in one home, which is emptied before each run."""
    with TemporaryDirectory(dir=memory()) as folder, HermesHome(request.param, Path(folder) / "home") as home:
        yield home


def test_lawful_use_is_silent_and_a_damage_is_told(live: HermesHome) -> None:
    run_state_machine_as_test(
        lambda: Life(live),
        settings=settings(
            max_examples=EXAMPLES,
            derandomize=ASKED is None,
            stateful_step_count=12,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )


class Life(RuleBasedStateMachine):
    """What people and programs do with one home. ``open`` are the talks in progress; ``kept`` are sessions
    that nobody talks in and no chat is routed to; ``doubled`` are branches that were compacted in place: the
    newest release may store their first messages twice."""

    def __init__(self, home: HermesHome) -> None:
        super().__init__()
        self.home = home
        self.open: list[Conversation] = []
        self.kept: list[str] = []
        self.routed: dict[str, str] = {}
        self.branches: set[str] = set()
        self.doubled: set[str] = set()
        self.made = 0
        self.exports = 0

    @initialize(number=st.integers(0, 999))
    def begin(self, number: int) -> None:
        fitting = [entry for entry in CATALOGUE if entry.suits(self.home.release)]
        self.entry: Damage = fitting[number % len(fitting)]
        self.home.clear()
        self.start("cli", "hello")

    def teardown(self) -> None:
        if not hasattr(self, "entry"):
            return
        before, after, told = strike(self.home, self.entry)
        assert before.undetermined == ()
        early = [
            f"{one.rule} {one.subject.session} {one.summary}"
            for one in before.findings
            if one.verdict in (Verdict.FAULT, Verdict.RISK)
            and not (one.rule == "MSG004" and one.subject.session in self.doubled)
        ]
        assert early == []
        note(f"damage: {self.entry.name}")
        assert wrongs(self.entry, before, after, told) == []

    def new_id(self) -> str:
        self.made += 1
        return f"20260801_0900{self.made:02}_{self.made:06x}"

    def has_archived(self, session: str) -> bool:
        """Whether a file of it would leave out what a compaction archived, as those of old releases do."""
        archived = "SELECT COUNT(*) FROM messages WHERE session_id = ? AND active = 0 AND compacted = 1"
        return self.home.value(archived, [session]) > 0

    def talk(self, number: int) -> Conversation:
        return self.open[number % len(self.open)]

    # Talking

    @rule(platform=st.sampled_from(["cli", "cli", "tui", "desktop"]), text=TEXTS)
    def start(self, platform: str, text: str) -> None:
        chat = self.home.chat(self.new_id(), platform)
        chat.say(user(text), assistant(f"{text}, I see"))
        self.open.append(chat)

    @precondition(lambda self: self.open)
    @rule(number=PICK, text=TEXTS, gap=GAPS)
    def say(self, number: int, text: str, gap: float) -> None:
        self.talk(number).say(user(text), assistant(text), gap=gap)

    @precondition(lambda self: self.open)
    @rule(number=PICK, output=TEXTS)
    def use_a_tool(self, number: int, output: str) -> None:
        self.talk(number).tool_turn("run it", f"ls {number}", output, "ran")

    @precondition(lambda self: self.open)
    @rule(number=PICK, rotating=st.booleans())
    def compact(self, number: int, rotating: bool) -> None:
        chat = self.talk(number)
        chat.turns(7, f"chapter {number}")
        before = chat.session_id
        (chat.rotate if rotating else chat.compact)()
        if not rotating and before in self.branches:  # 0.22.2 then stores twice: see test_duplicates
            self.doubled.add(before)
        if chat.session_id != before:
            self.follow(before, chat.session_id)

    @precondition(lambda self: self.open)
    @rule(number=PICK, how=st.sampled_from(["undo", "retry", "save"]))
    def second_thoughts(self, number: int, how: str) -> None:
        chat = self.talk(number)
        if how != "save" or not self.has_archived(chat.session_id):
            getattr(chat, how)()

    @precondition(lambda self: self.open)
    @rule(number=PICK, how=st.sampled_from(["branch", "new"]))
    def part(self, number: int, how: str) -> None:
        chat = self.talk(number)
        if chat.session_id in self.routed.values():
            return
        self.kept.append(chat.session_id)
        getattr(chat, how)()
        if how == "branch":
            self.branches.add(chat.session_id)
        chat.say(user("from here"), assistant("on"))

    @precondition(lambda self: self.open)
    @rule(number=PICK, text=TEXTS, ended=st.booleans())
    def delegate(self, number: int, text: str, ended: bool) -> None:
        helper = self.talk(number).delegate("look")
        helper.say(user("look"), assistant(f"seen: {text}"))
        helper.close()
        if ended:
            self.home.end(helper.session_id, "agent_close")

    @precondition(lambda self: self.open)
    @rule(number=PICK, reason=st.sampled_from(["cli_close", "tui_close", "agent_close", "ws_orphan_reap"]))
    def close(self, number: int, reason: str) -> None:
        chat = self.talk(number)
        if chat.session_id in self.routed.values():
            return
        self.open.remove(chat)
        self.kept.append(chat.session_id)
        chat.close()
        self.home.end(chat.session_id, reason)

    @precondition(lambda self: self.open)
    @rule(number=PICK, calling=st.booleans())
    def break_off(self, number: int, calling: bool) -> None:
        """The process ends in the middle of a turn, perhaps while a tool runs."""
        chat = self.talk(number)
        call = {"id": f"call_{self.made}", "type": "function", "function": {"name": "sh", "arguments": "{}"}}
        running = {"role": "assistant", "content": "Running.", "tool_calls": [call]}
        chat.say(user("run it"), *([running] if calling else []))
        self.home.rest()
        self.kept += [each.session_id for each in self.open if each.session_id not in self.routed.values()]
        self.open.clear()
        self.routed.clear()

    @precondition(lambda self: self.kept)
    @rule(number=PICK, text=TEXTS)
    def resume(self, number: int, text: str) -> None:
        session = self.home.store("resolve_resume_session_id", self.kept[number % len(self.kept)])
        if self.home.session(session) is None or session in self.in_use():
            return
        self.home.store("reopen_session", session)
        chat = self.home.resume(session)
        chat.say(user(text), assistant("again"))
        self.kept = [each for each in self.kept if each != session]
        self.open.append(chat)

    # Other sources

    @rule(chat_id=st.sampled_from(["1", "2"]), reset=st.booleans(), text=TEXTS)
    def message(self, chat_id: str, reset: bool, text: str) -> None:
        session = self.home.gateway_session(chat_id, reset=reset)
        if self.routed.get(chat_id) != session:
            left = self.routed.pop(chat_id, None)
            self.open = [chat for chat in self.open if chat.session_id != left]
            self.routed[chat_id] = session
            self.open.append(self.home.resume(session, "telegram"))
        (chat,) = [chat for chat in self.open if chat.session_id == session]
        chat.say(user(text), assistant("hi"))

    def follow(self, before: str, after: str) -> None:
        """A compression gave a conversation another id: the gateway leads its chat there."""
        for chat_id, session in self.routed.items():
            if session == before:
                assert self.home.gateway_session(chat_id, follow=after) == after
                self.routed[chat_id] = after

    @rule(source=st.sampled_from(["cron", "webhook", "api_server"]), ended=st.booleans(), text=TEXTS)
    def run_a_program(self, source: str, ended: bool, text: str) -> None:
        session = self.home.create_session(f"{source}_{self.new_id()}", source)
        self.home.append(session, "user", text)
        self.home.append(session, "assistant", [{"type": "text", "text": text}])
        self.home.store("update_token_counts", session, 10, 10)
        if ended:
            self.home.end(session, "cron_complete")
            self.kept.append(session)

    # Upkeep

    def in_use(self) -> set[str]:
        return {chat.session_id for chat in self.open} | set(self.routed.values())

    @precondition(lambda self: self.kept)
    @rule(number=PICK, how=st.sampled_from(["title", "archive", "import", "export", "delete"]))
    def keep(self, number: int, how: str) -> None:
        session = self.kept[number % len(self.kept)]
        if self.home.session(session) is None or session in self.in_use():
            return
        if how == "title":
            self.home.title(session, f"Titled {number} {session}")
        elif how == "archive":
            self.home.store("set_session_archived", session, number % 2 == 0)
        elif how == "import":
            alone = "SELECT COUNT(*) FROM sessions WHERE ? IN (id, parent_session_id)"
            record = self.home.store("export_session", session)
            if record["parent_session_id"] is None and self.home.value(alone, [session]) == 1:
                self.home.delete(session)
                assert self.home.store("import_sessions", [record])["imported"] == 1
        elif how == "export":
            if not self.exports and not self.has_archived(session):
                self.exports += 1
                assert self.home.export(session, "md").code == 0
        else:
            self.home.delete(session)
            self.kept.remove(session)

    @rule(how=st.sampled_from(["vacuum", "ghosts", "empty", "prune", "optimize", "snapshot"]))
    def tidy_up(self, how: str) -> None:
        if how == "prune":
            self.home.advance(100 * DAY)
            self.home.store("prune_sessions", older_than_days=90)
        elif how == "ghosts":
            self.home.store("prune_empty_ghost_sessions")
            self.home.store("finalize_orphaned_compression_sessions")
        elif how == "snapshot":
            assert self.home.snapshot()
        else:
            method = {"vacuum": "vacuum", "empty": "delete_empty_sessions", "optimize": "optimize_fts"}[how]
            self.home.store(method)

    @rule(seconds=st.sampled_from([60.0, 2 * HOUR, DAY, 8 * DAY]))
    def wait(self, seconds: float) -> None:
        self.home.advance(seconds)
