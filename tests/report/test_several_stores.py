"""One report of all stores of a home."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from selectolax.lexbor import LexborHTMLParser
from tests.audit.builder import NOW
from tests.audit.houses import House

from statemend.report import (
    blocks,
    diff_markdown,
    diff_table,
    html,
    json,
    junit,
    markdown,
    sarif,
    summary,
    table,
)
from statemend.report.baseline import apply_baseline, baseline_of
from statemend.report.diff import diff
from statemend.report.load import load_report
from statemend.report.model import Report
from statemend.report.produce import produce


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A copied profile: the same session with the same damage in both stores."""
    house = House(tmp_path / "home")
    for home in (house.root, house["work"]):
        home.chat("talk", 2)
        home.message("gone", content="what was said")
    return house


def report(house: House, **options: object) -> Report:
    return produce(house.path, rules=["ORP001"], now=NOW, **options)


def test_the_report_names_each_store_with_what_it_holds(house: House) -> None:
    made = report(house)

    root, work = made.stores
    assert (root.path, root.profile) == (str(house.root.store), "default")
    assert (work.path, work.profile) == (str(house["work"].store), "work")
    assert {(store.schema_version, store.sessions, store.live) for store in made.stores} == {(31, 1, 3)}
    assert made.home == str(house.path)
    assert made.exit_code == 1
    assert [rule.findings for rule in made.rules] == [2]
    assert {(entry.id, entry.store) for entry in made.sessions} == {
        ("gone", root.path),
        ("gone", work.path),
    }


@pytest.mark.parametrize("form", [html, markdown, table, junit, summary, sarif])
def test_every_form_says_which_store_a_finding_is_of(form: object, house: House) -> None:
    made = report(house)

    shown = form.render(made)  # type: ignore[attr-defined]

    for finding in made.findings:
        assert finding.id in shown
    assert "profiles/work/state.db" in shown.replace("\n", "")


@pytest.mark.parametrize("form", [html, markdown, table, summary])
def test_what_people_read_names_the_whole_path(form: object, house: House) -> None:
    shown = form.render(report(house)).replace("\n", "")  # type: ignore[attr-defined]

    assert str(house["work"].store) in shown


def test_what_to_begin_with_says_of_which_store_it_is(house: House) -> None:
    house.root.sql("DELETE FROM messages WHERE session_id = 'gone'")
    made = report(house)
    assert [finding.subject.store for finding in made.findings] == [str(house["work"].store)]

    start = LexborHTMLParser(html.render(made)).css_first(".start").text()
    assert "session gone in profiles/work/state.db" in " ".join(start.split())
    assert "Next, for profiles/work/state.db: statemend " in " ".join(table.render(made).split())


def test_of_one_store_alone_there_is_nothing_to_say(house: House) -> None:
    made = report(house, profiles=False)

    start = LexborHTMLParser(html.render(made)).css_first(".start .meta").text()
    assert " ".join(start.split()) == "session gone"
    assert "Next: statemend " in table.render(made)


def test_the_document_says_of_which_store_each_text_is(house: House) -> None:
    shown = markdown.render(report(house, with_content=True))
    for home in (house.root, house["work"]):
        assert f"session `gone`, store `{home.store}`:" in shown
    assert "session `gone`:" in markdown.render(report(house, with_content=True, profiles=False))


def test_the_texts_of_two_stores_are_told_apart(house: House) -> None:
    house["work"].sql("UPDATE messages SET content = 'said in work' WHERE session_id = 'gone'")

    made = report(house, with_content=True)

    assert [(said.store, said.text) for said in made.contents or ()] == [
        (str(house.root.store), "what was said"),
        (str(house["work"].store), "said in work"),
    ]
    page = html.render(made)
    assert page.index("what was said") != page.index("said in work")


def test_a_file_beside_several_stores_is_listed_once(house: House, tmp_path: Path) -> None:
    kept = tmp_path / "exports"
    kept.mkdir()
    (kept / "notes.bin").write_bytes(b"\0\1")

    made = report(house, exports=[kept])

    assert [item.path for item in made.skipped] == [str(kept / "notes.bin")]


def test_a_report_of_several_stores_is_read_back(house: House, tmp_path: Path) -> None:
    made = report(house)
    file = tmp_path / "report.json"
    file.write_text(json.render(made))

    assert load_report(file) == made


def test_a_comparison_says_of_which_store_and_session_each_finding_is(house: House) -> None:
    made = report(house)
    healthy = msgspec.structs.replace(made, findings=())

    for before, after in ((healthy, made), (made, healthy)):
        found = diff(before, after)
        own, work = made.findings
        on_screen = blocks.plain(diff_table.renderable(found), 120)
        (own_row,) = [line for line in on_screen.splitlines() if own.id in line]
        (work_row,) = [line for line in on_screen.splitlines() if work.id in line]
        assert "gone" in own_row.split()
        assert {"gone", "profiles/work/state.db"} <= set(work_row.split())
        document = diff_markdown.render(found)
        assert document.count(" in `gone`") == 2
        assert document.count(" of `profiles/work/state.db`") == 1


def test_a_store_that_was_not_looked_at_lost_no_finding(house: House) -> None:
    before = report(house)
    after = produce(house.root.store, rules=["ORP001"], now=NOW)

    compared = diff(before, after)

    assert compared.gone == ()
    ((finding, reason),) = [msgspec.structs.astuple(each) for each in compared.unknown]
    assert finding.subject.store == str(house["work"].store)
    assert reason.endswith("work/state.db was not looked at")


def test_a_baseline_of_several_stores_hides_and_misses_none(house: House) -> None:
    known = baseline_of(report(house))

    assert known.stores == ("state.db", "profiles/work/state.db")
    assert apply_baseline(report(house), known).findings == ()
    alone = apply_baseline(produce(house.root.store, rules=["ORP001"], now=NOW), known).baseline
    assert alone is not None
    assert (len(alone.hidden), alone.gone, len(alone.unknown)) == (1, (), 1)


def test_one_store_alone_is_reported_as_ever(house: House) -> None:
    made = produce(house.path, rules=["ORP001"], now=NOW, profiles=False)

    assert [store.path for store in made.stores] == [str(house.root.store)]
    assert {entry.store for entry in made.sessions} == {None}


def test_a_rule_that_could_not_run_says_on_which_store(house: House) -> None:
    house["work"].store.write_bytes(bytes(8192))

    made = report(house)

    (rule,) = made.rules
    assert (rule.status, rule.findings) == ("could not run", 1)
    assert str(house["work"].store) in rule.reason
    assert made.exit_code == 3
    assert "1 store could not be read" in made.verdict
