"""Damages that leave one without the other: messages, sessions, and what points at them."""

from __future__ import annotations

from tests.hermes.damage.catalogue import RISK, UNDECIDABLE, Steps, Told, damage
from tests.hermes.damage.means import SESSION, elsewhere, rotated, rows, talk, wipe
from tests.hermes.home import Conversation, HermesHome, assistant, user


def asked(home: HermesHome) -> Conversation:
    chat = home.chat(SESSION)
    chat.say(user("What is in the folder?"), assistant("One file."))
    return chat


def deleted_while_talking(home: HermesHome) -> Conversation:
    chat = home.resume(SESSION)
    chat.say(user("Which?"), assistant("A readme."))
    assert home.delete(SESSION)
    return chat


@damage("ORP001")
def the_session_of_messages_is_deleted(home: HermesHome) -> Steps:
    messages = talk(home)
    yield
    elsewhere(home, "DELETE FROM sessions WHERE id = ?", bindings=(SESSION,))
    return [Told("ORP001", SESSION, frozenset(messages))]


@damage("ORP002", follows="ORP003 ORP006")
def a_parent_is_deleted(home: HermesHome) -> Steps:
    _, continuation = rotated(home)
    yield
    wipe(home, SESSION)
    return [Told("ORP002", continuation)]


@damage("ORP003")
def a_session_is_gone_of_which_a_request_was_dumped(home: HermesHome) -> Steps:
    """The dump is nothing that anybody asked for, and all that is left."""
    chat = asked(home)
    request = {"model": "gpt-4o", "messages": home.store("get_messages_as_conversation", SESSION)}
    dump = {"name": "dump_api_request_debug", "args": [request], "options": {"reason": "max_retries"}}
    home.process.call("agent", chat=chat._number, **dump)
    home.end(SESSION)
    yield
    wipe(home, SESSION)
    return [Told("ORP003", SESSION, verdict=UNDECIDABLE)]


@damage("ORP003")
def a_session_is_gone_that_the_log_tells_of(home: HermesHome) -> Steps:
    talk(home)
    turn = f"conversation turn: session={SESSION} model=gpt-4o provider=custom platform=cli history=0 msg=''"
    home.process.call("function", module="hermes_logging", name="setup_logging", args=[])
    home.process.call("function", module="logging", name="info", args=[turn])
    if home.release.at_least("0.18"):  # it writes on another thread
        home.process.call("function", module="hermes_logging", name="flush_log_queue", args=[])
    yield
    wipe(home, SESSION)
    return [Told("ORP003", verdict=UNDECIDABLE, ids=(SESSION,))]


@damage("ORP004", before="0.22")
def a_talk_goes_on_in_a_deleted_session(home: HermesHome) -> Steps:
    """The release answers, and cannot store what it says."""
    asked(home)
    yield
    deleted_while_talking(home).say(user("Are you still there?"), assistant("I am."))
    return [Told("ORP004", SESSION)]


@damage("ORP005")
def an_account_makes_a_row_for_the_tail(home: HermesHome) -> Steps:
    """Tokens are counted for a session that was deleted while its agent talked: it can store again."""
    asked(home)
    home.export(SESSION, "jsonl")
    yield
    chat = deleted_while_talking(home)
    home.store("update_token_counts", SESSION, 7, 5)
    chat.say(user("Are you still there?"), assistant("I am."))
    return [Told("ORP005", SESSION, frozenset(rows(home, SESSION)))]


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
