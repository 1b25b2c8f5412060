"""The stable id of a finding."""

from __future__ import annotations

from statemend.audit.finding import finding_id


def test_the_id_of_a_finding_stays_and_tells_its_parts_apart() -> None:
    assert finding_id("ORP001", "s", None, "key") == "ORP001-bd7fae80c7"
    several = [("s",), ("s", ""), ("", "s"), ("s", "t"), ("st",), ("ü",), ("\udcfc",), ("\udcff",)]
    assert len({finding_id("ORP001", *parts) for parts in several}) == len(several)
    assert finding_id("ORP001", "s", None) == finding_id("ORP001", "s", "")
