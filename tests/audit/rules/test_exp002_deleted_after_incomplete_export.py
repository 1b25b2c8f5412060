"""EXP002 deleted-after-incomplete-export: a session that is gone, and its exports are not the whole of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import DATA, START, HomeBuilder, facts
from tests.store.test_index_texts import forgotten

from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."
COMPACTED = "20260801_120000_ffffff"
TWICE = "20260801_123000_f2f2f2"
ROTATED = "20260801_133000_222222"
#: When the summary of ``COMPACTED`` was made.
SUMMARY_AT = 1785577883.5
BEFORE_THE_FIX = ("0.18.2", "0.19.0", "0.20.1")
FILES = (
    f"delete-after-verified/compacted/{COMPACTED}-compacted-in-place.md",
    f"md/{COMPACTED}-compacted-in-place.md",
    f"qmd/{COMPACTED}-compacted-in-place.qmd",
    f"html/single-C-{COMPACTED}.html",
    f"jsonl/single-C-{COMPACTED}.jsonl",
)


def put(home: HomeBuilder, *files: str, version: str | None = None) -> None:
    """Copy real exports of a release into the home."""
    for file in files:
        source = DATA / "exports" / (version or home.version) / file
        target = home.root / "session-exports" / (version or home.version) / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def delete(home: HomeBuilder, *session_ids: str) -> None:
    """Delete sessions as Hermes does."""
    for session_id in session_ids:
        home.sql(
            f"UPDATE sessions SET parent_session_id = NULL WHERE parent_session_id = '{session_id}'",
            f"DELETE FROM messages WHERE session_id = '{session_id}'",
            f"DELETE FROM sessions WHERE id = '{session_id}'",
        )


@pytest.mark.fires("EXP002")
@pytest.mark.parametrize("version", BEFORE_THE_FIX)
@pytest.mark.parametrize("file", FILES)
def test_a_compacted_session_deleted_after_an_export_of_its_live_rows(
    build: Build, version: str, file: str
) -> None:
    home = build(version, rich=True)
    put(home, file)
    delete(home, COMPACTED)
    (finding,) = home.findings("EXP002")
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.CRITICAL)
    assert finding.subject.session == COMPACTED
    assert (finding.subject.artifact or "").endswith(file)
    evidence = facts(finding)
    assert evidence["messages in the export"] == 5
    assert evidence["a shown message stood before the compaction"] is True
    assert "ORIGINAL ANSWER" not in repr(finding)


@pytest.mark.parametrize("order", [1, -1])
def test_one_of_several_exports_in_a_file(build: Build, order: int) -> None:
    home = build("0.19.0", rich=True)
    files = sorted((DATA / "exports/0.19.0/md").glob("2*.md"))[::order]
    home.file("session-exports/all.md", b"".join(path.read_bytes() for path in files))
    delete(home, COMPACTED)
    (finding,) = home.findings("EXP002")
    assert (finding.verdict, finding.subject.session) == (Verdict.FAULT, COMPACTED)
    assert facts(finding)["messages in the export"] == 5
    assert home.findings("EXP003") == home.findings("EXP005") == []


@pytest.mark.parametrize("file", FILES)
def test_an_export_of_a_session_that_was_never_here_is_undecidable(build: Build, file: str) -> None:
    home = build("0.19.0")
    home.sql("DELETE FROM sqlite_sequence")
    home.chat("own", 3)
    put(home, file)
    (finding,) = home.findings("EXP002")
    assert finding.verdict is Verdict.UNDECIDABLE
    assert facts(finding)["rows missing here from about then"] is False


@pytest.mark.parametrize("file", FILES)
def test_the_same_steps_after_the_fix_are_silent(build: Build, file: str) -> None:
    home = build("0.22.2", rich=True)
    put(home, file)
    delete(home, COMPACTED)
    assert home.findings("EXP002") == []


@pytest.mark.parametrize("version", BEFORE_THE_FIX)
def test_a_session_compacted_twice_is_found(build: Build, version: str) -> None:
    home = build(version, rich=True)
    put(home, f"md/{TWICE}-compacted-twice.md")
    delete(home, TWICE)
    assert [finding.verdict for finding in home.findings("EXP002")] == [Verdict.FAULT]


@pytest.mark.parametrize("version", BEFORE_THE_FIX)
def test_everything_else_that_was_exported_and_deleted_is_silent(build: Build, version: str) -> None:
    home = build(version, rich=True)
    folder = DATA / "exports" / version / "delete-after-verified"
    for path in folder.rglob("*"):
        if path.is_file() and COMPACTED not in path.name and path.parent != folder:
            put(home, str(path.relative_to(DATA / "exports" / version)))
    delete(
        home,
        *(path.name[:22] for path in folder.rglob("*.?md")),
        *(path.name[:22] for path in folder.rglob("*.md")),
    )
    if COMPACTED in {row[0] for row in home.sql("SELECT id FROM sessions")}:
        delete(home, COMPACTED)
    assert home.findings("EXP002") == []


@pytest.mark.parametrize("version", BEFORE_THE_FIX)
@pytest.mark.parametrize("folder", ["rot-single", "rot-logical", "rot-root-logical"])
def test_a_deleted_continuation_is_whole(build: Build, version: str, folder: str) -> None:
    home = build(version, rich=True)
    put(home, f"delete-after-verified/{folder}/{ROTATED}-rotated-2.md")
    delete(home, ROTATED)
    assert home.findings("EXP002") == []


def test_a_present_session_is_silent(build: Build) -> None:
    home = build("0.19.0", rich=True)
    put(home, *FILES)
    assert home.findings("EXP002") == []


def test_a_whole_export_beside_the_partial_one_is_silent(build: Build) -> None:
    home = build("0.19.0", rich=True)
    put(home, FILES[0])
    put(home, FILES[-1], version="0.22.2")
    delete(home, COMPACTED)
    assert home.findings("EXP002") == []


#: Behind the ids of the rows that tests put into a store.
GONE = 1000


def row(number: int, role: str, content: str, at: float, **values: Any) -> dict[str, Any]:
    return {
        "id": GONE + number,
        "role": role,
        "content": content,
        "timestamp": at,
        "active": 1,
        "compacted": 0,
        **values,
    }


def exported(home: HomeBuilder, *messages: dict[str, Any], name: str = "gone", **columns: Any) -> None:
    """A JSONL export of a session that the store does not have any more, by its row ids."""
    home.sql(
        "DELETE FROM sqlite_sequence WHERE name = 'messages'",
        f"INSERT INTO sqlite_sequence (name, seq) VALUES ('messages', {GONE + 100})",
    )
    session = {
        "id": "gone",
        "source": "cli",
        "parent_session_id": None,
        "started_at": START,
        "ended_at": START + 9000,
        "end_reason": "cli_close",
        "title": "Plan",
        **columns,
        "messages": list(messages),
    }
    home.file(f"session-exports/{name}.jsonl", json.dumps(session) + "\n")


def after(at: float = START + 900) -> tuple[dict[str, Any], ...]:
    """What is live after a compaction at ``at`` that gave everything the time of the compaction."""
    return (
        row(9, "user", SUMMARY, at),
        row(10, "assistant", "the kept answer", at),
        row(11, "user", "and then?", at + 60),
    )


def test_a_session_much_older_than_its_summary_was_compacted_in_place(build: Build) -> None:
    home = build()
    exported(home, *after())
    (finding,) = home.findings("EXP002")
    assert finding.verdict is Verdict.FAULT
    assert facts(finding)["a shown message stood before the compaction"] is False


def test_in_a_messaging_chat_it_is_undecidable(build: Build) -> None:
    home = build()
    exported(home, *after(), source="telegram")
    assert [finding.verdict for finding in home.findings("EXP002")] == [Verdict.UNDECIDABLE]


def test_a_session_begun_with_its_summary_is_undecidable_at_most(build: Build) -> None:
    home = build()
    exported(home, *after(START + 1))
    assert [finding.verdict for finding in home.findings("EXP002")] in ([], [Verdict.UNDECIDABLE])


@pytest.mark.parametrize(
    "columns",
    [{"parent_session_id": "old"}, {"lineage_session_ids": ["old", "gone"]}],
)
def test_a_file_that_names_an_older_segment_is_silent(build: Build, columns: dict[str, Any]) -> None:
    home = build()
    exported(home, *after(), **columns)
    assert home.findings("EXP002") == []


def test_a_session_that_starts_where_another_was_compressed_is_silent(build: Build) -> None:
    home = build()
    home.chat("old", 4, started_at=START - 900, ended_at=START - 2, end_reason="compression")
    exported(home, *after())
    assert home.findings("EXP002") == []


@pytest.mark.parametrize(("carried", "expected"), [(False, Verdict.UNDECIDABLE), (True, Verdict.FAULT)])
def test_where_the_compressed_one_goes_on_here_it_can_only_be_a_second_continuation(
    build: Build, carried: bool, expected: Verdict
) -> None:
    home = build()
    home.chat("old", 4, started_at=START - 900, ended_at=START - 2, end_reason="compression")
    home.chat("old goes on", 4, started_at=START - 1, parent_session_id="old")
    exported(home, *after(), *([row(12, "user", "from before", START + 300)] if carried else []))
    (finding,) = home.findings("EXP002")
    assert finding.verdict is expected
    assert facts(finding)["began where a session was compressed that has its continuation"] is True


@pytest.mark.parametrize("marker", ["_branched_from", "_delegate_from"])
def test_a_child_that_is_no_continuation_settles_nothing(build: Build, marker: str) -> None:
    home = build()
    home.chat("old", 4, started_at=START - 900, ended_at=START - 2, end_reason="compression")
    home.chat("child", 4, started_at=START - 500, parent_session_id="old", model_config={marker: "old"})
    exported(home, *after())
    assert home.findings("EXP002") == []


def test_messages_older_than_the_session_are_carried_ones(build: Build) -> None:
    home = build()
    exported(home, row(8, "user", "before", START - 500), *after())
    assert home.findings("EXP002") == []


def test_a_release_without_archived_rows_had_nothing_to_leave_out(build: Build) -> None:
    home = build()
    messages = [{key: value for key, value in message.items() if key != "compacted"} for message in after()]
    exported(home, *messages)
    assert home.findings("EXP002") == []


def test_a_row_marked_as_no_longer_live_makes_the_export_whole(build: Build) -> None:
    home = build()
    exported(home, row(1, "user", "first", START + 5, active=0, compacted=1), *after())
    assert home.findings("EXP002") == []


def test_an_export_that_reaches_from_before_the_compaction_is_silent(build: Build) -> None:
    home = build()
    exported(home, *after())
    exported(
        home,
        row(1, "user", "first", START + 5),
        row(2, "assistant", "the kept answer", START + 9),
        name="before",
    )
    assert home.findings("EXP002") == []


def test_an_export_of_prompts_does_not_stand_for_the_time_before(build: Build) -> None:
    home = build()
    exported(home, *after())
    prompt = {"session_id": "gone", "index": 1, "created_at": "2026-09-21T14:30:00Z", "role": "user"}
    home.file(
        "session-exports/p.jsonl", json.dumps({**prompt, "text": "and then?", "message_id": GONE + 11}) + "\n"
    )
    (finding,) = home.findings("EXP002")
    assert finding.verdict is Verdict.FAULT
    assert facts(finding)["artifacts of this session"] == 2


def test_an_export_that_ends_long_before_the_compaction_leaves_it_undecidable(build: Build) -> None:
    home = build()
    exported(home, *after())
    exported(home, row(1, "user", "first", START + 5), name="before")
    (finding,) = home.findings("EXP002")
    assert finding.verdict is Verdict.UNDECIDABLE
    assert facts(finding)["exports from before the compaction"] == 1


@pytest.mark.parametrize(
    ("taken", "highest"), [(GONE + 10, GONE + 100), (GONE, GONE + 10)], ids=["taken", "higher"]
)
def test_row_ids_of_other_messages_are_those_of_another_store(build: Build, taken: int, highest: int) -> None:
    """Rows from that very hour are missing here, too."""
    home = build()
    exported(home, *after())
    home.session("other", started_at=START)
    for row_id, at in ((taken - 5, START + 890), (taken, START + 910)):
        home.message("other", id=row_id, timestamp=at)
    home.sql(f"UPDATE sqlite_sequence SET seq = {highest} WHERE name = 'messages'")
    (finding,) = home.findings("EXP002")
    assert finding.verdict is Verdict.UNDECIDABLE
    assert facts(finding)["rows missing here from about then"] is False


@pytest.mark.parametrize(
    ("file", "hours", "expected"),
    [
        (FILES[1], 2, Verdict.UNDECIDABLE),
        (FILES[1], 0.5, Verdict.FAULT),
        (FILES[3], 20, Verdict.FAULT),
        (FILES[3], 26, Verdict.UNDECIDABLE),
    ],
)
def test_without_row_ids_the_time_of_what_is_missing_tells(
    build: Build, file: str, hours: float, expected: Verdict
) -> None:
    home = build("0.19.0")
    put(home, file)
    at = SUMMARY_AT + hours * 3600
    home.session("own", started_at=at)
    for row_id, more in ((1, 0), (4, 60), (5, 70)):
        home.message("own", id=row_id, timestamp=at + more)
    home.sql("UPDATE sqlite_sequence SET seq = 5 WHERE name = 'messages'")
    assert [finding.verdict for finding in home.findings("EXP002")] == [expected]


@pytest.mark.near_miss("EXP002")
def test_a_deleted_session_that_was_never_compacted_is_silent(build: Build) -> None:
    home = build()
    exported(home, row(1, "user", "first", START + 5), row(2, "assistant", "yes", START + 9))
    assert home.findings("EXP002") == []


@pytest.mark.parametrize("detached", [True, False])
def test_texts_that_the_search_index_kept_are_counted(build: Build, detached: bool) -> None:
    home = build("0.19.0", rich=True)
    put(home, FILES[-1])
    forgotten(home, COMPACTED, detached=detached)
    (finding,) = home.findings("EXP002")
    assert facts(finding).get("texts of gone messages in the search index") == (15 if detached else None)


def test_lawful_ones_hide_none_behind_them(build: Build) -> None:
    home = build()
    home.chat("a present")
    exported(home, row(1, "user", "first", START + 5), id="b without a summary", name="b")
    exported(
        home, *after(), row(1, "user", "first", START + 5, active=0, compacted=1), id="c whole", name="c"
    )
    exported(home, *after(), id="d from before", name="d1")
    exported(
        home,
        row(1, "user", "first", START + 5),
        row(2, "assistant", "the kept answer", START + 9),
        id="d from before",
        name="d2",
    )
    exported(home, *after(), id="e gone", name="e")
    assert [finding.subject.session for finding in home.findings("EXP002")] == ["e gone"]


def test_a_store_that_still_has_it_is_named(build: Build) -> None:
    home = build("0.19.0", rich=True)
    put(home, FILES[0])
    home.file("state-snapshots/20260801-130000/state.db", home.store.read_bytes())
    delete(home, COMPACTED)
    (finding,) = home.findings("EXP002")
    assert "copy the named stores" in finding.remedy.text
