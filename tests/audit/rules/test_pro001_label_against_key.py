"""Two profiles in one row: the one it is labelled with, and the one its key names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.audit.builder import HomeBuilder, facts
from tests.audit.houses import House

from statemend.audit.finding import Verdict

Build = Callable[..., HomeBuilder]
RULE = "PRO001"
pytestmark = [
    pytest.mark.built(
        "PRO001", "the releases that copy a wrong label do so from a process that changes profiles"
    )
]
CHAT = "telegram:dm:111"


def row(home: HomeBuilder, name: str, key: str, label: str | None) -> None:
    home.chat(name, 2, source="telegram", session_key=f"agent:{key}:{CHAT}", profile_name=label)


@pytest.mark.fires("PRO001")
def test_rows_that_name_two_profiles_are_told_by_the_pair(tmp_path: Path) -> None:
    house = House(tmp_path, profiles=("a", "b"))
    for name in ("one", "two"):
        row(house["a"], name, "a", "b")
    row(house["a"], "three", "a", "default")

    first, second = house.findings(RULE)

    assert [facts(each)["ids"] for each in (first, second)] in (
        [["one", "two"], ["three"]],
        [["three"], ["one", "two"]],
    )
    assert {each.verdict for each in (first, second)} == {Verdict.FAULT}
    assert {each.subject.store for each in (first, second)} == {str(house["a"].store)}


@pytest.mark.near_miss("PRO001")
@pytest.mark.parametrize(
    ("profile", "key", "label"),
    [
        ("work", "work", "work"),
        ("work", "work", None),
        ("work", "work", " "),
        ("work", "main", "work"),  # a gateway that serves this profile alone
        ("work", "main", None),
        ("work", "main", "default"),  # whose it is, is another question
        ("main", "main~", "main"),
        ("main", "main", "main"),
    ],
)
@pytest.mark.near_miss("PRO001")
def test_names_that_agree_say_nothing(tmp_path: Path, profile: str, key: str, label: str | None) -> None:
    house = House(tmp_path, profiles=(profile,))
    row(house[profile], "one", key, label)
    row(house.root, "two", "main", "default")
    house.root.chat("three", 2, session_key="room:1:2", profile_name=profile)
    house.root.chat("four", 2, session_key="agent:main", profile_name=profile)

    assert house.findings(RULE) == []


@pytest.mark.parametrize(
    ("key", "label", "profiles"),
    [("work", "main", ("work", "main")), ("main", "work", ("work", "main")), ("main~", "work", ("work",))],
)
def test_where_a_profile_is_called_main_nothing_is_decided(
    tmp_path: Path, key: str, label: str, profiles: tuple[str, ...]
) -> None:
    house = House(tmp_path, profiles=profiles)
    row(house.root, "one", key, label)

    (found,) = house.findings(RULE)

    assert found.verdict is Verdict.UNDECIDABLE


def test_a_label_of_another_profile_is_a_fault_beside_the_default_key_too(tmp_path: Path) -> None:
    house = House(tmp_path, profiles=("work", "other"))
    row(house.root, "one", "main", "work")
    row(house["work"], "two", "main", "other")

    assert [(each.subject.store, each.verdict) for each in house.findings(RULE)] == [
        (str(house.root.store), Verdict.FAULT),
        (str(house["work"].store), Verdict.FAULT),
    ]


@pytest.mark.parametrize(("key", "label"), [("main", "work"), ("work", "job")], ids=["label", "key"])
def test_the_old_name_of_a_renamed_profile_decides_nothing(tmp_path: Path, key: str, label: str) -> None:
    """Up to 0.21 the folder alone got the new name."""
    house = House(tmp_path, profiles=("job",))
    row(house["job"], "one", key, label)

    (found,) = house.findings(RULE)

    assert found.verdict is Verdict.UNDECIDABLE
    assert found.summary.endswith("this home has no profile work.")
    assert facts(found)["profiles that this home does not have"] == ["work"]


def test_a_stale_label_beside_the_key_of_the_stores_own_profile_is_a_fault(tmp_path: Path) -> None:
    house = House(tmp_path, profiles=("job",))
    row(house["job"], "one", "job", "work")
    row(house.root, "two", "main", "work")

    assert [each.verdict for each in house.findings(RULE)] == [Verdict.FAULT, Verdict.FAULT]


def test_a_store_of_which_nothing_says_whose_it_is(build: Build) -> None:
    """A label beside the default key may be that of its own profile; two other names never agree."""
    home = build("0.22.2")
    row(home, "one", "main", "work")
    assert home.findings(RULE) == []

    row(home, "two", "work", "other")
    (found,) = home.findings(RULE)
    assert facts(found)["ids"] == ["two"]


def test_the_id_stays_when_more_rows_come(tmp_path: Path) -> None:
    house = House(tmp_path)
    row(house["work"], "one", "work", "other")
    (before,) = house.findings(RULE)
    row(house["work"], "two", "work", "other")
    (after,) = house.findings(RULE)

    assert before.id == after.id


def test_a_release_without_labels_has_none_that_is_wrong(build: Build) -> None:
    assert build("0.18.2").result(RULE).status == "not applicable"


def test_hostile_names_are_shown_and_looked_up_nowhere(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.root.chat("one", 2, session_key="agent:../../work:telegram:dm:1", profile_name="x" * 500)
    house.root.chat("two", 2, session_key=b"agent:work:\xff", profile_name=7)

    (found,) = house.findings(RULE)

    assert len(found.summary) < 300
