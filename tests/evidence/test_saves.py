"""Real saves, transcripts, traces and snapshots against the real stores that they were made from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.corpus import EXPORTS, VERSIONS

from statemend.evidence.coverage import ArtifactCoverage, Cause, Scope, SessionCoverage, assess
from statemend.evidence.inventory import find_home, take
from statemend.formats.artifact import Kind
from statemend.store.connection import open_for_audit
from statemend.store.history import RowState, View, messages

SAVES = EXPORTS.parent / "saves"

#: What each release's code selected for each kind of file: every row, live and archived rows, or the rows
#: that were live. Of a session without archived rows the three are one, but for rows that were undone.
SELECTED = {
    ("0.13.0", Kind.SAVE_JSON): View.ACTIVE,
    ("0.13.0", Kind.SNAPSHOT_JSON): View.ACTIVE,
    ("0.13.0", Kind.TRANSCRIPT_JSONL): View.ACTIVE,
    ("0.13.0", Kind.TRAJECTORY): View.ACTIVE,
    ("0.16.0", Kind.SAVE_JSON): View.ACTIVE,
    ("0.16.0", Kind.SNAPSHOT_JSON): View.ACTIVE,
    ("0.16.0", Kind.JSONL): View.ACTIVE,
    ("0.16.0", Kind.DESKTOP_JSON): View.ACTIVE,
    ("0.18.2", Kind.SAVE_JSON): View.ACTIVE,
    ("0.18.2", Kind.SNAPSHOT_JSON): View.ACTIVE,
    ("0.18.2", Kind.TRACE): View.ACTIVE,
    ("0.18.2", Kind.JSONL): View.ACTIVE,
    ("0.18.2", Kind.DESKTOP_JSON): View.ACTIVE,
    ("0.19.0", Kind.SAVE_JSON): View.ACTIVE,
    ("0.19.0", Kind.TRACE): View.ACTIVE,
    ("0.19.0", Kind.TRAJECTORY): View.ACTIVE,
    ("0.19.0", Kind.JSONL): View.ACTIVE,
    ("0.20.1", Kind.SAVE_JSON): View.ACTIVE,
    ("0.20.1", Kind.SNAPSHOT_JSON): View.ACTIVE,
    ("0.20.1", Kind.SAVE_MARKDOWN): View.ACTIVE,
    ("0.20.1", Kind.HTML): View.ACTIVE,
    ("0.20.1", Kind.JSONL): View.ACTIVE,
    ("0.20.1", Kind.TRACE): View.ACTIVE,
    ("0.20.1", Kind.DESKTOP_JSON): View.DISPLAY,
    ("0.22.2", Kind.SAVE_MARKDOWN): View.DISPLAY,
    ("0.22.2", Kind.HTML): View.DISPLAY,
    ("0.22.2", Kind.DESKTOP_JSON): View.DISPLAY,
    ("0.22.2", Kind.TRACE): View.ACTIVE,
    ("0.22.2", Kind.TRAJECTORY): View.ACTIVE,
}
#: In 0.22.2 the dashboard takes every row; /save json drops those that were undone.
EVERY_ROW, KEPT_ROWS = "misc/dashboard", "save-cli"

Row = tuple[int, RowState]
Saves = dict[str, tuple[dict[str, SessionCoverage], dict[str, list[Row]]]]


@pytest.fixture(scope="module")
def saves(
    tmp_path_factory: pytest.TempPathFactory,
) -> Saves:
    """For each release the coverage of its sessions by its saves, and the rows of each session."""
    found = {}
    for version in VERSIONS:
        folder = tmp_path_factory.mktemp(version)
        shutil.copyfile(EXPORTS / version / "state.db", folder / "state.db")
        inventory = take(find_home(folder), [SAVES / version])
        assert [each for each in inventory.skipped if str(SAVES) in each.path] == []
        assert [each.path for each in inventory.artifacts if each.damage] == []
        with open_for_audit(folder / "state.db") as store:
            sessions = {each.session_id: each for each in assess(store, inventory)}
            rows = {sid: [(row.id, row.state) for row in messages(store, sid, View.RAW)] for sid in sessions}
        found[version] = sessions, rows
    return found


def covered(sessions: dict[str, SessionCoverage]) -> list[ArtifactCoverage]:
    return [artifact for session in sessions.values() for artifact in session.artifacts]


@pytest.mark.parametrize("version", VERSIONS)
def test_each_file_holds_what_its_release_selected(version: str, saves: Saves) -> None:
    sessions, rows = saves[version]
    for artifact in covered(sessions):
        place = str(Path(artifact.artifact).relative_to(SAVES / version))
        if version == "0.22.2" and artifact.kind is Kind.JSONL:
            assert place.startswith((EVERY_ROW, KEPT_ROWS))
            selected = View.RAW if place.startswith(EVERY_ROW) else View.DISPLAY
        else:
            selected = SELECTED[version, artifact.kind]
        session = sessions[artifact.session_id]
        held = artifact.exact + artifact.lossy + artifact.masked
        archived = session.archived if selected is View.ACTIVE else 0
        hidden = 1 if artifact.kind is Kind.TRACE and "single-W" in place else 0  # a system message
        assert held == session.display - archived - hidden, place
        assert {each.cause for each in artifact.missing} <= {Cause.ARCHIVED}, place
        assert len(artifact.missing) == archived, place
        undone = sum(state is RowState.REWOUND for _, state in rows[artifact.session_id])
        rewound = undone if selected is View.RAW else 0
        assert (artifact.extra, artifact.changed, artifact.rewound, artifact.cut) == (
            0,
            (),
            rewound,
            False,
        ), place
        assert artifact.records == held + rewound, place


@pytest.mark.parametrize("version", VERSIONS)
def test_every_file_is_whose_it_is(version: str, saves: Saves) -> None:
    """Those without a session id too: all are of the session with the tools."""
    sessions, _ = saves[version]
    names = json.loads((EXPORTS / version / "ids.json").read_text())
    found = {artifact.artifact: artifact.session_id for artifact in covered(sessions)}
    files = [path for path in (SAVES / version).rglob("*") if path.is_file()]
    assert {str(path) for path in files} == set(found)
    for path in files:
        if "trajectory" in path.parent.name or "tui" in path.parent.name:
            assert found[str(path)] == names["T"], path


@pytest.mark.parametrize(
    ("version", "kind", "masked"),
    [
        ("0.16.0", Kind.SNAPSHOT_JSON, 1),
        ("0.18.2", Kind.SNAPSHOT_JSON, 1),
        ("0.20.1", Kind.SNAPSHOT_JSON, 1),
        ("0.13.0", Kind.SNAPSHOT_JSON, 0),
        ("0.18.2", Kind.TRACE, 1),
        ("0.19.0", Kind.TRACE, 0),
        ("0.22.2", Kind.TRACE, 0),
        ("0.20.1", Kind.JSONL, 1),
        ("0.22.2", Kind.JSONL, 1),
    ],
)
def test_a_masked_message_is_held_masked(version: str, kind: Kind, masked: int, saves: Saves) -> None:
    sessions, _ = saves[version]
    tools = json.loads((EXPORTS / version / "ids.json").read_text())["T"]
    found = {each.masked for each in sessions[tools].artifacts if each.kind is kind}
    assert found == {masked}


def test_what_the_desktop_shows_of_a_lineage_is_told_segment_by_segment(saves: Saves) -> None:
    sessions, _ = saves["0.22.2"]
    names = json.loads((EXPORTS / "0.22.2" / "ids.json").read_text())
    for name, exact in (("R1", 6), ("R2", 5)):
        (found,) = [each for each in sessions[names[name]].artifacts if each.kind is Kind.DESKTOP_JSON]
        assert (found.exact, found.missing) == (exact, ())


def test_what_was_written_from_memory_says_so(saves: Saves) -> None:
    for version in VERSIONS:
        for artifact in covered(saves[version][0]):
            if artifact.kind in (Kind.SAVE_JSON, Kind.SNAPSHOT_JSON, Kind.TRANSCRIPT_JSONL, Kind.TRAJECTORY):
                assert artifact.scope is Scope.CONTEXT
                assert artifact.exact == 0
                assert {"id", "row state"} <= set(artifact.drops)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spoilt")
    shutil.copyfile(EXPORTS / "0.20.1" / "state.db", folder / "state.db")
    (folder / "sessions").mkdir()
    return folder


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_spoilt_file_never_holds_more(home: Path, saves: Saves, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted((SAVES / "0.20.1").rglob("*.*"))))
    content = path.read_bytes()
    start = data.draw(st.integers(0, len(content) - 1))
    end = data.draw(st.integers(start, min(start + 400, len(content))))
    piece = data.draw(
        st.sampled_from([b"", content[start:end] * 2, bytes(each ^ 4 for each in content[start:end])])
    )
    (home / "sessions" / f"spoilt{path.suffix}").write_bytes(content[:start] + piece + content[end:])
    inventory = take(find_home(home))
    with open_for_audit(home / "state.db") as store:
        spoilt = covered({each.session_id: each for each in assess(store, inventory)})
    (home / "sessions" / f"spoilt{path.suffix}").unlink()
    whole = [each for each in covered(saves["0.20.1"][0]) if each.artifact == str(path)]
    held = [each.exact + each.lossy + each.masked for each in (*spoilt, *whole)]
    assert sum(held[: len(spoilt)]) <= sum(held[len(spoilt) :])
