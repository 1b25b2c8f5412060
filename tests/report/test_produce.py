"""Reports of the demo home: what an audit found, as the outputs see it."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from statemend.audit import candidates
from statemend.audit.engine import audit
from statemend.demo.build import build
from statemend.report import html, json, markdown, table
from statemend.report.build import Seen
from statemend.report.build import build as build_report
from statemend.report.model import Report
from statemend.report.produce import produce

NOW = 1_790_000_000.0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("demo") / "home")


@pytest.fixture(scope="module")
def report(home: Path) -> Report:
    return produce(home, now=NOW)


def query(home: Path, sql: str) -> list[tuple[object, ...]]:
    flags = apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_READONLY
    connection = apsw.Connection(f"file:{home}/state.db?immutable=1", flags)
    rows = list(connection.execute(sql))
    connection.close()
    return rows


def test_the_rows_are_those_of_the_store(home: Path, report: Report) -> None:
    ((live, archived, rewound, sessions),) = query(
        home,
        "SELECT SUM(active = 1), SUM(active = 0 AND compacted = 1), SUM(active = 0 AND compacted = 0), "
        "(SELECT COUNT(*) FROM sessions) FROM messages",
    )
    (store,) = report.stores
    assert (store.live, store.archived, store.rewound, store.sessions) == (live, archived, rewound, sessions)
    assert store.unchanged is True


def test_every_session_with_something_to_show_is_listed(home: Path, report: Report) -> None:
    listed = {entry.id: entry for entry in report.sessions}
    odd = {sid for (sid,) in query(home, "SELECT DISTINCT session_id FROM messages WHERE active = 0")}
    assert odd <= set(listed)
    assert {item.subject.session for item in report.findings} - {None} <= set(listed)
    gone = [entry for entry in report.sessions if not entry.present]
    assert gone
    assert all(entry.title for entry in gone), "the export names it"


def test_what_needs_a_look_comes_first(report: Report) -> None:
    named = {item.subject.session for item in report.findings}
    order = [entry.id in named for entry in report.sessions]
    assert order == sorted(order, reverse=True)


def test_the_incident_is_told_in_order(report: Report) -> None:
    kinds = [event.kind for event in report.timeline]
    assert set(kinds) == {"exported", "compacted", "deleted", "append-failed"}
    moments = [event.at or event.clock or "" for event in report.timeline]
    assert [moment[:10] for moment in moments] == sorted(moment[:10] for moment in moments)


def test_a_family_tells_what_export_and_resume_pick(report: Report) -> None:
    (family,) = (one for one in report.lineage if any(name.startswith("LIN003") for name in one.findings))
    assert family.export is not None
    assert family.resume not in family.export
    assert {edge.relation for edge in family.edges} == {"continuation"}
    assert {node.id for node in family.nodes} >= {*family.export, family.resume}


def test_the_time_is_that_of_the_audit(report: Report, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    assert produce(home, now=NOW).generated_at == "2026-09-21T14:13:20Z"


def test_no_message_text_is_in_any_output_unless_asked_for(home: Path, report: Report) -> None:
    texts = {
        text
        for (text,) in query(home, "SELECT content FROM messages WHERE role IN ('user', 'assistant')")
        if isinstance(text, str) and len(text) > 40
    }
    assert texts
    for shown in (html.render(report), json.render(report), markdown.render(report), table.render(report)):
        assert [text for text in texts if text[:40] in shown] == []
    with_content = produce(home, now=NOW, with_content=True)
    assert with_content.contents
    named = {
        (item.subject.session, number) for item in report.findings for number in item.subject.message_ids
    }
    texts_shown = {(said.session, said.message_id): said.first for said in with_content.contents}
    begun = {key for key, first in texts_shown.items() if first}
    assert texts_shown.keys() == named | begun
    assert {sid for sid, _ in begun} == {sid for item in report.findings for sid, _ in candidates.of(item)}


def test_a_store_that_cannot_be_read_makes_a_report(tmp_path: Path) -> None:
    store = tmp_path / "state.db"
    store.write_bytes(b"")
    report = produce(store, now=NOW)
    assert report.exit_code == 3
    assert report.stores[0].fault
    assert report.stores[0].live is None
    assert report.verdict.startswith("The store cannot be read")
    assert "cannot be read" in html.render(report)


def test_rows_that_could_not_be_counted_are_not_called_none(home: Path) -> None:
    report = build_report([Seen(audit(home, now=NOW))])
    assert report.stores[0].live is None
    assert report.sessions
    assert {entry.live for entry in report.sessions} == {None}
    assert "could not be counted" in html.render(report)
