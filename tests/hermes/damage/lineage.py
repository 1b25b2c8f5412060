"""Damages to the lines of sessions."""

from __future__ import annotations

import json

from tests.hermes.damage.catalogue import FAULT, RISK, UNDECIDABLE, Steps, Told, damage
from tests.hermes.damage.means import SESSION, copy_rows, mark, rotated, rows, talk
from tests.hermes.families import compressed_again
from tests.hermes.home import HOUR, HermesHome, assistant, user


@damage("LIN001")
def a_handoff_breaks_off(home: HermesHome) -> Steps:
    """Up to 0.19 the old session was ended before the new one was made, and a crash fell between."""
    chat = home.chat(SESSION)
    chat.say(user("And the fence?"), assistant("Paint it."))
    chat.count_tokens()
    yield
    home.end(SESSION, "compression")
    return [Told("LIN001", SESSION)]


@damage("LIN009", "LIN001")
def a_continuation_is_cut_off(home: HermesHome) -> Steps:
    first, continuation = rotated(home)
    yield
    home.rows("UPDATE sessions SET parent_session_id = NULL WHERE id = ?", continuation)
    return [Told("LIN009", continuation), Told("LIN001", first)]


@damage("LIN002", "LIN003", since="0.18")
def compressed_twice(home: HermesHome) -> Steps:
    first, _ = rotated(home)
    yield
    compressed_again(home, first)
    return [Told("LIN002", first), Told("LIN003", first)]


@damage("LIN004")
def a_ring(home: HermesHome) -> Steps:
    first, continuation = rotated(home)
    yield
    home.rows("UPDATE sessions SET parent_session_id = ? WHERE id = ?", continuation, first)
    return [Told("LIN004", first)]


@damage("LIN005")
def a_continuation_is_marked_as_a_branch(home: HermesHome) -> Steps:
    first, continuation = rotated(home)
    yield
    mark(home, continuation, "_branched_from", first)
    verdict = FAULT if home.release.at_least("0.16") else RISK
    return [Told("LIN005", continuation, verdict=verdict)]


@damage("LIN006", since="0.16")
def a_branch_loses_its_marker(home: HermesHome) -> Steps:
    """As forks of the API had none; the parent is in use again."""
    chat = home.chat(SESSION)
    chat.say(user("one"), assistant("first"), user("two"), assistant("second"))
    home.title(SESSION, "Counting")
    branch = chat.branch()
    chat.say(user("three"), assistant("third"))
    home.store("reopen_session", SESSION)
    yield
    home.rows(
        "UPDATE sessions SET model_config = json_remove(model_config, '$._branched_from') WHERE id = ?",
        branch,
    )
    return [Told("LIN006", branch)]


@damage("LIN007", since="0.18")
def a_routed_chat_is_marked_as_a_run(home: HermesHome) -> Steps:
    """As a program does that writes model_config by itself."""
    asking = SESSION
    talk(home, asking)
    routed = home.gateway_session("4713")
    home.resume(routed, "telegram").say(user("hi"), assistant("hi"))
    key = home.route_key("4713")
    yield
    mark(home, routed, "_delegate_from", asking)
    home.rows("UPDATE sessions SET session_key = ? WHERE id = ?", key, routed)
    return [Told("LIN007", routed)]


@damage("LIN008")
def a_chat_is_marked_as_an_orphaned_run(home: HermesHome) -> Steps:
    """As the migration of 0.17 guesses."""
    talk(home)
    yield
    mark(home, SESSION, "_delegate_from", "__orphaned__")
    return [Told("LIN008", SESSION)]


@damage("LIN010", since="0.18", follows="CNT001")
def turns_beside_the_line(home: HermesHome) -> Steps:
    """A second window writes into the session that a compression closed; 0.20 and newer refuse that, and a
    salvage brings it about."""
    first, _ = rotated(home)
    yield
    home.advance(HOUR)
    if home.release.at_least("0.20"):
        last = rows(home, first)[-1]
        copy_rows(home, "id = ?", last)
        row = rows(home, first)[-1]
        home.rows("UPDATE messages SET content = 'Still there?', timestamp = ? WHERE id = ?", home.now, row)
    else:
        row = home.append(first, "user", "Still there?")
    return [Told("LIN010", first, frozenset({row}))]


@damage("LIN010")
def turns_after_a_new_session(home: HermesHome) -> Steps:
    talk(home)
    home.store("reopen_session", SESSION)
    home.end(SESSION, "new_session")
    yield
    home.advance(HOUR)
    row = home.append(SESSION, "user", "Wait, one more thing")
    return [Told("LIN010", SESSION, frozenset({row}), UNDECIDABLE)]


@damage("LIN012", since="0.18")
def one_chat_in_two_sessions(home: HermesHome) -> Steps:
    """As two gateways that serve one chat leave it."""
    routed = home.gateway_session("4712")
    home.resume(routed, "telegram").say(user("hi"), assistant("hi"))
    key = home.route_key("4712")
    home.create_session(SESSION, "telegram")
    home.exchange(SESSION, 1)
    home.advance(600.0)
    home.exchange(routed, 2)
    home.exchange(SESSION, 2)
    yield
    home.rows("UPDATE sessions SET session_key = ? WHERE id IN (?, ?)", key, routed, SESSION)
    return [Told("LIN012", verdict=UNDECIDABLE, ids=(routed, SESSION))]


@damage("LIN011")
def the_row_of_a_run_is_made_in_passing(home: HermesHome) -> Steps:
    """The accounting of tokens makes the row of a subagent whose own could not be made."""
    goal = "Which birds sing at night?"
    function = {"name": "delegate_task", "arguments": json.dumps({"goal": goal})}
    call = {"id": "call_birds", "type": "function", "function": function}
    asked = {"role": "assistant", "content": "I will ask.", "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "call_birds", "tool_name": "delegate_task", "content": "Owls."}
    home.chat(SESSION).say(user("Find out"), asked, result, assistant("Owls do."))
    yield
    run = "20261201_091500_bbbbbb"
    home.store("update_token_counts", run, 7, 5)
    home.append(run, "user", goal)
    home.append(run, "assistant", "Owls do.")
    return [Told("LIN011", run)]


@damage("LIN013")
def a_line_loses_its_links(home: HermesHome) -> Steps:
    """As in imports that drop the parent, and in releases before 0.13. Those number the titles; from 0.20 on
    the title moves on."""
    first, continuation = rotated(home)
    home.title(continuation, "Garden #2")
    home.title(first, "Garden")
    yield
    home.rows("UPDATE sessions SET parent_session_id = NULL WHERE id = ?", continuation)
    home.rows("UPDATE sessions SET end_reason = 'cli_close' WHERE id = ?", first)
    return [Told("LIN013", first, ids=(continuation,))]


@damage("LIN014")
def a_compressed_session_ends_once_more(home: HermesHome) -> Steps:
    """A program opens it again and closes it; then nothing says that it went on elsewhere."""
    first, continuation = rotated(home)
    yield
    home.store("reopen_session", first)
    home.end(first)
    summary = rows(home, continuation, "content GLOB '*CONTEXT*'")
    return [Told("LIN014", continuation, frozenset(summary), ids=(first,))]
