from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.messages import SESSION, START, message

from statemend.formats import markdown
from statemend.formats.artifact import Kind
from statemend.formats.markdown import Document, render_message
from statemend.formats.markdown_render import segment_heading
from statemend.formats.markdown_walk import Gap, Hit, Renderings, walk
from statemend.store.history import Message

#: What makes a naive reader stumble.
PIECES = (
    "### User — 2026-08-01T09:00:00.500000Z",
    "### Assistant — 2026-08-01T09:00:01Z",
    "\n\n\n",
    "\n\n",
    "\n",
    "one",
    "two",
    " ",
    "## Messages\n\n",
    "## Compression segment: s1\n\n",
    "## Tool calls\n\n```json\n[]\n```",
    "\n## Export verification\n\n- Session id: `s1`\n- Exported messages: `2`",
    "- SHA256 of exported body: `" + "a" * 64 + "`",
    '---\nsession_id: "s1"\n---\n',
    "__SHA256_PLACEHOLDER__",
    "\r\n",
    "画像\u2028",
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)


def block(rows: Sequence[Message]) -> bytes:
    text = markdown.render(SESSION, [("s1", rows)], kind=Kind.MARKDOWN, exported_at=START)
    return Document(text.encode()).block + b"\n\n"


def renderings(rows: Sequence[Message]) -> Renderings:
    return Renderings((row.id, render_message(row).encode()) for row in rows)


def rows_found(text: bytes, rows: Sequence[Message], expected: int | None = None) -> list[list[int] | None]:
    """The row ids of each step of a walk, ``None`` for a gap."""
    steps = walk(text, renderings(rows), expected=expected).steps
    return [list(step.rows) if isinstance(step, Hit) else None for step in steps]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), TEXTS), min_size=1, max_size=8))
def test_finds_every_message_whatever_it_says(contents: list[tuple[str, str]]) -> None:
    rows = [message(number, role, text) for number, (role, text) in enumerate(contents, start=1)]
    quoting = any("PLACEHOLDER" in text for _, text in contents)
    if quoting:
        rows = [row for row in rows if "PLACEHOLDER" not in row.content] or [message(1)]
    assert rows_found(block(rows), rows) == [[row.id] for row in rows]


@settings(max_examples=100, deadline=None)
@given(st.lists(TEXTS, min_size=2, max_size=8), st.data())
def test_finds_the_others_when_one_is_not_known(texts: list[str], data: st.DataObject) -> None:
    texts = [
        f"text {number}" + text.replace("__SHA256_PLACEHOLDER__", "") for number, text in enumerate(texts)
    ]
    rows = [message(number, content=text) for number, text in enumerate(texts, start=1)]
    unknown = data.draw(st.integers(1, len(rows)))
    known = [row for row in rows if row.id != unknown]
    found = [ids for ids in rows_found(block(rows), known) if ids is not None]
    assert found == [[row.id] for row in known]


def test_takes_the_longer_of_two_texts_that_begin_alike() -> None:
    short = message(1, content="one")
    long = message(2, content="one\n\n\ntwo", timestamp=short.timestamp)
    assert rows_found(block([short, long]), [long, short]) == [[1], [2]]
    assert rows_found(block([long]), [short, long]) == [[2]]
    assert rows_found(block([short]), [short, long]) == [[1]]


def test_takes_the_shorter_where_only_that_gives_the_declared_number() -> None:
    first = message(1, content="one")
    second = message(2, content="two")
    imitation = message(
        3, content=(render_message(first) + render_message(second)).split("\n\n", 1)[1].rstrip()
    )
    imitation = message(3, content=imitation.content, timestamp=first.timestamp)
    rows = [first, second, imitation]
    assert rows_found(block([first, second]), rows) == [[3]]
    assert rows_found(block([first, second]), rows, expected=2) == [[1], [2]]
    assert rows_found(block([imitation]), rows, expected=1) == [[3]]


def test_many_texts_under_one_heading_are_told_apart() -> None:
    same_time = [
        message(n, content=f"text {n}" + "\n\n\nmore" * (n % 3), timestamp=START) for n in range(1, 60)
    ]
    assert rows_found(block(same_time), list(reversed(same_time))) == [[row.id] for row in same_time]


def test_rows_that_render_alike_come_together() -> None:
    rows = [message(1, content="same", timestamp=START), message(2, content="same", timestamp=START)]
    assert rows_found(block(rows), rows) == [[1, 2], [1, 2]]


def test_a_stretch_that_matches_nothing_is_a_gap_with_its_place() -> None:
    rows = [message(1, content="one"), message(2, content="two"), message(3, content="three")]
    text = block(rows).replace(b"two", b"2")
    steps = walk(text, renderings(rows)).steps
    gap = steps[1]
    assert isinstance(gap, Gap)
    assert text[gap.start : gap.end].startswith(b"### User \xe2\x80\x94 2026-08-01T09:00:01Z\n\n2")
    assert [type(step) for step in steps] == [Hit, Gap, Hit]


def test_stops_at_the_next_segment_and_not_at_its_imitation() -> None:
    stop = segment_heading("s2").encode()
    rows = [message(1, content=f"x\n\n\n{stop.decode()}y"), message(2)]
    text = block(rows) + stop + b"### User\n\nhello\n\n\n"
    found = walk(text, renderings(rows), stop=stop)
    assert found.hits == 2
    assert text[found.end :].startswith(stop)
    resumed = walk(text, renderings(rows[:1]), stop=stop)
    assert [type(step) for step in resumed.steps] == [Hit, Gap]
    assert resumed.end == found.end


class Counting(Renderings):
    """Renderings that count how often they are asked."""

    asked = 0

    def at(self, text: bytes, position: int) -> list[bytes]:
        self.asked += 1
        return super().at(text, position)


@pytest.mark.parametrize("known", [True, False], ids=["all known", "none known"])
def test_looks_once_at_each_place_where_a_message_may_begin(known: bool) -> None:
    rows = [message(number, content=f"a\n\n\n### {number}") for number in range(500)]
    candidates = rows if known else [message(number, content="-") for number in range(500)]
    counting = Counting((row.id, render_message(row).encode()) for row in candidates)
    found = walk(block(rows), counting)
    assert found.hits == (500 if known else 0)
    assert counting.asked <= 2 * 500 + 1
