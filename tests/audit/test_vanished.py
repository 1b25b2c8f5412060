"""Whether rows are missing from the time in which a continuation would have stored its first ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import START, HomeBuilder

from statemend.audit.vanished import rows_vanished

Build = Callable[..., HomeBuilder]
END = START + 100


def vanished(home: HomeBuilder) -> bool:
    told: list[bool] = []
    home.audit(
        "STO001", observe=lambda context, _: told.append(rows_vanished(context, context.graph.nodes["old"]))
    )
    return told[0]


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        ((), False),
        (("gone",), True),
        ((END + 10, "gone"), True),
        ((END + 10, "gone", END + 20), True),
        ((END + 10, END + 20), False),
        ((END + 3600, "gone", END + 9000), True),
        ((END + 3601, "gone", END + 9000), False),
        (("soon", "gone", END + 9000), True),
    ],
)
def test_a_gap_counts_until_a_row_is_from_after_that_time(
    build: Build, between: tuple[float | str, ...], expected: bool
) -> None:
    home = build()
    home.chat("old", 3, ended_at=END, end_reason="compression")
    home.session("other", started_at=END + 1)
    for at in between:
        home.message("other", content=str(at), timestamp=END if at == "gone" else at)
    home.sql("DELETE FROM messages WHERE content = 'gone'")
    assert vanished(home) is expected


def test_all_rows_are_missing_of_one_without_any(build: Build) -> None:
    home = build()
    home.session("old", ended_at=END, end_reason="compression")
    assert vanished(home)
