"""Rows that a compaction wrote again: what holds one of them holds the words, and no more than the words."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.evidence.scene import KINDS, SUMMARY, Scene, causes
from tests.evidence.test_odd_company import counted

from statemend.evidence.coverage import Cause, Scope
from statemend.formats.artifact import Kind

EACH_KIND = pytest.mark.parametrize("kind", KINDS)
ABSORBED = (
    "[PRIOR CONTEXT — for reference only; not a new message]\ntwo\n\n"
    f"[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]\n{SUMMARY}"
)


@EACH_KIND
@pytest.mark.parametrize("release", ["0.19.0", "0.22.2"])
def test_an_export_holds_the_copy_of_a_row_that_a_compaction_superseded(
    release: str, kind: Kind, tmp_path: Path
) -> None:
    """0.22 leaves the originals of a kept tail as if they were undone; the copies have their times."""
    scene = Scene(tmp_path / "home", release).session()
    scene.say("one", 1.0).say("two", 2.0).say("three", 3.0)
    scene.export(kind, at=4.0)
    scene.change("UPDATE messages SET active = 0, compacted = (id < 2)")
    scene.say(SUMMARY, 5.0).say("two", 2.0).say("three", 3.0)
    coverage = scene.coverage()
    assert causes(coverage) == {4: Cause.LATER}
    assert (coverage.exact + coverage.lossy, coverage.rewound, coverage.extra) == (3, 0, 0)


@EACH_KIND
def test_a_row_does_not_hold_the_summary_that_absorbed_it(kind: Kind, tmp_path: Path) -> None:
    scene = Scene(tmp_path / "home", "0.20.1").session()
    scene.say("one", 1.0).say("two", 2.0).say("three", 3.0)
    before = scene.export(kind, at=4.0, name="before")
    scene.change("UPDATE messages SET active = 0, compacted = 1")
    scene.say(ABSORBED, 5.0).say("three", 5.000001)
    after = scene.export(kind, at=6.0, name="after")
    found = {each.artifact: causes(each) for each in scene.session_coverage().artifacts}
    assert found == {str(before): {4: Cause.LATER}, str(after): {1: Cause.ARCHIVED}}


@pytest.mark.parametrize("kind", [Kind.JSONL, Kind.PROMPTS_JSONL, Kind.PROMPTS_MARKDOWN])
def test_ids_tell_that_an_export_was_made_after_the_compaction(kind: Kind, tmp_path: Path) -> None:
    """The summary is none of the user's, and the tail kept its time: without ids nothing would tell."""
    scene = Scene(tmp_path / "home", "0.22.2").session()
    scene.say("one", 1.0).say("two", 2.0)
    scene.change("UPDATE messages SET active = 0, compacted = (id < 2)")
    scene.say(SUMMARY, 5.0, role="assistant").say("two", 2.0)
    scene.export(kind, at=6.0)
    assert causes(scene.coverage()) == {1: Cause.ARCHIVED}


@pytest.mark.parametrize("kind", [Kind.MARKDOWN, Kind.QMD])
def test_a_summary_under_an_older_time_does_not_date_the_compaction(kind: Kind, tmp_path: Path) -> None:
    """0.22 gives a row that took the summary in the time of its words."""
    scene = Scene(tmp_path / "home", "0.22.2").session()
    scene.say("one", 1.0).say("two", 2.0).say("three", 3.0)
    counted(scene)
    before = scene.export(kind, at=4.0, name="before")
    scene.change("UPDATE messages SET active = 0, compacted = (id < 2)")
    scene.say(ABSORBED, 2.0).say("three", 3.0).say("four", 10.0)
    counted(scene)
    after = scene.export(kind, at=11.0, name="after")
    found = {each.artifact: (each.scope, causes(each)) for each in scene.session_coverage().artifacts}
    assert found == {
        str(before): (Scope.UNKNOWN, {4: Cause.LATER, 6: Cause.LATER}),
        str(after): (Scope.ACTIVE, {1: Cause.ARCHIVED}),
    }
