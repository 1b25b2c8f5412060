"""The names that exports of statemend bear until they are whole.

A process that is killed leaves its export under such a name. It is no evidence: it may be cut anywhere, and
nothing has compared it with the store. It is nobody's to delete either, for the store may have changed since.
"""

from __future__ import annotations

import re
import secrets

#: Why such a file is not looked at.
BROKEN_OFF = "an export that was broken off; export the session again, or rename this to have it read"

_PARTIAL = re.compile(r"\..+\.[0-9a-f]{8}\.statemend-partial")


def partial_name(name: str) -> str:
    """A name, not used before, for the file that will be called ``name``."""
    return f".{name}.{secrets.token_hex(4)}.statemend-partial"


def is_partial(name: str) -> bool:
    """Whether a file of this name was begun and never finished."""
    return _PARTIAL.fullmatch(name) is not None
