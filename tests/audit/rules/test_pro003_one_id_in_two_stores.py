"""One session id in two stores of a home, told apart by what each of them has."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.audit import variants
from tests.audit.builder import HomeBuilder, facts
from tests.audit.houses import House

from statemend.audit.engine import Audit, audit, survey
from statemend.audit.finding import Finding, Severity, Verdict

RULE = "PRO003"


def copied(house: House, *names: str, turns: int = 4) -> None:
    """Sessions of the home that its profiles have too, row for row."""
    for name in names:
        for home in (house.root, *house.profiles.values()):
            home.chat(name, turns)


def only(house: House) -> Finding:
    (found,) = house.findings(RULE)
    return found


@pytest.mark.fires("PRO003")
def test_each_has_messages_that_the_other_lacks(tmp_path: Path) -> None:
    house = House(tmp_path)
    copied(house, "one", "two")
    here = house["work"].turns("one", 2, timestamp=1_790_000_500.0)
    there = house.root.turns("one", 1, timestamp=1_790_000_700.0)
    house["work"].sql(
        "UPDATE sessions SET title = 'what work calls it', end_reason = 'cli_close' WHERE id = 'one'"
    )

    split, copies = house.findings(RULE)

    assert (split.verdict, split.severity) == (Verdict.UNDECIDABLE, Severity.HIGH)
    assert (split.subject.store, split.subject.session) == (str(house["work"].store), "one")
    assert split.subject.message_ids == tuple(here)
    told = facts(split)
    assert told["the other store"] == str(house.root.store)
    assert told["rows that both have"] == 4
    assert (told["rows that only this store has"], told["rows that only the other has"]) == (2, 1)
    assert told["their ids there"] == list(map(str, there))
    assert told["title here"] == "what work calls it"
    assert "title there" not in told
    assert (told["end reason here"], told["source here"]) == ("cli_close", "cli")
    assert facts(copies)["ids"] == ["two"]


def test_copies_are_one_leftover(tmp_path: Path) -> None:
    house = House(tmp_path)
    copied(house, "one", "two", "three")

    found = only(house)

    assert (found.verdict, found.severity) == (Verdict.LEFTOVER, Severity.INFO)
    assert facts(found)["of these the same in both"] == 3


@pytest.mark.parametrize("longer", ["here", "there"])
def test_one_has_all_that_the_other_has(tmp_path: Path, longer: str) -> None:
    house = House(tmp_path)
    copied(house, "one", "two")
    (house["work"] if longer == "here" else house.root).turns("one", 3)

    found = only(house)

    assert (found.verdict, found.severity) == (Verdict.LEFTOVER, Severity.LOW)
    assert facts(found)[f"ids of those longer {longer}"] == ["one"]
    assert "never the longer" in found.remedy.text


def test_a_row_without_messages_has_nothing_of_its_own(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.root.session("one")
    house["work"].chat("one", 4)

    assert facts(only(house))["rows that only this store has"] == 4


@pytest.mark.near_miss("PRO003")
def test_the_same_words_in_other_sessions_are_no_copy(tmp_path: Path) -> None:
    house = House(tmp_path, profiles=("a", "b"))
    for name, home in (("one", house.root), ("two", house["a"]), ("three", house["b"])):
        home.session(name)
        home.message(name, "user", "yes", timestamp=1_790_000_000.0)
    house["b"].message("one", "user", "whose row is elsewhere")

    assert house.findings(RULE) == []


def test_flags_and_the_order_of_keys_are_no_content(tmp_path: Path) -> None:
    house = House(tmp_path)
    for home, call in ((house.root, '{"a": 1, "b": 2}'), (house["work"], '{"b":2,"a":1}')):
        home.session("one")
        home.message("one", "assistant", "x", tool_calls=f"[{call}]")
        home.turns("one", 2)
    house.root.sql("UPDATE messages SET active = 0, compacted = 1")

    assert facts(only(house))["of these the same in both"] == 1


def test_a_text_that_was_changed_is_two(tmp_path: Path) -> None:
    house = House(tmp_path)
    copied(house, "one")
    ((changed,),) = house.root.sql("SELECT id FROM messages WHERE content = 'turn 1 of one'")
    house.root.sql("UPDATE messages SET content = 'changed' WHERE id = ?", bindings=(changed,))

    found = only(house)

    assert found.subject.message_ids == (changed,)
    assert facts(found)["their ids there"] == [str(changed)]


def test_a_message_that_is_there_twice_counts_twice(tmp_path: Path) -> None:
    house = House(tmp_path)
    for home, times in ((house.root, 3), (house["work"], 2)):
        home.session("one")
        for _ in range(times):
            home.message("one", "user", "yes", timestamp=1_790_000_000.0)
        home.message("one", "user", "again", timestamp=1_790_000_001.0)

    assert facts(only(house))["rows that only the other has"] == 1


def test_three_stores_are_compared_in_pairs(tmp_path: Path) -> None:
    house = House(tmp_path, profiles=("a", "b"))
    copied(house, "one")
    house["b"].turns("one", 1, timestamp=1_790_000_900.0)
    house["a"].turns("one", 1, timestamp=1_790_000_800.0)

    found = house.findings(RULE)

    assert len({finding.id for finding in found}) == 3
    pairs = {(Path(f.subject.store).parent.name, facts(f)["the other store"]): f.verdict for f in found}
    assert pairs == {
        ("a", str(house.root.store)): Verdict.LEFTOVER,
        ("b", str(house.root.store)): Verdict.LEFTOVER,
        ("b", str(house["a"].store)): Verdict.UNDECIDABLE,
    }


def test_stores_of_other_releases_are_compared(tmp_path: Path) -> None:
    house = House(tmp_path, "0.22.2")
    old = HomeBuilder(tmp_path / "profiles" / "old", "0.13.0")
    for home in (house.root, old):
        home.session("one")
        home.message("one", "user", "the same", timestamp=1_790_000_000.0)

    assert facts(house.findings(RULE)[0])["of these the same in both"] == 1


@pytest.mark.parametrize("variant", ["utf-16le", "utf-16be"])
def test_stores_of_other_encodings_are_compared(tmp_path: Path, variant: str) -> None:
    house = House(tmp_path)
    house.root.session("ünï-✓")
    house.root.message("ünï-✓", "user", "größer 🐉", timestamp=1_790_000_000.0)
    house["work"].store.unlink()
    variants.copy(house.root.store, house["work"].store, variants.VARIANTS[variant])
    assert facts(only(house))["of these the same in both"] == 1

    house["work"].message("ünï-✓", "user", "more", timestamp=1_790_000_100.0)
    house.root.message("ünï-✓", "user", "other", timestamp=1_790_000_100.0)
    assert facts(only(house))["rows that both have"] == 1


def test_one_store_alone_is_not_compared(tmp_path: Path) -> None:
    house = House(tmp_path)
    copied(house, "one")

    def ended(one: Audit) -> list[tuple[str, int]]:
        return [(result.status, result.findings) for result in one.rules]

    assert ended(audit(house["work"].root, rules=[RULE])) == [("not applicable", 0)]
    assert ended(audit(house.root.store, rules=[RULE])) == [("not applicable", 0)]
    assert ended(audit(house.root.root, rules=[RULE])) == [("not applicable", 0)]
    shutil.rmtree(tmp_path / "profiles")
    assert ended(survey(house.root.root, rules=[RULE])[0]) == [("clean", 0)]


def test_a_store_that_cannot_be_read_leaves_it_open(tmp_path: Path) -> None:
    house = House(tmp_path, profiles=("a", "b"))
    copied(house, "one")
    house["a"].store.write_bytes(bytes(8192))

    root, _, last = house.survey(RULE)

    assert [(result.status, result.findings) for result in root.rules] == [("clean", 0)]
    ((status, found, reason),) = [(each.status, each.findings, each.reason) for each in last.rules]
    assert (status, found) == ("could not run", 1)
    assert str(house["a"].store) in reason
