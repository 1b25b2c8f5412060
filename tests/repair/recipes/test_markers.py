"""markers: of several markers about one link, the false ones are cleared."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.audit.builder import NOW, VERSIONS, HomeBuilder
from tests.repair.lineage import (
    END,
    MARKING,
    SUMMARY,
    chains,
    child,
    choices,
    config,
    ended,
    left,
    mend,
    tips,
)
from tests.repair.planning import only_choice, only_step, option_steps, plan_of, text_of

from statemend.repair.apply import apply
from statemend.repair.plan import StepClass, dump
from statemend.repair.run import State
from statemend.repair.undo import undo
from statemend.store.connection import open_for_audit
from statemend.store.identity import store_digest
from statemend.store.lineage import Graph

Build = Callable[..., HomeBuilder]
MARKED = ("0.18.2", "0.19.0", "0.20.1", "0.22.2")
BOTH = '{"cwd": "/srv", "_delegate_from": "old", "_branched_from": "old"}'


def branch(home: HomeBuilder, text: str = BOTH) -> None:
    """A branch, begun with rows of its parent, that also bears a subagent's mark."""
    home.chat("old", 6)
    home.session("new", parent_session_id="old", started_at=END, model_config=text)
    for row in home.sql("SELECT role, content FROM messages ORDER BY id LIMIT 4"):
        home.message("new", *row, finish_reason="stop")
    home.sql("UPDATE sessions SET message_count = 4 WHERE id = 'new'")


def undecided(home: HomeBuilder) -> None:
    """A branch or a run: nothing tells."""
    home.chat("old", 6)
    child(home, "new", first="Which way?", model_config=BOTH)


def deleted(home: HomeBuilder, session_id: str = "old") -> set[tuple[str, ...]]:
    """What each era's deletion of a session takes."""
    with open_for_audit(home.store) as store:
        graph = Graph.load(store)
        return {graph.deletion(session_id, era).deleted for era in MARKING}


@pytest.mark.parametrize("version", MARKED)
def test_a_branch_outlives_its_parent_again(build: Build, version: str) -> None:
    home = build(version)
    branch(home)
    assert deleted(home) == {("new", "old")}

    step = only_step(plan_of(home))
    mend(home, (step,))

    assert step.step_class is StepClass.SAFE
    assert config(home, "new") == '{"cwd": "/srv", "_branched_from": "old"}'
    assert deleted(home) == {("old",)}


@pytest.mark.parametrize("version", MARKED)
@pytest.mark.parametrize("mark", ["_branched_from", "_reset_from"])
def test_a_continuation_is_followed_again(build: Build, version: str, mark: str) -> None:
    home = build(version)
    ended(home)
    child(home, "new", model_config=json.dumps({mark: "old", "cwd": "/srv"}))
    assert "old" in tips(home, "old")

    step = only_step(plan_of(home))
    mend(home, (step,))

    assert step.step_class is StepClass.SAFE
    assert config(home, "new") == '{"cwd": "/srv"}'
    assert tips(home, "old") == {"new"}
    assert chains(home, "old") == {("old", "new")}
    assert home.audit("LIN").findings == ()


def test_what_a_compression_copied_the_marker_to_loses_it_too(build: Build) -> None:
    home = build("0.22.2")
    ended(home)
    mark = '{"_branched_from":"old"}'
    child(home, "new", model_config=mark, ended_at=END + 50, end_reason="compression")
    child(home, "newer", 51, parent_session_id="new", model_config=mark)

    step = only_step(plan_of(home))
    mend(home, (step,))

    assert step.sessions == ("new", "newer")
    assert tips(home, "old") == {"newer"}
    assert chains(home, "old") == {("old", "new", "newer")}
    assert config(home, "newer") is None


def test_a_lawful_copy_of_another_marker_stays(build: Build) -> None:
    """What continues a branch, and was marked as a reset by mistake."""
    home = build("0.22.2")
    home.chat("origin", 4)
    ended(home, parent_session_id="origin", model_config='{"_branched_from":"origin"}')
    child(home, "new", model_config='{"_branched_from":"origin","_reset_from":"old"}')
    mend(home, (only_step(plan_of(home)),))
    assert config(home, "new") == '{"_branched_from":"origin"}'


@pytest.mark.parametrize("option", ["branch", "delegate"])
def test_where_nothing_tells_every_claim_is_an_option(build: Build, option: str) -> None:
    home = build("0.22.2")
    undecided(home)

    choice = only_choice(plan_of(home))

    assert [one.id for one in choice.options] == ["branch", "delegate", "leave"]
    assert choice.question == "What is new to its parent old?"
    assert "deleting old takes it along" in choice.options[1].evidence
    assert option_steps(choice, "leave") == ()
    mend(home, option_steps(choice, option))
    kept = {"branch": "_branched_from", "delegate": "_delegate_from"}[option]
    assert json.loads(config(home, "new")) == {"cwd": "/srv", kept: "old"}
    assert deleted(home) == {("old",) if option == "branch" else ("new", "old")}


def test_two_that_would_continue_one_session_are_not_settled_into_a_fork(build: Build) -> None:
    home = build()
    ended(home)
    home.message("old", "user", "gone")
    for name in ("one", "two"):
        child(home, name, first=f"{SUMMARY} {name}", model_config='{"_branched_from":"old"}')
    home.sql("DELETE FROM messages WHERE content = 'gone'")
    home.sql("UPDATE sessions SET message_count = 6 WHERE id = 'old'")
    found = choices(plan_of(home), "markers")
    assert [[option.id for option in one.options] for one in found] == [["continuation", "leave"]] * 2
    mend(home, option_steps(found[0], "continuation"))
    assert tips(home, "old") == {"one"}
    assert choices(plan_of(home), "markers") == []


def test_the_substring_index_follows_the_subagent_mark(build: Build) -> None:
    home = build("0.22.2")
    branch(home)
    home.sql("INSERT INTO messages_fts_trigram (messages_fts_trigram) VALUES ('rebuild')")
    mend(home, (only_step(plan_of(home)),))
    home.sql("INSERT INTO messages_fts_trigram (messages_fts_trigram, rank) VALUES ('integrity-check', 1)")


def test_a_text_that_cannot_be_edited_is_left(build: Build) -> None:
    home = build()
    branch(home, '{"_branched_from": "old", "_delegate_from": "old", "a": 1} ')
    home.sql(
        "UPDATE sessions SET model_config = replace(model_config, '\"a\": 1', '\"a\": NaN') WHERE id = 'new'"
    )
    plan = plan_of(home)
    assert (plan.steps, plan.choices) == ((), ())
    assert all("cannot be edited" in one.reason for one in left(plan, "LIN005"))


def test_no_text_of_a_message_is_in_the_plan(build: Build) -> None:
    home = build()
    undecided(home)
    assert "Which way" not in text_of(plan_of(home))


@pytest.mark.parametrize("version", VERSIONS)
def test_carried_out_and_taken_back_on_every_release(build: Build, tmp_path: Path, version: str) -> None:
    home = build(version)
    undecided(home)
    home.chat("first", 6, ended_at=END, end_reason="compression")
    child(home, "second", parent_session_id="first", model_config='{"_reset_from": "first", "a": [1,  2]}')
    with open_for_audit(home.store) as store:
        before = store_digest(store)
    plan = plan_of(home)
    (choice,) = choices(plan, "markers")
    plan = msgspec.structs.replace(plan, choices=(msgspec.structs.replace(choice, chosen="branch"),))
    file = tmp_path / "plan.json"
    file.write_bytes(dump(plan))

    run = apply(file, run_dir=tmp_path / "run", now=NOW)

    assert (run.state, run.remaining, run.new, run.troubles) == (State.APPLIED, (), (), ())
    assert home.audit("LIN").findings == ()
    if version >= "0.16":
        assert config(home, "second") == '{"a": [1,  2]}'
    assert undo(tmp_path / "run", now=NOW).state is State.UNDONE
    with open_for_audit(home.store) as store:
        assert store_digest(store) == before
    assert plan_of(home).id == plan_of(home).id
