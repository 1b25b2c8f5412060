"""The error tree. Each class carries the exit code that the command line gives for it.

StatemendError
├── UsageError          2  the request itself cannot be met: no such path, no store there
├── Undetermined        3  something could not be read or trusted
│   └── StoreUnreadable    the store, or a part of it
└── Refused             4  it could be done, and is not, to keep data safe
    └── StoreHeld          a live process holds the store

A message is one line: what, where, and what to do next.
"""

from __future__ import annotations

from typing import ClassVar


class StatemendError(Exception):
    """Base of every error that statemend raises on purpose."""

    exit_code: ClassVar[int] = 3


class UsageError(StatemendError):
    """The request cannot be met as given."""

    exit_code: ClassVar[int] = 2


class Undetermined(StatemendError):
    """Something could not be read or trusted, so no statement about it is made."""

    exit_code: ClassVar[int] = 3


class StoreUnreadable(Undetermined):
    """A store, or a part of it, could not be read."""


class Refused(StatemendError):
    """The operation was refused to keep data safe."""

    exit_code: ClassVar[int] = 4


class StoreHeld(Refused):
    """A live process holds the store."""
