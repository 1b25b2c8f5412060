"""The rows that lead a chat to a session, with the columns that name each of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.audit.builder import HomeBuilder
from tests.audit.houses import House
from tests.audit.routes import KEY, bind, route

from statemend.audit.context import Context
from statemend.audit.engine import audit
from statemend.audit.routes import BINDINGS, ROUTES, Way, led_to, ways_elsewhere, ways_to_nothing

Build = Callable[..., HomeBuilder]


def asked(path: Path, question: Callable[[Context], list[Way]]) -> list[Way]:
    found: list[Way] = []

    def note(context: Context, _: object) -> None:
        found.extend(question(context))

    audit(path, rules=["STO001"], observe=note)
    return found


def bound(session_id: str, thread: str) -> Way:
    key = {"profile_name": "default", "chat_id": "42", "thread_id": thread}
    return Way(BINDINGS, session_id, f"topic {thread} of chat 42", key)


def routed(session_id: str, key: str = KEY) -> Way:
    return Way(ROUTES, session_id, key, {"scope": "/x", "session_key": key})


def test_ways_to_sessions_that_are_gone_are_told_by_session(build: Build) -> None:
    home = build("0.22.2")
    home.chat("here")
    route(home, "here", "agent:main:telegram:dm:7")
    route(home, "b")
    route(home, "a", "agent:main:telegram:dm:9")
    route(home, "a", "agent:main:telegram:dm:8")
    bind(home, "a", "7")
    bind(home, "here", "6")
    bind(home, "a", "5")

    assert asked(home.root, ways_to_nothing) == [
        routed("a", "agent:main:telegram:dm:8"),
        routed("a", "agent:main:telegram:dm:9"),
        bound("a", "5"),
        bound("a", "7"),
        routed("b"),
    ]


def test_a_session_that_another_store_of_the_home_has_is_elsewhere_and_not_gone(tmp_path: Path) -> None:
    house = House(tmp_path)
    house["work"].chat("theirs")
    house["work"].chat("a")
    for thread, session_id in (("2", "theirs"), ("1", "theirs"), ("3", "gone"), ("4", "a")):
        bind(house.root, session_id, thread)

    assert asked(tmp_path, ways_elsewhere) == [bound("a", "4"), bound("theirs", "1"), bound("theirs", "2")]
    assert asked(tmp_path, ways_to_nothing) == [bound("gone", "3")]


def test_every_way_to_a_session_is_named(build: Build) -> None:
    home = build("0.22.2")
    home.chat("here")
    route(home, "here")
    route(home, "here", "")
    bind(home, "here", "t" * 60)
    home.sql("UPDATE telegram_dm_topic_bindings SET chat_id = printf('%.60c', 'c')")
    home.insert(
        "gateway_routing", scope="/x", session_key="other", entry_json='{"session_id": 7}', updated_at=0
    )
    home.insert("gateway_routing", scope="/x", session_key="broken", entry_json="{", updated_at=0)
    found: dict[str, tuple[str, ...]] = {}

    home.audit("STO001", observe=lambda context, _: found.update(led_to(context.store)))

    topic = f"topic {'t' * 40} of chat {'c' * 40}"
    assert found == {"here": ("the route of a chat without a key", f"the route of {KEY}", topic)}
