"""What single steps do when something is not as it should be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.playbook.conftest import run
from tests.playbook.test_runner import HEAD

from statemend.playbook import query


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
