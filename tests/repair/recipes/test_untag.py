"""untag: a false subagent mark is taken off a conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import START, HomeBuilder
from tests.repair.lineage import END, chains, child, choices, config, ended, left, mend, tips
from tests.repair.planning import only_choice, only_step, option_steps, plan_of, text_of, values

from statemend.repair.plan import StepClass
from statemend.store.connection import open_for_audit
from statemend.store.lineage import Graph
from statemend.store.schema import Era

Build = Callable[..., HomeBuilder]
TAGGING = ("0.17.0", "0.18.2", "0.19.0", "0.20.1", "0.22.2")
ORPHANED = '{"_delegate_from":"__orphaned__"}'
CALL = [{"id": "call_1", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}]


def short_chat(home: HomeBuilder, text: str = ORPHANED, **fields: Any) -> None:
    """One turn that used a tool, marked by the migration."""
    home.session("chat", **{"model_config": text, "message_count": 4, "tool_call_count": 1, **fields})
    home.message("chat", "user", "List the files.")
    home.message("chat", "assistant", "", tool_calls=CALL, finish_reason="tool_calls")
    home.message("chat", "tool", "README", tool_call_id="call_1", tool_name="terminal")
    home.message("chat", "assistant", "One file.", finish_reason="stop")


def reopened(home: HomeBuilder) -> None:
    """A continuation that the migration took for a subagent run, because its parent was opened again."""
    home.chat("old", 6, ended_at=END + 500, end_reason="cli_close")
    child(home, "new", 1, model_config='{"_delegate_from":"old"}')


@pytest.mark.parametrize("version", TAGGING)
def test_a_conversation_loses_the_mark_unasked(build: Build, version: str) -> None:
    home = build(version)
    short_chat(home, title="Files")

    step = only_step(plan_of(home))

    assert (step.recipe, step.step_class, step.sessions) == ("untag", StepClass.SAFE, ("chat",))
    assert values(step.operations[0]) == {"model_config": None}
    assert step.operations[0].before == {"model_config": ORPHANED}
    assert step.reindex == (("messages_fts_trigram",) if version == "0.22.2" else ())
    mend(home, (step,))
    assert config(home, "chat") is None
    again = plan_of(home)
    assert (again.steps, again.choices, again.left) == ((), (), ())


def test_the_index_holds_what_the_conversation_says_afterwards(build: Build) -> None:
    home = build("0.22.2")
    short_chat(home, title="Files")
    search = "SELECT COUNT(*) FROM messages_fts_trigram WHERE messages_fts_trigram MATCH '\"the files\"'"
    home.sql("INSERT INTO messages_fts_trigram (messages_fts_trigram) VALUES ('rebuild')")
    assert home.sql(search) == [(0,)]
    mend(home, (only_step(plan_of(home)),))
    assert home.sql(search) == [(1,)]
    home.sql("INSERT INTO messages_fts_trigram (messages_fts_trigram, rank) VALUES ('integrity-check', 1)")


def test_a_rebuild_under_way_is_waited_for(build: Build) -> None:
    home = build("0.22.2")
    short_chat(home, title="Files")
    home.insert("state_meta", key="fts_rebuild_high_water", value="9")
    plan = plan_of(home)
    assert plan.steps == ()
    assert "rebuilding the search index" in left(plan, "LIN008")[0].reason


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"cwd": "/srv", "_delegate_from": "__orphaned__"}', '{"cwd": "/srv"}'),
        ('{"_delegate_from":"__orphaned__","cwd":"/srv"}', '{"cwd":"/srv"}'),
        (
            '{\n "a": 1,\n "_delegate_from": "__orphaned__",\n "b": [1,  2]\n}',
            '{\n "a": 1,\n "b": [1,  2]\n}',
        ),
        ('{"_delegate_from": "__orphaned__"}', None),
    ],
)
def test_the_rest_of_the_configuration_stays_as_it_is_written(
    build: Build, before: str, after: str | None
) -> None:
    home = build()
    short_chat(home, before, title="Files")
    mend(home, (only_step(plan_of(home)),))
    assert config(home, "chat") == after


@pytest.mark.parametrize("version", TAGGING)
def test_one_turn_is_a_choice(build: Build, version: str) -> None:
    home = build(version)
    short_chat(home)

    choice = only_choice(plan_of(home))

    assert [option.id for option in choice.options] == ["untag", "leave"]
    assert "person" in choice.question
    assert option_steps(choice, "leave") == ()
    mend(home, option_steps(choice, "untag"))
    assert config(home, "chat") is None


def test_a_scheduled_run_is_left(build: Build) -> None:
    home = build()
    short_chat(home, source="cron")
    plan = plan_of(home)
    assert (plan.steps, plan.choices) == ((), ())
    assert left(plan, "LIN008")[0].reason.startswith("lawful as it is")


@pytest.mark.parametrize("version", TAGGING)
def test_a_continuation_is_seen_as_such_again(build: Build, version: str) -> None:
    home = build(version)
    ended(home)
    child(home, "new", model_config='{"_delegate_from":"old"}')
    assert tips(home, "old") == {"old"}

    step = only_step(plan_of(home))
    mend(home, (step,))

    assert step.step_class is StepClass.SAFE
    assert tips(home, "old") == {"new"}
    assert chains(home, "old") == {("old", "new")}
    with open_for_audit(home.store) as store:
        assert Graph.load(store).deletion("old", Era.V22).deleted == ("old",)
    assert home.audit("LIN").findings == ()


def test_a_continuation_of_a_reopened_session_can_only_become_a_branch(build: Build) -> None:
    home = build()
    reopened(home)

    choice = only_choice(plan_of(home))

    assert [one.id for one in choice.options] == ["branch", "leave"]
    assert "LIN014 for new" in choice.question
    assert "its parent old ended by cli_close" in choice.options[0].evidence
    mend(home, option_steps(choice, "branch"))
    assert config(home, "new") == '{"_branched_from": "old"}'
    with open_for_audit(home.store) as store:
        assert Graph.load(store).deletion("old", Era.V22).deleted == ("old",)


def test_beside_another_continuation_it_can_only_become_a_branch(build: Build) -> None:
    home = build("0.19.0")
    ended(home)
    child(home, "one", 1)
    child(home, "two", 2, model_config='{"_delegate_from":"old"}')

    choice = only_choice(plan_of(home))

    assert [one.id for one in choice.options] == ["branch", "leave"]
    mend(home, option_steps(choice, "branch"))
    assert tips(home, "old") == {"one"}
    assert home.audit("LIN").findings == ()


def test_a_cut_continuation_can_be_untagged_and_linked_in_one_plan(build: Build) -> None:
    home = build()
    ended(home, title="Plan")
    child(home, "new", 1, parent_session_id=None, title="Plan #2", model_config=ORPHANED)
    plan = plan_of(home)
    (untag,) = plan.steps
    (choice,) = choices(plan, "relink")
    mend(home, (untag, *option_steps(choice, "old > new")))
    assert tips(home, "old") == {"new"}
    assert home.audit("LIN").findings == ()


def test_two_conversations_are_untagged_in_one_plan(build: Build) -> None:
    home = build("0.22.2")
    short_chat(home, title="Files")
    home.chat("other", 4, title="Other", started_at=START + 50, model_config=ORPHANED)
    plan = plan_of(home)
    assert {step.sessions[0] for step in plan.steps} == {"chat", "other"}
    mend(home, plan.steps)


def test_a_true_subagent_run_is_not_touched(build: Build) -> None:
    home = build("0.22.2")
    home.chat("talk", 4)
    home.chat("run", 4, source="subagent", parent_session_id="talk", model_config={"_delegate_from": "talk"})
    plan = plan_of(home)
    assert (plan.steps, plan.choices, plan.left) == ((), (), ())


def test_no_text_of_a_message_is_in_the_plan(build: Build) -> None:
    home = build()
    short_chat(home)
    assert "List the files" not in text_of(plan_of(home))
