"""Which releases can have written a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.formats.corpus import EXPORTS, READABLE, VERSIONS, files
from tests.formats.messages import message

from statemend import formats
from statemend.formats import html
from statemend.formats.era import releases
from statemend.formats.html import Page

SAVES = EXPORTS.parent / "saves"
#: What the files of a release say at least, whatever the session.
ROWS = {
    "0.13.0": "0.14 or older",
    "0.16.0": "0.16 or 0.17",
    "0.18.2": "0.18 or newer",
    "0.19.0": "0.19 or newer",
    "0.20.1": "0.20 or newer",
    "0.22.2": "0.22 or newer",
}
PAGES = {"0.18.2": {"0.18"}, "0.19.0": {"0.19", "0.19 or newer"}, "0.20.1": None, "0.22.2": None}
AFTER = {"0.19 or newer", "0.20 or newer"}


def told(path: Path) -> str | None:
    return releases(formats.read(path))


@pytest.mark.parametrize("version", VERSIONS)
def test_columns_tell_of_jsonl(version: str) -> None:
    found = {told(path) for path in files(version, "jsonl/*.jsonl") if formats.read(path).sections}
    assert found - {None} == {ROWS[version]}


@pytest.mark.parametrize("version", READABLE)
def test_every_real_page_is_of_its_release(version: str) -> None:
    found = {told(path) for path in files(version, "html/*.html")}
    assert found <= (PAGES[version] or AFTER)


@pytest.mark.parametrize("version", READABLE[2:])
def test_a_saved_page_is_one_of_the_newer(version: str) -> None:
    pages = [path for path in (SAVES / version).rglob("*.html") if formats.read(path).kind.value == "html"]
    assert pages
    assert {told(path) for path in pages} <= AFTER


@pytest.mark.parametrize(
    ("page", "model", "expected"),
    [
        (Page.V19, "m", "0.19 or newer"),
        (Page.V19, None, "0.19"),
        (Page.V20, "m", "0.19 or newer"),
        (Page.V20, None, "0.20 or newer"),
    ],
)
def test_a_missing_model_tells_what_the_policy_does_not(
    page: Page, model: str | None, expected: str, tmp_path: Path
) -> None:
    session = {"id": "s1", "title": "None", "model": model, "started_at": 1.0, "system_prompt": "Unknown"}
    said = message(1, "user", "<strong>Model:</strong> None</div>")
    text = "".join(html.render([(session, [said])], generated_at="now", page=page))
    path = tmp_path / "page.html"
    path.write_text(text)
    assert told(path) is None  # no release has this policy
    path.write_text(text.replace("default-src 'none'; ", "default-src 'none'; script-src 'nonce-abc'; "))
    assert told(path) == expected


def test_a_page_without_sessions_is_of_any(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(b"<html><body><h1>No sessions to export.</h1></body></html>")
    assert told(path) == "0.18 or newer"
