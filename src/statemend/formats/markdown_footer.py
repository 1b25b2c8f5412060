"""The footer of a Markdown export: its counts, and whether its checksum holds.

Hermes' own verification has three quirks that make it reject files that are intact: it translates newlines
before hashing, it takes the first line that looks like its checksum line (a message may hold one), and it
fills the digest in wherever a message quotes the placeholder. None of them is damage; the check here
undoes them.
"""

from __future__ import annotations

import hashlib
import re

import msgspec

from statemend.formats.clock import epoch_of_iso
from statemend.formats.markdown_render import FOOTER_HEADING, PENDING, PLACEHOLDER

_MARK = f"\n{FOOTER_HEADING}\n\n- Session id: `".encode()
_FOOTER = re.compile(
    rb"\n## Export verification\n\n"
    rb"- Session id: `(?P<id>[^\n]*)`\n"
    rb"- Exported messages: `(?P<exported>\d+)`\n"
    rb"- Source DB message count at export: `(?P<source>[^\n`]*)`\n"
    rb"- Exported at: `(?P<at>[^\n`]*)`\n"
    rb"- SHA256 of exported body: `(?P<sha>[0-9a-f]{64})`\n?"
)
#: How the footer goes on behind the session id.
_LATER_LINES = (
    b"- Exported messages: `",
    b"- Source DB message count at export: `",
    b"- Exported at: `",
    b"- SHA256 of exported body: `",
)


class Footer(msgspec.Struct, frozen=True):
    """The verification block at the end of a file. Positions are bytes of the file with plain newlines.

    ``exported`` is the number of messages that the file says it holds, ``source_count`` the number it says
    the store held, ``exported_at`` epoch seconds, ``rest`` what follows the block (usually nothing).
    """

    session_id: str
    exported: int
    source_count: int | None
    exported_at: float | None
    sha256: str
    start: int
    sha_at: int
    end: int
    rest: bytes


def find_footer(data: bytes) -> Footer | None:
    """The last complete footer of a file with plain newlines, or ``None``."""
    start = data.rfind(_MARK)
    match = _FOOTER.match(data, start) if start >= 0 else None
    if match is None:
        return None
    source = match["source"]
    return Footer(
        session_id=match["id"].decode("utf-8", "surrogateescape"),
        exported=int(match["exported"]),
        source_count=int(source) if source.isdigit() else None,
        exported_at=epoch_of_iso(match["at"].decode("utf-8", "replace")),
        sha256=match["sha"].decode(),
        start=start,
        sha_at=match.start("sha"),
        end=match.end(),
        rest=data[match.end() :],
    )


def cut_footer(data: bytes, session_id: str) -> int | None:
    """Where a footer starts whose end is missing, or ``None`` when the file was cut earlier.

    A footer that names another session is text of a message.
    """
    start = data.rfind(_MARK)
    if start < 0:
        sizes = range(len(_MARK) - 1, 3, -1)
        return next((len(data) - size for size in sizes if data.endswith(_MARK[:size])), None)
    lines = data[start + len(_MARK) :].split(b"\n")
    expected = [f"{session_id}`".encode("utf-8", "surrogatepass"), *_LATER_LINES]
    if len(lines) > len(expected):
        return None
    whole = all(line.startswith(begin) for line, begin in zip(lines[:-1], expected, strict=False))
    last = expected[len(lines) - 1]
    return start if whole and (lines[-1].startswith(last) or last.startswith(lines[-1])) else None


def checksum_holds(data: bytes, footer: Footer) -> bool:
    """Whether the file (with plain newlines) is the one whose digest its footer carries.

    White space after the footer is left out, as is the lack of the last newline.
    """
    digest = footer.sha256.encode()
    if data.find(digest) == footer.sha_at:
        body = hashlib.sha256(memoryview(data)[: footer.sha_at])
        body.update(PENDING.encode() + b"`\n")
        return body.hexdigest() == footer.sha256
    # The placeholder stood in a message: everywhere the digest is now, the exporter saw the placeholder,
    # except that in backticks it hashed the word it hashes for itself.
    text = data[: footer.sha_at] + digest + b"`\n"
    hashed = text.replace(b"`" + digest + b"`", f"`{PENDING}`".encode())
    return hashlib.sha256(hashed.replace(digest, PLACEHOLDER.encode())).hexdigest() == footer.sha256
