"""The help of each verb is documentation: it has examples, and they are right."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.docs import parsing, shell
from tests.docs.blocks import PAGES, Block

from statemend.cli.app import EPILOG

_VERBS = dict(parsing.verbs())
_EXAMPLES = re.compile(r"^Examples?:\n((?:  .+\n?)+)", re.MULTILINE)


def _examples(text: str) -> list[list[str]]:
    found = _EXAMPLES.search(text)
    assert found is not None, "no examples"
    lines = found[1].splitlines()
    given = list(shell.statemends(Block("sh", found[1], 1)))
    assert len(given) >= len(lines), "a line that is no command"
    return given


@pytest.mark.parametrize("verb", sorted(_VERBS))
def test_each_verb_has_examples_that_can_be_said(verb: str) -> None:
    command: Any = _VERBS[verb]
    for words in _examples(command.help or ""):
        assert parsing.fault(words) is None, words


@pytest.mark.parametrize("verb", sorted(verb for verb in _VERBS if not hasattr(_VERBS[verb], "commands")))
def test_an_example_is_about_its_verb(verb: str) -> None:
    given = _examples(_VERBS[verb].help or "")
    assert any(words[: len(verb.split())] == verb.split() for words in given)


@pytest.mark.parametrize("verb", sorted(_VERBS))
def test_each_verb_is_on_a_page(verb: str) -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert f"statemend {verb} " in pages


def test_the_first_steps_can_be_said() -> None:
    lines = EPILOG.partition("Start here:\n")[2]
    given = list(shell.statemends(Block("sh", lines, 1)))
    assert len(given) == len(lines.splitlines())
    assert [parsing.fault(words) for words in given] == [None] * len(given)
