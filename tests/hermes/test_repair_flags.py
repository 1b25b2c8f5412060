"""After archived rows that came to life are put back, the releases read what they read before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.hermes.home import HermesHome
from tests.hermes.judging import digest, repaired

from statemend.audit.engine import audit
from statemend.repair.run import State
from statemend.repair.undo import undo

Homes = Callable[..., HermesHome]
SESSION = "20261110_090000_000011"


@pytest.mark.parametrize("release", ["0.19.0", "0.20.1"])
def test_the_model_reads_what_it_read_before(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    chat = home.chat(SESSION)
    chat.turns(10, "garden")
    chat.compact()
    read = home.store("get_messages_as_conversation", SESSION)
    first = home.value("SELECT MIN(id) FROM messages WHERE compacted = 1", [])
    home.store("restore_rewound", SESSION, first)
    assert len(home.store("get_messages_as_conversation", SESSION)) > len(read)

    repaired(home, {"rearchive": "archive"})

    assert home.store("get_messages_as_conversation", SESSION) == read
    home.append(SESSION, "user", "And now?")
    home.stop()
    assert audit(home.path, rules=["MSG", "CNT"], now=home.now).findings == ()


@pytest.mark.parametrize("release", ["0.19.0", "0.20.1"])
def test_it_is_taken_back_exactly(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    chat = home.chat(SESSION)
    chat.turns(10, "garden")
    chat.compact()
    home.store("restore_rewound", SESSION, home.value("SELECT MIN(id) FROM messages WHERE compacted = 1", []))
    before = digest(home)
    run = repaired(home, {"rearchive": "archive"})
    assert digest(home) != before

    assert undo(Path(run.folder), now=home.now).state is State.UNDONE

    assert digest(home) == before
