"""The page as a browser shows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, Request
from tests.report import sample

from statemend.report import html
from statemend.report.model import Report

pytestmark = pytest.mark.browser

REPORTS: dict[str, Callable[[], Report]] = {
    "full": sample.report,
    "clean": sample.clean_report,
    "hostile": sample.hostile_report,
    "large": sample.large_report,
}
Scheme = Literal["light", "dark"]


@pytest.fixture
def show(chromium: Browser, tmp_path: Path) -> Callable[..., Page]:
    """Opens a report in a new page; options are those of a browser context. Requests and messages of the
    console are kept in ``page.asked`` and ``page.said``."""
    contexts = []

    def open_page(report: Report, **options: object) -> Page:
        file = tmp_path / "report.html"
        file.write_text(html.render(report), encoding="utf-8")
        context = chromium.new_context(**options)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.asked, page.said = [], []  # type: ignore[attr-defined]

        def ask(request: Request) -> None:
            page.asked.append(request.url)  # type: ignore[attr-defined]

        page.on("request", ask)
        page.on("console", lambda message: page.said.append(message.text))  # type: ignore[attr-defined]
        page.on("pageerror", lambda error: page.said.append(str(error)))  # type: ignore[attr-defined]
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["full", "clean", "hostile"])
def test_axe_finds_nothing(
    show: Callable[..., Page], axe: str, name: str, scheme: Scheme, width: int
) -> None:
    page = show(REPORTS[name](), color_scheme=scheme, viewport={"width": width, "height": 900})
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    assert found["passes"], "axe looked at nothing"
    told = [(each["id"], [node["html"][:160] for node in each["nodes"][:3]]) for each in found["violations"]]
    assert told == []


@pytest.mark.parametrize("name", list(REPORTS))
def test_nothing_is_asked_for_and_nothing_is_complained_of(show: Callable[..., Page], name: str) -> None:
    page = show(REPORTS[name]())
    page.wait_for_load_state("networkidle")
    assert [url for url in page.asked if url != page.url] == []  # type: ignore[attr-defined]
    assert page.said == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [320, 400, 760, 1024, 1400])
@pytest.mark.parametrize("name", list(REPORTS))
def test_the_page_never_scrolls_sideways(show: Callable[..., Page], name: str, width: int) -> None:
    page = show(REPORTS[name](), viewport={"width": width, "height": 900})
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_everything_can_be_read_without_a_script(show: Callable[..., Page]) -> None:
    report = sample.report()
    page = show(report, java_script_enabled=False)
    for finding in report.findings:
        assert page.locator(f"#{finding.id}").get_by_text(finding.summary).is_visible()
        assert page.locator(f"#{finding.id}").get_by_text(finding.remedy.text).is_visible()
    assert page.get_by_role("heading", level=1).inner_text() == report.verdict
    assert page.get_by_role("button").count() == 0
    page.get_by_text("The timeline as a table").click()
    assert page.get_by_role("table", name="What happened, oldest first").is_visible()


def test_a_title_with_a_script_stays_text(show: Callable[..., Page]) -> None:
    page = show(sample.hostile_report())
    assert page.locator("script").count() == 1
    assert page.get_by_text('<script>alert("x")</script>', exact=False).count() > 3


def test_a_script_slipped_into_the_page_does_not_run(show: Callable[..., Page], tmp_path: Path) -> None:
    page = show(sample.report())
    file = tmp_path / "forged.html"
    document = html.render(sample.report())
    file.write_text(
        document.replace("</main>", "<script>window.slipped = 1</script></main>"), encoding="utf-8"
    )
    page.goto(file.as_uri())
    assert page.evaluate("window.slipped") is None
    assert any("Content Security Policy" in line for line in page.said)  # type: ignore[attr-defined]


def test_a_command_is_copied(show: Callable[..., Page]) -> None:
    page = show(sample.report(), permissions=["clipboard-read", "clipboard-write"])
    block = page.locator(".finding .cmd").first
    block.get_by_role("button", name="Copy command").click()
    page.get_by_text("Command copied").wait_for(state="attached")
    assert page.evaluate("navigator.clipboard.readText()") == block.locator("pre").inner_text()


def test_findings_can_be_narrowed_down(show: Callable[..., Page]) -> None:
    page = show(sample.report())
    page.get_by_label("Show only findings with").fill("auto-prune")
    assert page.locator(".finding:visible").count() == 1
    assert page.get_by_text(f"1 of {len(sample.FINDINGS)} shown").is_visible()
    page.get_by_label("Show only findings with").fill("")
    assert page.locator(".finding:visible").count() == len(sample.FINDINGS)


def test_a_deep_link_leads_to_its_finding(show: Callable[..., Page]) -> None:
    page = show(sample.report())
    last = sample.FINDINGS[-1].id
    page.goto(f"{page.url}#{last}")
    box = page.locator(f"#{last}").bounding_box()
    assert box is not None
    assert 0 <= box["y"] < 200


def test_the_keyboard_reaches_the_content_first(show: Callable[..., Page]) -> None:
    page = show(sample.report())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the findings"
    page.keyboard.press("Enter")
    assert page.url.endswith("#findings")


def test_in_print_every_table_is_open(show: Callable[..., Page]) -> None:
    page = show(sample.report())
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    assert not page.get_by_role("navigation").is_visible()
    assert page.pdf().startswith(b"%PDF")
