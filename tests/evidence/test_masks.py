from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statemend.evidence.masks import hides

HIDDEN = {
    "nothing around": ("***", "hunter2"),
    "front": ("***@host", "secret@host"),
    "back": ("password=***", "password=abc def"),
    "head and tail": ("a sk-ant...z-AA b", "a sk-ant-api03-AAAz-AA b"),
    "two": ("x=*** y=***;", "x=1 y=2;"),
    "twice the same": ("*** and ***", "abc and abc"),
    "telephone": ("+4915****5678", "+4915112345678"),
    "block": ("k: [REDACTED PRIVATE KEY]\nend", "k: -----BEGIN\nx\n-----END\nend"),
    "all of it": ("[redaction-unavailable]", "any\ntext"),
    "newer": ("«redacted-secret» is set", "abc is set"),
    "unchanged dots": ("wait...what *** now", "wait...what abc now"),
}
OTHERWISE = {
    "no mark": ("one", "one two"),
    "the same": ("one", "one"),
    "another start": ("b=***", "a=1"),
    "another end": ("a=*** end", "a=1 END"),
    "another order": ("x=*** y=***", "y=2 x=1"),
    "more than one line": ("a=***", "a=1\nand more"),
    "shorter": ("abc***abc", "abcab"),
    "dots at the end": ("and so on...", "and so on and on"),
    "edited behind dots": ("wait...what happened", "wait...what occurred"),
}


@pytest.mark.parametrize(("shown", "original"), HIDDEN.values(), ids=HIDDEN)
def test_a_masked_text_is_told(shown: str, original: str) -> None:
    assert hides(shown, original)


@pytest.mark.parametrize(("shown", "original"), OTHERWISE.values(), ids=OTHERWISE)
def test_an_edited_text_is_no_masked_one(shown: str, original: str) -> None:
    assert not hides(shown, original)


WORDS = st.text(alphabet="abcxyz =:", min_size=1, max_size=8)


@given(st.lists(WORDS, min_size=2, max_size=6), st.text(alphabet="0123456789", min_size=1, max_size=20))
def test_any_secret_between_other_words_is_told(words: list[str], secret: str) -> None:
    assert hides("***".join(words), secret.join(words))
