"""Writing a Markdown or QMD export of one session message by message, whatever its size.

The bytes are those of ``markdown_render.render`` except in two places where Hermes' own writer spoils what it
writes: it puts the digest wherever a message quotes the placeholder of it, and it fails on a character
that UTF-8 cannot hold. Here the digest stands in the footer alone, and such a character is spelled out
(``\\ud83d``): the file then is not exact, and a comparison with the store says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from statemend.formats.artifact import Kind
from statemend.formats.markdown_render import (
    MESSAGES_HEADING,
    NO_MESSAGES,
    PENDING,
    closing,
    id_of,
    iso,
    opening,
    render_message,
)
from statemend.store.history import Message


def pieces(
    session: Mapping[str, Any], messages: Iterable[Message], *, count: int, kind: Kind, exported_at: float
) -> Iterator[bytes]:
    """The file of one session, in pieces of at most one message.

    ``session`` is its record; ``count`` says how many ``messages`` there are, for the file names the number
    before them. ``exported_at`` is epoch seconds. Raises ``ValueError`` when there is another number of them.
    """
    exported = iso(exported_at)
    declared = session.get("message_count")
    footer = closing(id_of(session), count, declared if isinstance(declared, int) else count, exported)
    digest = hashlib.sha256()
    for text in chain([opening(session, count, (), kind, exported)], _block(messages, count), [footer]):
        data = text.encode("utf-8", "backslashreplace")
        digest.update(data)
        yield data
    digest.update(f"{PENDING}`\n".encode())
    yield f"{digest.hexdigest()}`\n".encode()


def _block(messages: Iterable[Message], count: int) -> Iterator[str]:
    """The messages block. Its last message loses the empty lines behind it."""
    yield MESSAGES_HEADING
    waiting: str | None = None
    found = 0
    for message in messages:
        if waiting is not None:
            yield waiting
        waiting = render_message(message)
        found += 1
    if found != count:
        raise ValueError(f"{count} messages were announced and {found} came")
    yield (NO_MESSAGES if waiting is None else waiting.rstrip()) + "\n"
