"""One day of everything that people and programs lawfully do with one release, in a home old or new.

Each part uses sessions of its own and the release's own code; what a release does not know is left out.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.hermes.home import DAY, FORMATS, HOUR, MINUTE, HermesHome, assistant, user
from tests.hermes.scenes import HOSTILE, PICTURE, Scene

#: 2026-11-20T09:00:00Z: no earlier does the day begin.
MORNING = 1795165200.0


def vary(home: HermesHome) -> Scene:
    """The day. The release still runs when it ends; the store's log may hold what is in no page yet."""
    home.advance(max(0.0, MORNING - home.now))
    scene = Scene(home.path, home.now, home.release.version)
    for part in _PARTS:
        part(home, scene)
    scene.now = home.now
    return scene


def _second_thoughts(home: HermesHome, scene: Scene) -> None:
    """Undo, retry, save, all in one talk that used tools before."""
    chat = home.chat("20261120_090000_0000a1")
    chat.tool_turn("What is here?", "ls", "a b c", "Three files.")
    chat.say(user("Rename them"), assistant("Done."))
    chat.undo()
    chat.say(user("Delete them"), assistant("All gone."))
    chat.retry()
    chat.say(user("Delete them"), assistant("They are deleted."))
    chat.save()
    chat.say(user("ok"), assistant("Fine."), user("ok"), assistant("Fine."))
    home.title(chat.session_id, "Files")
    home.hermes("sessions", "rename", chat.session_id, "Three", "files")
    chat.close()
    home.end(chat.session_id)
    scene.roles["second thoughts"] = chat.session_id


def _side_by_side(home: HermesHome, scene: Scene) -> None:
    """Two processes of the release write into the store, and once into one session."""
    first = home.chat("20261120_100000_0000b1")
    first.say(user("left"), assistant("left hand"))
    with HermesHome(home.release.version, home.path, now=home.now, zone=home.zone) as other:
        second = other.create_session("20261120_100500_0000b2")
        other.exchange(second, 1)
        home.advance(5.0)
        first.say(user("left again"), assistant("still the left hand"))
        other.advance(120.0)
        other.exchange(first.session_id, 2)
        other.title(second, "Right")
        other.end(second)
        home.advance(max(0.0, other.now - home.now))
        first.say(user("left once more"), assistant("the left hand"))
    home.title(first.session_id, "Left")
    home.end(first.session_id)
    scene.roles["two windows"] = first.session_id


def _helpers(home: HermesHome, scene: Scene) -> None:
    """Subagents side by side, one longer than its parent, one of a subagent, and some in the background."""
    chat = home.chat("20261120_110000_0000c1")
    chat.say(user("Survey the park"), assistant("I send two."))
    birds, trees = chat.delegate("Count birds"), chat.delegate("Count trees")
    birds.say(user("Count birds"), assistant("I ask somebody."))
    owls = birds.delegate("Count owls")
    trees.tool_turn("Count trees", "wc trees", "812", "812 trees.")
    owls.say(user("Count owls"), assistant("One owl."))
    owls.close()
    home.end(owls.session_id, "agent_close")
    birds.say(user("And?"), assistant("42 birds, one of them an owl."))
    birds.close()
    home.end(birds.session_id, "agent_close")
    chat.say(assistant("42 birds, and the trees are still being counted."))
    home.title(chat.session_id, "Park")
    home.end(chat.session_id)
    trees.say(user("Sure?"), assistant("Quite."))
    trees.close()
    if home.release.at_least("0.19"):
        background = home.resume(chat.session_id)
        background.dispatch("Count the benches")
        background.say(user("[benches: 7]"), assistant("Seven benches."))
        home.end(chat.session_id)
    scene.roles["with helpers"] = chat.session_id


def _chats(home: HermesHome, scene: Scene) -> None:
    """Messaging: two platforms, a reset, a way back to an older talk, a bound topic, a deleted session."""
    phone = home.gateway_session("77")
    talk = home.resume(phone, "telegram")
    talk.say(user("from the phone"), assistant("hello"))
    later = home.gateway_session("77", reset=True)
    talk = home.resume(later, "telegram")
    talk.say(user("another matter"), assistant("go on"))
    home.advance(HOUR)
    home.gateway_session("77", switch=phone)
    talk = home.resume(phone, "telegram")
    talk.say(user("back to the first"), assistant("here we are"))
    talk.turns(7, "journey")
    rotated = talk.rotate()
    assert home.gateway_session("77", follow=rotated) == rotated
    home.resume(rotated, "telegram").say(user("where were we?"), assistant("on the road"))
    server = home.gateway_session("guild-5", platform="discord")
    home.append(server, "user", "overheard", observed=True) if home.release.at_least("0.15") else None
    home.resume(server, "discord").say(user("hey bot"), assistant("hey"))
    options = {"chat_id": "78", "user_id": "78"}
    home.store("enable_telegram_topic_mode", **options)
    topic = home.gateway_session("78")
    key = home.route_key("78")
    home.store("bind_telegram_topic", **options, thread_id="5", session_key=key, session_id=topic)
    home.resume(topic, "telegram").say(user("in a topic"), assistant("noted"))
    scene.roles |= {"switched back": phone, "switched away": later, "on the road": rotated}
    scene.roles |= {"server": server, "topic": topic}


def _programs(home: HermesHome, scene: Scene) -> None:
    """Sessions without a person: the API with pictures and odd text, a webhook, a run of cron, tokens."""
    api = home.create_session("api_1795180000_0badcafe", "api_server")
    home.append(api, "user", [{"type": "text", "text": "Read this"}, PICTURE])
    home.append(api, "assistant", HOSTILE)
    home.append(api, "user", "")
    home.append(api, "assistant", None)
    home.store("update_token_counts", api, 120, 30)
    hook = home.create_session("webhook_1795180000", "webhook")
    home.exchange(hook, 1)
    home.end(hook, "webhook_complete")
    for number in range(3):
        cron = home.create_session(f"cron_report_20261120_12000{number}", "cron")
        home.exchange(cron, number)
        home.end(cron, "cron_complete")
    opened = home.create_session("20261120_123000_0000d1", "tui")
    home.end(opened, "tui_close")
    scene.roles |= {"api": api, "webhook": hook, "never used": opened}


def _rotations(home: HermesHome, scene: Scene) -> None:
    """A conversation that rotates, is branched, and whose branch rotates; one is resumed after the end."""
    chat = home.chat("20261120_130000_0000e1")
    chat.turns(8, "river")
    home.title(chat.session_id, "River")
    scene.roles["river"] = chat.session_id
    scene.roles["river goes on"] = chat.rotate()
    chat.turns(2, "bridge")
    scene.roles["branch of the river"] = chat.branch()
    chat.turns(8, "boat")
    scene.roles["branch goes on"] = chat.rotate()
    chat.say(user("And the sail?"), assistant("White."))
    home.end(chat.session_id)
    again = home.resume(home.tip(scene["branch goes on"]))
    again.say(user("Not blue?"), assistant("White."))
    home.end(again.session_id)


def _compactions(home: HermesHome, scene: Scene) -> None:
    """Exported, compacted in place, undone, exported again, compacted, rotated, delegated from."""
    chat = home.chat("20261120_140000_0000f1")
    chat.turns(8, "castle")
    home.title(chat.session_id, "Castle")
    home.export(chat.session_id, "jsonl", name="castle.jsonl")
    if not home.release.at_least("0.18"):
        return
    chat.compact()
    chat.say(user("A tower?"), assistant("Two."), user("A moat?"), assistant("Deep."))
    chat.undo()
    home.export(chat.session_id, "jsonl", name="castle-after.jsonl")
    helper = chat.delegate("Draw the towers")
    helper.say(user("Draw the towers"), assistant("Drawn."))
    helper.close()
    chat.turns(7, "garrison")
    chat.compact()
    chat.turns(7, "siege")
    scene.roles["castle"] = chat.session_id
    scene.roles["castle goes on"] = chat.rotate()
    chat.say(user("Who won?"), assistant("Nobody."))
    home.end(chat.session_id)


def _exports(home: HermesHome, scene: Scene) -> None:
    """Exports of every kind, a copy of the store by the release, and then the talk goes on."""
    chat = home.chat("20261120_150000_0000a7")
    chat.tool_turn("Is it raining?", "weather", "rain", "It rains.")
    home.title(chat.session_id, "Weather")
    for fmt in FORMATS if home.release.at_least("0.18") else FORMATS[:1]:
        assert home.export(chat.session_id, fmt).files
    if home.release.at_least("0.18"):
        home.export(chat.session_id, "trace", name="weather.trace.jsonl")
    assert home.snapshot()
    chat.say(user("And now?"), assistant("It still rains."))
    home.end(chat.session_id)
    scene.roles["weather"] = chat.session_id


def _imports(home: HermesHome, scene: Scene) -> None:
    """A talk of another home is brought in, goes on, and is compacted; of another talk the older part comes
    alone, from half an hour ago."""
    if not home.release.at_least("0.19"):
        return
    record = home.store("export_session", scene["weather"])
    moved = {**record, "id": "20250505_101010_0000b7", "title": "Weather elsewhere"}
    result = home.store("import_sessions", [moved])
    assert not result.get("errors"), result
    chat = home.resume(moved["id"])
    chat.turns(8, "storm")
    chat.compact()
    chat.say(user("Thunder too?"), assistant("Thunder too."))
    home.end(chat.session_id)
    scene.roles["imported"] = moved["id"]
    older = home.store("export_session", scene["river"])
    since = home.now - 30 * MINUTE - older["ended_at"]
    for row in (*older["messages"], older):
        row |= {name: row[name] + since for name in ("timestamp", "started_at", "ended_at") if name in row}
    alone = {**older, "id": "20250606_101010_0000b8", "title": "River elsewhere"}
    assert home.store("import_sessions", [alone])["imported"] == 1
    home.advance(HOUR)
    scene.roles["older part"] = alone["id"]


def _flags(home: HermesHome, scene: Scene) -> None:
    """Archived, pinned, hidden, reopened, with a working directory."""
    for role, number in (("archived", 1), ("pinned", 2), ("hidden", 3)):
        sid = home.create_session(f"20261120_16000{number}_0000c7")
        home.exchange(sid, number)
        home.end(sid)
        scene.roles[role] = sid
    if home.release.at_least("0.16"):
        home.store("set_session_archived", scene["archived"], True)
        home.store("update_session_cwd", scene["archived"], "/home/somebody/project")
    if home.release.at_least("0.20"):
        home.store("set_session_pinned", scene["pinned"], True)
        home.store("set_session_hidden", scene["hidden"], True)
        assert home.store("try_acquire_session_turn_lease", scene["hidden"], "somebody:1")
    if home.release.at_least("0.16"):
        assert home.store("try_acquire_compression_lock", scene["pinned"], "somebody:1")
    home.store("reopen_session", scene["pinned"])
    home.exchange(scene["pinned"], 9)


def _deletions(home: HermesHome, scene: Scene) -> None:
    """A talk with a subagent, a branch and a continuation is deleted; empty and old ones are cleaned up."""
    chat = home.chat("20261120_170000_0000d7")
    chat.turns(6, "attic")
    home.title(chat.session_id, "Attic")
    helper = chat.delegate("Count the boxes")
    helper.say(user("Count the boxes"), assistant("Nine."))
    helper.close()
    home.end(helper.session_id, "agent_close")
    chat.turns(3, "cellar")
    root = chat.session_id
    scene.roles["attic goes on"] = chat.rotate()
    chat.say(user("Anything left?"), assistant("Dust."))
    home.end(chat.session_id)
    scene.roles |= {"deleted talk": root, "helper of a deleted talk": helper.session_id}
    home.hermes("sessions", "delete", root, "--yes")
    assert home.session(root) is None
    home.store("prune_empty_ghost_sessions")
    home.store("finalize_orphaned_compression_sessions")
    if home.release.at_least("0.16"):
        home.store("delete_empty_sessions")


def _crashes(home: HermesHome, scene: Scene) -> None:
    """The process dies while a tool runs in one talk and a compaction is written in another."""
    cut = home.chat("20261120_180000_0000e7")
    call = {"id": "call_cut", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}
    cut.say(user("Run it"), {"role": "assistant", "content": "Running.", "tool_calls": [call]})
    night = home.chat("20261120_183000_0000e8")
    night.turns(7, "night")
    if home.release.at_least("0.18"):
        home.break_next("archive_and_compact", "crash")
        with pytest.raises(RuntimeError, match="ended"):
            night.compact()
    home.restart()
    home.advance(10 * MINUTE)  # what the dead process had locked is free again
    home.resume(cut.session_id).say(user("Are you there?"), assistant("Yes."))
    home.resume(night.session_id).say(user("What was that?"), assistant("A crash."))
    for chat in (cut, night):
        home.end(chat.session_id)
    scene.roles |= {"cut off": cut.session_id, "cut off while compacting": night.session_id}


def _upkeep(home: HermesHome, scene: Scene) -> None:
    """Pruned, optimized and vacuumed."""
    old = home.create_session("20261120_190000_0000f7")
    home.exchange(old, 1)
    home.end(old)
    home.advance(2 * DAY)
    home.store("set_meta", "note", "kept")
    if home.release.at_least("0.16"):
        home.store("optimize_fts")
    if home.release.at_least("0.20"):
        home.store("optimize_fts_storage")
    home.store("vacuum")
    after = home.create_session("20261122_190000_0000a9")
    home.exchange(after, 1)
    home.title(after, "After the vacuum")
    scene.roles["after the vacuum"] = after


_PARTS: tuple[Callable[[HermesHome, Scene], None], ...] = (
    _second_thoughts,
    _side_by_side,
    _helpers,
    _chats,
    _programs,
    _rotations,
    _compactions,
    _exports,
    _imports,
    _flags,
    _deletions,
    _crashes,
    _upkeep,
)


def moved(home: Path, folder: Path) -> Path:
    """The home, copied elsewhere as it lies there, journals and all."""
    shutil.copytree(home, folder)
    return folder


def note(scene: Scene) -> str:
    """A scene as JSON, to be shared among test workers."""
    return json.dumps({**scene.__dict__, "home": str(scene.home)})
