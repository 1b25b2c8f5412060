"""The story that reports and runs tell together."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import msgspec
import pytest

from statemend.demo.build import ORPHANED, build
from statemend.errors import UsageError
from statemend.repair.apply import apply
from statemend.repair.plan import dump
from statemend.repair.planner import make_plan
from statemend.repair.undo import undo
from statemend.report import json as report_json
from statemend.report.model import Report
from statemend.report.produce import produce
from statemend.report.story import render
from statemend.report.story.model import Story
from statemend.report.story.tell import gather


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """A report, the repair of what it found, and a report afterwards."""
    place = tmp_path_factory.mktemp("story")
    home = build(place / "home")
    _report(home, place / "before.json", now=1_795_000_000.0)
    plan = place / "plan.json"
    made = make_plan(home, recipes=["rebuild-session", "fork"])
    fork = made.choices[0]
    chosen = msgspec.structs.replace(fork, chosen=fork.options[0].id)
    plan.write_bytes(dump(msgspec.structs.replace(made, choices=(chosen, *made.choices[1:]))))
    apply(plan, run_dir=place / "run")
    _report(home, place / "after.json", now=None)
    return {
        "home": home,
        "before": place / "before.json",
        "run": place / "run",
        "after": place / "after.json",
    }


def _report(home: Path, target: Path, now: float | None) -> Report:
    report = produce(home, now=now)
    target.write_text(report_json.render(report))
    return report


@pytest.fixture
def story(told: Mapping[str, Path]) -> Story:
    return gather([told["before"], told["run"], told["after"]])


def test_it_tells_in_order_what_happened(story: Story) -> None:
    kinds = [moment.kind for moment in story.events]
    assert {"append-failed", "deleted", "compacted", "exported", "audited", "repaired"} <= set(kinds)
    times = [moment.at or (moment.clock or "").replace(" ", "T") for moment in story.events]
    assert [time[:16] for time in times] == sorted(time[:16] for time in times)
    assert kinds.count("audited") == 2
    assert kinds.index("deleted") > kinds.index("exported")


def test_what_two_reports_tell_is_told_once(told: Mapping[str, Path], story: Story) -> None:
    once = gather([told["before"]])
    assert len(story.events) == len(once.events) + 2
    findings = [each.finding for each in (*story.lost, *story.endangered, *story.other)]
    assert len(findings) == len(set(findings))


def test_a_finding_that_was_mended_names_the_run(told: Mapping[str, Path], story: Story) -> None:
    orphan = next(each for each in story.other if each.session == ORPHANED and each.finding)
    assert orphan.ended == str(told["run"])
    assert orphan.first == "2026-11-18T11:06:40Z"
    rebuilt = next(each for each in story.recovered if each.session == ORPHANED)
    assert any("session_id of its messages" in source for source in rebuilt.sources)
    assert {orphan.command, rebuilt.command} == {f"statemend verify {told['run']}"}, "no plan has it any more"
    assert all(each.command == rebuilt.command for each in story.decisions)


def test_a_finding_that_is_gone_from_a_later_report_is_asked_for_again(
    told: Mapping[str, Path], tmp_path: Path
) -> None:
    story = gather([told["before"], told["after"]])
    orphan = next(each for each in story.other if each.session == ORPHANED and each.finding)
    assert orphan.ended == str(told["after"])
    assert orphan.command == f"statemend scan {told['home']} --rules ORP001"


def test_a_home_named_from_here_is_the_one_that_a_run_names_in_whole(
    told: Mapping[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = json.loads(told["before"].read_text()) | {"home": told["home"].name}
    (tmp_path / "before.json").write_text(json.dumps(report))
    sources = [tmp_path / "before.json", told["run"], told["after"]]

    monkeypatch.chdir(told["home"].parent)
    here = gather(sources)
    monkeypatch.chdir(tmp_path)
    elsewhere = gather(sources)

    assert here.homes == (str(told["home"]),)
    assert elsewhere.homes == (told["home"].name, str(told["home"]))


def test_what_is_gone_stays_lost(story: Story) -> None:
    assert {(each.finding or "").partition("-")[0] for each in story.lost} == {"EXP002", "ORP004"}
    assert all(each.ended is None for each in story.lost)
    assert story.headline.startswith("Text is gone in 2 cases")


def test_a_finding_that_a_later_report_could_not_look_for_did_not_end(
    told: Mapping[str, Path], tmp_path: Path
) -> None:
    later = json.loads(told["after"].read_text())
    later["findings"] = []
    for rule in later["rules"]:
        rule["status"] = "could not run"
        rule["reason"] = "an index of sessions is damaged"
    (tmp_path / "later.json").write_text(json.dumps(later))
    found = gather([told["before"], tmp_path / "later.json"])
    assert all(each.ended is None for each in (*found.lost, *found.endangered, *found.other))
    assert len(found.unknown) >= len(later["rules"])


def test_it_says_what_was_changed_with_digests(told: Mapping[str, Path], story: Story) -> None:
    (changed,) = story.changed
    run = json.loads((told["run"] / "run.json").read_text())
    assert (changed.digest_before, changed.digest_after) == (run["digest_before"], run["digest_after"])
    assert changed.snapshot == run["snapshot"]["sha256"]
    assert changed.command == f"statemend undo {told['run']}"
    assert changed.rows["sessions"] >= 1


def test_it_says_what_was_decided(story: Story) -> None:
    assert [each.answer for each in story.decisions] != []
    assert all(each.question and each.answer and each.command for each in story.decisions)


def test_every_statement_names_a_command(story: Story) -> None:
    told = (*story.lost, *story.endangered, *story.other, *story.recovered, *story.unknown)
    assert all(each.command.startswith("statemend ") for each in (*told, *story.events, *story.changed))


def test_a_repair_that_was_undone_is_told_as_undone(told: Mapping[str, Path], tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(told["home"], home, copy_function=shutil.copy2)
    store = home / "state.db"
    shutil.copy2(told["run"] / "snapshot.db", store)
    plan = tmp_path / "plan.json"
    plan.write_bytes(dump(make_plan(home, recipes=["rebuild-session"])))
    apply(plan, run_dir=tmp_path / "run")
    undo(tmp_path / "run")
    found = gather([told["before"], tmp_path / "run"])
    assert [each.state for each in found.changed] == ["undone"]
    assert "undone" in [moment.kind for moment in found.events]
    assert found.recovered == ()
    assert next(each for each in found.other if each.session == ORPHANED).ended is None


@pytest.mark.parametrize("form", ["html", "md", "json"])
def test_every_form_is_whole_and_the_same_twice(story: Story, form: str) -> None:
    page = render.render(story, form)
    assert page == render.render(story, form)
    assert page.endswith("\n")
    for changed in story.changed:
        assert (changed.digest_after or "?") in page


def test_nothing_from_outside_is_obeyed(told: Mapping[str, Path], tmp_path: Path) -> None:
    nasty = "<script>alert(1)</script> | `x` \u202e @all"
    report = json.loads(told["before"].read_text())
    for finding in report["findings"]:
        finding["summary"] = nasty
    for event in report["timeline"]:
        event["detail"] = nasty
    (tmp_path / "nasty.json").write_text(json.dumps(report))
    found = gather([tmp_path / "nasty.json"])
    page = render.render(found, "html")
    assert "<script" not in page
    assert "\u202e" not in page
    assert "<script" not in render.render(found, "md")


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src"):
                self.links.append(value or "")
            if name == "id":
                self.ids.append(value or "")


def test_the_page_asks_for_nothing(story: Story) -> None:
    page = _Links()
    page.feed(render.render(story, "html"))
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert len(page.ids) == len(set(page.ids))


def test_the_json_is_as_the_schema_says(story: Story) -> None:
    schema = msgspec.json.schema(Story)
    jsonschema.validate(json.loads(render.render(story, "json")), schema)


def test_what_is_neither_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "letter.json").write_text("{}")
    for path in (tmp_path, tmp_path / "letter.json", tmp_path / "nothing"):
        with pytest.raises(UsageError) as caught:
            gather([path])
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
