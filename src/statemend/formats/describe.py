"""What the first bytes of a file look like that is no known kind, in a few words and without showing them."""

from __future__ import annotations

import re

from statemend.formats import files, json_document, json_lines

_SIGNATURES = (
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\x1f\x8b", "gzip"),
    (b"PK\x03\x04", "a zip archive"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\0", "xz"),
    (b"(\xb5/\xfd", "Zstandard"),
    (b"%PDF-", "a PDF document"),
    (b"\x89PNG\r\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"RIFF", "sound, video or a picture (RIFF)"),
    (b"OggS", "sound (Ogg)"),
    (b"\x7fELF", "a program"),
    (b"#!", "a script"),
)
_PAGE = re.compile(rb"\s*<(?:!doctype html|html)", re.IGNORECASE)
_XML = re.compile(rb"\s*<\?xml")


def describe(head: bytes) -> str:
    """What ``head``, the first bytes of a file, begins."""
    for signature, words in _SIGNATURES:
        if head.startswith(signature):
            return words
    text = head.removeprefix(files.BYTE_ORDER_MARK)
    if not head:
        return "nothing"
    if not text.strip(b"\0"):
        return "zeroes"
    if b"\0" in head:
        return "binary data"
    if text.lstrip().startswith(b"{"):
        return _object(head)
    if text.lstrip().startswith(b"["):
        return "perhaps a JSON array"
    if _PAGE.match(text):
        return "an HTML page"
    if _XML.match(text):
        return "XML"
    try:
        text[:-4].decode("utf-8")
    except UnicodeDecodeError:
        return "text that is not UTF-8, or binary data"
    return "text"


def _object(head: bytes) -> str:
    line = json_lines.first(head)
    members = json_document.opening(head) if line is None else line
    if not members and line is None:
        return "perhaps a JSON object"
    count = f"{len(members)} member{'' if len(members) == 1 else 's'}"
    if line is not None and b"\n" in head.strip():
        return f"lines of JSON, the first an object with {count}"
    return f"a JSON object with {count}"
