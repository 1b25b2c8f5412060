"""What two stores have of one session, counted row by row."""

from __future__ import annotations

from collections.abc import Callable

from tests.audit.builder import START, HomeBuilder

from statemend.audit.twins import Twins, compare
from statemend.store.connection import open_for_audit

Build = Callable[..., HomeBuilder]


def compared(here: HomeBuilder, there: HomeBuilder) -> Twins:
    with open_for_audit(here.store) as one, open_for_audit(there.store) as other:
        return compare(one, other, "same")


def test_copies_are_counted_and_what_was_stored_twice_in_one_of_them_too(build: Build) -> None:
    here, there = build(name="here"), build("0.22.2", name="there")
    for home in (here, there):
        home.chat("same", 4)
    assert compared(here, here) == Twins((), (), 4)
    assert compared(here, there) == Twins((), (), 4)

    twice = [there.message("same", content="again", timestamp=START + 50) for _ in range(3)]
    here.message("same", content="again", timestamp=START + 50)

    assert compared(here, there) == Twins((), tuple(twice[1:]), 5)
    assert compared(there, here) == Twins(tuple(twice[1:]), (), 5)
    only_here = here.message("same", content="other", timestamp=START + 60)
    assert compared(here, there) == Twins((only_here,), tuple(twice[1:]), 5)
