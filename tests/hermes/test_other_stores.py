"""The copies that releases make of their store, and what is left in them of what a store lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.hermes.home import DAY, HermesHome, assistant, user

from statemend.audit.engine import audit
from statemend.audit.finding import Finding, Verdict
from statemend.evidence.coverage import assess_session
from statemend.evidence.inventory import Inventory, find_home, take
from statemend.formats import records
from statemend.formats.artifact import Kind
from statemend.store.connection import open_for_audit

Make = Callable[..., HermesHome]

TALK = "20260801_090000_aaaaaa"
LATER = "20261101_090000_bbbbbb"


def inventory(home: HermesHome) -> Inventory:
    with open_for_audit(home.state_db) as store:
        return take(find_home(home.path), store=store)


def snapshot(home: HermesHome) -> Path:
    """What ``/snapshot`` and an update do first."""
    home.process.call("function", module="hermes_cli.backup", name="create_quick_snapshot", args=[])
    return max((home.path / "state-snapshots").glob("*/state.db"))


def backup(home: HermesHome) -> Path:
    """What ``hermes update --backup`` does first."""
    home.process.call("function", module="hermes_cli.backup", name="create_pre_update_backup", args=[])
    return max((home.path / "backups").glob("pre-update-*.zip"))


def talked(home: HermesHome, session_id: str, topic: str) -> list[dict[str, Any]]:
    chat = home.chat(session_id)
    chat.turns(4, topic)
    chat.tool_turn("List it.", "ls", "one two", "Two files.")
    home.title(session_id, f"On {topic}")
    return home.messages(session_id)


def of(found: tuple[Finding, ...], rule: str) -> list[Finding]:
    return [finding for finding in found if finding.rule == rule]


@pytest.mark.parametrize(
    ("copy", "version"),
    [
        (snapshot, "0.13.0"),
        (snapshot, "0.20.1"),
        (snapshot, "0.22.2"),
        (backup, "0.13.0"),
        (backup, "0.22.2"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_deleted_session_is_found_whole_in_a_copy(
    copy: Callable[[HermesHome], Path], version: str, hermes_home: Make
) -> None:
    home = hermes_home(version)
    talked(home, LATER, "what stays")
    before = talked(home, TALK, "what goes")
    path = copy(home)
    assert home.delete(TALK)
    home.stop()

    known = inventory(home)

    ((artifact, section),) = known.stores_by_session()[TALK]
    assert artifact.kind is Kind.STORE
    assert artifact.path in (str(path), f"{path}!state.db")
    assert [
        (row.row_id, row.role, row.content) for row in records(Path(artifact.path), artifact, section)
    ] == [(row["id"], row["role"], row["content"]) for row in before]
    with open_for_audit(home.state_db) as store:
        (remains,) = assess_session(store, known, TALK).elsewhere
    assert (remains.records, remains.inactive) == (len(before), 0)
    assert LATER not in known.stores_by_session()
    found = audit(home.path, now=home.now)
    assert not [each for each in found.findings if each.verdict in (Verdict.FAULT, Verdict.RISK)]
    assert found.undetermined == ()


def test_a_copy_is_named_where_a_deletion_lost_what_was_archived(hermes_home: Make) -> None:
    home = hermes_home("0.19.0")
    chat = home.chat(TALK)
    chat.turns(8, "plan")
    home.title(TALK, "Plan")
    chat.compact()
    chat.say(user("And the end?"), assistant("The end."))
    home.end(TALK)
    rows = home.value("SELECT COUNT(*) FROM messages WHERE session_id = ?", [TALK])
    path = snapshot(home)
    home.advance(60)
    home.delete_after_verified(TALK)
    assert home.session(TALK) is None
    home.stop()

    (lost,) = of(audit(home.path, now=home.now).findings, "EXP002")

    told = {fact.label: fact.value for fact in lost.evidence}
    assert lost.verdict is Verdict.FAULT
    assert told["other stores that still have it"] == [str(path)]
    assert told["of these Hermes deletes in turn"] == 1
    assert told["messages in the fullest of them"] == rows
    assert "before Hermes deletes them" in lost.remedy.text


@pytest.mark.fires("STO005")
@pytest.mark.parametrize("version", ["0.13.0", "0.19.0", "0.22.2"])
def test_a_store_that_was_deleted_and_begun_again_is_told(version: str, hermes_home: Make) -> None:
    home = hermes_home(version)
    talked(home, TALK, "what was lost")
    path = snapshot(home)
    home.stop()
    for file in home.path.glob("state.db*"):
        file.unlink()
    home.advance(30 * DAY)
    home.restart()
    talked(home, LATER, "what came later")
    home.stop()

    (finding,) = of(audit(home.path, now=home.now).findings, "STO005")

    told = {fact.label: fact.value for fact in finding.evidence}
    assert finding.verdict is Verdict.FAULT
    assert told["their ids"] == [TALK]
    assert told["other stores that have them"] == [str(path)]


def test_a_store_that_was_pruned_of_everything_old_is_the_same(hermes_home: Make) -> None:
    home = hermes_home("0.19.0")
    talked(home, TALK, "what is pruned")
    home.end(TALK)
    snapshot(home)
    home.export(TALK, "jsonl")
    home.advance(100 * DAY)
    assert home.store("prune_sessions", older_than_days=90) == 1
    talked(home, LATER, "what came later")
    home.stop()

    found = audit(home.path, now=home.now)

    assert not [each for each in found.findings if each.verdict in (Verdict.FAULT, Verdict.RISK)]
    assert not of(found.findings, "STO005")


def test_a_file_that_a_release_put_aside_is_said_to_be_no_store(hermes_home: Make) -> None:
    home = hermes_home("0.22.2")
    talked(home, TALK, "what was zeroed")
    path = snapshot(home)
    home.stop()
    home.state_db.write_bytes(bytes(home.state_db.stat().st_size))
    home.advance(30 * DAY)
    home.restart()
    talked(home, LATER, "what came later")
    home.stop()

    found = audit(home.path, now=home.now)

    (aside,) = [each for each in found.inventory.skipped if ".zeroed-" in each.path]
    assert aside.reason.startswith("put aside as a store, and none: ")
    (finding,) = of(found.findings, "STO005")
    assert {fact.label: fact.value for fact in finding.evidence}["other stores that have them"] == [str(path)]
