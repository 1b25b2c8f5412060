from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable

import pytest
from tests.cli.conftest import Outcome

import statemend as package
from statemend.cli import scan

VERBS = ("scan", "show", "explain", "rules")


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


def test_the_version_is_told(statemend: Callable[..., Outcome]) -> None:
    assert statemend("--version") == Outcome(0, f"statemend {package.__version__}\n", "")


def test_the_start_loads_nothing_heavy() -> None:
    heavy = ("apsw", "jinja2", "msgspec", "rich", "selectolax", "sqlglot", "yaml", "statemend.audit.engine")
    told = python("-c", f"import sys, statemend.cli.app; print([n for n in {heavy!r} if n in sys.modules])")
    assert told.stdout == "[]\n", told.stderr


def test_without_a_verb_the_help_is_shown_and_the_code_says_usage(statemend: Callable[..., Outcome]) -> None:
    told = statemend()
    assert told.code == 2
    assert told.out.startswith("Usage: statemend")
    assert all(verb in told.out for verb in VERBS)


@pytest.mark.parametrize("group", ["cleanup", "playbook"])
def test_a_group_without_a_verb_shows_its_help(statemend: Callable[..., Outcome], group: str) -> None:
    told = statemend(group)
    assert (told.code, told.err) == (2, "")
    assert told.out == statemend(group, "--help").out


@pytest.mark.parametrize("verb", [*VERBS, "plan", "apply", "undo", "export", "playbook run", "cleanup plan"])
def test_help_fits_a_terminal_of_80_columns(statemend: Callable[..., Outcome], verb: str) -> None:
    told = statemend(*verb.split(), "--help").out
    prose = [line for line in told.splitlines() if not line.startswith("    statemend ")]
    assert max(map(len, prose)) <= 80


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_and_option_is_documented(statemend: Callable[..., Outcome], verb: str) -> None:
    told = statemend(verb, "--help")
    assert told.code == 0
    assert told.err == ""
    options = re.findall(r"^  (?:-\w, )?--[\w-]+.*?(?=^  -|\Z)", told.out, flags=re.MULTILINE | re.DOTALL)
    assert options
    assert all(re.search(r"[a-z]\.", option) for option in options), told.out


@pytest.mark.parametrize("verb", ["scan", "show", "explain"])
def test_help_gives_examples_that_parse(statemend: Callable[..., Outcome], verb: str) -> None:
    told = statemend(verb, "--help")
    examples = re.findall(rf"^    statemend {verb} (.*)$", told.out, flags=re.MULTILINE)
    assert examples
    for example in examples:
        outcome = statemend(verb, *example.partition(" |")[0].split())
        assert "no such option" not in outcome.err
        assert "unexpected" not in outcome.err


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("scan",), "missing argument 'HOME'"),
        (("scan", "x", "--nope"), "no such option: --nope"),
        (("scan", "x", "--format", "pdf"), "pdf"),
        (("frobnicate",), "frobnicate"),
        (("scna",), "no such command 'scna'; did you mean 'scan'; see `statemend --help`"),
        (("scan", "/no/such/home"), "/no/such/home: no such file or folder"),
        (("explain", "XYZ999"), "no rule 'XYZ999'"),
        (("explain", "lif"), "'lif' is a family of rules; explain one of them: LIF001, LIF002, LIF003, "),
        (("explain", "profiles"), "'profiles' is a family of rules"),
        (
            ("rehearse", "/no/such/plan"),
            "/no/such/plan: no such file; name a plan",
        ),
        (("apply", "/"), "/: not a regular file; name a plan that `statemend plan` wrote"),
        (("cleanup", "apply", "/no/such/plan"), "/no/such/plan: no such file; name a plan that"),
        (("scan", "/no\x1b[31m/such"), "/no[U+001B][31m/such"),
    ],
)
def test_a_wrong_request_is_one_line_and_code_2(
    statemend: Callable[..., Outcome], arguments: tuple[str, ...], what: str
) -> None:
    told = statemend(*arguments)
    assert told.code == 2
    assert told.out == ""
    assert told.err.startswith("statemend: ")
    assert told.err.count("\n") == 1
    assert what in told.err


def test_an_unexpected_error_is_one_line_with_the_way_to_see_more(
    statemend: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, demo: object
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("the text of a message")

    monkeypatch.setattr("statemend.report.produce.produce", broken)
    monkeypatch.delenv("STATEMEND_TRACEBACK", raising=False)
    told = statemend("scan", demo)
    assert told.code == 3
    assert told.err == (
        "statemend: unexpected ZeroDivisionError; set STATEMEND_TRACEBACK=1 to see where, and report it\n"
    )
    monkeypatch.setenv("STATEMEND_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        statemend("scan", demo)


def test_an_interrupt_is_no_traceback(
    statemend: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, demo: object
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("statemend.report.produce.produce", interrupted)
    assert statemend("scan", demo) == Outcome(130, "", "statemend: interrupted before it was done\n")


@pytest.mark.parametrize("arguments", ["scan --format html {home}", "rules", "--help"])
def test_a_reader_that_goes_away_is_no_error(demo: object, arguments: str) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write) as closed:
        process = subprocess.run(
            [sys.executable, "-m", "statemend", *arguments.format(home=demo).split()],
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert process.stderr == ""
    assert process.returncode in (0, 1)


def test_it_runs_as_a_module() -> None:
    told = python("-m", "statemend", "rules")
    assert told.returncode == 0
    assert "EXP" in told.stdout or "STO001" in told.stdout


def test_formats_of_scan_are_those_that_a_name_tells() -> None:
    assert set(scan._BY_SUFFIX.values()) == set(scan.Format) - {scan.Format.TABLE, scan.Format.SUMMARY}


def test_an_interrupt_while_the_command_line_loads_is_no_traceback() -> None:
    told = python(
        "-c",
        "import builtins, runpy, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a job in the background ignores it
        "loading = builtins.__import__\n"
        "def interrupted(name, *rest, **more):\n"
        "    if name == 'typer':\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    return loading(name, *rest, **more)\n"
        "builtins.__import__ = interrupted\n"
        "runpy.run_module('statemend', run_name='__main__')",
    )
    assert (told.returncode, told.stdout) == (130, "")
    assert told.stderr == "statemend: interrupted before it was done\n"
