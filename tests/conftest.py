"""Fixtures for every test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import apsw
import pytest
from tests import marks

_DATA = Path(__file__).resolve().parent / "data"


def _leave_the_data_alone(connection: apsw.Connection) -> None:
    """Refuse a connection that may write to a file that every test shares: another worker that audits the
    file meanwhile would see a process that holds it."""
    try:
        name = connection.filename
    except UnicodeDecodeError:  # no name of ours
        return
    if name and not connection.readonly("main") and Path(name).is_relative_to(_DATA):
        raise AssertionError(f"{name}: copy it, or open it for reading only")


apsw.connection_hooks.append(_leave_the_data_alone)


@pytest.fixture(autouse=True)
def _marks_are_kept(request: pytest.FixtureRequest) -> Iterator[None]:
    with marks.kept(request.node):
        yield


@pytest.fixture(scope="session")
def stores() -> Mapping[str, Path]:
    """A store that each release made, by version, oldest first. Copy one before changing it."""
    found = (_DATA / "stores").glob("*.db")
    return dict(
        sorted(((path.stem, path) for path in found), key=lambda item: [*map(int, item[0].split("."))])
    )
