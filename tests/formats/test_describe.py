from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statemend.formats.describe import describe


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"", "nothing"),
        (b"\0\0\0", "zeroes"),
        (b"\1\0\2", "binary data"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"SQLite format 3\0x", "an SQLite database"),
        (b"\xef\xbb\xbfhello", "text"),
        ("hällo wörld".encode("latin-1") * 4, "text that is not UTF-8, or binary data"),
        (b"  <!DOCTYPE html><p>", "an HTML page"),
        (b"<?xml version='1'?>", "XML"),
        (b"[1, 2", "perhaps a JSON array"),
        (b'{"a": 1, "b": 2}', "a JSON object with 2 members"),
        (b'{"a": 1}\n{"a": 2}\n', "lines of JSON, the first an object with 1 member"),
        (b'{\n  "a": 1,\n  "b": [1, 2', "a JSON object with 1 member"),
        (b"{not json", "perhaps a JSON object"),
    ],
)
def test_describes_without_showing(head: bytes, words: str) -> None:
    assert describe(head) == words


@given(st.binary(max_size=200))
def test_any_bytes_can_be_described(head: bytes) -> None:
    assert describe(head)
