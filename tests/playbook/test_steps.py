"""What single steps do when something is not as it should be."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import Any, get_args, get_type_hints

import apsw
import pytest
from tests.playbook.conftest import run
from tests.playbook.test_runner import HEAD

from statemend.playbook import query, steps
from statemend.playbook.env import Env, Outcome
from statemend.playbook.model import Step


def test_an_answer_of_a_store_that_was_written_to_meanwhile_is_none(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The original is read as a file that stands still."""
    real = query.ask

    def ask(*arguments: Any) -> query.Answer:
        answer = real(*arguments)
        writer = apsw.Connection(str(home / "state.db"))
        writer.execute("UPDATE messages SET timestamp = timestamp + 1")
        writer.close()
        return answer

    monkeypatch.setattr(query, "ask", ask)
    text = HEAD + "  - {do: check, sql: SELECT count(*) FROM messages, expect: rows, message: None.}\n"
    (step,) = run(text, home).steps
    assert (step.state.value, step.exit_code) == ("failed", 3)
    assert "it changed while it was read" in step.summary


def test_each_kind_of_step_is_done_by_the_module_of_its_name() -> None:
    modules = {each.name: f"{steps.__name__}.{each.name}" for each in pkgutil.iter_modules(steps.__path__)}
    kinds = {kind.__struct_config__.tag: kind for kind in get_args(Step)}
    assert modules.keys() == kinds.keys()
    for name, module in modules.items():
        hints = get_type_hints(importlib.import_module(module).run)
        assert hints == {"step": kinds[name], "env": Env, "return": Outcome}
