"""Running rules, and what an audit says of each."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from tests.audit.builder import DATA, NOW, HomeBuilder

from statemend.audit.context import Context
from statemend.audit.engine import FailOn, RuleResult, Status, audit, exit_code, run, survey
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.outcome import worst
from statemend.audit.reads import tables_read
from statemend.audit.registry import all_rules
from statemend.audit.rule import Family, Level, Rule
from statemend.errors import StatemendError, StoreHeld, StoreUnreadable, UsageError
from statemend.evidence.inventory import find_home, take
from statemend.store.bundle import inspect
from statemend.store.connection import open_for_audit

Build = Callable[..., HomeBuilder]


def rule(check: Callable[[Context], Iterator[Finding]], **changes: object) -> Rule:
    made = Rule(
        id="TST001",
        slug="test",
        family=Family.STORE,
        level=Level.VALUES,
        severity=Severity.LOW,
        verdict=Verdict.FAULT,
        doc="A test.",
        check=check,
    )
    return msgspec.structs.replace(made, **changes)


@pytest.fixture
def context(build: Build) -> Iterator[Context]:
    home = build("0.19.0", empty=False)
    found = find_home(home.root)
    with open_for_audit(home.store) as store:
        yield Context(home=found, bundle=inspect(home.store), store=store, inventory=take(found), now=NOW)


def said(context: Context, *severities: Severity) -> Iterator[Finding]:
    for severity in severities:
        yield rule(lambda _: iter(())).finding(
            context, summary=f"{severity}", remedy="none", key=severity, severity=severity
        )


def test_a_rule_that_finds_nothing_is_clean(context: Context) -> None:
    findings, (result,) = run([rule(lambda _: iter(()))], context)

    assert findings == ()
    assert (result.status, result.reason, result.findings) == (Status.CLEAN, "", 0)


def test_findings_are_ordered_worst_first(context: Context) -> None:
    findings, (result,) = run(
        [rule(lambda c: said(c, Severity.LOW, Severity.CRITICAL, Severity.INFO, Severity.HIGH))], context
    )

    assert [finding.severity for finding in findings] == ["critical", "high", "low", "info"]
    assert (result.id, result.slug, result.status) == ("TST001", "test", Status.FINDINGS)
    assert (result.findings, result.reason, result.seconds >= 0) == (4, "", True)


def test_an_unreadable_page_stops_one_rule_and_keeps_what_it_had(context: Context) -> None:
    def stops(context: Context) -> Iterator[Finding]:
        yield from said(context, Severity.HIGH)
        raise StoreUnreadable("page 7 is malformed")

    findings, (first, second) = run(
        [rule(stops), rule(lambda _: iter(()), id="TST002", slug="other")], context
    )

    assert len(findings) == first.findings == 1
    assert first.status is Status.COULD_NOT_RUN
    assert first.reason == "page 7 is malformed (after 1 findings)"
    assert second.status is Status.CLEAN


def test_a_mistake_in_a_rule_is_named_without_its_text_and_stops_nothing(context: Context) -> None:
    def mistaken(context: Context) -> Iterator[Finding]:
        raise KeyError("text of a message")
        yield

    _, (first, second) = run([rule(mistaken), rule(lambda _: iter(()), id="TST002", slug="other")], context)

    assert first.status is Status.COULD_NOT_RUN
    assert "KeyError" in first.reason
    assert "test_engine.py" in first.reason
    assert "text of a message" not in first.reason
    assert second.status is Status.CLEAN


def test_a_rule_whose_table_is_not_there_does_not_apply(context: Context) -> None:
    _, (result,) = run([rule(said, reads=("SELECT holder FROM session_turn_leases",))], context)

    assert result.status is Status.NOT_APPLICABLE
    assert result.reason == "the store has no table session_turn_leases"


def test_all_that_a_store_lacks_is_named(context: Context) -> None:
    tables = "SELECT 1 FROM session_turn_leases, messages, gateway_heartbeats"
    columns = ("messages.message_uid", "messages.role", "sessions.tool_names")

    _, (one, other) = run(
        [rule(said, reads=(tables,)), rule(said, id="TST002", slug="other", columns=columns)], context
    )

    assert one.reason == "the store has no table gateway_heartbeats and no table session_turn_leases"
    assert other.reason == "the store has no column messages.message_uid and no column sessions.tool_names"


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("SELECT 1 FROM messages JOIN sessions USING (id)", {"messages", "sessions"}),
        ("WITH sessions AS (SELECT 1) SELECT * FROM sessions", set()),
        ("SELECT 'sessions' AS messages", set()),
        ("SELECT id FROM messages WHERE EXISTS (SELECT 1 FROM sessions)", {"messages", "sessions"}),
        ("SELECT id FROM messages_fts", set()),
    ],
)
def test_the_tables_a_statement_reads_are_derived_from_it(sql: str, tables: set[str]) -> None:
    assert tables_read([sql], ["messages", "sessions", "state_meta"]) == tables


def test_what_several_rules_ask_is_computed_once(context: Context) -> None:
    assert context.census is context.census
    assert context.structure is context.structure
    assert context.graph is context.graph
    assert context.computed_graph is context.graph
    assert not context.deep
    assert not context.foreign


def test_a_failure_of_what_several_rules_ask_is_kept_too(build: Build) -> None:
    home = build(empty=False)
    found = find_home(home.root)
    context = Context(
        home=found, bundle=inspect(home.store), store=None, inventory=take(found), now=NOW, refusal="no"
    )

    with pytest.raises(StoreUnreadable, match="no") as first:
        context.census  # noqa: B018
    with pytest.raises(StoreUnreadable) as second:
        context.census  # noqa: B018
    assert first.value is second.value
    with pytest.raises(StoreUnreadable):
        context.graph  # noqa: B018
    with pytest.raises(StoreUnreadable):
        context.coverage  # noqa: B018
    assert context.computed_graph is None
    assert context.computed_coverage == ()


def test_a_whole_audit_of_a_sound_home(build: Build) -> None:
    home = build("0.22.2", rich=True)
    home.file("config.yaml", "sessions: {auto_prune: false}\n")

    outcome = home.audit()

    aside = {result.id for result in outcome.rules if result.status is not Status.CLEAN}
    assert aside == {rule.id for rule in all_rules() if rule.needs_owner}, "the home has no profiles"
    assert outcome.findings == ()
    assert outcome.undetermined == ()
    assert exit_code(outcome) == 0
    assert outcome.store.unchanged is True
    assert outcome.store.era == "V22"
    assert (outcome.store.sessions, outcome.store.messages) == tuple(
        home.sql("SELECT (SELECT COUNT(*) FROM sessions), (SELECT COUNT(*) FROM messages)")[0]
    )
    assert (outcome.store.size, outcome.store.wal_size) == (home.store.stat().st_size, 0)
    assert (outcome.store.journal, outcome.store.page_size, outcome.store.siblings) == ("rollback", 4096, ())
    assert (outcome.store.schema_version, outcome.store.refusal) == (31, None)
    assert outcome.store.sqlite_version
    assert outcome.graph is not None
    assert (outcome.deep, outcome.live) == (False, False)


def test_a_store_with_a_log_that_nobody_holds_is_read_with_it(build: Build, tmp_path: Path) -> None:
    home, left = build("0.22.2", name="home"), tmp_path / "left"
    left.mkdir()
    with home.opened() as connection:
        connection.pragma("journal_mode", "wal")
        home.message("gone")
        for path in (home.store, home.store.with_name("state.db-wal")):
            shutil.copyfile(path, left / path.name)
    (left / "state.db.zeroed-20260801-090000-7.bak").write_bytes(bytes(4096))

    facts = audit(left, rules=["STO001"]).store

    assert (facts.journal, facts.access, facts.messages, facts.unchanged) == ("wal", "private copy", 1, True)
    assert facts.wal_size == (left / "state.db-wal").stat().st_size > 0
    assert facts.siblings == ("state.db.zeroed-20260801-090000-7.bak",)
    assert facts.profile is None


def test_only_what_was_asked_is_done_and_the_rest_is_told(build: Build) -> None:
    home = build(empty=False)
    seen: list[object] = []

    outcome = home.audit(
        "STO001",
        "STO003",
        "CNT001",
        ignore={"STO003": "the settings", "CNT": "the request"},
        deep=True,
        live=True,
        observe=lambda context, findings: seen.extend((context.deep, findings)),
    )

    done, *left_out = outcome.rules
    assert (done.id, done.status) == ("STO001", Status.CLEAN)
    assert left_out == [
        RuleResult("STO003", "structural-damage", Status.IGNORED, "left out by the settings", 0, 0.0),
        RuleResult("CNT001", "message-count-drift", Status.IGNORED, "left out by the request", 0, 0.0),
    ]
    assert outcome.ignored[0] == "STO003 structural-damage was left out by the settings"
    assert (outcome.deep, outcome.live) == (True, True)
    assert seen == [True, ()]
    assert (outcome.graph, outcome.coverage) == (None, ())


def test_an_audit_leaves_the_folder_as_it_was(build: Build) -> None:
    home = build("0.22.2", rich=True)
    home.message("gone")

    def look() -> dict[str, tuple[int, bytes]]:
        return {
            str(path.relative_to(home.root)): (path.stat().st_mtime_ns, path.read_bytes())
            for path in sorted(home.root.rglob("*"))
            if path.is_file()
        }

    before = look()
    home.audit(deep=True)

    assert look() == before


def test_a_second_audit_says_the_same(build: Build) -> None:
    home = build("0.19.0")
    for name in ("b", "a"):
        home.message(name)

    assert home.audit().findings == home.audit().findings


@pytest.mark.parametrize(("fail_on", "code"), [(FailOn.FAULT, 1), (FailOn.RISK, 1), (FailOn.NEVER, 0)])
def test_a_fault_fails_the_run_unless_nothing_is_to_fail_it(build: Build, fail_on: FailOn, code: int) -> None:
    home = build()
    home.message("gone")

    assert exit_code(home.audit("ORP001"), fail_on) == code


@pytest.mark.parametrize(("fail_on", "code"), [(FailOn.FAULT, 0), (FailOn.RISK, 1), (FailOn.NEVER, 0)])
def test_a_risk_fails_the_run_only_when_asked(build: Build, fail_on: FailOn, code: int) -> None:
    home = build()
    home.message("gone")
    outcome = home.audit("ORP001")
    risk = msgspec.structs.replace(outcome.findings[0], verdict=Verdict.RISK)

    assert exit_code(msgspec.structs.replace(outcome, findings=(risk,)), fail_on) == code


def test_of_several_audits_the_worst_code_counts(build: Build) -> None:
    home = build()
    sound = home.audit("ORP001")
    home.message("gone")
    fault = home.audit("ORP001")
    risk = msgspec.structs.replace(
        fault, findings=(msgspec.structs.replace(fault.findings[0], verdict=Verdict.RISK),)
    )

    assert [worst(audits) for audits in ((), (sound, risk), (fault, sound))] == [0, 0, 1]
    assert worst((sound, risk), FailOn.RISK) == 1
    assert worst((fault, sound), FailOn.NEVER) == 0


@pytest.mark.parametrize("verdict", [Verdict.LEFTOVER, Verdict.UNDECIDABLE])
def test_what_is_lawful_or_open_never_fails_the_run(build: Build, verdict: Verdict) -> None:
    home = build()
    home.message("gone")
    outcome = home.audit("ORP001")
    finding = msgspec.structs.replace(outcome.findings[0], verdict=verdict)

    assert exit_code(msgspec.structs.replace(outcome, findings=(finding,)), FailOn.RISK) == 0


@pytest.mark.parametrize("fail_on", list(FailOn))
def test_what_could_not_be_determined_outweighs_findings(build: Build, fail_on: FailOn) -> None:
    home = build()
    home.store.write_bytes(bytes(8192))

    outcome = home.audit()

    assert outcome.findings
    assert exit_code(outcome, fail_on) == 3
    assert any("CNT001" in cause for cause in outcome.undetermined)


def test_a_store_that_changed_meanwhile_is_undetermined(build: Build) -> None:
    home = build("0.19.0", empty=False)

    def meddle(text: str) -> None:
        if text.startswith("CNT001"):
            home.chat("late", 2)

    outcome = home.audit(progress=meddle)

    assert outcome.store.unchanged is False
    assert exit_code(outcome) == 3


def test_a_held_store_is_refused_and_a_live_copy_is_audited(build: Build) -> None:
    home = build("0.22.2")
    home.message("gone")
    script = (
        "import sys, apsw; c = apsw.Connection(sys.argv[1]); c.pragma('journal_mode', 'wal');"
        "c.execute('SELECT COUNT(*) FROM messages').fetchall(); print('open', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(home.store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(StoreHeld, match=str(holder.pid)):
            home.audit()
        outcome = home.audit("ORP001", live=True)
    finally:
        holder.communicate()

    assert [finding.subject.session for finding in outcome.findings] == ["gone"]
    assert outcome.store.unchanged is None
    assert [one.pid for one in outcome.store.holders] == [holder.pid]


def test_no_such_path_and_a_folder_without_a_store_are_usage_errors(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(UsageError):
            audit(path)


def test_a_store_of_which_not_even_the_bytes_can_be_looked_at_is_refused(build: Build) -> None:
    home = build()
    home.store.unlink()
    home.store.mkdir()

    for look in (audit, survey):
        with pytest.raises(StatemendError, match=re.escape(str(home.store))):
            look(home.root, rules=["STO001"])


def test_progress_names_each_rule(build: Build) -> None:
    said_so: list[str] = []
    home = build(empty=False)
    home.file("session-exports/note.txt", "none of Hermes")

    home.audit("STO", progress=said_so.append)

    assert said_so[0] == "looking at file 1 beside the store"
    assert [text for text in said_so if text.startswith("STO")] == [
        "STO001 invalid-header",
        "STO002 split-wal",
        "STO003 structural-damage",
        "STO006 held-by-process",
        "STO004 schema-disagrees",
        "STO005 store-younger-than-evidence",
    ]


def test_the_package_offers_scan_and_loads_nothing_before_it_is_asked() -> None:
    script = (
        "import sys, statemend; heavy = {'apsw', 'sqlglot', 'psutil', 'jinja2', 'selectolax', 'msgspec'};"
        "print(sorted(heavy & set(sys.modules))); from statemend import scan, open_home; print(scan.__name__)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "src")}

    shown = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    ).stdout.splitlines()

    assert shown == ["[]", "audit"]


def test_an_export_that_cannot_be_read_leaves_the_rules_that_need_it_open(build: Build) -> None:
    home = build("0.22.2", rich=True)
    export = next((DATA / "exports" / "0.22.2").glob("md/*.md"))
    huge = home.file("session-exports/huge.md", export.read_bytes())
    assert home.audit("EXP001").coverage
    os.truncate(huge, 2 << 30)  # a hole: it takes no room

    assert exit_code(home.audit("CNT", "ORP001")) == 0
    assert home.audit("CNT", "ORP001").unread == ()
    outcome = home.audit("ORP004")

    assert [skipped.path for skipped in outcome.unread] == [str(huge)]
    assert exit_code(outcome) == 3


@pytest.mark.parametrize(("deep", "listed"), [(False, [["gone"], []]), (True, [["gone"], ["gone"]])])
def test_of_other_stores_the_sessions_are_listed_that_the_store_lacks(
    build: Build, deep: bool, listed: list[list[str]]
) -> None:
    home = build()
    home.chat("here")
    home.chat("gone")
    for name in ("20260801-090000", "20260801-100000"):
        home.file(f"state-snapshots/{name}/state.db", home.store.read_bytes())
    home.sql("DELETE FROM messages WHERE session_id = 'gone'", "DELETE FROM sessions WHERE id = 'gone'")

    stores = home.audit("STO001", deep=deep).inventory.stores

    assert [[section.session_id for section in store.sections] for store in stores] == listed


def test_a_file_that_is_no_export_leaves_nothing_open(build: Build) -> None:
    home = build("0.22.2", rich=True)
    home.file("session-exports/picture.png", b"\x89PNG\r\n\x1a\n\0\0")

    outcome = home.audit()

    assert outcome.inventory.skipped
    assert exit_code(outcome) == 0
