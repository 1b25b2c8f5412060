"""A lawful import of a part of a conversation raises no alarm: ``SessionDB.import_sessions``, 0.19 and newer.

It takes any sessions of an export, links a child to its parent only where that one is there, and leaves out
what only a running agent writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.hermes.home import DAY, HOUR, HermesHome, assistant, user

from statemend.audit.engine import audit
from statemend.audit.finding import Finding, Verdict

Homes = Callable[..., HermesHome]
Records = dict[str, dict[str, Any]]

IMPORTING = ("0.19.0", "0.20.1", "0.22.2")
#: Parts of the conversations that :func:`conversations` makes, each brought in by itself.
PARTS = (
    "older middle",
    "middle",
    "middle newer",
    "older newer",
    "helper newer",
    "branch",
    "origin branch-goes-on",
    "older middle newer helper origin branch branch-goes-on",
)


def conversations(home: HermesHome, **options: Any) -> Records:
    """The exports of two conversations: one in three segments with a subagent, one that was branched."""
    chat = home.chat("20261110_090000_00000a")
    chat.turns(3, "garden")
    helper = chat.delegate("Which birds sing at night?")
    helper.say(user("Which birds sing at night?"), assistant("Nightingales do."))
    helper.close()
    chat.turns(5, "bed")
    home.title(chat.session_id, "Garden")
    ids = {"older": chat.session_id, "helper": helper.session_id, "middle": chat.rotate()}
    chat.turns(6, "shed")
    chat.undo()
    chat.compact()
    chat.turns(6, "pond")
    ids["newer"] = chat.rotate()
    chat.say(user("And the fence?"), assistant("Paint it."))
    home.end(chat.session_id)
    other = home.chat("20261110_120000_00000b")
    other.turns(2, "river")
    home.title(other.session_id, "River")
    ids |= {"origin": other.session_id, "branch": other.branch()}
    other.turns(7, "bank")
    ids["branch-goes-on"] = other.rotate()
    other.say(user("And the bridge?"), assistant("It stands."))
    home.end(other.session_id)
    return {part: home.store("export_session", session, **options) for part, session in ids.items()}


class Elsewhere:
    """A further home, whose store the release of another home opens as well."""

    def __init__(self, home: HermesHome, name: str) -> None:
        self._home = home
        self._path = home.path.with_name(name)
        self._path.mkdir()

    def take(self, *records: dict[str, Any]) -> None:
        taken = self._store("import_sessions", list(records))
        assert taken["imported"] == len(records), taken

    def talk(self, session_id: str) -> None:
        self._store("create_session", session_id, "cli", model="gpt-4o")
        for role, text in (("user", "question"), ("assistant", "answer")):
            self._home.advance(10.0)
            self._store("append_message", session_id, role, text)
        self._store("end_session", session_id, "cli_close")

    def found(self) -> list[Finding]:
        self._home.process.call("close", path=str(self._path / "state.db"))
        outcome = audit(self._path, now=self._home.now)
        assert outcome.undetermined == ()
        return list(outcome.findings)

    def _store(self, method: str, *args: Any, **options: Any) -> Any:
        return self._home.process.call(
            "store", method=method, args=list(args), options=options, path=str(self._path / "state.db")
        )


def alarms(found: list[Finding]) -> list[str]:
    return [
        f"{one.rule} {one.verdict.value} {one.subject.session}: {one.summary}"
        for one in found
        if one.verdict in (Verdict.FAULT, Verdict.RISK)
    ]


@pytest.mark.parametrize("release", IMPORTING)
def test_the_older_part_alone_is_an_open_question(hermes_home: Homes, release: str) -> None:
    """Brought into an empty store or behind older rows, and used since or not: nothing tells it from a life
    that broke off."""
    home = hermes_home(release)
    empty, used = Elsewhere(home, "empty"), Elsewhere(home, "used")
    used.talk("20260801_090000_0000c0")
    older = conversations(home)["older"]
    home.advance(HOUR)
    for elsewhere in (empty, used):
        elsewhere.take(older)
        for later in (None, "20261201_090000_0000c1"):
            if later is not None:
                home.advance(DAY)
                elsewhere.talk(later)
            (finding,) = elsewhere.found()
            assert (finding.rule, finding.verdict) == ("LIN001", Verdict.UNDECIDABLE)
            assert finding.subject.session == older["id"]
            assert "brought in" in finding.summary


@pytest.mark.parametrize("release", IMPORTING)
def test_no_part_of_a_conversation_raises_an_alarm(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    records = conversations(home, **({"include_inactive": True} if release == "0.22.2" else {}))
    home.advance(DAY)
    for parts in PARTS:
        elsewhere = Elsewhere(home, parts)
        elsewhere.take(*(records[part] for part in parts.split()))
        assert alarms(elsewhere.found()) == [], parts


def test_an_older_release_makes_live_what_was_archived(hermes_home: Homes) -> None:
    """That is no false alarm: the model reads twice what the compaction had kept."""
    records = conversations(hermes_home("0.22.2"), include_inactive=True)
    home = hermes_home("0.19.0", "older")
    home.advance(200 * DAY)
    elsewhere = Elsewhere(home, "elsewhere")
    elsewhere.take(*records.values())
    assert [one.split(":")[0] for one in alarms(elsewhere.found())] == [
        f"MSG004 fault {records['middle']['id']}"
    ]
