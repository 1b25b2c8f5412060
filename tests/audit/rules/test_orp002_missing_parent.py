"""ORP002 missing-parent."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import EXPORTED, VERSIONS, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict

pytestmark = pytest.mark.built(
    "ORP002", "each release clears the link of the children when it deletes a session"
)

Build = Callable[..., HomeBuilder]


@pytest.mark.fires("ORP002")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_parent_that_is_gone_without_a_trace(build: Build, version: str) -> None:
    home = build(version)
    home.chat("child", 2, parent_session_id="gone", title="Taxes #2")

    (finding,) = home.findings("ORP002")

    assert finding.subject.session == "child"
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.MEDIUM)
    assert facts(finding)["missing parent"] == "gone"
    assert facts(finding)["title"] == "Taxes #2"
    assert "neither are its messages" in finding.summary


def test_a_parent_whose_messages_are_still_there(build: Build) -> None:
    home = build()
    home.chat("parent", 3)
    home.chat("child", 2, parent_session_id="parent")
    home.sql("DELETE FROM sessions WHERE id = 'parent'")

    (finding,) = home.findings("ORP002")

    assert facts(finding)["rows of the missing parent"] == 3
    assert "Rebuild the parent" in finding.remedy.text


def test_every_child_is_told_of(build: Build) -> None:
    home = build()
    for name in ("a", "b"):
        home.chat(name, 2, parent_session_id="gone")

    assert [finding.subject.session for finding in home.findings("ORP002")] == ["a", "b"]


@pytest.mark.near_miss("ORP002")
def test_a_parent_that_is_there_or_none_is_lawful(build: Build) -> None:
    home = build()
    home.chat("root", 2)
    home.chat("child", 2, parent_session_id="root")

    assert home.findings("ORP002") == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sound_store_of_each_release_is_clean(build: Build, version: str) -> None:
    assert build(version, empty=False).result("ORP002").status == "clean"


@pytest.mark.parametrize("version", EXPORTED)
def test_a_used_store_of_each_release_is_clean(build: Build, version: str) -> None:
    assert build(version, rich=True).result("ORP002").status == "clean"
