"""How the releases are worded that a store is taken to be of."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import HomeBuilder

from statemend.audit.eras import heeding_marks, written_by
from statemend.store.connection import open_for_audit


@pytest.mark.parametrize(
    ("version", "releases", "heed"),
    [
        ("0.15.2", "0.13 to 0.15", "0.17 and newer; this store is of older ones, which heed none"),
        ("0.17.0", "0.16 and 0.17", "0.17 and newer"),
        ("0.22.2", "0.21.3 to 0.22", "0.17 and newer"),
    ],
)
def test_a_store_is_taken_for_one_of_the_releases_with_its_columns(
    build: Callable[..., HomeBuilder], version: str, releases: str, heed: str
) -> None:
    with open_for_audit(build(version).store) as store:
        assert written_by(store) == ("taken for a store of", f"{releases}, by its columns")
        assert heeding_marks(store) == ("releases that heed the mark", heed)
