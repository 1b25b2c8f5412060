"""Build a damaged or incomplete search index anew from the messages.

Where a search index holds nothing that the messages do not, rebuilding it loses nothing. Where it kept texts
of messages that are gone, it may be their only copy, and they stay in it. It is left to Hermes where a
message holds a NUL, for releases of SQLite split such text differently, and an index that one of them built
cannot be kept up by another. Damage to tables and to other indexes is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.finding import Finding
from statemend.audit.structure import TEXT_WITH_NUL, Part
from statemend.repair.plan import Source, StepClass
from statemend.repair.recipe import Proposal, Recipe, RecipeContext, leave
from statemend.repair.search import keeps_text

#: The indexes whose tokenizers are part of SQLite.
_OURS = ("messages_fts", "messages_fts_trigram")
_SURPLUS = "FTS002"
_WHY = {
    "STO003": "Its pages are damaged; the messages that it comes from are sound.",
    "FTS001": "It lacks messages that are there.",
    _SURPLUS: "It holds rows of messages that are gone, and no text of them.",
}


def propose(context: RecipeContext, finding: Finding) -> Iterator[Proposal]:
    """The index built anew, or why that is left to Hermes."""
    damage = {fact.label: fact.value for fact in finding.evidence}
    name = damage.get("name")
    if damage.get("kind") != Part.SEARCH.value:
        yield leave(finding, f"only a search index is built anew: {finding.remedy.text}")
        return
    if name not in _OURS:
        yield leave(finding, f"{name} needs a tokenizer that is not here: have Hermes rebuild it")
        return
    if context.store.value(TEXT_WITH_NUL):
        yield leave(
            finding,
            "messages hold NULs, which releases of SQLite split differently: have Hermes rebuild it",
        )
        return
    keeps = damage.get("keeps a copy of every text")
    if keeps and finding.rule == _SURPLUS:
        yield leave(finding, "it holds the only copy of messages that are gone: save what is wanted first")
        return
    if keeps and not keeps_text(context.store, str(name)):
        yield leave(finding, "the trigger that tells what goes into it is missing: have Hermes rebuild it")
        return
    yield RECIPE.step(
        finding,
        StepClass.SAFE,
        title=f"Build the search index {name} anew",
        why=_WHY[finding.rule],
        operations=(),
        reindex=(str(name),),
        sources=(Source(column=str(name), origin="the messages"),),
    )


RECIPE = Recipe(name="search-index", serves=tuple(_WHY), doc=__doc__ or "", propose=propose)
