"""A headless Chromium, where the system has one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The browser. Without one the test is skipped, unless STATEMEND_REQUIRE_BROWSER=1 makes that a
    failure."""
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        message = f"no browser on the path: none of {', '.join(NAMES)}"
        if os.environ.get("STATEMEND_REQUIRE_BROWSER") == "1":
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, from the package that ships it."""
    import axe_playwright_python

    return (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")
