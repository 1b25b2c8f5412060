"""Damages that leave one without the other: messages, sessions, and what points at them."""

from __future__ import annotations

from tests.hermes.damage.catalogue import RISK, Steps, Told, damage
from tests.hermes.damage.means import SESSION, elsewhere, rotated, talk
from tests.hermes.home import HermesHome, assistant, user


@damage("ORP001")
def the_session_of_messages_is_deleted(home: HermesHome) -> Steps:
    messages = talk(home)
    yield
    elsewhere(home, "DELETE FROM sessions WHERE id = ?", bindings=(SESSION,))
    return [Told("ORP001", SESSION, frozenset(messages))]


@damage("ORP002", follows="ORP003")
def a_parent_is_deleted(home: HermesHome) -> Steps:
    _, continuation = rotated(home)
    yield
    elsewhere(
        home,
        "DELETE FROM messages WHERE session_id = ?",
        "DELETE FROM sessions WHERE id = ?",
        bindings=(SESSION,),
    )
    return [Told("ORP002", continuation)]


@damage("ORP006", since="0.18", before="0.22")
def a_route_outlives_its_session(home: HermesHome) -> Steps:
    """Up to 0.20 the release itself leaves the route of a session that is deleted."""
    routed = home.gateway_session("4711")
    home.resume(routed, "telegram").say(user("hi"), assistant("hi"))
    yield
    home.delete(routed)
    return [Told("ORP006", routed, verdict=RISK)]


@damage("ORP006", since="0.20")
def a_prompt_is_deleted(home: HermesHome) -> Steps:
    talk(home)
    home.store("update_system_prompt", SESSION, "You are kind.")
    yield
    elsewhere(home, "DELETE FROM system_prompts WHERE prompt = 'You are kind.'")
    return [Told("ORP006")]
