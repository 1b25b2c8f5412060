"""STO003 structural-damage."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import EXPORTED, VERSIONS, HomeBuilder, facts

from statemend.audit.finding import Finding, Severity, Verdict

pytestmark = pytest.mark.built("STO003", "no release damages a page; a disk or a copy does")

Build = Callable[..., HomeBuilder]


def break_page(home: HomeBuilder, name: str, offset: int = 0) -> None:
    """Flip one byte of the root page of a table or index: by default the one that says what kind it is."""
    (root,) = home.sql("SELECT rootpage FROM sqlite_master WHERE name = ?", bindings=(name,))[0]
    data = bytearray(home.store.read_bytes())
    data[(root - 1) * 4096 + offset] ^= 0xFF
    home.store.write_bytes(bytes(data))


def planned(finding: Finding) -> bool:
    """Whether the finding sends its reader to a plan."""
    return (finding.remedy.command or "").startswith("statemend plan ")


def only(findings: tuple[Finding, ...]) -> Finding:
    (finding,) = (finding for finding in findings if finding.rule == "STO003")
    return finding


@pytest.mark.fires("STO003")
@pytest.mark.parametrize("deep", [False, True], ids=["default", "deep"])
@pytest.mark.parametrize("table", ["messages", "sessions", "state_meta"])
def test_a_damaged_table_is_named(build: Build, table: str, deep: bool) -> None:
    home = build("0.22.2", rich=True)
    break_page(home, table)

    finding = only(home.audit("STO003", deep=deep).findings)

    assert (facts(finding)["kind"], facts(finding)["name"]) == ("table", table)
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.CRITICAL)
    assert not planned(finding), "no recipe mends a table"


@pytest.mark.parametrize("deep", [False, True], ids=["default", "deep"])
@pytest.mark.parametrize("offset", [0, 100], ids=["page type", "cell pointer"])
def test_a_damaged_index_is_told_from_its_table(build: Build, deep: bool, offset: int) -> None:
    home = build("0.22.2", rich=True)
    break_page(home, "idx_messages_session", offset)

    finding = only(home.audit("STO003", deep=deep).findings)

    assert (facts(finding)["kind"], facts(finding)["name"]) == ("index", "idx_messages_session")
    assert not planned(finding), "no recipe mends an index that is no search index"


@pytest.mark.parametrize("version", ["0.19.0", "0.22.2"])
def test_a_damaged_search_index_is_found_by_the_deep_check_alone(build: Build, version: str) -> None:
    home = build(version, rich=True)
    break_page(home, "messages_fts_data")

    assert home.audit("STO003").findings == ()
    finding = only(home.audit("STO003", deep=True).findings)

    assert (facts(finding)["kind"], facts(finding)["name"]) == ("search index", "messages_fts")
    assert finding.severity is Severity.MEDIUM
    assert planned(finding)


def test_a_search_index_that_lost_entries_is_found_by_the_deep_check(build: Build) -> None:
    home = build("0.19.0")
    home.chat("s", 4)
    home.sql("DELETE FROM messages_fts_idx", "DELETE FROM messages_fts_data WHERE id > 10")

    finding = only(home.audit("STO003", deep=True).findings)

    assert facts(finding)["name"] == "messages_fts"


def test_an_index_entry_that_is_missing_is_found_by_the_deep_check(build: Build) -> None:
    home = build("0.22.2", rich=True)
    break_page(home, "idx_messages_session", 2000)

    finding = only(home.audit("STO003", deep=True).findings)

    assert facts(finding)["name"] == "idx_messages_session"


def test_a_rule_that_reads_a_damaged_table_could_not_run_and_the_others_did(build: Build) -> None:
    home = build("0.22.2", rich=True)
    break_page(home, "messages")

    ended = {result.id: result for result in home.audit("STO", "ORP", "CNT").rules}

    assert ended["CNT001"].status == "could not run"
    assert "the table messages is damaged" in ended["CNT001"].reason
    assert ended["STO004"].status == "clean"
    assert ended["ORP002"].status == "could not run"


def test_a_rule_that_would_be_served_from_a_damaged_index_could_not_run(build: Build) -> None:
    home = build("0.22.2", rich=True)
    break_page(home, "idx_messages_session_active")

    ended = {result.id: result for result in home.audit("STO", "CNT").rules}

    assert ended["CNT001"].status == "could not run"
    assert "idx_messages_session_active" in ended["CNT001"].reason


def test_a_damaged_table_that_a_rule_does_not_read_does_not_stop_it(build: Build) -> None:
    home = build("0.22.2", rich=True)
    break_page(home, "state_meta")

    ended = {result.id: result.status for result in home.audit("ORP", "CNT").rules}

    assert set(ended.values()) == {"clean"}


def test_cells_that_the_schema_forbids_are_no_damage_of_pages(build: Build) -> None:
    home = build("0.19.0")
    home.chat("s", 4)
    rewrite = "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = 'messages'"
    strict, relaxed = "role TEXT NOT NULL", "role TEXT"
    home.sql("PRAGMA writable_schema = ON", rewrite, bindings=(strict, relaxed))
    home.sql("UPDATE messages SET role = NULL WHERE id = (SELECT MIN(id) FROM messages)")
    home.sql("PRAGMA writable_schema = ON", rewrite, bindings=(relaxed, strict))

    outcome = home.audit("STO", "CNT")

    assert facts(only(outcome.findings))["kind"] == "values"
    assert {result.status for result in outcome.rules} == {"clean", "findings"}


def test_pages_that_nothing_uses_are_a_leftover(build: Build) -> None:
    home = build("0.22.2", rich=True)
    home.sql("DELETE FROM messages")
    data = bytearray(home.store.read_bytes())
    data[32:40] = bytes(8)  # where the unused pages are, and how many
    home.store.write_bytes(bytes(data))

    finding = only(home.audit("STO003", deep=True).findings)

    assert (finding.verdict, finding.severity) == (Verdict.LEFTOVER, Severity.INFO)


def test_a_store_that_sqlite_refuses_to_open_is_damaged(build: Build) -> None:
    home = build("0.19.0", empty=False)
    data = bytearray(home.store.read_bytes())
    data[103:108] = b"\xff\xff\xff\xff\xff"
    home.store.write_bytes(bytes(data))

    outcome = home.audit("STO", "CNT")

    assert only(outcome.findings).summary == "SQLite refuses to open the store."
    stopped = {result.id for result in outcome.rules if result.status == "could not run"}
    assert stopped == {"STO004", "STO005", "STO006", "CNT001"}


@pytest.mark.parametrize("deep", [False, True], ids=["default", "deep"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_sound_store_of_each_release_is_clean(build: Build, version: str, deep: bool) -> None:
    assert build(version, empty=False).result("STO003", deep=deep).status == "clean"


@pytest.mark.parametrize("deep", [False, True], ids=["default", "deep"])
@pytest.mark.parametrize("version", EXPORTED)
def test_a_used_store_of_each_release_is_clean(build: Build, version: str, deep: bool) -> None:
    assert build(version, rich=True).result("STO003", deep=deep).status == "clean"


@pytest.mark.near_miss("STO003")
def test_an_index_over_text_with_nuls_that_an_older_sqlite_built_is_no_damage(
    build: Build, stores: dict[str, object]
) -> None:
    home = build("0.19.0", empty=False)
    home.store.write_bytes(stores["0.19.0"].read_bytes())  # type: ignore[attr-defined]

    assert home.result("STO003", deep=True).status == "clean"
