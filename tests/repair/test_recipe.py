from __future__ import annotations

import pytest

from statemend.audit import registry
from statemend.errors import UsageError
from statemend.repair.recipe import Recipe, all_recipes, select


def test_every_rule_that_a_recipe_serves_names_it() -> None:
    for recipe in all_recipes():
        assert recipe.serves, recipe.name
        for rule in recipe.serves:
            assert registry.get(rule).recipe == recipe.name


def test_every_recipe_that_a_rule_names_serves_it_by_a_plan_or_by_an_export() -> None:
    by_plan = {recipe.name: recipe.serves for recipe in all_recipes()}
    for rule in registry.all_rules():
        assert rule.recipe in (None, "export") or rule.id in by_plan[rule.recipe], rule.id


def test_every_recipe_says_what_it_does_in_one_line_and_then_more() -> None:
    for recipe in all_recipes():
        assert recipe.title.endswith("."), recipe.name
        assert len(recipe.doc.strip().splitlines()) > 2, recipe.name


def test_recipes_are_chosen_by_name_in_either_spelling() -> None:
    assert [recipe.name for recipe in select(["REBUILD_session", "counters"])] == [
        "counters",
        "rebuild-session",
    ]


def test_a_name_of_no_recipe_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(UsageError, match=r"no recipe 'magic'; there are adopt, branch-mark, counters"):
        select(["counters", "magic"])


def test_a_recipe_is_named_in_words_joined_by_hyphens() -> None:
    with pytest.raises(ValueError, match="words joined by hyphens"):
        Recipe(name="Re build", serves=("ORP001",), doc="", propose=lambda *_: iter(()))
