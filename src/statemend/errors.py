"""The error tree. Each class carries the exit code that the command line gives for it.

StatemendError
├── UsageError          2  the request itself cannot be met: no such path, no store there
├── Undetermined        3  something could not be read or trusted
│   └── StoreUnreadable    the store, or a part of it
├── Refused             4  it could be done, and is not, to keep data safe
│   └── StoreHeld          a live process holds the store
├── RolledBack          5  a change failed and was taken back: the store is as it was
└── VerificationFailed  6  a change was committed, and what it promised does not hold

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


class RolledBack(StatemendError):
    """A change was begun and taken back whole: the store is as it was."""

    exit_code: ClassVar[int] = 5


class VerificationFailed(StatemendError):
    """A change was committed, and what it promised does not hold. It can be undone."""

    exit_code: ClassVar[int] = 6
