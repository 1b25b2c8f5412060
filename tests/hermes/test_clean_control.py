"""No alarm without a fire: homes made only by correct use give no finding of verdict fault or risk.

One thing is damaged by the releases themselves: opening a store that only releases before 0.17 have opened
guesses which sessions were delegates, and guesses some wrong. There exactly the rule for it speaks, of
exactly those sessions, and raises an alarm where the session itself shows that the guess was wrong.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from tests.hermes.home import HermesHome
from tests.hermes.scenes import Scene

from statemend.audit.engine import audit
from statemend.audit.finding import Finding, Verdict
from statemend.audit.outcome import Audit

ALARMING = (Verdict.FAULT, Verdict.RISK)
PATHS = [
    ("0.13.0", "0.22.2"),
    ("0.16.0", "0.22.2"),
    ("0.18.2", "0.22.2"),
    ("0.19.0", "0.22.2"),
    ("0.20.1", "0.22.2"),
    ("0.13.0", "0.16.0", "0.18.2", "0.19.0", "0.20.1", "0.22.2"),
    ("0.16.0", "0.18.2", "0.19.0"),
]

LivedIn = Callable[[str], Scene]


def alarms(found: Audit) -> list[Finding]:
    assert found.undetermined == ()
    return [finding for finding in found.findings if finding.verdict in ALARMING]


def told(findings: Iterable[Finding], home: Scene | None = None) -> list[str]:
    """Findings in words short enough for a failing test."""
    roles = {} if home is None else {session: role for role, session in home.roles.items()}
    return [
        f"{one.rule} {roles.get(one.subject.session or '', one.subject.session)} "
        f"{one.subject.artifact or ''}: {one.summary} "
        f"{[(fact.label, fact.value) for fact in one.evidence]}"
        for one in findings
    ]


def test_a_home_in_use_is_clean(lived_in: LivedIn, version: str) -> None:
    scene = lived_in(version)
    found = audit(scene.home, now=scene.now)
    assert told(alarms(found), scene) == []
    assert found.store.unchanged


@pytest.mark.parametrize("path", PATHS, ids="-".join)
def test_an_upgraded_home_shows_only_what_the_upgrade_damaged(
    path: tuple[str, ...], lived_in: LivedIn, tmp_path: Path
) -> None:
    scene = lived_in(path[0])
    folder = tmp_path / "home"
    shutil.copytree(scene.home, folder)
    before = delegate_marks(folder / "state.db")
    home = HermesHome(path[0], folder, now=scene.now)
    for release in path[1:]:
        home.upgrade(release)
        since = home.create_session(f"20261120_0900{home.release.number[1]:02}_abcdef")
        home.exchange(since, 1)
        home.title(since, f"Since {release}")
    home.stop()
    marked = delegate_marks(folder / "state.db").items() - before.items()
    delegates = {scene["delegate"], scene["delegate of a deleted chat"]}
    mistagged = {session for session, _ in marked if session not in delegates}
    chats = {scene["untitled tools"], scene["untitled tools, two turns"], scene["cron"]}
    assert mistagged == (chats if path[0] < "0.17" else set())

    found = audit(folder, now=home.now)

    assert found.undetermined == ()
    by_rule = [one for one in found.findings if one.rule == "LIN008"]
    assert {one.subject.session for one in by_rule} == mistagged, told(by_rule, scene)
    assert told((one for one in alarms(found) if one.rule != "LIN008"), scene) == []
    if mistagged:
        assert {one.subject.session for one in alarms(found)} == {scene["untitled tools, two turns"]}


def delegate_marks(store: Path) -> dict[str, str]:
    """Session ids and the delegate marker that each carries."""
    connection = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    try:
        rows = connection.execute("SELECT id, model_config FROM sessions WHERE model_config IS NOT NULL")
        marks = {session: json.loads(config).get("_delegate_from") for session, config in rows}
    finally:
        connection.close()
    return {session: mark for session, mark in marks.items() if mark}
