from __future__ import annotations

import hashlib
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.messages import SESSION, START, message

from statemend.formats import markdown
from statemend.formats.artifact import Kind
from statemend.formats.markdown import Document
from statemend.formats.markdown_writer import pieces
from statemend.store.history import Message

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
CALLS = [{"id": "c1", "function": {"name": "look", "arguments": "{}"}}]
NOTHING: list[Message] = []


def written(*rows: Message, session: dict[str, Any] = SESSION, kind: Kind = Kind.MARKDOWN) -> bytes:
    return b"".join(pieces(session, rows, count=len(rows), kind=kind, exported_at=START + 60))


def whole(*rows: Message, session: dict[str, Any] = SESSION, kind: Kind = Kind.MARKDOWN) -> bytes:
    text = markdown.render(session, [("s1", list(rows))], kind=kind, exported_at=START + 60)
    return text.encode()


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), TEXT, st.booleans()), max_size=4))
@settings(max_examples=60)
def test_writes_what_hermes_writes(shown: list[tuple[str, str, bool]]) -> None:
    rows = [
        message(number, role, text, tool_calls=CALLS if calls else None)
        for number, (role, text, calls) in enumerate(shown, start=1)
    ]
    assert written(*rows) == whole(*rows)
    assert written(*rows, kind=Kind.QMD) == whole(*rows, kind=Kind.QMD)


@pytest.mark.parametrize(
    "odd",
    [{"title": None}, {"cwd": "/x\ny", "source": None}, {"ended_at": "never"}, {"archived": 1, "model": "m"}],
)
def test_writes_odd_sessions_alike(odd: dict[str, Any]) -> None:
    session = {**SESSION, **odd}
    assert written(message(1), session=session) == whole(message(1), session=session)


def test_a_quoted_placeholder_stays_as_it_is_and_the_digest_is_hermes_own() -> None:
    text = "`__SHA256_PLACEHOLDER__` and __SHA256_PLACEHOLDER__"
    data = written(message(1, content=text), message(2))
    assert text.encode() in data
    assert whole(message(1, content=text), message(2)) != data
    line = re.compile(rb"- SHA256 of exported body: `([0-9a-f]{64})`")
    (digest,) = line.findall(data)
    body = line.sub(b"- SHA256 of exported body: `pending`", data)
    assert hashlib.sha256(body).hexdigest().encode() == digest
    assert Document(data).damage is None


def test_a_character_that_utf8_cannot_hold_is_spelled_out() -> None:
    data = written(message(1, content="half of \ud83d"))
    assert b"half of \\ud83d\n" in data
    assert Document(data).damage is None


def test_a_count_that_is_no_number_is_not_repeated() -> None:
    data = written(message(1), session={**SESSION, "message_count": "9`\n"})
    assert b"- Source DB message count at export: `1`\n" in data


@pytest.mark.parametrize("count", [0, 2])
def test_another_number_of_messages_than_announced_is_an_error(count: int) -> None:
    with pytest.raises(ValueError, match=f"{count} messages were announced and 1 came"):
        list(pieces(SESSION, [message(1)], count=count, kind=Kind.MARKDOWN, exported_at=START))


def test_no_messages() -> None:
    assert written(*NOTHING) == whole(*NOTHING)
    assert Document(written(*NOTHING)).empty
