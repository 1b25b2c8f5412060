"""cycle: a ring is opened at the session that the operator names."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import START, VERSIONS, HomeBuilder
from tests.repair.lineage import choices, config, mend
from tests.repair.planning import only_choice, option_steps, plan_of, text_of

Build = Callable[..., HomeBuilder]


def ring(home: HomeBuilder, *ids: str) -> None:
    """Each is the parent of the next, and the last of the first."""
    for place, session_id in enumerate(ids):
        parent = ids[place - 1]
        home.chat(session_id, 2, parent_session_id=parent, started_at=START + 100 * place)


def parents(home: HomeBuilder) -> dict[str, str | None]:
    return dict(home.sql("SELECT id, parent_session_id FROM sessions"))


@pytest.mark.parametrize("version", VERSIONS)
def test_each_session_can_be_made_the_first(build: Build, version: str) -> None:
    home = build(version)
    ring(home, "a", "b", "c")
    plan = plan_of(home)
    choice = only_choice(plan)
    assert [option.id for option in choice.options] == ["first:a", "first:b", "first:c", "leave"]
    assert choice.chosen is None
    assert choice.options[1].title == "b is the first: clear its parent a"
    assert "then below it by their parents: c, a" in choice.options[1].evidence
    assert "turn 0" not in text_of(plan)
    mend(home, option_steps(choice, "first:b"))
    assert parents(home) == {"a": "c", "b": None, "c": "b"}


def test_a_session_that_is_its_own_parent(build: Build) -> None:
    home = build()
    home.chat("a", 2, parent_session_id="a")
    choice = only_choice(plan_of(home))
    mend(home, option_steps(choice, "first:a"))
    assert parents(home) == {"a": None}


@pytest.mark.parametrize("version", ["0.17.0", "0.22.2"])
def test_a_ring_of_a_link_and_a_mark_is_opened_at_either(build: Build, version: str) -> None:
    home = build(version)
    home.chat("a", 2, parent_session_id="b")
    home.chat("b", 2, started_at=START + 5, model_config='{"cwd": "/x", "_delegate_from": "a"}')
    (choice,) = choices(plan_of(home), "cycle")
    assert choice.options[1].title == "b is the first: clear its delegate mark, which names a"
    (step,) = option_steps(choice, "first:b")
    assert step.reindex == (("messages_fts_trigram",) if version == "0.22.2" else ())
    mend(home, (step,))
    assert config(home, "b") == '{"cwd": "/x"}'


def test_both_links_of_one_session_go_in_one_change(build: Build) -> None:
    home = build("0.17.0")
    home.chat("a", 2, parent_session_id="b", model_config='{"_delegate_from": "b"}')
    home.chat("b", 2, started_at=START + 5, model_config='{"_delegate_from": "a"}')
    (choice,) = choices(plan_of(home), "cycle")
    (step,) = option_steps(choice, "first:a")
    assert len(step.operations) == 1
    mend(home, (step,))
    assert (parents(home)["a"], config(home, "a")) == (None, None)


def test_of_a_very_long_ring_the_oldest_are_offered(build: Build) -> None:
    home = build("0.22.2")
    ring(home, *(f"s{number:03}" for number in range(60)))
    (choice,) = choices(plan_of(home), "cycle")
    assert "only the 20 oldest" in choice.question
    assert [option.id for option in choice.options[:2]] == ["first:s000", "first:s001"]
    assert len(choice.options) == 21


def test_two_rings_are_two_choices(build: Build) -> None:
    home = build()
    ring(home, "a", "b")
    ring(home, "c", "d")
    assert len(choices(plan_of(home), "cycle")) == 2
