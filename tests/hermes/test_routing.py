"""Chats that are routed to a session that is gone: where the next message goes, before and after a repair."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable

import pytest
from tests.hermes.home import HermesError, HermesHome, assistant, user

from statemend.audit.engine import audit
from statemend.audit.finding import Finding, Verdict
from statemend.repair.apply import apply
from statemend.repair.plan import dump
from statemend.repair.planner import make_plan
from statemend.repair.run import State

Homes = Callable[..., HermesHome]

CHAT = "42"
#: Releases that keep their routes in the store, and what their routes to a missing session mean.
ROUTING = {
    "0.18.2": Verdict.RISK,
    "0.19.0": Verdict.RISK,
    "0.20.1": Verdict.RISK,
    "0.22.2": Verdict.LEFTOVER,
}
TOPIC = {"chat_id": CHAT, "thread_id": "7"}


def found(home: HermesHome) -> Finding:
    home.stop()
    findings = audit(home.path, now=home.now).findings
    assert {one.rule for one in findings} <= {"ORP003", "ORP006"}
    (finding,) = (one for one in findings if one.rule == "ORP006")
    return finding


def repair(home: HermesHome) -> None:
    """Plan and apply; the release runs again afterwards."""
    home.stop()
    plan = make_plan(home.path, now=home.now)
    assert [step.recipe for step in plan.steps] == ["routing"]
    file = home.path.parent / "plan.json"
    file.write_bytes(dump(plan))
    run = apply(file, now=home.now)
    assert (run.state, run.new, run.remaining) == (State.APPLIED, (), ())
    home.restart()


def deleted(home: HermesHome) -> str:
    """A chat whose session was deleted from the dashboard while the gateway did not run."""
    session_id = home.gateway_session(CHAT)
    home.append(session_id, "user", "hi")
    home.restart()
    assert home.delete(session_id)
    return session_id


@pytest.mark.fires("ORP006")
@pytest.mark.parametrize("release", ROUTING)
def test_where_the_next_message_goes_is_what_the_rule_says(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    gone = deleted(home)
    finding = found(home)
    assert (finding.subject.session, finding.verdict) == (gone, ROUTING[release])

    home.restart()
    reached = home.gateway_session(CHAT)

    is_handed_on = reached == gone
    assert is_handed_on is (finding.verdict is Verdict.RISK)
    assert (home.session(reached) is None) is is_handed_on


def test_until_an_agent_brings_the_deleted_session_back_nothing_is_stored(hermes_home: Homes) -> None:
    home = hermes_home("0.19.0")
    gone = deleted(home)
    assert home.gateway_session(CHAT) == gone
    with pytest.raises(HermesError, match="FOREIGN KEY constraint failed"):
        home.append(gone, "user", "do you hear me?")

    home.resume(gone, "telegram").say(user("hi again"), assistant("hello again"))

    assert [message["content"] for message in home.messages(gone)] == ["hi again", "hello again"]


@pytest.mark.parametrize("release", ["0.19.0", "0.22.2"])
def test_after_the_repair_the_next_message_begins_a_new_session(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    gone = deleted(home)
    home.rows("DELETE FROM gateway_routing")
    home.restart()
    home.gateway_session("another chat")
    routed = home.rows("SELECT entry_json FROM gateway_routing")
    assert gone in [json.loads(entry)["session_id"] for (entry,) in routed], "it came back from the file"
    home.stop()
    (left,) = (one for one in make_plan(home.path, now=home.now).left if one.rule == "ORP006")
    key = f"agent:main:telegram:dm:{CHAT}"
    assert key in left.reason
    mirror = home.path / "sessions" / "sessions.json"
    entries = json.loads(mirror.read_text())
    del entries[key]
    mirror.write_text(json.dumps(entries))

    repair(home)

    fresh = home.gateway_session(CHAT)
    assert fresh not in (gone, home.gateway_session("another chat"))
    home.append(fresh, "user", "hi again")
    assert [message["content"] for message in home.messages(fresh)] == ["hi again"]
    assert home.session(gone) is None
    home.stop()
    assert {one.rule for one in audit(home.path, now=home.now).findings} <= {"ORP003"}


@pytest.mark.parametrize("release", ["0.19.0", "0.22.2"])
def test_a_topic_can_be_bound_again(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    home.create_session("gone", "telegram")
    home.create_session("here", "telegram")
    bound = {**TOPIC, "user_id": CHAT, "session_key": f"agent:main:telegram:dm:{CHAT}:7"}
    home.store("bind_telegram_topic", session_id="gone", **bound)
    home.stop()
    connection = sqlite3.connect(home.state_db, isolation_level=None)
    connection.execute("DELETE FROM sessions WHERE id = 'gone'")
    connection.close()
    assert found(home).verdict is Verdict.FAULT

    repair(home)

    assert home.store("get_telegram_topic_binding", **TOPIC) is None
    assert home.rows("PRAGMA foreign_key_check") == []
    home.store("bind_telegram_topic", session_id="here", **bound)
    assert home.store("get_telegram_topic_binding", **TOPIC)["session_id"] == "here"


def test_deleting_a_session_takes_its_binding_along(hermes_home: Homes, version: str) -> None:
    """So a binding to a missing session was left by another program."""
    home = hermes_home(version)
    home.create_session("gone", "telegram")
    home.store(
        "bind_telegram_topic",
        session_id="gone",
        user_id=CHAT,
        session_key="agent:main:telegram:dm:42:7",
        **TOPIC,
    )

    assert home.delete("gone")

    assert home.store("get_telegram_topic_binding", **TOPIC) is None
    home.stop()
    assert audit(home.path, now=home.now).findings == ()
