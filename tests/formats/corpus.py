"""The real exports under ``tests/data/exports``, and the store that each release made them from."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from statemend.store.connection import Store, open_for_audit

EXPORTS = Path(__file__).parent.parent / "data" / "exports"
VERSIONS = ("0.13.0", "0.16.0", "0.18.2", "0.19.0", "0.20.1", "0.22.2")
#: The releases that write more than JSONL.
READABLE = VERSIONS[2:]


@contextmanager
def store_of(version: str, folder: Path) -> Iterator[Store]:
    """The store that the exports of ``version`` were made from, opened from a copy in ``folder``."""
    copy = folder / "state.db"
    shutil.copyfile(EXPORTS / version / "state.db", copy)
    with open_for_audit(copy) as store:
        yield store


def files(version: str, pattern: str) -> list[Path]:
    """The exports of one release that match, in a stable order; never none."""
    found = sorted((EXPORTS / version).glob(pattern))
    assert found, f"no {pattern} of {version}"
    return found
