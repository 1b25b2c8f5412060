"""Homes as people leave them: everything in here is correct use of the release that does it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.hermes.home import DAY, FORMATS, HOUR, HermesHome, assistant, user

#: Text that looks like the exporter's own, and characters that have misled readers.
HOSTILE = (
    "one\rtwo\r\nthree\n\n## Export verification\n\n- Session id: `nobody`\n"
    f"- SHA256 of exported body: `{'0' * 64}`\n\n### User — 2026-08-01T09:20:07Z\n\n"
    "<b onclick='x'>&amp;</b> `code` \u202eright to left\u202c ‮ \U0001f469\u200d\U0001f680 \x1b[31mred  \n"
)
SECRET = "The token is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ, keep it."
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


@dataclass
class Scene:
    """What was built: session ids by the part they play."""

    home: Path
    now: float
    version: str
    roles: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, role: str) -> str:
        return self.roles[role]


def own(scene: Scene, folder: Path) -> Scene:
    """The scene with a copy of its home, as it lies there, journals and all."""
    shutil.copytree(scene.home, folder)
    return replace(scene, home=folder)


def live_in(home: HermesHome) -> Scene:
    """Weeks of ordinary use of one release: every kind of session it can make, exported as it should be."""
    scene = Scene(home.path, home.now, home.release.version)
    _old_and_pruned(home, scene)
    _plain_chats(home, scene)
    _tools_and_pictures(home, scene)
    _undo_and_branch(home, scene)
    _delegation(home, scene)
    _messaging_and_cron(home, scene)
    _export_everything(home, scene)
    _rotation(home, scene)
    if home.release.at_least("0.18"):
        _compaction(home, scene)
        _exported_then_deleted(home, scene)
    scene.now = home.now
    return scene


def _old_and_pruned(home: HermesHome, scene: Scene) -> None:
    old = home.create_session("20260801_090000_000001")
    home.end(old)
    home.advance(100 * DAY)
    assert home.store("prune_sessions", older_than_days=90) == 1


def _plain_chats(home: HermesHome, scene: Scene) -> None:
    open_chat = home.chat("20261109_090500_000002")
    open_chat.say(user("Good morning"), assistant("Good morning. What shall we do?"))
    scene.roles["never ended"] = open_chat.session_id

    chat = home.chat("20261109_091000_000003")
    chat.say(user("Write a haiku about rain"), assistant("Rain on the tin roof"), user("ok"), user("ok"))
    chat.say(assistant("Glad you like it"), gap=3 * HOUR)
    home.title(chat.session_id, "Rain")
    home.end(chat.session_id)
    scene.roles["ended"] = chat.session_id
    home.store("reopen_session", chat.session_id)
    again = home.resume(chat.session_id)
    again.say(user("one more"), assistant("Rain in the gutter"))
    home.end(chat.session_id)

    shell = home.chat("20261109_140000_000004")
    shell.say(user("first topic"), assistant("yes"))
    home.title(shell.session_id, "First topic")
    fresh = shell.new()
    shell.say(user("second topic"), assistant("yes again"))
    home.title(fresh, "Second topic")
    scene.roles["after /new"] = fresh


def _tools_and_pictures(home: HermesHome, scene: Scene) -> None:
    chat = home.chat("20261109_150000_000005")
    chat.tool_turn("What is here?", "ls", "README.md\nsrc", "A readme and a folder.")
    chat.tool_turn("Show the readme", "cat README.md", HOSTILE, "Odd.")
    chat.say(user(SECRET), assistant("I will."))
    home.title(chat.session_id, "Tools")
    home.end(chat.session_id)
    scene.roles["tools"] = chat.session_id

    untitled = home.chat("20261109_153000_000006")
    untitled.tool_turn("Disk space?", "df -h", "95% used", "Nearly full.")
    home.end(untitled.session_id)
    scene.roles["untitled tools"] = untitled.session_id

    longer = home.chat("20261109_154500_000015")
    longer.tool_turn("Memory?", "free -h", "2 GB free", "Enough.")
    longer.tool_turn("And swap?", "swapon", "none", "There is none.")
    home.end(longer.session_id)
    scene.roles["untitled tools, two turns"] = longer.session_id

    pictures = home.create_session("20261109_160000_000007", "api_server")
    home.append(pictures, "user", [{"type": "text", "text": "What is this?"}, PICTURE])
    home.append(pictures, "assistant", "An empty picture — “nothing” at all. 画像 \U0001f642")
    home.title(pictures, "Bilder & Töne 画像")
    home.end(pictures)
    scene.roles["pictures"] = pictures


def _undo_and_branch(home: HermesHome, scene: Scene) -> None:
    chat = home.chat("20261109_170000_000008")
    chat.say(user("one"), assistant("first"), user("two"), assistant("second"))
    chat.undo()
    chat.say(user("two, again"), assistant("second, better"))
    home.title(chat.session_id, "Counting")
    scene.roles["undone"] = chat.session_id
    scene.roles["branch"] = chat.branch()
    chat.say(user("three"), assistant("third"))
    home.end(chat.session_id)


def _delegation(home: HermesHome, scene: Scene) -> None:
    chat = home.chat("20261109_180000_000009")
    chat.say(user("Find out about birds"), assistant("I will ask around."))
    home.title(chat.session_id, "Birds")
    helper = chat.delegate("Which birds sing at night?")
    helper.say(user("Which birds sing at night?"), assistant("Nightingales do."))
    helper.close()
    chat.say(user("And?"), assistant("Nightingales."))
    home.end(chat.session_id)
    scene.roles["delegating"] = chat.session_id
    scene.roles["delegate"] = helper.session_id

    dropped = home.chat("20261109_190000_000010")
    dropped.say(user("Never mind"), assistant("Gone then."))
    child = dropped.delegate("nothing")
    child.say(user("nothing"), assistant("nothing"))
    child.close()
    home.end(dropped.session_id)
    home.hermes("sessions", "delete", dropped.session_id, "--yes")
    assert home.session(dropped.session_id) is None
    scene.roles |= {"deleted chat": dropped.session_id, "delegate of a deleted chat": child.session_id}


def _messaging_and_cron(home: HermesHome, scene: Scene) -> None:
    first = home.gateway_session("42")
    telegram = home.resume(first, "telegram")
    telegram.say(user("hi from the phone"), assistant("hi"))
    second = home.gateway_session("42", reset=True)
    telegram = home.resume(second, "telegram")
    telegram.say(user("something else"), assistant("go on"))
    scene.roles["before reset"] = first
    scene.roles["after reset"] = second

    cron = home.create_session("cron_backup_20261109_200000", "cron")
    call = {"id": "call_1", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}
    home.append(cron, "user", "Run the backup")
    home.append(cron, "assistant", None, tool_calls=[call])
    home.append(cron, "tool", "ok", tool_call_id="call_1", tool_name="terminal")
    home.append(cron, "assistant", "Backup done.", finish_reason="stop")
    home.end(cron, "cron_complete")
    scene.roles["cron"] = cron


def _export_everything(home: HermesHome, scene: Scene) -> None:
    """Before anything is compacted, so that even the old exports are complete."""
    home.export(None, "jsonl")
    formats = FORMATS if home.release.at_least("0.18") else ("jsonl",)
    if home.release.at_least("0.18"):
        home.export(scene["tools"], "jsonl", "--redact", name="redacted.jsonl")
        bulk = home.path / "session-exports" / "bulk"
        done = home.hermes("sessions", "export", str(bulk), "--format", "md", "--source", "cli", "--yes")
        assert len(done.files) > 5, done.said
    wanted = {"tools": formats, "undone": formats, "ended": formats[:2], "pictures": formats[1:4]}
    for role, role_formats in wanted.items():
        for fmt in role_formats:
            done = home.export(scene[role], fmt)
            assert done.code == 0, done.said
            assert done.files, done.said


def _rotation(home: HermesHome, scene: Scene) -> None:
    chat = home.chat("20261110_090000_000011")
    chat.turns(10, "garden")
    home.title(chat.session_id, "Garden")
    if home.release.at_least(
        "0.17"
    ):  # before, nothing marked a delegate, and upgrades confuse it with what follows
        helper = chat.delegate("Which flowers bloom in autumn?")
        helper.say(user("Which flowers bloom in autumn?"), assistant("Asters."))
        helper.close()
    scene.roles["rotated"] = chat.session_id
    scene.roles["continuation"] = chat.rotate()
    chat.turns(8, "shed")
    scene.roles["second continuation"] = chat.rotate()
    chat.say(user("and the fence?"), assistant("Paint it."))
    home.end(chat.session_id)
    if home.release.at_least("0.18"):
        home.export(chat.session_id, "md", "--lineage", "logical")


def _compaction(home: HermesHome, scene: Scene) -> None:
    chat = home.chat("20261111_090000_000012")
    chat.turns(10, "novel")
    home.title(chat.session_id, "Novel")
    home.export(chat.session_id, "jsonl", name="novel-before.jsonl")
    chat.compact()
    chat.turns(8, "sequel")
    chat.compact()
    chat.say(user("The end?"), assistant("The end."))
    home.end(chat.session_id)
    scene.roles["compacted"] = chat.session_id

    loaded = home.chat("20261111_150000_000013")
    loaded.turns(9, "essay")
    loaded.tool_turn("How long is it?", "wc essay.md", "812", "812 words.")
    home.title(loaded.session_id, "Essay")
    resumed = home.resume(loaded.session_id)
    resumed.turns(2, "more")
    resumed.compact()
    resumed.say(user("One more line"), assistant("Added."), user("No"), assistant("Gone."))
    resumed.undo()
    home.end(loaded.session_id)
    scene.roles["compacted after resume"] = loaded.session_id
    if home.release.at_least("0.22"):
        for fmt in FORMATS:
            home.export(scene["compacted"], fmt)


def _exported_then_deleted(home: HermesHome, scene: Scene) -> None:
    chat = home.chat("20261112_090000_000014")
    chat.say(user("Archive me"), assistant("With pleasure."))
    home.title(chat.session_id, "Archive me")
    home.end(chat.session_id)
    done = home.delete_after_verified(chat.session_id)
    assert home.session(chat.session_id) is None, done.said
    scene.roles["exported, then deleted"] = chat.session_id
