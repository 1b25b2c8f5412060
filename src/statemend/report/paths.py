"""Paths as a report holds them: as given, perhaps relative, compared without touching the file system."""

from __future__ import annotations

import os


def within(path: str, folder: str) -> bool:
    """Whether ``path`` is ``folder`` or lies below it, by name alone."""
    inner, outer = os.path.normpath(path), os.path.normpath(folder)
    if outer == os.curdir:
        return not os.path.isabs(inner) and inner.split(os.sep)[0] != os.pardir
    return inner == outer or inner.startswith(outer.rstrip(os.sep) + os.sep)


def note(home: str) -> str:
    """What a report says of its paths: nothing where the home was named by a whole path."""
    return (
        ""
        if os.path.isabs(home)
        else "Its paths are relative: run its commands in the folder where it was made."
    )


def relative(path: str, folder: str) -> str:
    """``path`` from ``folder``, which it lies in."""
    inner, outer = os.path.normpath(path), os.path.normpath(folder)
    if outer == os.curdir:
        return inner
    return inner[len(outer) :].lstrip(os.sep) or os.curdir
