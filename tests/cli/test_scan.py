from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import apsw
import jsonschema
import pytest
from tests.cli.conftest import Outcome, snapshot

from statemend.report.json import SCHEMA_FILE

Run = Callable[..., Outcome]


def test_a_sound_store_is_clean(statemend: Run, sound: Path) -> None:
    told = statemend("scan", sound)
    assert told.code == 0, told.err
    assert "No fault and no risk found." in told.out


def test_a_damaged_home_fails_and_says_what_to_do_next(statemend: Run, demo: Path) -> None:
    told = statemend("scan", demo)
    assert told.code == 1
    assert "ORP001-" in told.out
    assert "Next: statemend " in told.out
    assert statemend("scan", demo, "--fail-on", "never").code == 0


def test_the_report_of_a_home_with_profiles_is_written_elsewhere(
    statemend: Run, sound: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    for folder in (home / "profiles" / "work", home / "profiles" / "play"):
        folder.mkdir(parents=True)
        shutil.copyfile(sound / "state.db" if sound.is_dir() else sound, folder / "state.db")

    told = statemend("scan", home, "--fail-on", "never", "-o", tmp_path / "r.json")
    assert told.code == 0, told.err
    assert len(json.loads((tmp_path / "r.json").read_text())["stores"]) == 2
    for folder in (home, home / "profiles" / "work", home / "profiles" / "play" / "sessions"):
        folder.mkdir(exist_ok=True)
        told = statemend("scan", home, "-o", folder / "r.json")
        assert told.code == 4
        assert "lies in the audited home" in told.err


def test_nothing_is_written_beside_the_store(statemend: Run, demo: Path, tmp_path: Path) -> None:
    before = snapshot(demo)
    for name in ("r.html", "r.md", "r.json"):
        assert statemend("scan", demo, "-o", tmp_path / name, "--with-content").code == 1
    assert snapshot(demo) == before


def test_json_obeys_the_schema_and_tells_its_exit_code(statemend: Run, demo: Path) -> None:
    told = statemend("scan", demo, "--format", "json")
    document = json.loads(told.out)
    jsonschema.validate(document, json.loads(SCHEMA_FILE.read_text("utf-8")))
    assert document["exit_code"] == told.code == 1
    assert document["home"] == str(demo)
    assert {finding["rule"] for finding in document["findings"]} >= {"ORP001", "LIN002", "LIN003", "LIN008"}
    assert [check["answer"] for check in document["checklist"]].count("no") >= 2
    assert len(document["checklist"]) == 12
    assert {event["kind"] for event in document["timeline"]} >= {"exported", "append-failed", "deleted"}
    assert document["lineage"][0]["resume"] not in document["lineage"][0]["export"]
    assert {rule["status"] for rule in document["rules"]} <= {"clean", "findings", "not applicable"}


@pytest.mark.parametrize("name", ["r.json", "r.md", "r.html", "r.txt"])
def test_the_same_home_gives_the_same_bytes(
    statemend: Run, demo: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")
    target = tmp_path / name
    statemend("scan", demo, "-o", target)
    first = target.read_bytes()
    told = statemend("scan", demo, "-o", target)
    assert told.code == 1, told.err
    assert target.read_bytes() == first
    assert b"2026-09-21T14:13:20Z" in first or name == "r.txt"


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("r.html", "<!DOCTYPE html>"),
        ("r.md", "<!-- statemend/report/v1 -->"),
        ("r.json", "{"),
        ("r.txt", "statemend "),
    ],
)
def test_the_format_is_told_from_the_name_and_the_file_is_private(
    statemend: Run, demo: Path, tmp_path: Path, name: str, start: str
) -> None:
    target = tmp_path / name
    told = statemend("scan", demo, "-o", target)
    assert target.read_text("utf-8").startswith(start)
    assert target.stat().st_mode & 0o777 == 0o600
    assert told.out.splitlines()[-1] == f"Report: {target}"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_texts_of_messages_are_shown_only_when_asked_for(statemend: Run, demo: Path) -> None:
    with apsw.Connection(
        f"file:{demo}/state.db?immutable=1", apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_READONLY
    ) as db:
        (text,) = next(
            db.execute(
                "SELECT content FROM messages WHERE session_id NOT IN (SELECT id FROM sessions) "
                "AND role = 'user' ORDER BY id LIMIT 1"
            )
        )
    for format_ in ("html", "md", "json", "table"):
        assert text[:20] not in statemend("scan", demo, "--format", format_).out
    for format_ in ("html", "md", "json"):
        assert text[:20] in statemend("scan", demo, "--format", format_, "--with-content").out


def test_rules_can_be_chosen(statemend: Run, demo: Path) -> None:
    told = statemend("scan", demo, "--format", "json", "--rules", "LIN,messages-without-session")
    chosen = {rule["id"] for rule in json.loads(told.out)["rules"]}
    assert "ORP001" in chosen
    assert {rule[:3] for rule in chosen} == {"LIN", "ORP"}


def test_extra_folders_are_read(statemend: Run, sound: Path, demo: Path) -> None:
    told = statemend(
        "scan", sound, "--exports", demo / "session-exports", "--format", "json", "--fail-on", "never"
    )
    assert len(json.loads(told.out)["artifacts"]) >= 4


def test_a_title_cannot_reach_the_terminal(statemend: Run, demo: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(demo, home)
    db = apsw.Connection(str(home / "state.db"))
    db.execute("UPDATE sessions SET title = char(27) || '[2J<script>' || id WHERE title IS NOT NULL")
    db.close()
    for format_ in ("table", "md", "html"):
        told = statemend("scan", home, "--format", format_)
        assert "\x1b" not in told.out
    assert told.out.count("<script>") == 1


@pytest.mark.parametrize(
    ("content", "what"),
    [(b"", "empty"), (b"\0" * 8192, "zero"), (b"hello, this is a text file\n" * 40, "not")],
)
def test_a_store_that_cannot_be_read_is_never_clean(
    statemend: Run, tmp_path: Path, content: bytes, what: str
) -> None:
    store = tmp_path / "state.db"
    store.write_bytes(content)
    told = statemend("scan", store)
    assert told.code == 3
    assert "cannot be read" in told.out
    assert what in told.out
    assert "Traceback" not in told.err
    document = json.loads(statemend("scan", store, "--format", "json").out)
    assert document["stores"][0]["fault"]
    assert document["stores"][0]["sessions"] is None


def test_a_folder_without_a_store_is_a_wrong_request(statemend: Run, tmp_path: Path) -> None:
    told = statemend("scan", tmp_path)
    assert told.code == 2
    assert (
        told.err == f"statemend: {tmp_path}: no state.db in this folder; name a Hermes home or a store file\n"
    )


def test_a_held_store_is_refused_by_the_name_of_the_holder(statemend: Run, sound: Path) -> None:
    code = "import apsw, sys; db = apsw.Connection(sys.argv[1]); db.execute('BEGIN'); \
            list(db.execute('SELECT 1 FROM sessions')); print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(sound / "state.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        refused = statemend("scan", sound)
        copied = statemend("scan", sound, "--live", "--format", "json")
        holder.communicate("")
    assert refused.code == 4
    assert str(holder.pid) in refused.err
    assert "--live" in refused.err
    assert copied.code == 0, copied.err
    assert json.loads(copied.out)["stores"][0]["access"] == "live copy"


class TestTarget:
    """What -o refuses."""

    def test_a_file_that_is_no_report_is_kept(self, statemend: Run, demo: Path, tmp_path: Path) -> None:
        precious = tmp_path / "export.md"
        precious.write_text("# The only copy\n")
        told = statemend("scan", demo, "-o", precious)
        assert told.code == 4
        assert "not a report of statemend" in told.err
        assert precious.read_text() == "# The only copy\n"
        assert statemend("scan", demo, "-o", precious, "--force").code == 1
        assert precious.read_text().startswith("<!-- statemend/report/v1 -->")

    @pytest.mark.parametrize("place", ["r.html", "session-exports/r.html", "logs/deep/r.html"])
    def test_the_audited_home_is_left_alone(
        self, statemend: Run, demo: Path, tmp_path: Path, place: str
    ) -> None:
        home = tmp_path / "home"
        shutil.copytree(demo, home)
        (home / place).parent.mkdir(parents=True, exist_ok=True)
        before = snapshot(home)
        told = statemend("scan", home, "-o", home / place, "--force")
        assert told.code == 4
        assert "nothing is written" in told.err
        assert snapshot(home) == before

    def test_a_link_into_the_home_is_seen_through(self, statemend: Run, demo: Path, tmp_path: Path) -> None:
        link = tmp_path / "r.html"
        link.symlink_to(demo / "session-exports" / "r.html")
        assert statemend("scan", demo, "-o", link).code == 4

    def test_the_store_itself_is_never_a_target(
        self, statemend: Run, tmp_path: Path, stores: Mapping[str, Path]
    ) -> None:
        store = tmp_path / "state.db"
        shutil.copyfile(stores["0.19.0"], store)
        before = store.read_bytes()
        assert statemend("scan", store, "-o", store, "--force").code == 4
        assert store.read_bytes() == before

    def test_a_folder_that_is_not_there_is_said_before_the_audit(
        self, statemend: Run, demo: Path, tmp_path: Path
    ) -> None:
        told = statemend("scan", demo, "-o", tmp_path / "nowhere" / "r.html")
        assert told.code == 2
        assert "create it first" in told.err

    def test_what_is_no_file_is_no_target(self, statemend: Run, demo: Path, tmp_path: Path) -> None:
        assert statemend("scan", demo, "-o", tmp_path).code == 2
        assert statemend("scan", demo, "-o", "/dev/null").code == 2

    def test_a_failed_write_leaves_the_old_report(
        self, statemend: Run, demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        target = tmp_path / "r.md"
        statemend("scan", demo, "-o", target)
        before = target.read_bytes()

        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", full)
        told = statemend("scan", demo, "-o", target)
        assert told.code == 3
        assert told.err == f"statemend: {target}: No space left on device; nothing was written\n"
        assert target.read_bytes() == before
        assert [path.name for path in tmp_path.iterdir()] == ["r.md"]


@pytest.mark.parametrize("release", ["0.13.0", "0.19.0", "0.22.2"])
@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE sessions SET title = x'ff00fe', source = x'00', end_reason = 7, message_count = 'many'",
        "UPDATE sessions SET started_at = 8e252, ended_at = 'x', parent_session_id = 9, model_config = 'x'",
        "UPDATE sessions SET id = id || char(10, 27, 8238) || '<b>'",
        "UPDATE messages SET timestamp = 'never', role = x'01', content = x'ffd8ff', tool_calls = '[{'",
        "UPDATE messages SET session_id = x'abcd' WHERE id % 2",
        "UPDATE messages SET content = CAST(x'eda080' AS TEXT), session_id = 5",
    ],
)
def test_wrong_types_in_cells_are_no_traceback(
    statemend: Run, tmp_path: Path, stores: Mapping[str, Path], release: str, damage: str
) -> None:
    store = tmp_path / "state.db"
    shutil.copyfile(stores[release], store)
    db = apsw.Connection(str(store))
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 0)
    db.execute(damage)
    db.close()
    for format_ in ("table", "json", "md", "html"):
        told = statemend("scan", store, "--format", format_, "--with-content")
        assert told.code in (0, 1), told.err
        assert told.err == ""
        assert "\x1b" not in told.out
        assert "the rule itself failed" not in told.out
    assert statemend("show", store, "2").code in (0, 2)
