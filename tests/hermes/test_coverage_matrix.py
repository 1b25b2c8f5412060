"""Every format of every release, and what the audit says it holds after all that happened to its session.

A release lives through ``matrix.live_through`` once. Which messages a file holds is known from what its
release took when it was made; the newest release says which messages the session shows now.
"""

from __future__ import annotations

import fcntl
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.hermes.home import HermesHome, Oracle
from tests.hermes.matrix import (
    DELETED,
    DISPLAY,
    EVERY,
    FORMATS,
    LIVE,
    LIVED,
    MASKED,
    Facts,
    File,
    Format,
    live_through,
)
from tests.hermes.oracles import copy_store
from tests.hermes.releases import RELEASES

from statemend.evidence.beyond import Fate, beyond
from statemend.evidence.coverage import ArtifactCoverage, Cause, Scope, SessionCoverage, assess
from statemend.evidence.inventory import find_home, take
from statemend.evidence.remains import Remains
from statemend.evidence.salvage import Fidelity, Salvage, salvage
from statemend.formats.artifact import AUTOMATIC
from statemend.store.connection import open_for_audit
from statemend.store.history import RowState, View, messages

#: Before the first of these all views were one.
COMPACTS = "0.18"
SCOPES = {LIVE: Scope.ACTIVE, DISPLAY: Scope.DISPLAY, EVERY: Scope.ALL}


class Shown(NamedTuple):
    """A message as Hermes shows it now: the id of its row, what it says, when it was said."""

    id: int
    role: str
    says: str
    at: float


class Answer:
    """A home that a release lived in, what Hermes shows of its sessions, and what the audit says."""

    def __init__(self, facts: Facts, shown: Sequence[Sequence[dict[str, Any]]]) -> None:
        self.facts = facts
        self.release = RELEASES[facts.version]
        self.shown = {
            session_id: [
                Shown(each["id"], each["role"], _says(each.values()), each["timestamp"]) for each in said
            ]
            for session_id, said in zip((LIVED, MASKED), _picked(shown), strict=True)
        }
        home = Path(facts.home)
        with open_for_audit(home / "state.db") as store:
            inventory = take(find_home(home), store=store)
            self.sessions: dict[str, SessionCoverage] = {
                each.session_id: each for each in assess(store, inventory)
            }
            self.left: Salvage = salvage(store, inventory, DELETED)
            self.beyond = {sid: beyond(store, inventory, self.sessions[sid]) for sid in (LIVED, MASKED)}
            self.states = {row.id: row.state for row in messages(store, LIVED, View.RAW)}

    def files(self, form: Format, session_id: str) -> Iterator[File]:
        """The files of a format that are still there."""
        named = [each for each in self.facts.files if (each.format, each.session) == (form.name, session_id)]
        yield from (each for each in named if Path(each.path).exists())

    def coverage(self, file: File) -> ArtifactCoverage:
        (found,) = [each for each in self.sessions[file.session].artifacts if each.artifact == file.path]
        return found

    def remains(self, file: File) -> Remains:
        (found,) = [each for each in self.sessions[file.session].remains if each.artifact == file.path]
        return found

    def cause(self, message: Shown, file: File, form: Format, found: ArtifactCoverage) -> Cause:
        """Why a message is not in a file."""
        if found.kind in AUTOMATIC:
            return Cause.CONTEXT
        if message.at > file.at or message.id > file.last:
            return Cause.LATER
        return Cause.ARCHIVED if self.states[message.id] is RowState.ARCHIVED else Cause.UNKNOWN

    def hidden(self, file: File, shown: Sequence[Shown]) -> int:
        """How many of the rows that a file was made of are undone or superseded now, and not shown as a copy
        that the file has not."""
        now = Counter(each.says for each in shown)
        gone: Counter[str] = Counter()
        for row_id, *said in file.rows:
            words = _says(said)
            undone = self.states.get(row_id) is RowState.REWOUND if row_id else words not in now
            (gone if undone else now).update({words: 1 if undone else -1})
        return (gone - +now).total()

    def scope(self, file: File, form: Format) -> Scope:
        """The view that can be told. Before there were archived rows all were the same."""
        if form.prompts:
            return Scope.PROMPTS
        if form.memory(self.release):
            return Scope.CONTEXT
        told = file.stage == "after" and self.release.at_least(COMPACTS)
        if told and form.name == "save json" and form.view(self.release) == DISPLAY:
            return Scope.ALL  # it shows archived rows as such, and drops those that were undone
        return SCOPES[form.view(self.release)] if told else Scope.UNKNOWN


_NAMES = ("role", "content", "tool_calls", "tool_call_id", "tool_name")


def _picked(shown: Sequence[Sequence[dict[str, Any]]]) -> Iterator[list[dict[str, Any]]]:
    for said in shown:
        yield [{name: each[name] for name in (*_NAMES, "id", "timestamp")} for each in said]


def _says(values: Iterable[Any]) -> str:
    """What a message says: compaction gives the copies that it keeps a new time and id."""
    role, content, calls, *rest = list(values)[: len(_NAMES)]
    calls = json.loads(calls) if isinstance(calls, str) else calls
    return json.dumps([role, str(content or "").strip(), calls or None, *rest])


def _absorbed(said: str) -> str | None:
    """What a row said that a summary took in, which then has its words."""
    role, text, *rest = json.loads(said)
    words, ends, _ = text.partition("[END OF PRIOR CONTEXT")
    return json.dumps([role, words.partition("\n")[2].strip(), *rest]) if ends else None


@pytest.fixture(scope="session")
def answer(
    tmp_path_factory: pytest.TempPathFactory, worker_id: str, oracle: Callable[[str], Oracle]
) -> Callable[[str], Answer]:
    """The home of a release, made once for all test workers, and the audit's answer about it."""
    shared = tmp_path_factory.getbasetemp()
    shared = shared if worker_id == "master" else shared.parent

    @cache
    def of(version: str) -> Answer:
        note = shared / f"matrix-{version}.json"
        with (shared / f"matrix-{version}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not note.exists():
                with HermesHome(version, shared / f"matrix-{version}", zone="America/New_York") as home:
                    made = live_through(home)
                note.write_text(made.dump())
        facts = Facts.load(note.read_text())
        copy = copy_store(Path(facts.home) / "state.db", tmp_path_factory.mktemp("shown"))
        asked = [("get_messages", [each], {"include_compacted": True}) for each in (LIVED, MASKED)]
        return Answer(facts, oracle("0.22.2").ask(copy, asked))

    return of


EACH_FORMAT = pytest.mark.parametrize(
    ("version", "form"),
    [
        pytest.param(version, form, id=f"{version}-{form.name.replace(' ', '-')}")
        for version, release in RELEASES.items()
        for form in FORMATS
        if form.written_by(release)
    ],
)
Ask = Callable[[str], Answer]


@EACH_FORMAT
def test_a_file_holds_what_was_taken_of_a_session_that_went_on(
    version: str, form: Format, answer: Ask
) -> None:
    said = answer(version)
    shown = [each for each in said.shown[LIVED] if each.role == "user" or not form.prompts]
    stages = []
    for file in said.files(form, LIVED):
        found, stage = said.coverage(file), file.stage
        took = {_says(row[1:]) for row in file.rows}
        took |= {absorbed for each in took if (absorbed := _absorbed(each))}
        lacking = {each.id: said.cause(each, file, form, found) for each in shown if each.says not in took}
        assert {each.message_id: each.cause for each in found.missing} == lacking, stage
        assert found.exact + found.lossy == len(shown) - len(lacking), stage
        assert (found.extra, found.changed, found.masked, found.cut) == (0, (), 0, False), stage
        assert found.records == len(file.rows), stage
        assert found.rewound == said.hidden(file, shown), stage
        assert found.scope is said.scope(file, form), (stage, found.reason)
        stages.append(stage)
    assert stages == [stage for stage in form.stages if stage in ("before", "after")]


@EACH_FORMAT
def test_a_masked_file_holds_one_message_masked(version: str, form: Format, answer: Ask) -> None:
    said = answer(version)
    masks = form.masks(said.release)
    for file in said.files(form, MASKED):
        found = said.coverage(file)
        assert (found.masked, found.missing, found.extra, found.changed) == (int(masks), (), 0, ())
        assert found.exact + found.lossy + found.masked == len(file.rows)


@EACH_FORMAT
def test_of_a_deleted_session_every_file_is_counted(version: str, form: Format, answer: Ask) -> None:
    said = answer(version)
    for file in said.files(form, DELETED):
        found = said.remains(file)
        assert (found.records, found.damage, found.redacted) == (len(file.rows), None, 0)
        assert found.filtered is form.prompts


@pytest.mark.parametrize("version", RELEASES)
def test_a_deleted_session_is_left_whole_in_its_files(version: str, answer: Ask) -> None:
    said = answer(version)
    (whole,) = [each for each in said.facts.files if (each.format, each.session) == ("jsonl", DELETED)]
    assert {each.fidelity for each in said.left.messages} == {Fidelity.EXACT}
    left = [each.record for each in said.left.messages]
    assert [(each.row_id, _says(getattr(each, name) for name in _NAMES)) for each in left] == [
        (row[0], _says(row[1:])) for row in whole.rows
    ]
    assert (said.left.gaps, said.left.lost) == ((), 0)


@pytest.mark.parametrize("version", RELEASES)
def test_beyond_the_store_files_show_what_was_undone(version: str, answer: Ask) -> None:
    said = answer(version)
    undone = {Fate.UNDONE: 2} if said.release.at_least("0.16") else {}  # before, rows outlive an undo
    assert said.beyond == {LIVED: undone, MASKED: {}}
