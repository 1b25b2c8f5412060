"""Coverage of real exports by the real stores that they were made from."""

from __future__ import annotations

import json
import shutil

import apsw
import pytest
from tests.formats.corpus import EXPORTS, READABLE, VERSIONS, files

from statemend.evidence.coverage import Cause, Scope, SessionCoverage, assess
from statemend.evidence.inventory import find_home, take
from statemend.formats.artifact import FILTERED, Kind
from statemend.store.connection import open_for_audit

#: Archived messages of the samples: compacted once, and twice.
ARCHIVED = {"C": 8, "C2": 19}
BEFORE_THE_FIX = READABLE[:3]

READ_ONLY = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI

Sessions = dict[str, SessionCoverage]


@pytest.fixture(scope="module")
def coverages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sessions]:
    """For each release, the coverage of its samples by all its exports, by the samples' short names."""
    found: dict[str, Sessions] = {}
    for version in VERSIONS:
        folder = tmp_path_factory.mktemp(version)
        shutil.copyfile(EXPORTS / version / "state.db", folder / "state.db")
        names = {sid: name for name, sid in json.loads((EXPORTS / version / "ids.json").read_text()).items()}
        # The store of the samples lies among them, and holds everything.
        exports = sorted(each for each in (EXPORTS / version).iterdir() if each.name != "state.db")
        inventory = take(find_home(folder), exports)
        with open_for_audit(folder / "state.db") as store:
            found[version] = {names[each.session_id]: each for each in assess(store, inventory)}
    return found


def of_users(version: str) -> set[int]:
    """The ids of all user rows in the store of a release."""
    connection = apsw.Connection(f"file:{EXPORTS / version / 'state.db'}?immutable=1", flags=READ_ONLY)
    return {row_id for (row_id,) in connection.execute("SELECT id FROM messages WHERE role = 'user'")}


@pytest.mark.parametrize("version", BEFORE_THE_FIX)
@pytest.mark.parametrize("name", ARCHIVED)
def test_names_exactly_the_archived_messages_that_no_export_holds(
    version: str, name: str, coverages: dict[str, Sessions]
) -> None:
    session, users = coverages[version][name], of_users(version)
    assert len(session.unheld) == session.archived == ARCHIVED[name]
    kinds = {each.kind for each in session.artifacts}
    assert kinds >= {Kind.JSONL, Kind.MARKDOWN, Kind.HTML, Kind.PROMPTS_JSONL}
    for artifact in session.artifacts:
        missing = {each.message_id: each.cause for each in artifact.missing}
        assert set(missing.values()) == {Cause.ARCHIVED}, artifact.artifact
        shown = users if artifact.kind in FILTERED else set(session.unheld)
        assert set(missing) == set(session.unheld) & shown, artifact.artifact
        assert artifact.scope is (Scope.PROMPTS if artifact.kind in FILTERED else Scope.ACTIVE)


def test_the_first_sample_lacks_its_first_four_turns(coverages: dict[str, Sessions]) -> None:
    assert {coverages[version]["C"].unheld for version in BEFORE_THE_FIX} == {tuple(range(36, 44))}


@pytest.mark.parametrize("name", ARCHIVED)
def test_exports_since_the_fix_hold_everything(name: str, coverages: dict[str, Sessions]) -> None:
    session = coverages["0.22.2"][name]
    assert session.archived == ARCHIVED[name]
    assert session.unheld == ()
    for artifact in session.artifacts:
        assert artifact.missing == (), artifact.artifact
        if artifact.kind not in FILTERED:
            assert artifact.exact + artifact.lossy == session.display
            assert artifact.scope is (Scope.ALL if artifact.kind is Kind.JSONL else Scope.DISPLAY)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_other_session_is_whole(version: str, coverages: dict[str, Sessions]) -> None:
    others = [(name, each) for name, each in coverages[version].items() if not each.archived]
    assert {name for name, _ in others} >= {"P", "B", "T", "MM", "W", "R1", "R2", "U", "D1", "D2", "E", "G"}
    for name, session in others:
        assert session.present
        assert session.unheld == (), name
        for artifact in session.artifacts:
            assert artifact.missing == (), artifact.artifact


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_real_counts_as_changed_or_foreign(version: str, coverages: dict[str, Sessions]) -> None:
    for session in coverages[version].values():
        for artifact in session.artifacts:
            held = artifact.exact + artifact.lossy + artifact.masked + artifact.rewound
            assert (artifact.changed, artifact.extra, artifact.cut) == ((), 0, False), artifact.artifact
            assert artifact.records == held, artifact.artifact


@pytest.mark.parametrize("version", READABLE)
def test_jsonl_keeps_every_column_and_the_others_do_not(version: str, coverages: dict[str, Sessions]) -> None:
    tools = coverages[version]["T"]
    for artifact in tools.artifacts:
        if artifact.kind is Kind.JSONL:
            assert (artifact.exact + artifact.masked, artifact.drops) == (9, ())
        else:
            assert artifact.exact == 0
            assert "row state" in artifact.drops
    drops = {artifact.kind: set(artifact.drops) for artifact in tools.artifacts}
    assert "reasoning" in drops[Kind.MARKDOWN]
    assert "reasoning" not in drops[Kind.HTML]
    assert drops[Kind.HTML] >= {"tool_name", "fraction of the second"}


@pytest.mark.parametrize("version", READABLE)
def test_a_redacted_export_holds_one_message_masked(version: str, coverages: dict[str, Sessions]) -> None:
    redacted = [each for each in coverages[version]["T"].artifacts if "redact" in each.artifact]
    assert {each.kind for each in redacted} >= {Kind.JSONL, Kind.MARKDOWN, Kind.HTML}
    for artifact in redacted:
        assert (artifact.masked, artifact.exact + artifact.lossy) == (1, 8), artifact.artifact


def test_undone_rows_are_told_apart_from_rows_the_store_does_not_have(coverages: dict[str, Sessions]) -> None:
    jsonl = [each for each in coverages["0.22.2"]["U"].artifacts if each.kind is Kind.JSONL]
    assert jsonl
    assert {(each.exact, each.rewound, each.extra) for each in jsonl} == {(4, 2, 0)}


@pytest.mark.parametrize("version", READABLE)
def test_a_logical_export_counts_for_each_of_its_segments(
    version: str, coverages: dict[str, Sessions]
) -> None:
    (path,) = files(version, "md-logical/2*.md")
    for name, count in (("R1", 6), ("R2", 5)):
        (found,) = [each for each in coverages[version][name].artifacts if each.artifact == str(path)]
        assert (found.lossy, found.records) == (count, count)
