"""How findings name files, and the commands that they tell to run next."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.audit.builder import HomeBuilder

from statemend.audit.context import Context
from statemend.evidence.inventory import find_home, take
from statemend.store.bundle import inspect


@pytest.mark.parametrize("hostile", ["it's; rm -rf /", "$(reboot)", "two words", "new\nline", "ünï"])
def test_a_command_quotes_what_it_is_given(hostile: str) -> None:
    assert shlex.split(Context.command("show", "state.db", hostile)) == [
        "statemend",
        "show",
        "state.db",
        hostile,
    ]


def test_a_command_does_not_take_an_id_for_an_option() -> None:
    assert Context.command("show", "state.db", "--live") == "statemend show -- state.db --live"


def test_a_command_names_what_it_writes_before_what_it_reads() -> None:
    assert (
        Context.command("export", "s.db", "-x", output="my files")
        == "statemend export -o 'my files' -- s.db -x"
    )


def test_a_file_of_the_home_is_named_from_there_and_any_other_in_full(
    build: Callable[..., HomeBuilder], tmp_path: Path
) -> None:
    home = build(empty=False)
    found = find_home(home.root)
    context = Context(home=found, bundle=inspect(home.store), store=None, inventory=take(found), now=0.0)

    assert context.lasting_name(str(home.root / "logs" / "agent.log")) == "logs/agent.log"
    assert context.lasting_name(str(tmp_path / "exports" / "a.jsonl")) == str(tmp_path / "exports/a.jsonl")
