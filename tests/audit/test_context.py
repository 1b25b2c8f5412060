"""The commands that findings tell to run next."""

from __future__ import annotations

import shlex

import pytest

from statemend.audit.context import Context


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
