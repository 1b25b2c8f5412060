"""LIF005 debris-of-tests: routes that automatic tests left."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from tests.audit.builder import START, HomeBuilder, facts

from statemend.audit.finding import Verdict
from statemend.audit.rules.lifecycle import debris_of_tests

pytestmark = pytest.mark.built(
    "LIF005", "it takes a run of tests of Hermes with this home in its environment"
)
Build = Callable[..., HomeBuilder]
FOLDER_OF_A_TEST = debris_of_tests.is_of_a_test
FOLDER = "/tmp/pytest-of-ada/pytest-12/test_routes0/sessions"


@pytest.fixture(autouse=True)
def _not_a_tests_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """The homes built here do lie in such a folder, by whatever name."""
    monkeypatch.setattr(debris_of_tests, "is_of_a_test", lambda folder: folder == FOLDER)


def route(home: HomeBuilder, scope: str, session_id: str | None = "s", number: int = 1) -> None:
    home.insert(
        "gateway_routing",
        scope=scope,
        session_key=f"agent:main:telegram:dm:{number}",
        entry_json="{" if session_id is None else {"session_id": session_id},
        updated_at=START,
    )


@pytest.mark.fires("LIF005")
@pytest.mark.parametrize("version", ["0.18.2", "0.19.0", "0.20.1", "0.22.2"])
def test_routes_in_a_folder_of_tests_are_told(build: Build, version: str) -> None:
    home = build(version)
    home.chat("s")
    route(home, FOLDER)
    route(home, FOLDER, None, 2)
    (finding,) = home.findings("LIF005")
    assert finding.verdict is Verdict.LEFTOVER
    assert facts(finding)["routes"] == 2
    assert facts(finding)["folders of the tests"] == [FOLDER]
    assert facts(finding)["which"] == ["s"]
    assert facts(finding)["last written"] == "2026-09-21T14:13:20Z"


@pytest.mark.near_miss("LIF005")
@pytest.mark.parametrize("scope", ["", "/home/ada/.hermes/sessions", "/srv/pytest-of-ada/sessions"])
def test_routes_of_people_are_silent(build: Build, scope: str) -> None:
    home = build()
    route(home, scope)
    assert home.findings("LIF005") == []


@pytest.mark.parametrize(
    ("folder", "told"),
    [
        (FOLDER, True),
        ("/tmp/pytest-of-ada/pytest-0", True),
        ("C:\\pytest-of-ada\\pytest-0\\x", True),
        ("/srv/pytest-of-ada", False),
        ("/srv/my-pytest-of-ada/pytest-1/x", False),
        ("/srv/pytest-of-ada/x", False),
        ("/srv/pytest-of-/pytest-1/x", False),
        ("", False),
    ],
)
def test_a_folder_of_a_test_is_known_by_its_name(folder: str, told: bool) -> None:
    assert FOLDER_OF_A_TEST(folder) is told


def test_in_a_home_that_is_a_tests_nothing_is_debris(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    home = build()
    route(home, FOLDER)
    (finding,) = home.findings("LIF005")
    assert finding.summary == "1 route of automatic tests is in the store."
    folders = (FOLDER, os.path.realpath(home.root))
    monkeypatch.setattr(debris_of_tests, "is_of_a_test", lambda folder: folder in folders)
    assert home.findings("LIF005") == []


def test_a_release_without_routes_has_none(build: Build) -> None:
    assert build("0.13.0").result("LIF005").status == "not applicable"
