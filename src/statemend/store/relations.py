"""What a parent link means, told from evidence that no single release weighs together.

Markers count only where they name the parent: a continuation inherits ``model_config``, markers included.
Before 0.17 delegates carry no marker, so an unmarked child of a compressed parent is looked at twice.
"""

from __future__ import annotations

from collections.abc import Callable

from statemend.store.family import Edge, Node, Relation
from statemend.store.schema import Era

#: Tells whether a session opens with a compaction summary.
Opening = Callable[[str], bool]
#: Tells whether any child of one parent fits as its continuation.
OneFits = Callable[[], bool]

#: How a parent ends when its place (a chat, a thread) starts a new conversation.
RESET_REASONS = frozenset(
    {"session_reset", "session_switch", "idle", "daily", "suspended", "resume_pending_expired"}
)
#: A continuation may be written a little before its parent is ended. More than this is no race, seconds.
_RACE = 5.0
_SUMMARY = "opens with a compaction summary"


def relate(parent: Node | None, child: Node, one_fits: OneFits, opening: Opening, era: Era) -> Edge:
    """The link of ``child`` to the parent that its row names. ``one_fits`` tells whether any child of that
    parent :func:`fits`; ``era`` is the store's.
    """
    relation, evidence = _weigh(parent, child, one_fits, opening, era)
    return Edge(child.parent_id or "", child.id, relation, (*evidence, *_inherited(child)))


def is_candidate(parent: Node, child: Node) -> bool:
    """Whether nothing in the rows themselves forbids that ``child`` continues its compressed ``parent``."""
    return parent.compressed and not _marked_for(child) and _tool_like(parent, child) is None


def fits(parent: Node, child: Node, opening: Opening) -> bool:
    """Whether a child is what a continuation of its compressed ``parent`` looks like: begun at its end, or
    with a summary."""
    if not is_candidate(parent, child):
        return False
    early = seconds_early(parent, child)
    return (early is not None and early <= _RACE) or opening(child.id)


def _weigh(
    parent: Node | None, child: Node, one_fits: OneFits, opening: Opening, era: Era
) -> tuple[Relation, tuple[str, ...]]:
    marks = _marked_for(child)
    if marks:
        names = tuple(f"marked {name} its parent" for name, _ in marks)
        forks = [relation for _, relation in marks if relation is not Relation.RESET]
        if len(forks) > 1:
            return Relation.UNKNOWN, (*names, "the markers contradict each other")
        summary = parent is not None and parent.compressed and opening(child.id)
        return forks[0] if forks else Relation.RESET, (*names, *((_SUMMARY,) if summary else ()))
    if parent is None:
        return Relation.UNKNOWN, ("the parent has no row",)
    tool = _tool_like(parent, child)
    if tool is not None:
        return Relation.DELEGATE, (tool,)
    if parent.compressed:
        return _weigh_candidate(parent, child, one_fits, opening, era)
    return _weigh_unmarked(parent, child, opening)


def _weigh_candidate(
    parent: Node, child: Node, one_fits: OneFits, opening: Opening, era: Era
) -> tuple[Relation, tuple[str, ...]]:
    """An unmarked child of a compressed parent: the continuation, or a delegate from before markers."""
    ended = "the parent ended by compression"
    if opening(child.id):
        return Relation.CONTINUATION, (ended, _SUMMARY)
    early = seconds_early(parent, child)
    if early is None:
        return Relation.CONTINUATION, (ended, "the times of the two cannot be compared")
    if early <= _RACE:
        side = "before" if early > 0 else "after"
        return Relation.CONTINUATION, (ended, f"started {abs(early):.0f} s {side} that")
    before = f"started {early:.0f} s before the parent ended, without a summary"
    if era < Era.V18:
        return Relation.DELEGATE, (before, "delegates had no marker before 0.17")
    if one_fits():  # not this one: it began early, and without a summary
        return Relation.DELEGATE, (before, "a sibling fits better as the continuation")
    return Relation.CONTINUATION, (ended, before, "no sibling fits better")


def _weigh_unmarked(parent: Node, child: Node, opening: Opening) -> tuple[Relation, tuple[str, ...]]:
    """An unmarked child of a parent that was not ended by compression."""
    early = seconds_early(parent, child)
    if parent.end_reason == "branched" and early is not None and early <= 0:
        return Relation.BRANCH, ("the parent ended as branched before it started",)
    if parent.end_reason in RESET_REASONS and child.session_key and child.session_key == parent.session_key:
        return Relation.RESET, (f"the parent ended by {parent.end_reason}", "the same session key")
    ended = "the parent never ended"
    if parent.end_reason is not None:
        when = "" if early is None else " after it started" if early > 0 else " before it started"
        ended = f"the parent ended by {parent.end_reason}{when}"
    if opening(child.id):
        return Relation.CONTINUATION, (_SUMMARY, ended)
    return Relation.UNKNOWN, ("no marker", ended)


def seconds_early(parent: Node, child: Node) -> float | None:
    """How long before its parent's end a child started, in seconds; ``None`` where either time is unknown."""
    if not isinstance(parent.ended_at, float) or not isinstance(child.started_at, float):
        return None
    return parent.ended_at - child.started_at


def _marked_for(child: Node) -> list[tuple[str, Relation]]:
    """The markers of ``child`` that name its parent."""
    marks = (
        ("_branched_from", child.branched_from, Relation.BRANCH),
        ("_delegate_from", child.delegate_from, Relation.DELEGATE),
        ("_reset_from", child.reset_from, Relation.RESET),
    )
    return [(name, relation) for name, value, relation in marks if value and value == child.parent_id]


def _inherited(child: Node) -> list[str]:
    """The markers of ``child`` that name another session than its parent."""
    values = {
        "_branched_from": child.branched_from,
        "_delegate_from": child.delegate_from,
        "_reset_from": child.reset_from,
    }
    return [
        f"{name} names no session" if value == "__orphaned__" else f"{name} names another session"
        for name, value in values.items()
        if value is not None and value != child.parent_id
    ]


def _tool_like(parent: Node, child: Node) -> str | None:
    """Why the child's source says that it is a run on behalf of its parent, or ``None``."""
    if child.source == "tool":
        return "its source is tool"
    if child.source == "subagent" and parent.source != "subagent":
        return "its source is subagent, the parent's is not"
    return None
