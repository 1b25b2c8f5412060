"""Files of known kinds that lie in a wrapping which is not undone here: packed, or in another encoding.

A shell of Windows writes what is redirected to a file in UTF-16, and people pack what they keep for long.
Such a file is not read, but whoever looks for what survives must hear that it is there.
"""

from __future__ import annotations

import bz2
import codecs
import lzma
import zlib
from collections.abc import Callable

#: So many wrappings are looked through.
_MOST_LAYERS = 3
#: A packed file may ask for any amount of it (bytes).
_MOST_MEMORY = 128 * 1024**2
_Look = Callable[[bytes, int], bytes]


def _from_utf_16(head: bytes, length: int) -> bytes:
    return head.decode("utf-16", "replace").encode("utf-8", "replace")[:length]


#: How a wrapping begins, what to do about it, and how to look into its first bytes.
_WRAPPINGS: tuple[tuple[bytes, str, _Look], ...] = (
    (codecs.BOM_UTF16_LE, "in UTF-16; save it as UTF-8 to have it read", _from_utf_16),
    (codecs.BOM_UTF16_BE, "in UTF-16; save it as UTF-8 to have it read", _from_utf_16),
    (
        b"\x1f\x8b\x08",
        "packed by gzip; unpack it to have it read",
        lambda h, n: zlib.decompressobj(31).decompress(h, n),
    ),
    (
        b"BZh",
        "packed by bzip2; unpack it to have it read",
        lambda h, n: bz2.BZ2Decompressor().decompress(h, n),
    ),
    (
        b"\xfd7zXZ\0",
        "packed by xz; unpack it to have it read",
        lambda h, n: lzma.LZMADecompressor(memlimit=_MOST_MEMORY).decompress(h, n),
    ),
)


def unwrapped(head: bytes) -> tuple[str, bytes] | None:
    """What to do about the wrapping of a file that begins with ``head``, and the first bytes of what is in it
    (no more than of the file); ``None`` where it has none that is known here."""
    advice, inner = None, head
    for _ in range(_MOST_LAYERS):
        found = next(((said, look) for mark, said, look in _WRAPPINGS if inner.startswith(mark)), None)
        if found is None:
            break
        try:
            inner = found[1](inner, len(head))
        except (zlib.error, OSError, ValueError, EOFError, lzma.LZMAError):
            return None
        advice = advice or found[0]
    return None if advice is None else (advice, inner)
