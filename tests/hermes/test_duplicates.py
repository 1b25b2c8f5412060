"""Releases accept a message twice, and read it twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.hermes.home import HermesHome, assistant, user

from statemend.audit.engine import audit

Homes = Callable[..., HermesHome]
SESSION = "20261110_090000_000011"


@pytest.mark.fires("MSG004")
@pytest.mark.near_miss("MSG004")
@pytest.mark.parametrize("release", ["0.19.0", "0.22.2"])
def test_a_message_that_is_stored_twice_is_read_twice(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    home.create_session(SESSION)
    for _ in range(2):
        home.append(SESSION, "user", "ok")
    home.append(SESSION, "assistant", "fine")
    home.stop()
    assert audit(home.path, rules=["MSG004"], now=home.now).findings == ()

    home.restart()
    at = home.now + 0.5
    first = home.append(SESSION, "user", "and now?", timestamp=at)
    home.append(SESSION, "user", "and now?", timestamp=at)
    read = home.store("get_messages_as_conversation", SESSION)
    home.stop()

    (finding,) = audit(home.path, rules=["MSG004"], now=home.now).findings
    assert finding.subject.message_ids == (first,)
    assert [message["content"] for message in read].count("and now?") == 2


@pytest.mark.parametrize(
    "release",
    [
        pytest.param("0.20.1", marks=pytest.mark.near_miss("MSG004")),
        pytest.param("0.21.4", marks=pytest.mark.near_miss("MSG004")),
        pytest.param("0.22.2", marks=pytest.mark.fires("MSG004")),
    ],
)
def test_a_branch_that_is_compacted_at_once_is_stored_twice_by_the_newest(
    hermes_home: Homes, release: str
) -> None:
    home = hermes_home(release)
    chat = home.chat(SESSION)
    chat.say(user("hello"), assistant("good day"))
    chat.branch()
    chat.turns(8, "garden")
    branch = chat.compact()
    read = [message["content"] for message in home.store("get_messages_as_conversation", branch)]
    home.stop()

    findings = audit(home.path, rules=["MSG004"], now=home.now).findings

    assert read.count("hello") == 1 + len(findings)
    assert [one.subject.session for one in findings] == ([branch] if release == "0.22.2" else [])
