"""What may not be read, and what somebody else is using."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.e2e.conftest import DATA, FORMATS
from tests.e2e.folder import snapshot
from tests.e2e.running import Audit, Outcome, Refusal, Statemend, rules

SID = "20260801_090000_aaaaaa"
#: Loads everything as it is, gives up every right, then answers command lines, one a line.
_WITHOUT_RIGHTS = """
import json, os, sys, tempfile
from statemend.cli.app import run

def told(arguments):
    streams = [tempfile.TemporaryFile(), tempfile.TemporaryFile()]
    kept = [os.dup(1), os.dup(2)]
    for number, stream in enumerate(streams, start=1):
        os.dup2(stream.fileno(), number)
    code = run(arguments)
    for number, saved in enumerate(kept, start=1):
        os.dup2(saved, number)
        os.close(saved)
    texts = []
    for stream in streams:
        with stream:
            stream.seek(0)
            texts.append(stream.read().decode())
    return code, *texts

for form in ("json", "table", "md", "html"):
    told(["scan", sys.argv[1], "--format", form])
told(["show", sys.argv[1], sys.argv[2]])
os.chdir("/")
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
for line in sys.stdin:
    print(json.dumps(told(json.loads(line))), flush=True)
"""
Stranger = Callable[..., Outcome]


@pytest.fixture
def open_home() -> Iterator[Path]:
    """A home in a folder that every user may enter, with exports and a log."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="statemend-e2e-") as name:
        Path(name).chmod(0o755)
        home = Path(name) / "home"
        (home / "logs").mkdir(parents=True)
        shutil.copyfile(DATA / "exports" / "0.22.2" / "state.db", home / "state.db")
        shutil.copytree(DATA / "exports" / "0.22.2" / "jsonl", home / "session-exports")
        (home / "logs" / "agent.log").write_text("2026-08-01 10:00:00,123 INFO agent: started\n")
        for folder, folders, files in os.walk(home):
            for each in (*folders, *files, "."):
                path = Path(folder, each)
                path.chmod(0o755 if path.is_dir() else 0o644)
        yield home
        for folder, folders, _ in os.walk(home):
            for each in (*folders, "."):
                Path(folder, each).chmod(0o755)


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stranger]:
    """Runs command lines as a user without any rights."""
    home = tmp_path_factory.mktemp("warm")
    shutil.copyfile(DATA / "exports" / "0.22.2" / "state.db", home / "state.db")
    with subprocess.Popen(
        [sys.executable, "-c", _WITHOUT_RIGHTS, str(home), SID],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": "/tmp"},
    ) as serving:
        assert serving.stdin is not None
        assert serving.stdout is not None
        stdin, stdout = serving.stdin, serving.stdout

        def call(*arguments: object) -> Outcome:
            print(json.dumps([str(argument) for argument in arguments]), file=stdin, flush=True)
            return Outcome(*json.loads(stdout.readline()))

        yield call
        stdin.close()


@pytest.mark.parametrize("form", FORMATS)
def test_a_home_that_is_read_only_is_read_by_another_user(
    stranger: Stranger, open_home: Path, form: str
) -> None:
    for path in (open_home / "state.db", open_home / "logs", open_home / "session-exports", open_home):
        path.chmod(path.stat().st_mode & 0o555)
    before = snapshot(open_home)
    told = stranger("scan", open_home, "--format", form)
    assert (told.code, told.err) == (0, "")
    assert told.out
    assert snapshot(open_home) == before


REFUSED = {
    "store": ("state.db", "{home}/state.db: may not be read by this user; run statemend as its owner"),
    "home": (".", "{home}/state.db: may not be read by this user; run statemend as its owner"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("verb", [("scan",), ("show", SID)])
def test_a_store_that_may_not_be_read_is_one_line(
    stranger: Stranger, open_home: Path, name: str, verb: tuple[str, ...]
) -> None:
    place, words = REFUSED[name]
    (open_home / place).chmod(0)
    told = stranger(verb[0], open_home, *verb[1:])
    assert told == Outcome(3, "", f"statemend: {words.format(home=open_home)}\n")


UNREADABLE = {
    "an export": "session-exports/all.jsonl",
    "the exports": "session-exports",
    "a log": "logs/agent.log",
    "the logs": "logs",
    "the configuration": "config.yaml",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_may_not_be_read_beside_the_store_leaves_something_open(
    stranger: Stranger, open_home: Path, name: str
) -> None:
    (open_home / "config.yaml").write_text("sessions: {auto_prune: false}\n")
    (open_home / UNREADABLE[name]).chmod(0)
    told = stranger("scan", open_home, "--format", "json")
    document = json.loads(told.out)
    assert (told.code, document["exit_code"], told.err) == (3, 3, "")
    assert document["skipped"] == [
        {
            "path": str(open_home / UNREADABLE[name]),
            "reason": "could not be read: Permission denied",
            "unread": True,
        }
    ]
    stopped = "2 rules could not run and " if name == "the configuration" else ""
    assert document["verdict"] == (
        f"No fault found, but {stopped}1 file could not be read, so this home cannot be called clean."
    )
    (check,) = (each for each in document["checklist"] if each["id"] == "fail-closed")
    assert check["answer"] == "no"


def test_what_no_rule_asks_for_may_stay_unread(stranger: Stranger, open_home: Path) -> None:
    (open_home / "session-exports").chmod(0)
    told = stranger(
        "scan", open_home, "--format", "json", "--rules", "CNT,LIN,ORP001,STO001,STO002,STO003,STO004"
    )
    assert (told.code, told.err) == (0, "")
    (skipped,) = json.loads(told.out)["skipped"]
    assert skipped["reason"] == "could not be read: Permission denied"


def test_another_folder_with_exports_that_may_not_be_read_leaves_something_open(
    stranger: Stranger, open_home: Path, tmp_path: Path
) -> None:
    closed = open_home.parent / "closed"
    closed.mkdir(mode=0o700)
    (closed / "inner").mkdir()
    closed.chmod(0)
    told = stranger("scan", open_home, "--exports", closed)
    assert told.code == 3
    assert "could not be read: Permission denied" in told.out
    told = stranger("scan", open_home, "--exports", closed / "inner")
    assert told == Outcome(
        3,
        "",
        f"statemend: {closed}/inner: may not be read by this user; run statemend as its owner\n",
    )


def test_a_report_that_may_not_be_written_is_refused_before_the_audit(
    stranger: Stranger, open_home: Path
) -> None:
    folder = open_home.parent
    told = stranger("scan", open_home, "-o", folder / "report.html")
    assert told == Outcome(
        2,
        "",
        f"statemend: {folder}/report.html: this user may not write in {folder}; choose another folder\n",
    )


#: Opens the store as Hermes does, commits a row, and waits.
_HOLDER = """
import sys, apsw
db = apsw.Connection(sys.argv[1])
db.execute("PRAGMA journal_mode = WAL")
db.execute("PRAGMA wal_autocheckpoint = 0")
db.execute("INSERT INTO sessions (id, source, started_at) VALUES ('only-in-the-log', 'cli', 1.79e9)")
if "busy" in sys.argv:
    db.execute("BEGIN IMMEDIATE")
    db.execute("INSERT INTO sessions (id, source, started_at) VALUES ('not-committed', 'cli', 1.79e9)")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(params=["idle", "busy"])
def holder(request: pytest.FixtureRequest, home: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that uses the store, in the middle of a transaction or not."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(home / "state.db"), request.param],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "held\n"
        yield running
        running.communicate("")


def test_a_store_in_use_is_refused_by_the_name_of_its_holder(
    refusal: Refusal, home: Path, holder: subprocess.Popen[str]
) -> None:
    for arguments in (("scan", home), ("scan", home / "state.db"), ("show", home, SID)):
        line = refusal(*arguments, code=4, folder=home)
        assert line.startswith(f"{home}/state.db: held by python")
        assert f"(pid {holder.pid}: {sys.executable} -c import sys, apsw" in line
        assert line.endswith("; stop it, or audit a live copy with --live")


def test_a_live_copy_shows_what_is_committed_and_nothing_else(
    audit: Audit, home: Path, holder: subprocess.Popen[str]
) -> None:
    document = audit(home, "--live", code=0)
    (store,) = document["stores"]
    assert (store["access"], store["sessions"], store["unchanged"]) == ("live copy", 15, None)
    assert rules(document, "could not run") == {}


def test_a_session_of_a_live_store_can_be_shown(
    statemend: Statemend, home: Path, holder: subprocess.Popen[str]
) -> None:
    before = snapshot(home)
    told = statemend("show", home, "only-in-the-log", "--live")
    assert (told.code, told.err) == (0, "")
    assert statemend("show", home, "not-committed", "--live").code == 2
    assert snapshot(home) == before


def test_what_a_killed_process_left_in_its_log_is_seen(
    audit: Audit, home: Path, holder: subprocess.Popen[str]
) -> None:
    holder.kill()
    holder.wait()
    assert (home / "state.db-wal").stat().st_size > 0
    document = audit(home, code=0)
    (store,) = document["stores"]
    assert (store["access"], store["sessions"], store["unchanged"]) == ("private copy", 15, True)


def test_a_log_that_is_half_written_ends_with_what_is_whole(
    audit: Audit, home: Path, holder: subprocess.Popen[str]
) -> None:
    holder.kill()
    holder.wait()
    log = home / "state.db-wal"
    os.truncate(log, log.stat().st_size - 100)
    document = audit(home, code=0)
    assert document["stores"][0]["sessions"] == 14


@pytest.mark.parametrize("place", ["state.db", "state.db-wal", "state.db-journal"])
def test_a_pipe_in_the_place_of_a_file_of_the_store_is_one_line(
    refusal: Refusal, home: Path, place: str
) -> None:
    (home / place).unlink(missing_ok=True)
    os.mkfifo(home / place)
    line = refusal("scan", home, code=2 if place == "state.db" else 3, folder=home)
    assert line.startswith(f"{home}/{place}: not a regular file")
