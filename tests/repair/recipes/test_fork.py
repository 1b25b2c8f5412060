"""fork: one continuation is chosen, its rivals stay as branches."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.audit.builder import START, VERSIONS, HomeBuilder
from tests.repair.lineage import END, chains, child, choices, config, ended, left, mend, tips
from tests.repair.planning import only_choice, option_steps, plan_of

from statemend.repair.plan import StepClass
from statemend.store.connection import open_for_audit
from statemend.store.lineage import Graph
from statemend.store.schema import Era

Build = Callable[..., HomeBuilder]
TASK = "Summarize the folder."


def forked(home: HomeBuilder) -> None:
    ended(home)
    child(home, "one", 1, ended_at=END + 50, end_reason="agent_close")
    child(home, "two", 2)


@pytest.mark.parametrize("chosen", ["one", "two"])
@pytest.mark.parametrize("version", VERSIONS)
def test_either_can_be_made_the_only_continuation(build: Build, version: str, chosen: str) -> None:
    home = build(version)
    forked(home)

    plan = plan_of(home)
    choice = only_choice(plan)

    assert [option.id for option in choice.options] == ["continue:one", "continue:two", "leave"]
    assert all("2 rows" in " ".join(option.evidence) for option in choice.options[:-1])
    (step,) = option_steps(choice, f"continue:{chosen}")
    assert step.step_class is StepClass.CHOICE
    other = {"one": "two", "two": "one"}[chosen]
    assert step.sessions == (other,)
    mend(home, (step,))
    assert json.loads(config(home, other)) == {"_branched_from": "old"}
    assert config(home, chosen) is None
    assert tips(home, "old") == {chosen}
    assert chains(home, "old") == {("old", chosen)}
    assert home.audit("LIN").findings == ()


def test_the_parting_walks_are_settled_with_the_fork(build: Build) -> None:
    home = build("0.22.2")
    forked(home)

    plan = plan_of(home)

    (parting,) = left(plan, "LIN003")
    assert parting.reason.startswith(f"settled by the choice for {plan.choices[0].finding}")


def test_a_rival_survives_the_deletion_of_the_parent(build: Build) -> None:
    home = build("0.22.2")
    forked(home)
    mend(home, option_steps(only_choice(plan_of(home)), "continue:two"))
    with open_for_audit(home.store) as store:
        gone = Graph.load(store).deletion("old", Era.V22)
    assert gone.deleted == ("old",)
    assert "one" in gone.detached


def test_three_candidates_are_all_listed(build: Build) -> None:
    home = build()
    forked(home)
    child(home, "three", 3)

    choice = only_choice(plan_of(home))

    assert [option.id for option in choice.options] == [
        "continue:one",
        "continue:two",
        "continue:three",
        "leave",
    ]
    assert {name for name in ("one", "two", "three") if name in " ".join(choice.options[1].evidence)} == {
        "one",
        "two",
        "three",
    }
    mend(home, option_steps(choice, "continue:two"))
    assert tips(home, "old") == {"two"}


def test_titles_name_sessions_as_they_are(build: Build) -> None:
    home = build()
    forked(home)
    choice = only_choice(plan_of(home))
    assert choice.question == "Which session continues old?"
    assert choice.options[0].title == "one continues old, two become branches"


def test_every_one_of_many_candidates_is_an_option(build: Build) -> None:
    home = build()
    ended(home)
    for number in range(45):
        child(home, f"c{number:02}", number + 1)
    choice = only_choice(plan_of(home))
    assert [option.id for option in choice.options] == [f"continue:c{n:02}" for n in range(45)] + ["leave"]


def test_an_empty_elder_is_set_aside(build: Build) -> None:
    home = build()
    ended(home)
    home.session("empty", parent_session_id="old", started_at=END + 1)
    child(home, "real", 2)

    choice = only_choice(plan_of(home))
    mend(home, option_steps(choice, "continue:real"))

    assert chains(home, "old") == {("old", "real")}
    assert home.audit("LIN").findings == ()


def test_an_old_subagent_run_becomes_a_branch_or_a_hidden_run(build: Build) -> None:
    home = build("0.19.0")
    ended(home)
    child(home, "run", -60, TASK)
    child(home, "new", 1, ended_at=END + 50, end_reason="cli_close")

    (choice,) = choices(plan_of(home), "fork")

    assert [option.id for option in choice.options] == [
        "continue:new",
        "hide-runs:new",
        "continue:run",
        "leave",
    ]
    hidden = next(option for option in choice.options if option.id == "hide-runs:new")
    assert "deleted together with old" in " ".join(hidden.evidence)
    mend(home, hidden.steps)
    assert json.loads(config(home, "run")) == {"_delegate_from": "old"}
    assert tips(home, "old") == {"new"}


def test_as_a_branch_the_run_outlives_its_parent(build: Build) -> None:
    home = build("0.19.0")
    ended(home)
    child(home, "run", -60, TASK)
    child(home, "new", 1, ended_at=END + 50, end_reason="cli_close")
    (choice,) = choices(plan_of(home), "fork")
    mend(home, option_steps(choice, "continue:new"))
    with open_for_audit(home.store) as store:
        assert Graph.load(store).deletion("old", Era.V22).deleted == ("old",)
    assert tips(home, "old") == {"new"}


def test_hiding_a_run_rebuilds_the_index_that_leaves_it_out(build: Build) -> None:
    home = build("0.22.2")
    ended(home)
    child(home, "run", -60, TASK)
    child(home, "new", 1, ended_at=END + 50, end_reason="cli_close")
    (choice,) = choices(plan_of(home), "fork")
    (step,) = option_steps(choice, "hide-runs:new")
    assert step.reindex == ("messages_fts_trigram",)
    mend(home, (step,))
    home.sql("INSERT INTO messages_fts_trigram (messages_fts_trigram, rank) VALUES ('integrity-check', 1)")


def test_rivals_with_chains_of_their_own_keep_them(build: Build) -> None:
    home = build("0.19.0")
    ended(home)
    for name, after in (("one", 1), ("two", 2)):
        child(home, name, after, ended_at=END + 50, end_reason="compression")
        child(home, f"{name}-next", 51, parent_session_id=name)

    choice = only_choice(plan_of(home))
    mend(home, option_steps(choice, "continue:one"))

    assert tips(home, "old") == {"one-next"}
    assert chains(home, "old") == {("old", "one", "one-next")}
    assert config(home, "two-next") is None
    assert home.audit("LIN").findings == ()


def test_forks_behind_forks_are_settled_one_way_or_the_other(build: Build) -> None:
    home = build("0.19.0")
    forked(home)
    home.sql("UPDATE sessions SET end_reason = 'compression' WHERE id = 'one'")
    child(home, "one-a", 51, parent_session_id="one", ended_at=END + 90, end_reason="agent_close")
    child(home, "one-b", 52, parent_session_id="one")

    plan = plan_of(home)
    offered = choices(plan, "fork")

    assert offered
    for _ in range(3):
        plan = plan_of(home)
        if not plan.choices:
            break
        (option, *_) = plan.choices[0].options
        mend(home, option.steps)
    assert home.audit("LIN").findings == ()


def test_a_fork_deeper_in_a_chain_settles_the_walks_from_its_beginning(build: Build) -> None:
    home = build()
    home.chat("root", 4, ended_at=START + 50, end_reason="compression")
    ended(home, parent_session_id="root", started_at=START + 51)
    child(home, "one", 1, ended_at=END + 50, end_reason="agent_close")
    child(home, "two", 2)

    mend(home, option_steps(only_choice(plan_of(home)), "continue:one"))

    assert tips(home, "root") == {"one"}
    assert home.audit("LIN").findings == ()


def test_a_mark_that_the_chosen_one_inherited_is_cleared(build: Build) -> None:
    home = build("0.22.2")
    ended(home)
    child(home, "one", 1, model_config={"_branched_from": "elsewhere", "cwd": "/srv"})
    child(home, "two", 2)

    choice = only_choice(plan_of(home))
    mend(home, option_steps(choice, "continue:one"))

    assert json.loads(config(home, "one")) == {"cwd": "/srv"}
    assert tips(home, "old") == {"one"}


def test_the_chosen_continuation_of_a_branch_is_resumed(build: Build) -> None:
    home = build("0.22.2")
    home.chat("first", 2, ended_at=START + 10, end_reason="branched")
    ended(home, parent_session_id="first", model_config={"_branched_from": "first"})
    child(home, "one", 1, model_config={"_branched_from": "first"})
    child(home, "two", 2, model_config={"_branched_from": "first"})

    choice = only_choice(plan_of(home))
    mend(home, option_steps(choice, "continue:one"))

    assert tips(home, "old") == {"one"}
    assert json.loads(config(home, "two")) == {"_branched_from": "old"}
    assert home.audit("LIN").findings == ()


def test_other_keys_and_their_writing_stay(build: Build) -> None:
    home = build()
    forked(home)
    home.sql("""UPDATE sessions SET model_config = '{"yolo_mode":true,"cwd":"/srv"}' WHERE id = 'one'""")
    mend(home, option_steps(only_choice(plan_of(home)), "continue:two"))
    assert config(home, "one") == '{"yolo_mode":true,"cwd":"/srv","_branched_from":"old"}'


@pytest.mark.parametrize("broken", ["{broken", "[]", b"\x00"])
def test_a_configuration_that_cannot_be_edited_is_left_with_the_reason(
    build: Build, broken: str | bytes
) -> None:
    home = build()
    forked(home)
    home.sql("UPDATE sessions SET model_config = ? WHERE id = 'one'", bindings=(broken,))

    plan = plan_of(home)

    assert choices(plan, "fork") == []
    assert "model_config" in left(plan, "LIN002")[0].reason


@pytest.mark.parametrize("version", ["0.13.0", "0.17.0"])
def test_where_marks_are_not_heeded_it_is_said(build: Build, version: str) -> None:
    home = build(version)
    forked(home)
    choice = only_choice(plan_of(home))
    assert "they resume two until the store is upgraded" in choice.options[0].evidence[-1]


def test_a_branch_that_was_compressed_is_not_touched(build: Build) -> None:
    home = build()
    home.chat("first", 2, ended_at=START + 10, end_reason="branched")
    ended(home, parent_session_id="first", model_config={"_branched_from": "first"})
    home.session("empty", parent_session_id="old", started_at=END + 1)
    child(home, "real", 2)
    plan = plan_of(home)
    assert (plan.steps, plan.choices, plan.left) == ((), (), ())


def test_one_continuation_is_not_touched(build: Build) -> None:
    home = build("0.22.2")
    ended(home)
    child(home, "one")
    plan = plan_of(home)
    assert (plan.steps, plan.choices) == ((), ())
    assert [one for one in plan.left if one.rule.startswith("LIN")] == []
