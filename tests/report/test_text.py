from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statemend.report import text

ANYTHING = st.text(alphabet=st.characters(), max_size=60)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain", "plain"),
        ("a\nb\tc", "a␊b␉c"),
        ("\x1b[31mred", "[U+001B][31mred"),
        ("safe\u202egnp.exe", "safe[U+202E]gnp.exe"),
        ("zero\u200bwidth", "zero[U+200B]width"),
        ("\udc80", "[U+DC80]"),
        ("\u3164", "[U+3164]"),
        ("👩\u200d💻", "👩\u200d💻"),
        ("a\u200db", "a[U+200D]b"),
        ("שלום", "שלום"),
        ("e" + "\u0301" * 9, "e" + "\u0301" * 3 + "[+6 marks]"),
    ],
)
def test_a_character_that_would_act_is_shown_by_its_code_point(raw: str, shown: str) -> None:
    assert text.visible(raw) == shown


def test_lines_are_kept_on_request_alone() -> None:
    assert text.visible("a\n\tb\x00", lines=True) == "a\n\tb[U+0000]"


@given(ANYTHING)
def test_nothing_shown_is_a_control_or_a_direction(raw: str) -> None:
    shown = text.visible(raw)
    assert not [
        character
        for character in shown
        if unicodedata.category(character) in ("Cc", "Cs", "Co", "Cn", "Zl", "Zp")
        or character in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\ufeff"
    ]
    shown.encode()


def test_a_long_text_says_how_long_it_is() -> None:
    assert text.clip("x" * 10_000, 20) == "x" * 20 + "… (10,000 characters)"
    assert text.clip("x" * 20, 20) == "x" * 20


@given(ANYTHING)
def test_every_text_can_be_encoded(raw: str) -> None:
    text.encodable(raw).encode()


def test_ids_are_told_as_ranges() -> None:
    assert text.ranges([9, 3, 4, 5, 7, 3]) == "3–5, 7, 9"
    assert text.ranges(range(0, 100, 2), limit=2) == "0, 2 and 48 more"
    assert text.ranges([]) == ""


@given(st.sets(st.integers(0, 300)))
def test_ranges_lose_no_id(ids: set[int]) -> None:
    told: set[int] = set()
    for span in text.ranges(list(ids), limit=1000).split(", ") if ids else []:
        low, _, high = span.partition("–")
        told.update(range(int(low), int(high or low) + 1))
    assert told == ids


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1790000000.75, "2026-09-21T14:13:20Z"),
        (8e252, None),
        (float("nan"), None),
        ("yesterday", None),
        (True, None),
        (None, None),
        (-1, "1969-12-31T23:59:59Z"),
    ],
)
def test_only_a_time_a_calendar_knows_becomes_a_time(at: object, shown: str | None) -> None:
    assert text.iso(at) == shown


def test_a_time_reads_back() -> None:
    assert text.seconds("2026-09-21T14:13:20Z") == 1790000000
    assert text.seconds("2026-09-21 14:13:20,500") == 1790000000.5
    assert text.seconds("soon") is None


def test_the_time_of_the_report_can_be_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")
    assert text.generated_at(5.0) == "2026-09-21T14:13:20Z"
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert text.generated_at(5.0) == "1970-01-01T00:00:05Z"


@pytest.mark.parametrize(
    ("number", "shown"), [(0, "0 B"), (999, "999 B"), (88_120_320, "88.1 MB"), (1_200_000_000, "1.2 GB")]
)
def test_sizes_are_for_people(number: int, shown: str) -> None:
    assert text.size(number) == shown


def test_lists_end_with_what_was_left_out() -> None:
    assert text.listed(["a"]) == "a"
    assert text.listed(["a", "b"]) == "a and b"
    assert text.listed("abcde", 2) == "a, b and 3 more"
