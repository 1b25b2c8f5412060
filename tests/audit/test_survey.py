"""Audits of every store of a home together."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.audit.builder import NOW, HomeBuilder
from tests.audit.houses import House

from statemend.audit.context import Context
from statemend.audit.engine import Status, audit, exit_code, survey
from statemend.errors import StoreHeld, UsageError


def test_each_store_is_audited_and_its_findings_name_it(tmp_path: Path) -> None:
    house = House(tmp_path, profiles=("b", "a"))
    for home in (house.root, house["a"], house["b"]):
        home.message("gone")

    audits = house.survey("ORP001")

    stores = [tmp_path / "state.db", *(tmp_path / f"profiles/{name}/state.db" for name in "ab")]
    assert [one.store.path for one in audits] == [str(store) for store in stores]
    assert [(one.store.sessions, one.store.messages) for one in audits] == [(0, 1)] * 3
    assert [one.store.profile for one in audits] == ["default", "a", "b"]
    findings = [one.findings[0] for one in audits]
    assert [finding.subject.store for finding in findings] == [str(store) for store in stores]
    for finding, store in zip(findings, stores, strict=True):
        assert finding.remedy.command == f"statemend plan -o plan.json {store.parent}"


def test_ids_tell_stores_apart_and_stay(tmp_path: Path) -> None:
    house = House(tmp_path / "one", profiles=("a", "b"))
    for home in (house.root, house["a"], house["b"]):
        home.message("gone")

    together = [finding.id for finding in house.findings("ORP001")]
    alone = [
        audit(path, rules=["ORP001"]).findings[0].id
        for path in (house.path, house.path / "profiles" / "a", house.path / "profiles/b/state.db")
    ]
    moved = house.path.rename(tmp_path / "two")

    assert len(set(together)) == 3
    assert together == alone
    assert [one.findings[0].id for one in survey(moved, rules=["ORP001"])] == together


def test_a_profile_named_alone_is_audited_alone(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.root.message("gone")

    (alone,) = survey(tmp_path / "profiles" / "work", now=NOW)

    assert alone.store.path == str(tmp_path / "profiles" / "work" / "state.db")
    assert alone.findings == ()


def test_a_store_that_is_none_leaves_the_others_audited(tmp_path: Path) -> None:
    house = House(tmp_path, profiles=("bad", "good"))
    house["bad"].store.write_bytes(bytes(8192))
    house["good"].message("gone")

    root, bad, good = house.survey()

    assert exit_code(root) == 0
    assert [finding.rule for finding in bad.findings] == ["STO001"]
    assert exit_code(bad) == 3
    assert [finding.rule for finding in good.findings] == ["ORP001"]
    assert {one.rule for one in root.findings} == set()
    assert root.store.unchanged is good.store.unchanged is True


def test_a_store_that_may_not_be_read_could_not_be_audited(tmp_path: Path) -> None:
    house = House(tmp_path)
    house["work"].store.unlink()
    house["work"].store.mkdir()

    root, work = house.survey("ORP001")

    assert exit_code(root) == 0
    assert {(result.status, result.reason, result.findings, result.seconds) for result in work.rules} == {
        (Status.COULD_NOT_RUN, work.store.refusal, 0, 0.0)
    }
    assert (work.findings, work.inventory.home.profile, work.at) == ((), "work", NOW)
    assert str(house["work"].store) in (work.store.refusal or "")
    assert (work.store.path, work.store.size, work.store.siblings) == (str(house["work"].store), 0, ())
    assert (work.graph, work.coverage, work.unread) == (None, (), ())
    assert exit_code(work) == 3


def test_the_home_may_be_the_one_that_could_not_be_audited(tmp_path: Path) -> None:
    """What it has not been asked for is then not known: whoever asks says so."""
    house = House(tmp_path, profiles=("a", "b"))
    house["b"].chat("here", parent_session_id="where")
    for store in (house.root.store, house["a"].store):
        store.unlink()
        store.mkdir()

    root, _, b = house.survey("PRO004")

    assert (exit_code(root), exit_code(b)) == (3, 3)
    (asked,) = b.rules
    assert asked.reason.startswith("not every store of the home could be asked: ")
    assert all(str(store) in asked.reason for store in (house.root.store, house["a"].store))


def test_what_was_passed_over_is_told_once(tmp_path: Path) -> None:
    house = House(tmp_path / "home")
    HomeBuilder(tmp_path / "elsewhere", "0.22.2")
    linked = house.path / "profiles" / "linked"
    linked.symlink_to(tmp_path / "elsewhere")

    root, work = house.survey("CNT001")

    assert [skipped.path for skipped in root.inventory.skipped] == [str(linked)]
    assert work.inventory.skipped == ()


def test_an_export_goes_to_the_stores_that_have_its_sessions_and_what_is_nobodys_to_the_first(
    tmp_path: Path,
) -> None:
    house = House(tmp_path / "home")
    for home, ids in ((house.root, ("own", "both")), (house["work"], ("work", "both"))):
        for session_id in ids:
            home.chat(session_id)
    line = '{{"id": "{}", "source": "cli", "started_at": 1790000000.0, "messages": []}}\n'
    outside = tmp_path / "all.jsonl"
    outside.write_text("".join(map(line.format, ("own", "both", "work", "none"))), "utf-8")
    seen: list[list[str]] = []

    def note(context: Context, _: object) -> None:
        sections = (section for _, section in context.inventory.sections())
        seen.append([section.session_id for section in sections])

    house.survey("CNT001", exports=[outside], observe=note)
    audit(house.path, rules=["CNT001"], exports=[outside], observe=note)

    assert seen == [["own", "both", "none"], ["both", "work"], ["own", "both", "none"]]


def test_whom_an_audit_of_one_store_can_ask(tmp_path: Path) -> None:
    """The others of its home, each by its own path, unless the store file itself was named."""
    house = House(tmp_path, profiles=("a", "b"))
    root, a, b = (str(home.store) for home in (house.root, house["a"], house["b"]))
    asked: list[list[str] | None] = []

    def note(context: Context, _: object) -> None:
        asked.append(None if context.company is None else [member.path for member in context.company])
        assert context.company is None or all(member.store.schema.version for member in context.company)

    for path in (tmp_path, tmp_path / "profiles" / "a", house["a"].store, tmp_path / "state.db"):
        audit(path, rules=["CNT001"], observe=note)

    assert asked == [[a, b], [root, b], None, None]


def test_what_only_all_stores_of_a_home_can_tell_does_not_apply_to_one(tmp_path: Path) -> None:
    house = House(tmp_path)
    plain = HomeBuilder(tmp_path / "plain", "0.22.2")

    def reasons(path: Path) -> set[str]:
        return {result.reason for result in audit(path, rules=["PRO", "CNT001"]).rules}

    assert {result.reason for one in house.survey("PRO") for result in one.rules} == {""}
    assert reasons(house.path) == {"", "one store was audited, not all of its home"}
    assert reasons(house.root.store) == {"", "one store was named, not its home with all of them"}
    assert "nothing says which profile the store is of" in reasons(plain.root)


def test_a_held_store_of_a_profile_is_refused_and_a_live_copy_is_audited(tmp_path: Path) -> None:
    house = House(tmp_path)
    house["work"].message("gone")
    house["work"].chat("20260801_090000_aaaaaa")
    house.root.log(
        [
            "2026-08-01 09:00:10,000 INFO agent.conversation_loop: conversation turn: "
            "session=20260801_090000_aaaaaa model=gpt-4o provider=custom platform=cli history=2 msg='hello'"
        ]
    )
    script = (
        "import sys, apsw; c = apsw.Connection(sys.argv[1]); c.pragma('journal_mode', 'wal');"
        "c.execute('SELECT COUNT(*) FROM messages').fetchall(); print('open', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(house["work"].store)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(StoreHeld, match=str(house["work"].store)):
            house.survey("ORP001")
        (root, work) = house.survey("ORP001", live=True)
        alone = audit(tmp_path, rules=["ORP001", "ORP003"])
    finally:
        holder.communicate()

    assert (len(root.findings), len(work.findings)) == (0, 1)
    assert alone.findings == ()
    assert {result.status for result in alone.rules} == {Status.CLEAN}


def test_a_store_that_changes_while_the_others_are_audited_is_undetermined(tmp_path: Path) -> None:
    house = House(tmp_path, profiles=("a", "b"))
    audited: list[str] = []

    def meddle(context: object, _: object) -> None:
        audited.append(str(context))
        if len(audited) == 2:
            house.root.chat("late", 2)

    root, *others = house.survey("ORP001", observe=meddle)

    assert root.store.unchanged is False
    assert exit_code(root) == 3
    assert [exit_code(one) for one in others] == [0, 0]


def test_an_audit_of_all_leaves_every_folder_as_it_was(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.root.chat("here")
    house["work"].chat("there", parent_session_id="here")

    def look() -> dict[str, tuple[int, bytes]]:
        files = (path for path in sorted(tmp_path.rglob("*")) if path.is_file())
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    before = look()
    house.survey(deep=True)

    assert look() == before


def test_a_folder_without_a_store_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        survey(tmp_path)


def test_files_of_one_store_say_nothing_of_another(tmp_path: Path) -> None:
    """Turns of a profile in the home's log, and its sessions in the home's table of routes."""
    house = House(tmp_path)
    house["work"].chat("20260801_090000_aaaaaa")
    line = (
        "2026-08-01 09:00:10,000 INFO agent.conversation_loop: conversation turn: "
        "session={} model=gpt-4o provider=custom platform=cli history=2 msg='hello'"
    )
    house.root.log([line.format("20260801_090000_aaaaaa"), line.format("20260801_090000_bbbbbb")])

    together = [finding for finding in house.findings("ORP003", "STO005") if finding.rule == "ORP003"]
    alone = audit(tmp_path / "state.db", rules=["ORP003"]).findings

    (told,) = together
    assert "20260801_090000_aaaaaa" not in str(told.evidence)
    assert "20260801_090000_bbbbbb" in str(told.evidence)
    assert "20260801_090000_aaaaaa" in str(alone)


def test_a_failed_write_to_another_store_is_told_with_that_store(tmp_path: Path) -> None:
    house = House(tmp_path)
    house["work"].chat("20260801_090000_aaaaaa")
    house.root.log(
        [
            "2026-08-01 09:00:10,000 WARNING [20260801_090000_aaaaaa] run_agent: Session DB append_message "
            "failed: FOREIGN KEY constraint failed"
        ]
    )

    (told,) = house.findings("ORP004")
    (alone,) = audit(house.root.store, rules=["ORP004"], now=NOW).findings

    assert (told.verdict, alone.verdict) == ("undecidable", "fault")
    assert told.remedy.command == f"statemend show {house['work'].store} 20260801_090000_aaaaaa"
