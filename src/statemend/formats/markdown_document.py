"""One Markdown or QMD export, opened up: what it says about itself, and where its messages are."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from statemend.formats.artifact import Kind, Section
from statemend.formats.clock import epoch_of_iso
from statemend.formats.damage import Damage
from statemend.formats.files import opened
from statemend.formats.markdown_footer import Footer, checksum_holds, cut_footer, find_footer
from statemend.formats.markdown_render import MESSAGES_HEADING, NO_MESSAGES

BOM = b"\xef\xbb\xbf"
KINDS = {"md": Kind.MARKDOWN, "qmd": Kind.QMD}
_CLOSING = b"\n---\n"


class Document:
    """One file and what it says about itself.

    ``data`` are the file's bytes with plain newlines and without a byte order mark; ``crlf`` tells that
    the file had Windows newlines. ``fields`` is the front matter. ``block_start`` and ``block_end`` bound
    the messages (after their heading, before the footer). A file without ``footer`` was cut."""

    def __init__(self, raw: bytes) -> None:
        data = raw.removeprefix(BOM)
        self.crlf = data.startswith(b"---\r\n")
        self.data = data.replace(b"\r\n", b"\n") if self.crlf else data
        self.fields, end = front_matter(self.data)
        self.session_id = str(self.fields.get("session_id") or "")
        self.lineage = _ids(self.fields.get("lineage_session_ids"))
        self.footer: Footer | None = find_footer(self.data)
        self.block_start = self._messages_start(end)
        self.block_end = self._messages_end()

    @classmethod
    def load(cls, path: Path, section: Section | None = None) -> Document:
        """Read a file that ``recognise`` accepted, or the one of several exports in it that makes up a
        section. Raises ``Undetermined`` when it cannot be read."""
        with opened(path) as file:
            file.seek(section.offset if section else 0)
            return cls(file.read(section.length if section else -1))

    @property
    def kind(self) -> Kind:
        return KINDS.get(str(self.fields.get("format")), Kind.MARKDOWN)

    @property
    def declared(self) -> int | None:
        """How many messages the front matter says the file holds."""
        return _count(self.fields.get("message_count"))

    @property
    def exported_at(self) -> float | None:
        return epoch_of_iso(self.fields.get("exported_at"))

    @property
    def segments(self) -> tuple[str, ...]:
        """The session ids that have a segment of their own; one id when the file has no segment headings."""
        return self.lineage if len(self.lineage) > 1 else (self.lineage or (self.session_id,))

    @property
    def block(self) -> bytes:
        """The messages, without the block's heading. Only the last message lacks its two empty lines."""
        return self.data[self.block_start : self.block_end]

    @property
    def messages(self) -> bytes:
        """The messages with the empty lines that the last one lost, so that all end alike."""
        return b"".join((memoryview(self.data)[self.block_start : self.block_end], b"\n\n"))

    @property
    def empty(self) -> bool:
        """Whether the file says that the session had no messages."""
        return self.declared == 0 and self.block.strip() == NO_MESSAGES.encode()

    @cached_property
    def damage(self) -> str | None:
        """What is wrong with the file itself, or ``None``."""
        damage = Damage()
        footer = self.footer
        if footer is None:
            damage.whole("truncated: the file ends before its footer is complete")
        elif not checksum_holds(self.data, footer):
            damage.whole("checksum mismatch: the file was altered after it was written")
        elif footer.exported != self.declared or footer.session_id != self.session_id:
            damage.whole("its front matter and its footer disagree")
        if footer is not None and footer.rest.strip():
            damage.whole("text follows the footer")
        return damage.phrase()

    def _messages_start(self, position: int) -> int:
        title = self.fields.get("title") or self.session_id
        expected = ["", f"# {title}\n", f"Session ID: `{self.session_id}`\n"]
        if self.fields.get("source"):
            expected.append(f"Source: `{self.fields['source']}`\n")
        if self.fields.get("cwd"):
            expected.append(f"Working directory: `{self.fields['cwd']}`\n")
        head = ("\n".join(expected) + "\n" + MESSAGES_HEADING).encode("utf-8", "surrogatepass")
        if self.data.startswith(head, position):
            return position + len(head)
        found = self.data.find(b"\n" + MESSAGES_HEADING.encode(), position)
        return found + 1 + len(MESSAGES_HEADING) if found >= 0 else len(self.data)

    def _messages_end(self) -> int:
        if self.footer is not None:
            end = self.footer.start
        else:
            cut = cut_footer(self.data, self.session_id)
            end = len(self.data) if cut is None else cut
        return max(end, self.block_start)


def front_matter(data: bytes) -> tuple[dict[str, Any], int]:
    """The fields at the start of a file, and the place behind their closing line (the end of a cut file)."""
    closing = data.find(_CLOSING)
    lines = data[: closing if closing >= 0 else len(data)].decode("utf-8", "surrogateescape").split("\n")
    if closing < 0:
        lines.pop()  # it may be cut
    fields: dict[str, Any] = {}
    for line in lines[1:]:
        key, colon, value = line.partition(": ")
        if colon:
            fields[key] = _value(value)
    return fields, closing + len(_CLOSING) if closing >= 0 else len(data)


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return text


def _ids(value: Any) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
