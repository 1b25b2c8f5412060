from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.audit.builder import HomeBuilder
from tests.evidence.scene import Scene
from tests.store.folders import held, pages_of, snapshot
from tests.store.rows import ARCHIVED, ERA_RELEASES, REWOUND

from statemend import formats
from statemend.audit.engine import audit
from statemend.errors import Refused, StoreHeld, UsageError
from statemend.evidence.inventory import find_home, take
from statemend.formats import manifest
from statemend.formats.artifact import Kind
from statemend.repair import export_session, export_target
from statemend.repair.export_target import file_name
from statemend.repair.reexport import ExportedFile, Format, Reexport, State, View, reexport
from statemend.store.connection import open_for_audit
from statemend.store.history import records, session_record
from statemend.store.identity import session_digest

NOW = 1785650000.0


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return compacted(tmp_path / "home")


def compacted(folder: Path, release: str = "0.22.2") -> Scene:
    """A session with archived, rewound and live rows, each kind of content among them."""
    made = Scene(folder, release).session(title="What we planned", message_count=2)
    made.say("first  \n", 1).say([{"type": "text", "text": "two parts"}], 2, role="assistant")
    calls = json.dumps([{"id": "c1", "function": {"name": "look", "arguments": "{}"}}])
    made.say(None, 3, role="assistant", tool_calls=calls, reasoning="I look.")
    made.say("seen", 4, role="tool", tool_call_id="c1", tool_name="look")
    made.say("undone", 5, **REWOUND)
    if release in ("0.15.2", "0.17.0"):  # they know no compaction in place
        return made.say("kept", 7, role="assistant")
    made.compact(("assistant", "kept", 7.0), at=6)
    return made


def export(scene: Scene, folder: str | Path = "out", *session_ids: str, **options: Any) -> Reexport:
    target = scene.root.parent / folder
    return reexport(scene.root, session_ids or ("s1",), target, **{"now": NOW, **options})


def only(done: Reexport) -> ExportedFile:
    (file,) = done.files
    return file


def line_of(file: ExportedFile) -> dict[str, Any]:
    value = json.loads(Path(file.path).read_bytes())
    assert isinstance(value, dict)
    return value


# What is written


@pytest.mark.parametrize("form", Format)
def test_the_whole_display_history_is_written_and_proved(scene: Scene, form: Format) -> None:
    done = export(scene, form=form)
    file = only(done)
    assert (done.exit_code, file.state, file.reasons) == (0, State.COMPLETE, ())
    data = Path(file.path).read_bytes()
    assert (file.sha256, file.size) == (hashlib.sha256(data).hexdigest(), len(data))
    assert formats.read(Path(file.path)).kind is form.kind
    assert b"undone" in data if form is Format.JSONL else b"undone" not in data
    assert all(word in data for word in (b"first", b"two parts", b"seen", b"kept"))
    if form is Format.JSONL:
        assert (file.messages, file.exact, file.lossy, file.drops) == (7, 6, 0, ())
    else:
        assert (file.messages, file.exact, file.lossy) == (6, 0, 6)
        assert "id" in file.drops
    assert file.archived == 4


@pytest.mark.parametrize("release", ERA_RELEASES)
def test_jsonl_holds_every_column_of_every_row(release: str, tmp_path: Path) -> None:
    scene = compacted(tmp_path / "home", release)
    file = only(export(scene))
    assert file.state is State.COMPLETE
    value = line_of(file)
    with open_for_audit(scene.rows.path) as store:
        assert value.pop("messages") == list(records(store, "s1", View.RAW))
        assert value == session_record(store, "s1")
        assert file.digest == session_digest(store, "s1", View.RAW)


@pytest.mark.parametrize(("view", "count"), [(View.RAW, 7), (View.DISPLAY, 6), (View.ACTIVE, 2)])
@pytest.mark.parametrize("form", [Format.JSONL, Format.MD])
def test_each_view_is_what_the_store_shows(scene: Scene, form: Format, view: View, count: int) -> None:
    file = only(export(scene, form=form, view=view))
    assert (file.state, file.messages) == (State.COMPLETE, count)
    with open_for_audit(scene.rows.path) as store:
        assert file.digest == session_digest(store, "s1", view)
    left_out = "the view leaves out 4 archived rows; --view display has them"
    assert (left_out in file.notes) is (view is View.ACTIVE)


def test_a_session_without_messages_is_exported_too(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "home").session("empty")
    for form in Format:
        file = only(export(scene, form.value, "empty", form=form))
        assert (file.state, file.messages) == (State.COMPLETE, 0), form


@pytest.mark.parametrize("form", Format)
def test_messages_without_a_session_row_are_exported(scene: Scene, form: Format) -> None:
    scene.change("DELETE FROM sessions")
    file = only(export(scene, form=form))
    assert (file.state, file.session_row) == (State.COMPLETE, False)
    assert file.notes[0] == "the store has no row of this session: its record is made from its messages"
    assert Path(file.path).name == f"s1-session.{form.value}"
    if form is Format.JSONL:
        value = line_of(file)
        del value["messages"]
        assert value == {"id": "s1", "source": "recovered", "started_at": scene.start + 1}


def test_beginnings_of_ids_name_sessions(scene: Scene) -> None:
    scene.session("20260801_a").session("20260801_b").session("20260801")
    assert only(export(scene, "one", "20260801_a")).session == "20260801_a"
    assert only(export(scene, "two", "20260801")).session == "20260801"
    with pytest.raises(UsageError, match=r"'2026' begins 3 sessions: 20260801, 20260801_a, 20260801_b"):
        export(scene, "three", "2026")
    with pytest.raises(UsageError, match="no session 'nobody' in the store"):
        export(scene, "three", "s1", "nobody")
    assert not list((scene.root.parent / "three").iterdir())


# Text that a format cannot carry


def test_text_beyond_utf8_is_exact_in_jsonl_alone(scene: Scene) -> None:
    scene.say(["half of \ud83d"], 8)
    assert only(export(scene, "jsonl")).state is State.COMPLETE
    for form in (Format.MD, Format.QMD, Format.HTML):
        done = export(scene, form.value, form=form)
        file = only(done)
        assert (done.exit_code, file.state) == (6, State.INCOMPLETE), form
        assert any(reason.startswith("text that UTF-8 cannot hold is spelled") for reason in file.reasons)
        assert Path(file.path).exists()
        assert not (Path(done.folder) / "manifest.jsonl").exists()


@pytest.mark.parametrize("form", Format)
def test_text_in_another_encoding_is_never_called_exact(scene: Scene, form: Format) -> None:
    scene.say("a \\xff that somebody typed", 8)
    assert only(export(scene, "before", form=form)).state is State.COMPLETE
    scene.change("UPDATE messages SET content = CAST(x'61ff62' AS TEXT) WHERE content = 'seen'")
    done = export(scene, "after", form=form)
    assert (done.exit_code, only(done).state) == (6, State.INCOMPLETE)
    assert "text that is not valid in the store's encoding is spelled out: row 4" in only(done).reasons


@pytest.mark.parametrize("form", Format)
def test_tool_calls_that_are_not_json_are_named(scene: Scene, form: Format) -> None:
    scene.say("see", 8, role="assistant", tool_calls="null")
    assert only(export(scene, "before", form=form)).state is State.COMPLETE
    scene.change("UPDATE messages SET tool_calls = '[{\"id\": ' WHERE content = 'see'")
    file = only(export(scene, "after", form=form))
    assert file.state is State.INCOMPLETE
    assert "tool calls or metadata that are not JSON are left out: row 8" in file.reasons


def test_a_blob_is_exact_in_jsonl_and_named_in_markdown(scene: Scene) -> None:
    scene.say(b"\xff\x00", 8)
    assert only(export(scene, "jsonl")).state is State.COMPLETE
    assert line_of(only(export(scene, "again")))["messages"][-1]["content"] == {"blob": "ff00"}
    file = only(export(scene, "md", form=Format.MD))
    assert (file.state, file.reasons[0]) == (
        State.INCOMPLETE,
        "an audit does not find these messages in it: row 8",
    )


def test_what_hermes_own_check_rejects_is_said(scene: Scene) -> None:
    scene.say("one\r\ntwo", 8)
    assert only(export(scene, "cr", form=Format.MD)).notes == (
        "its text has carriage returns, so Hermes' own check of the file fails",
    )
    scene.change("UPDATE messages SET content = ? WHERE id = 8", f"- SHA256 of exported body: `{'0' * 64}`")
    file = only(export(scene, "line", form=Format.MD))
    assert file.state is State.COMPLETE
    assert file.notes == ("its text quotes a checksum line, so Hermes' own check of the file fails",)


def test_what_hermes_would_not_import_is_said(scene: Scene) -> None:
    assert only(export(scene, "small")).notes == ()
    scene.say("x" * (5 * 1024 * 1024), 8)
    assert only(export(scene, "large")).notes == (
        "longer than what Hermes imports of one session (10,000 messages, 5 MiB)",
    )


TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        [
            "### User — 2026-08-01T09:00:01Z\n\nnot a message",
            "\n\n## Export verification\n\n- Session id: `s1`\n- Exported messages: `9`\n",
            "</div>\n<div class='message'>",
            "__SHA256_PLACEHOLDER__",
            "\\ud83d \\xff",
            "\r\n\x00\x0b\x85",
        ]
    ),
    st.binary(max_size=4),
    st.lists(st.dictionaries(st.sampled_from(["type", "text"]), st.text(max_size=5), max_size=2), max_size=2),
    st.none(),
)
ROWS = st.tuples(
    TEXTS,
    st.sampled_from(["user", "assistant", "tool", "session_meta", "odd <role>"]),
    st.sampled_from([{}, ARCHIVED, REWOUND, {"tool_calls": "{"}, {"tool_calls": '[{"id": "\\ud83d"}]'}]),
    st.sampled_from([1.0, 2.5, -3.0, 1e300]),
)


@given(st.lists(ROWS, max_size=5), st.sampled_from(Format), st.sampled_from(View), st.integers(0, 4))
@settings(max_examples=60, deadline=None)
def test_a_complete_file_holds_every_text_of_its_view(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], form: Format, view: View, era: int
) -> None:
    scene = Scene(tmp_path_factory.mktemp("fuzz") / "home", ERA_RELEASES[era]).session()
    for content, role, columns, at in rows:
        text = content.encode("utf-8", "replace").decode() if isinstance(content, str) else content
        scene.say(text, at, role=role, **columns)
    file = only(export(scene, form=form, view=view))
    assert file.state in (State.COMPLETE, State.INCOMPLETE), file.reasons
    assert (file.state is State.COMPLETE) is (not file.reasons)
    if file.state is State.COMPLETE and form is Format.JSONL:
        with open_for_audit(scene.rows.path) as store:
            stored = [row["content"] for row in records(store, "s1", view)]
        shown = [row["content"] for row in line_of(file)["messages"]]
        assert shown == [{"blob": each.hex()} if isinstance(each, bytes) else each for each in stored]
    odd = any(isinstance(content, bytes) or columns.get("tool_calls") for content, _, columns, _ in rows)
    assert file.state is State.COMPLETE or odd, file.reasons


# Nothing is written where it should not be


def test_nothing_changes_in_the_home(scene: Scene) -> None:
    before = snapshot(scene.root)
    for form in Format:
        export(scene, form.value, form=form)
    export(scene, "more", at_risk=True)
    assert snapshot(scene.root) == before


@pytest.mark.parametrize("folder", ["home", "home/out", "home/session-exports", "link"])
def test_the_audited_home_is_no_place_for_exports(scene: Scene, folder: str) -> None:
    (scene.root.parent / "link").symlink_to(scene.root)
    before = snapshot(scene.root)
    with pytest.raises(Refused, match="lies in the audited home, where nothing is written"):
        export(scene, folder)
    assert snapshot(scene.root) == before


def test_beside_a_store_that_was_named_only_its_own_folder_is_off_limits(scene: Scene) -> None:
    store = scene.rows.path
    for folder in ("", "session-exports", "logs/old"):
        with pytest.raises(Refused, match="lies in the audited home"):
            reexport(store, ["s1"], store.parent / folder)
    assert reexport(store, ["s1"], store.parent / "elsewhere").exit_code == 0


def test_the_folder_must_be_one(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="not a folder"):
        export(scene, "file")
    with pytest.raises(UsageError, match=r"the folder .*nowhere does not exist; create it first"):
        export(scene, "nowhere/out")
    with pytest.raises(UsageError, match="no session was named"):
        reexport(scene.root, (), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_files_are_for_their_owner_alone(scene: Scene) -> None:
    before = os.umask(0o777)
    try:
        done = export(scene)
    finally:
        os.umask(before)
    folder = Path(done.folder)
    assert stat.S_IMODE(Path(only(done).path).stat().st_mode) == 0o600
    assert {path.name for path in folder.iterdir()} == {"s1-what-we-planned.jsonl", "manifest.jsonl"}


TRICKS = ["../../etc/passwd", "..", ".hidden", "a/b", "a\x00b", "-o", "x" * 500, "日本", "", "con\n", "a\\b"]


@pytest.mark.parametrize("session_id", TRICKS)
def test_an_id_is_never_a_path(session_id: str) -> None:
    name = file_name(session_id, "../../Ünd " * 40, "md")
    assert Path(name).name == name
    assert name.isascii()
    assert name.isprintable()
    assert name[0] not in ".-"
    assert len(name) < 200
    assert len({file_name(each, None, "md") for each in TRICKS}) == len(TRICKS)


def test_names_are_those_of_hermes() -> None:
    named = file_name("20260801_100000_cccccc", "Bilder & Töne 画像", "md")
    assert named == "20260801_100000_cccccc-bilder-t-ne.md"
    assert file_name("agent:main:1", None, "qmd") == "agent:main:1-session.qmd"
    assert file_name("a", "..--", "jsonl") == "a-session.jsonl"


def test_a_session_whose_id_is_a_path_is_written_beside_the_others(scene: Scene, tmp_path: Path) -> None:
    scene.session("../../evil").say("text", 1, "../../evil")
    file = only(export(scene, "out", "../../evil", form=Format.MD))
    assert file.state is State.COMPLETE
    assert Path(file.path).parent == tmp_path / "out"
    assert Path(file.path).is_file()
    assert formats.read(Path(file.path)).sections[0].session_id == "../../evil"


# A file that is there


def test_a_file_that_is_there_is_kept_and_named(scene: Scene) -> None:
    scene.session("s2").say("else", 1, "s2")
    first = only(export(scene))
    data = Path(first.path).read_bytes()
    scene.say("later", 9)
    done = export(scene, "out", "s1", "s2")
    assert done.exit_code == 4
    refused, other = done.files
    assert refused.state is State.REFUSED
    assert refused.reasons[0].startswith(f"{first.path}: exists already and is kept as it is")
    assert "--force" in refused.reasons[0]
    assert Path(first.path).read_bytes() == data
    assert other.state is State.COMPLETE


def test_force_replaces_an_export_of_the_session(scene: Scene) -> None:
    first = only(export(scene))
    scene.say("later", 9)
    file = only(export(scene, force=True))
    assert (file.path, file.state) == (first.path, State.COMPLETE)
    assert b"later" in Path(file.path).read_bytes()
    folder = Path(file.path).parent
    listed = list(manifest.lines(folder / "manifest.jsonl"))
    assert [line.sha256 for line in listed] == [first.sha256, file.sha256]
    assert manifest.valid(listed)[file.path].sha256 == file.sha256


def test_force_replaces_an_empty_file(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "s1-what-we-planned.jsonl").write_bytes(b"")
    assert only(export(scene, force=True)).state is State.COMPLETE


def _foreign(target: Path, scene: Scene) -> None:
    target.write_text("my notes")


def _of_another(target: Path, scene: Scene) -> None:
    scene.session("s2").say("else", 1, "s2")
    Path(only(export(scene, "other", "s2")).path).rename(target)


def _knows_more(target: Path, scene: Scene) -> None:
    export(scene)
    scene.change("DELETE FROM messages WHERE content = 'seen'")


def _knows_another_text(target: Path, scene: Scene) -> None:
    export(scene)
    scene.change("UPDATE messages SET content = 'was rewritten' WHERE content = 'seen'")


def _folder(target: Path, scene: Scene) -> None:
    target.mkdir()


def _link(target: Path, scene: Scene) -> None:
    file = only(export(scene, "other"))
    target.symlink_to(file.path)


@pytest.mark.parametrize("prepare", [_foreign, _of_another, _knows_more, _knows_another_text, _folder, _link])
def test_force_keeps_what_may_be_the_only_copy(scene: Scene, tmp_path: Path, prepare: Any) -> None:
    target = tmp_path / "out" / "s1-what-we-planned.jsonl"
    target.parent.mkdir()
    prepare(target, scene)
    before = snapshot(tmp_path / "out")
    done = export(scene, force=True)
    assert (done.exit_code, only(done).state) == (4, State.REFUSED)
    assert only(done).reasons[0].startswith(f"{target}: ")
    after = snapshot(tmp_path / "out")
    assert {name: facts for name, facts in after.items() if name != "."} == {
        name: facts for name, facts in before.items() if name != "."
    }


def test_an_incomplete_file_replaces_nothing(scene: Scene) -> None:
    first = only(export(scene, form=Format.MD))
    data = Path(first.path).read_bytes()
    scene.say(["half of \ud83d"], 9)
    file = only(export(scene, form=Format.MD, force=True))
    assert file.state is State.REFUSED
    assert "is kept, since the new one would not be complete: text that UTF-8 cannot hold" in file.reasons[0]
    assert Path(first.path).read_bytes() == data


# The manifest


def test_each_file_has_its_line_in_the_manifest(scene: Scene) -> None:
    scene.session("s2").say("else", 1, "s2")
    done = export(scene, "out", "s1", "s2", form=Format.QMD)
    listed = list(manifest.lines(Path(done.folder) / "manifest.jsonl"))
    assert [
        (line.session_id, line.path, line.sha256, line.message_count, line.format, line.lineage)
        for line in listed
    ] == [
        (file.session, file.path, file.sha256, file.messages, "qmd", (file.session,)) for file in done.files
    ]
    assert {line.exported_at for line in listed} == {NOW}


def test_a_manifest_that_was_cut_off_keeps_its_last_line(scene: Scene, tmp_path: Path) -> None:
    export(scene)
    path = tmp_path / "out" / "manifest.jsonl"
    cut = path.read_bytes() + b'{"exported_at": 17'
    path.write_bytes(cut)
    scene.session("s2").say("else", 1, "s2")
    assert export(scene, "out", "s2").exit_code == 0
    data = path.read_bytes()
    assert data.startswith(cut + b"\n{")
    assert data.endswith(b"}\n")
    assert [line.session_id for line in manifest.lines(path)] == ["s1", "s2"]


@pytest.mark.parametrize("kind", ["text", "folder", "link", "pipe"])
def test_what_is_no_manifest_is_left_alone(scene: Scene, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "out" / "manifest.jsonl"
    path.parent.mkdir()
    if kind == "text":
        path.write_text("shopping\n")
    elif kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(scene.rows.path)
    else:
        os.mkfifo(path)
    with pytest.raises(Refused, match=r"manifest\.jsonl: no"):
        export(scene)
    assert [each.name for each in path.parent.iterdir()] == ["manifest.jsonl"]


# When something fails


def test_a_store_in_use_is_refused_unless_a_copy_is_asked_for(scene: Scene) -> None:
    with held(scene.rows.path):
        with pytest.raises(StoreHeld):
            export(scene)
        assert only(export(scene, live=True)).state is State.COMPLETE


def _files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_disk_that_is_full_leaves_nothing_behind(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(export_target.os, "fsync", full)
    done = export(scene)
    assert (done.exit_code, only(done).state) == (3, State.FAILED)
    assert only(done).reasons[0].endswith("No space left on device")
    assert _files(tmp_path / "out") == []


def test_bytes_that_do_not_come_back_are_no_export(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    prove = export_session.prove

    def damaged(store: Any, session: Any, path: Path, **options: Any) -> Any:
        path.write_bytes(path.read_bytes().replace(b"kept", b"lost"))
        return prove(store, session, path, **options)

    monkeypatch.setattr(export_session, "prove", damaged)
    done = export(scene)
    assert (done.exit_code, only(done).state) == (6, State.INCOMPLETE)
    assert only(done).reasons == ("the bytes on the disk are not those that were written",)


@pytest.mark.parametrize("form", Format)
def test_a_writer_that_left_something_out_is_found_out(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, form: Format
) -> None:
    """The proof reads the store by itself: a message that the writer never saw is missing."""

    def without_last(read: Any) -> Any:
        def fewer(*arguments: Any) -> Iterator[Any]:
            *most, _ = read(*arguments)
            return iter(most)

        return fewer

    monkeypatch.setattr(export_session, "records", without_last(export_session.records))
    if form is not Format.JSONL:
        monkeypatch.setattr(export_session, "messages", without_last(export_session.messages))
    file = only(export(scene, form=form))
    assert file.state is State.INCOMPLETE
    assert any("row 7" in reason for reason in file.reasons), file.reasons


def test_a_store_that_changes_meanwhile_gives_no_file(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prove = export_session.prove

    def overtaken(*arguments: Any, **options: Any) -> Any:
        proof = prove(*arguments, **options)
        scene.say("written meanwhile", 9)
        return proof

    monkeypatch.setattr(export_session, "prove", overtaken)
    done = export(scene)
    assert (done.exit_code, only(done).state) == (3, State.FAILED)
    assert "it changed while it was read" in only(done).reasons[0]
    assert _files(tmp_path / "out") == []


def test_a_name_that_is_taken_meanwhile_is_not_overwritten(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out" / "s1-what-we-planned.jsonl"
    prove = export_session.prove

    def slow(*arguments: Any, **options: Any) -> Any:
        target.write_text("another run's")
        return prove(*arguments, **options)

    monkeypatch.setattr(export_session, "prove", slow)
    done = export(scene)
    assert (done.exit_code, only(done).state) == (4, State.REFUSED)
    assert target.read_text() == "another run's"
    assert _files(tmp_path / "out") == [target.name]


@pytest.mark.parametrize("taken", [False, True])
def test_a_filesystem_without_hard_links_is_served_too(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: bool
) -> None:
    target = tmp_path / "out" / "s1-what-we-planned.jsonl"

    def refused(*_: Any, **__: Any) -> None:
        if taken:
            target.write_text("another run's")
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(export_target.os, "link", refused)
    file = only(export(scene))
    assert file.state is (State.REFUSED if taken else State.COMPLETE)
    assert (target.read_text() == "another run's") is taken
    assert _files(tmp_path / "out") == sorted([target.name, *([] if taken else ["manifest.jsonl"])])


def test_a_manifest_that_cannot_be_written_is_said_and_the_export_stays(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(draft: Any, target: Path, *, replace: bool) -> None:
        publish(draft, target, replace=replace)
        (tmp_path / "out" / "manifest.jsonl").mkdir()

    publish = export_target.Draft.publish
    monkeypatch.setattr(export_target.Draft, "publish", locked)
    done = export(scene)
    assert (done.exit_code, only(done).state) == (3, State.COMPLETE)
    assert done.trouble[0].endswith("the export itself is written and stays")
    assert Path(only(done).path).is_file()


def test_one_damaged_session_does_not_stop_the_others(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "home").session("bad").session("good")
    for number in range(40):
        scene.say("bad text " * 200, number, "bad")
    scene.say("good text", 1, "good")
    page = [number for number, kind in pages_of(scene.rows.path, "messages") if kind == "leaf"][3]
    ((size,),) = scene.rows.run("PRAGMA page_size")
    with scene.rows.path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))
    done = export(scene, "out", "bad", "good")
    bad, good = done.files
    assert (bad.state, good.state, done.exit_code) == (State.FAILED, State.COMPLETE, 3)
    assert _files(tmp_path / "out") == ["good-on-good.jsonl", "manifest.jsonl"]


#: The peak comes from the kernel's account of this program: ``getrusage`` counts that of the parent in.
_MEASURED = """
import sys
from pathlib import Path
from statemend.repair.reexport import Format, reexport
done = reexport(Path(sys.argv[1]), ["s1"], Path(sys.argv[2]), form=Format(sys.argv[3]))
account = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(done.files[0].state, account["VmHWM"].split()[0])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the kernel's account of memory")
@pytest.mark.parametrize("form", [Format.JSONL, Format.MD])
def test_a_long_message_takes_memory_for_a_few_copies_of_it(
    scene: Scene, tmp_path: Path, form: Format
) -> None:
    length = 20_000_000
    scene.say("0123456789 lorem\n" * (length // 17), 8)
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, str(scene.root), str(tmp_path / "out"), form.value],
        capture_output=True,
        text=True,
        check=True,
    )
    state, peak = done.stdout.split()
    assert state == "complete"
    assert int(peak) * 1024 < 100_000_000 + 8 * length


_KILLED = """
import importlib, os, sys
from pathlib import Path
from statemend.repair.reexport import reexport
module, name = sys.argv[3].rsplit(".", 1)
module = importlib.import_module(module)
real = getattr(module, name)
def dies(*arguments, **options):
    if sys.argv[4] == "after":
        real(*arguments, **options)
    os._exit(9)
setattr(module, name, dies)
reexport(Path(sys.argv[1]), ["s1"], Path(sys.argv[2]))
"""


@pytest.mark.parametrize(
    ("call", "when", "named", "left"),
    [
        ("os.fsync", "before", 0, 1),
        ("os.link", "before", 0, 1),
        ("os.link", "after", 1, 1),
        ("statemend.repair.export_session.append_manifest", "before", 1, 0),
    ],
)
def test_a_crash_leaves_a_whole_file_or_none(
    scene: Scene, tmp_path: Path, call: str, when: str, named: int, left: int
) -> None:
    scene.session("s2").say("else", 1, "s2")
    export(scene, "out", "s2")
    before = snapshot(scene.root)
    arguments = [str(scene.root), str(tmp_path / "out"), call, when]
    done = subprocess.run([sys.executable, "-c", _KILLED, *arguments], check=False)
    assert done.returncode == 9
    assert snapshot(scene.root) == before
    found = list((tmp_path / "out").glob("s1*"))
    assert len(found) == named
    for path in found:
        artifact = formats.read(path)
        assert artifact.damage is None
        assert artifact.sections[0].held == 7
    beside = take(find_home(scene.root), [tmp_path / "out"])
    assert [one for one in beside.artifacts if Path(one.path).name.startswith(".")] == []
    assert len(beside.by_session().get("s1", ())) == named
    assert ["broken off" in one.reason for one in beside.skipped] == [True] * left
    assert not any(one.unread for one in beside.skipped)
    assert export(scene, "again").exit_code == 0
    assert len(list(manifest.lines(tmp_path / "out" / "manifest.jsonl"))) == 1


# Sessions at risk


def at_risk(build_folder: Path) -> Scene:
    """One session whose export lacks the archived turns, one that pruning would take, one that is sound."""
    scene = compacted(build_folder, "0.19.0")
    scene.export(Kind.MARKDOWN, view=View.ACTIVE, at=1000.0)
    scene.session("old", ended_at=scene.start + 50).say("one", 1, "old").compact(at=2, session_id="old")
    scene.session("sound").say("text", 1, "sound")
    (scene.root / "config.yaml").write_text("sessions:\n  auto_prune: true\n")
    return scene


def findings(scene: Scene, *exports: Path) -> set[tuple[str, str | None]]:
    found = audit(scene.root, exports=exports, rules=["EXP001", "EXP010"], now=NOW)
    return {(finding.rule, finding.subject.session) for finding in found.findings}


@pytest.mark.parametrize("form", Format)
def test_sessions_at_risk_are_found_exported_and_no_longer_at_risk(tmp_path: Path, form: Format) -> None:
    scene = at_risk(tmp_path / "home")
    assert findings(scene) == {("EXP001", "s1"), ("EXP010", "old")}
    folder = tmp_path / "out"
    done = reexport(scene.root, (), folder, form=form, at_risk=True, now=NOW)
    assert done.exit_code == 0
    assert sorted(file.session for file in done.files) == ["old", "s1"]
    assert findings(scene, folder) == set()
    again = reexport(scene.root, (), folder, form=form, at_risk=True, now=NOW)
    assert (again.files, again.exit_code) == ((), 0)


def test_exports_elsewhere_are_asked_first(tmp_path: Path) -> None:
    scene = at_risk(tmp_path / "home")
    export(scene, "elsewhere")
    done = reexport(scene.root, (), tmp_path / "out", at_risk=True, exports=[tmp_path / "elsewhere"], now=NOW)
    assert [file.session for file in done.files] == ["old"]


def test_named_sessions_are_exported_with_those_at_risk(tmp_path: Path) -> None:
    scene = at_risk(tmp_path / "home")
    done = reexport(scene.root, ["sound", "s1"], tmp_path / "out", at_risk=True, now=NOW)
    assert [file.session for file in done.files] == ["sound", "s1", "old"]


def test_a_file_that_could_not_be_read_leaves_the_risk_undetermined(tmp_path: Path) -> None:
    scene = at_risk(tmp_path / "home")
    loop = tmp_path / "broken"
    loop.mkdir()
    (loop / "a.md").symlink_to(loop / "a.md")
    done = reexport(scene.root, (), tmp_path / "out", at_risk=True, exports=[loop], now=NOW)
    assert done.exit_code == 3
    assert done.trouble
    assert {file.state for file in done.files} == {State.COMPLETE}


def test_a_real_home_of_each_release_is_exported_whole(tmp_path: Path) -> None:
    for release in ("0.13.0", "0.18.2", "0.19.0", "0.20.1", "0.22.2"):
        home = HomeBuilder(tmp_path / release, release, rich=True)
        session_ids = [sid for (sid,) in home.sql("SELECT id FROM sessions")]
        for form in Format:
            done = reexport(home.root, session_ids, tmp_path / f"{release}-{form}", form=form, now=NOW)
            assert {file.state for file in done.files} == {State.COMPLETE}, release
