"""Damages to the profiles of a home, each with a store of its own."""

from __future__ import annotations

import shutil

from tests.hermes.damage.catalogue import LEFTOVER, RISK, UNDECIDABLE, Steps, Told, damage
from tests.hermes.damage.means import SESSION, rotated, talk
from tests.hermes.home import HermesHome, assistant, user
from tests.hermes.profiles import in_store, move, served_once, with_profile


@damage("PRO001", since="0.19")
def a_chat_is_labelled_as_of_another_profile(home: HermesHome) -> Steps:
    """As every session after one that a process began which had changed profiles (#88381)."""
    with_profile(home, "work", "--no-skills")
    routed = home.gateway_session("4715")
    home.resume(routed, "telegram").say(user("hi"), assistant("hi"))
    key = home.route_key("4715")
    yield
    home.rows("UPDATE sessions SET session_key = ?, profile_name = 'work' WHERE id = ?", key, routed)
    return [Told("PRO001", ids=(routed,))]


@damage("PRO002", since="0.18", before="0.22")
def one_gateway_keeps_the_chats_of_all_profiles(home: HermesHome) -> Steps:
    """In the store of the home that it was started in, where the newest release does not look."""
    with_profile(home, "work", "--no-skills")
    talk(home)
    yield
    kept = served_once(home, "work", "4716")
    home.exchange(kept, 1)
    return [Told("PRO002", verdict=RISK, ids=(kept,))]


@damage("PRO002", "PRO001", since="0.22")
def a_chat_of_a_profile_is_kept_in_the_homes_own_store(home: HermesHome) -> Steps:
    """As by a program that held that store open while it worked for the profile; the release labels what is
    in it as the home's own."""
    kept = "20261201_120000_eeeeee"
    with_profile(home, "work", "--no-skills")
    talk(home)
    yield
    home.create_session(kept, "telegram", session_key="agent:work:telegram:dm:4716")
    home.exchange(kept, 1)
    return [Told("PRO002", ids=(kept,)), Told("PRO001", ids=(kept,))]


@damage("PRO003")
def a_copied_store_goes_its_own_way(home: HermesHome) -> Steps:
    """Up to 0.16 a clone of everything has the store in it; for the others a folder is copied by hand."""
    other = "20261201_120000_eeeeee"
    talk(home)
    talk(home, other)
    yield
    home.rest()
    clones = not home.release.at_least("0.17")
    work = with_profile(home, "work", "--clone-all" if clones else "--no-skills")
    if not clones:
        shutil.copy(home.state_db, work)
    store = work / "state.db"
    home.advance(60)
    here = in_store(home, store, "append_message", SESSION, "user", "only here")
    home.append(SESSION, "user", "only there")
    return [
        Told("PRO003", SESSION, frozenset({here}), UNDECIDABLE, store=store),
        Told("PRO003", verdict=LEFTOVER, ids=(other,), store=store),
    ]


@damage("PRO004", "LIN001", follows="ORP006 FTS002")
def a_continuation_is_moved_to_another_store(home: HermesHome) -> Steps:
    first, continuation = rotated(home)
    store = with_profile(home, "work") / "state.db"
    in_store(home, store, "session_count")
    yield
    home.rest()
    move(home.state_db, store, continuation)
    return [
        Told("PRO004", continuation, ids=(first, str(home.state_db)), store=store),
        Told("LIN001", first, verdict=UNDECIDABLE, ids=(f"{continuation}: {store}",)),
    ]


@damage("PRO005", follows="FTS002")
def a_session_is_moved_away_from_its_route(home: HermesHome) -> Steps:
    routed = home.gateway_session("4717")
    home.resume(routed, "telegram").say(user("hi"), assistant("hi"))
    store = with_profile(home, "work") / "state.db"
    in_store(home, store, "session_count")
    yield
    home.rest()
    move(home.state_db, store, routed)
    verdict = LEFTOVER if home.release.at_least("0.22") else RISK
    return [Told("PRO005", routed, verdict=verdict, ids=(str(store),), store=home.state_db)]
