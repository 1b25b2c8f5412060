"""Damages to exports, and to what they were made from."""

from __future__ import annotations

import os
from pathlib import Path

from tests.hermes.damage.catalogue import LEFTOVER, RISK, UNDECIDABLE, Steps, Told, damage
from tests.hermes.damage.means import SESSION, compacted, rows, talk
from tests.hermes.home import HOUR, HermesHome, assistant, user


@damage("EXP001", since="0.18", before="0.21.5")
def an_export_leaves_out_what_was_archived(home: HermesHome) -> Steps:
    """The loss that the releases up to 0.21.4 write themselves."""
    compacted(home)
    yield
    assert home.export(SESSION, "md").files
    return [Told("EXP001", SESSION)]


@damage("EXP002", since="0.18", before="0.21.5")
def verified_and_deleted(home: HermesHome) -> Steps:
    """The export is verified against its own selection, and all rows are deleted. The session begins when no
    compression has just ended another, which it might continue."""
    home.advance(HOUR)
    compacted(home)
    home.end(SESSION)
    yield
    home.delete_after_verified(SESSION)
    assert home.session(SESSION) is None
    return [Told("EXP002", SESSION)]


def _exported(home: HermesHome) -> Path:
    talk(home)
    (file,) = [path for path in home.export(SESSION, "md").files if path.suffix == ".md"]
    return file


@damage("EXP003", since="0.18")
def an_export_is_cut(home: HermesHome) -> Steps:
    file = _exported(home)
    yield
    os.truncate(file, file.stat().st_size - 40)
    return [Told("EXP003")]


@damage("EXP004", since="0.18")
def a_talk_goes_on_after_its_export(home: HermesHome) -> Steps:
    _exported(home)
    yield
    home.store("reopen_session", SESSION)
    home.exchange(SESSION, 99)
    return [Told("EXP004", SESSION, frozenset(rows(home, SESSION)[-2:]), LEFTOVER)]


@damage("EXP005", since="0.18")
def a_text_is_rewritten_after_its_export(home: HermesHome) -> Steps:
    row = rows(home, (talk(home), SESSION)[1])[2]
    assert home.export(SESSION, "jsonl").files
    yield
    home.rows("UPDATE messages SET content = 'never said' WHERE id = ?", row)
    return [Told("EXP005", SESSION, frozenset({row}), UNDECIDABLE)]


@damage("EXP007", since="0.18", before="0.20")
def a_run_is_taken_for_the_next_part(home: HermesHome) -> Steps:
    """Those releases take the oldest child that is no branch for the continuation."""
    chat = home.chat(SESSION)
    chat.turns(9, "garden")
    helper = chat.delegate("Which flowers bloom in autumn?")
    helper.say(user("Which flowers bloom in autumn?"), assistant("Asters."))
    helper.close()
    continuation = chat.rotate()
    chat.say(user("And the fence?"), assistant("Paint it."))
    home.end(continuation)
    yield
    assert home.export(SESSION, "md", "--lineage", "logical").files
    return [Told("EXP007", helper.session_id, ids=(continuation,))]


@damage("EXP008", since="0.18", follows="ORP003")
def what_was_masked_is_deleted(home: HermesHome) -> Steps:
    """Verified as it was masked, and deleted after that."""
    secret = "The token is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ, keep it."
    home.chat(SESSION).say(user(secret), assistant("I will."))
    home.title(SESSION, "Token")
    home.end(SESSION)
    yield
    home.export(SESSION, "md", "--redact", "--yes", "--delete-after-verified")
    assert home.session(SESSION) is None
    return [Told("EXP008", SESSION, verdict=UNDECIDABLE)]


@damage("EXP008", "EXP010", since="0.18")
def prompts_are_all_that_is_kept_of_what_pruning_takes(home: HermesHome) -> Steps:
    """What was exported are the user's words alone; then a compaction archives all that was said."""
    chat = home.chat(SESSION)
    chat.turns(8, "castle")
    assert home.export(SESSION, "prompts-jsonl").files
    yield
    home.resume(SESSION).compact()
    home.end(SESSION)
    prompts, answers = _archived_alone(home, "user"), _archived_alone(home, "assistant")
    told = [Told("EXP008", SESSION, prompts, RISK), Told("EXP010", SESSION, answers, RISK)]
    return [*told, *_turn_pruning_on(home)]


@damage("EXP009", since="0.18")
def an_open_talk_is_left_out_of_an_export_of_many(home: HermesHome) -> Steps:
    """An export with a filter takes what has ended, and does not say so."""
    ended = [home.create_session(f"20261201_09000{number}_eeeeee", "acp") for number in range(3)]
    open_ = home.create_session(SESSION, "acp")
    last = home.create_session("20261201_090004_eeeeee", "acp")
    for session in (*ended, open_, last):
        home.exchange(session, 1)
    for session in (*ended, last):
        home.end(session)
    yield
    home.advance(HOUR)
    folder = home.path / "session-exports" / "many"
    assert home.hermes("sessions", "export", str(folder), "--format", "md", "--source", "acp", "--yes").files
    return [Told("EXP009", SESSION, verdict=RISK)]


@damage("EXP010", since="0.18")
def pruning_is_to_take_what_was_archived(home: HermesHome) -> Steps:
    compacted(home)
    home.end(SESSION)
    yield
    return [Told("EXP010", SESSION, _archived_alone(home), RISK), *_turn_pruning_on(home)]


@damage("EXP011", since="0.18")
def a_listed_export_is_gone(home: HermesHome) -> Steps:
    file = _exported(home)
    yield
    file.unlink()
    return [Told("EXP011", verdict=LEFTOVER, ids=(str(file),))]


@damage("EXP012")
def pruning_is_turned_on(home: HermesHome) -> Steps:
    talk(home)
    yield
    return [Told("EXP012", verdict=LEFTOVER, ids=(SESSION,)), *_turn_pruning_on(home)]


def _archived_alone(home: HermesHome, role: str = "*") -> frozenset[int]:
    """The archived rows of which no live row is a copy."""
    copied = "SELECT 1 FROM messages AS m WHERE m.active = 1 AND m.timestamp = messages.timestamp"
    where = f"compacted = 1 AND role GLOB '{role}' AND NOT EXISTS ({copied})"
    return frozenset(rows(home, SESSION, where))


def _turn_pruning_on(home: HermesHome) -> list[Told]:
    """From now on Hermes prunes by itself; what may be told of others that it will take."""
    (home.path / "config.yaml").write_text("sessions: {auto_prune: true, retention_days: 20}\n")
    others = (session for session in home.session_ids() if session != SESSION)
    return [Told("EXP010", other, verdict=RISK, must=False) for other in others]
