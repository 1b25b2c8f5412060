"""Fixtures for every test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests import marks


@pytest.fixture(autouse=True)
def _marks_are_kept(request: pytest.FixtureRequest) -> Iterator[None]:
    with marks.kept(request.node):
        yield


@pytest.fixture(scope="session")
def stores() -> Mapping[str, Path]:
    """A store that each release made, by version, oldest first. Copy one before changing it."""
    found = (Path(__file__).parent / "data" / "stores").glob("*.db")
    return dict(
        sorted(((path.stem, path) for path in found), key=lambda item: [*map(int, item[0].split("."))])
    )
