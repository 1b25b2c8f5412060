"""The page of a story as a browser shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from playwright.sync_api import Browser, BrowserContext, Page
from tests.report import sample

from statemend.report import json as report_json
from statemend.report.model import Report
from statemend.report.story.html import render
from statemend.report.story.model import Changed, Decision, Story
from statemend.report.story.tell import gather

pytestmark = pytest.mark.browser

Scheme = Literal["light", "dark"]
REPORTS: dict[str, Callable[[], Report]] = {
    "full": sample.report,
    "clean": sample.clean_report,
    "hostile": sample.hostile_report,
}
HOSTILE = "<b onclick=x>\u202e" + "w" * 200


def story(report: Report, folder: Path) -> Story:
    """The story of a report, with a change and a decision in it."""
    file = folder / "report.json"
    file.write_text(report_json.render(report), encoding="utf-8")
    changed = Changed(
        what="repair",
        run="/home/somebody/.hermes.statemend/20261130T110312Z-1f2e3d4c",
        store="/home/somebody/.hermes/state.db",
        state="applied and verified",
        at="2026-11-30T11:03:12Z",
        rows={"sessions": 1, "messages": 12_000},
        sessions=("20260914_205500_0a11ce",),
        digest_before="a" * 64,
        digest_after="b" * 64,
        snapshot="c" * 64,
        notes=(HOSTILE,),
        command="statemend undo /home/somebody/.hermes.statemend/20261130T110312Z-1f2e3d4c",
    )
    decision = Decision(
        question=HOSTILE,
        answer="the younger one",
        why=HOSTILE,
        evidence=(HOSTILE,),
        command="statemend plan ~",
    )
    return msgspec.structs.replace(gather([file]), changed=(changed,), decisions=(decision,))


@pytest.fixture
def show(chromium: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Opens the story of a report; options are those of a browser context."""
    contexts: list[BrowserContext] = []

    def open_page(report: Report, **options: object) -> Page:
        file = tmp_path / "story.html"
        file.write_text(render(story(report, tmp_path)), encoding="utf-8")
        context = chromium.new_context(**options)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", sorted(REPORTS))
def test_axe_finds_nothing(show: Callable[..., Page], axe: str, name: str, scheme: Scheme) -> None:
    page = show(REPORTS[name](), color_scheme=scheme, viewport={"width": 1400, "height": 900})
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.evaluate(axe)  # the page itself allows no script
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    assert found["passes"], "axe looked at nothing"
    told = [(each["id"], [node["html"][:160] for node in each["nodes"][:3]]) for each in found["violations"]]
    assert told == []


@pytest.mark.parametrize("width", [320, 760, 1400])
@pytest.mark.parametrize("name", sorted(REPORTS))
def test_the_page_never_scrolls_sideways(show: Callable[..., Page], name: str, width: int) -> None:
    page = show(REPORTS[name](), viewport={"width": width, "height": 800})
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_it_is_read_without_a_script_and_nothing_of_it_runs(show: Callable[..., Page]) -> None:
    page = show(REPORTS["hostile"](), java_script_enabled=False)
    assert page.locator("script").count() == 0
    assert page.locator("[onclick]").count() == 0
    assert page.locator("h1").is_visible()
