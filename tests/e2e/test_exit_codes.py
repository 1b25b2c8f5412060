"""How a command line ends: one code, one line, whatever happens to the process or to its output."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.e2e.folder import snapshot
from tests.e2e.running import Outcome, Refusal, Statemend, outcome, process

from statemend.audit import engine
from statemend.cli import app
from statemend.demo.build import build

SID = "20260801_090000_aaaaaa"
LONG = "x" * 5000
STORE = "name a Hermes home or a store file"

#: What cannot be done as it was asked for. ``{home}`` is a sound home, ``{place}`` a folder beside it.
WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "no such path": (("scan", "{place}/nope"), "{place}/nope: no such file or folder; " + STORE),
    "a folder without a store": (("scan", "{place}"), "{place}: no state.db in this folder; " + STORE),
    "below a file": (("scan", "{home}/state.db/x"), "{home}/state.db/x: no such file or folder; " + STORE),
    "a path that is too long": (("scan", LONG), "File name too long; " + STORE),
    "a path with a NUL": (("scan", "a\0b"), "invalid value for 'HOME': embedded null byte"),
    "nothing as a path": (("scan", ""), "no state.db in this folder; " + STORE),
    "a device": (("scan", "/dev/null"), "/dev/null: not a regular file, so not a store"),
    "a link to nothing": (("scan", "{place}/broken"), "state.db: a symbolic link to nothing; " + STORE),
    "a link to itself": (("scan", "{place}/loop"), "Too many levels of symbolic links; " + STORE),
    "a folder for a store": (("scan", "{place}/folder"), "state.db: a folder, not a store"),
    "no such exports": (
        ("scan", "{home}", "--exports", "{place}/nope"),
        "{place}/nope: no such file or folder; name a folder or a file with exports",
    ),
    "exports that are too long": (("scan", "{home}", "--exports", LONG), "File name too long; name a folder"),
    "no such rule": (("scan", "{home}", "--rules", "NOPE"), "there is no rule 'NOPE'"),
    "no rule at all": (("scan", "{home}", "--rules", ""), "there is no rule ''"),
    "no such format": (("scan", "{home}", "--format", "pdf"), "'pdf' is not one of"),
    "no such option": (("scan", "{home}", "--fast"), "no such option: --fast"),
    "no such verb": (("frobnicate",), "frobnicate"),
    "a verb alone": (("show", "{home}"), "missing argument 'SESSION'"),
    "no such session": (("show", "{home}", "x\x1b[31m"), "no session 'x\\x1b[31m'"),
    "the beginning of many": (("show", "{home}", "2026"), "begins 14 sessions"),
    "a report nowhere": (("scan", "{home}", "-o", "{place}/no/r.html"), "create it first"),
    "a report into a folder": (("scan", "{home}", "-o", "{place}"), "not a regular file"),
    "a report of no name": (
        ("scan", "{home}", "-o", "-"),
        "leave -o out and the answer goes to standard output",
    ),
    "a report that is too long": (
        ("scan", "{home}", "-o", f"/tmp/{LONG}"),
        "File name too long; choose another",
    ),
    "no such rule to explain": (("explain", "\x1b[31m"), "there is no rule"),
    "a demo on something": (("demo", "{home}"), "already holds something"),
    "a demo of a name too long": (("demo", LONG), "File name too long; name another folder"),
    "a demo on everything": (("demo", "/"), "not a name for a new folder"),
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with places that are no home."""
    folder = tmp_path / "place"
    for name in ("broken", "loop", "folder"):
        (folder / name).mkdir(parents=True)
    (folder / "broken" / "state.db").symlink_to("gone.db")
    (folder / "loop" / "state.db").symlink_to("state.db")
    (folder / "folder" / "state.db").mkdir()
    return folder


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_request_says_what_is_wrong_and_what_to_do(
    refusal: Refusal, home: Path, place: Path, tmp_path: Path, name: str
) -> None:
    arguments, words = WRONG[name]
    line = refusal(*(each.format(home=home, place=place) for each in arguments), code=2, folder=tmp_path)
    assert words.format(home=home, place=place) in line
    assert len(line) <= 1100
    assert "unexpected" not in line


def test_the_worst_code_wins(statemend: Statemend, tmp_path: Path) -> None:
    """Findings alone are 1, findings beside what is left open are 3, and a held store is not even read."""
    demo = build(tmp_path / "demo")
    assert statemend("scan", demo).code == 1
    assert statemend("scan", demo, "--fail-on", "never").code == 0
    (demo / "config.yaml").unlink(missing_ok=True)
    (demo / "config.yaml").mkdir()
    told = statemend("scan", demo)
    assert told.code == 3
    assert "1 file could not be read" in " ".join(told.out.split())
    assert statemend("scan", demo, "--fail-on", "never").code == 3
    hold = "import apsw, sys; db = apsw.Connection(sys.argv[1]); db.execute('BEGIN IMMEDIATE'); \
            print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(demo / "state.db")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert statemend("scan", demo).code == 4
        holder.communicate()


def test_an_interrupt_ends_in_one_line_and_leaves_no_copy(
    statemend: Statemend, home: Path, tmp_path: Path
) -> None:
    (home / "state.db-wal").write_bytes(bytes(5000))  # makes the audit work on a private copy
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    seen: list[list[Path]] = []

    def interrupted(*_: object, **__: object) -> None:
        seen.append(list(temporary.rglob("state.db")))
        raise KeyboardInterrupt

    before = snapshot(home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(temporary))
        patch.setattr(engine, "take", interrupted)
        told = statemend("scan", home)
    assert told == Outcome(130, "", "statemend: interrupted before it was done\n")
    assert [len(copies) for copies in seen] == [1]
    assert list(temporary.iterdir()) == []
    assert snapshot(home) == before


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_request_to_end_leaves_no_copy(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The process asks itself to end while the private copy is there."""
    (home / "state.db-wal").write_bytes(bytes(5000))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    script = (
        "import os, signal, sys\n"
        f"signal.signal(signal.{name}, signal.SIG_DFL)\n"  # whoever runs the tests may ignore it
        "from statemend.audit import engine\n"
        "from statemend.cli.app import main\n"
        "def end(*_, **__):\n"
        f"    print(len([f for _, _, f in os.walk({str(temporary)!r}) if 'state.db' in f]), flush=True)\n"
        f"    os.kill(os.getpid(), signal.{name})\n"
        "engine.take = end\n"
        f"sys.argv = ['statemend', 'scan', {str(home)!r}]\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (128 + signal.Signals[name], "1\n")
    assert done.stderr == f"statemend: ended by {name} before it was done; run it again\n"
    assert list(temporary.iterdir()) == []


def test_a_signal_that_is_ignored_stays_ignored(home: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from statemend.audit import engine\n"
        "from statemend.cli.app import main\n"
        "real = engine.take\n"
        "def take(*given, **more):\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n"
        "    return real(*given, **more)\n"
        "engine.take = take\n"
        f"sys.argv = ['statemend', 'scan', {str(home)!r}]\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_unforeseen_error_of_the_system_names_its_place(
    refusal: Refusal, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error", "/mnt/disk/x")

    monkeypatch.setattr(engine, "take", failing)
    assert refusal("scan", home, code=3) == "/mnt/disk/x: Input/output error"


@pytest.fixture
def crowded(home: Path) -> Path:
    """A home whose report does not fit into a pipe."""
    folder = home / "session-exports"
    folder.mkdir()
    for number in range(1500):
        (folder / f"{number:04d} {'n' * 60}").write_text("no export")
    return home


@pytest.mark.parametrize("form", ["json", "html", "md"])
def test_a_reader_that_goes_away_is_no_error(crowded: Path, form: str) -> None:
    running = process("scan", crowded, "--format", form)
    assert running.stdout is not None
    assert running.stdout.read(1)
    running.stdout.close()
    assert running.stderr is not None
    assert running.stderr.read() == b""
    running.stderr.close()
    assert running.wait() == 0


def shell(command: str, *arguments: object) -> Outcome:
    """Run ``statemend`` with the redirections of a shell; ``$@`` stands for the arguments."""
    python = f"{sys.executable} -m statemend"
    done = subprocess.run(
        ["/bin/sh", "-c", command.replace("statemend", python), "sh", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def test_a_closed_output_is_no_error(home: Path) -> None:
    before = snapshot(home)
    assert shell('statemend "$@" >&-', "scan", home) == Outcome(0, "", "")
    assert shell('statemend "$@" <&- >&- 2>&-', "scan", home, "--format", "html") == Outcome(0, "", "")
    assert shell('statemend "$@" 2>&-', "scan", home / "nope") == Outcome(2, "", "")
    assert snapshot(home) == before


def test_a_report_goes_into_its_file_though_the_output_is_closed(home: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    assert shell('statemend "$@" >&- 2>&-', "scan", home, "-o", target) == Outcome(0, "", "")
    assert target.read_text().startswith("{\n")
    assert target.read_text().endswith("}\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("arguments", ["scan {home}", "scan {home} --format json", "--version"])
def test_an_output_without_room_is_one_line(home: Path, arguments: str) -> None:
    told = shell('statemend "$@" >/dev/full', *arguments.format(home=home).split())
    assert told == Outcome(
        3, "", "statemend: standard output: No space left on device; write the report to a file with -o\n"
    )


def test_no_encoding_of_a_terminal_stops_a_report(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "ünï\u2603"
    home.rename(folder)
    for variables in ({"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}, {"PYTHONUTF8": "0", "LC_ALL": "POSIX"}):
        told = outcome(process("scan", folder, env=os.environ | variables))
        assert (told.code, told.err) == (0, "")
        assert "No fault and no risk" in told.out


def limited(megabytes: int) -> Callable[[], None]:
    """Lets a process write files up to a size only, as a full disk would."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (megabytes, megabytes))

    return limit


def test_no_room_for_a_private_copy_is_one_line(home: Path, tmp_path: Path) -> None:
    (home / "state.db-wal").write_bytes(bytes(5000))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    before = snapshot(home)
    told = outcome(
        process("scan", home, preexec_fn=limited(100_000), env=os.environ | {"TMPDIR": str(temporary)})
    )
    assert (told.code, told.out) == (3, "")
    assert told.err.startswith(f"statemend: {home}/state.db: cannot be copied to {temporary}/statemend-")
    assert "File too large" in told.err
    assert told.err.count("\n") == 1
    assert list(temporary.iterdir()) == []
    assert snapshot(home) == before


def test_no_room_for_a_report_leaves_nothing_half_written(home: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    told = outcome(process("scan", home, "-o", target, preexec_fn=limited(10_000)))
    assert (told.code, told.out) == (3, "")
    assert told.err == f"statemend: {target}: File too large; nothing was written\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]


def test_without_a_temporary_folder_a_store_with_a_log_cannot_be_copied(
    statemend: Statemend, home: Path
) -> None:
    (home / "state.db-wal").write_bytes(bytes(5000))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", "/nowhere")
        told = statemend("scan", home)
    assert (told.code, told.out) == (3, "")
    assert "no folder for temporary files" in told.err
    assert told.err.endswith("set TMPDIR\n")


def test_only_an_operator_who_asks_sees_a_traceback(
    statemend: Statemend, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("the text of a message")

    monkeypatch.setattr(engine, "take", broken)
    told = statemend("scan", home)
    assert (told.code, told.out) == (3, "")
    assert "the text of a message" not in told.err
    monkeypatch.setenv("STATEMEND_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        app.run(["scan", str(home)])
