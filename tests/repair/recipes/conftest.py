"""Fixtures of the recipe tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.audit.builder import HomeBuilder


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., HomeBuilder]:
    """Make a home: ``build("0.19.0")`` has that release's store without rows."""

    def make(version: str = "0.19.0", *, name: str = "home") -> HomeBuilder:
        return HomeBuilder(tmp_path / name, version)

    return make
