"""What the row of one session claims about the link to its parent, and how releases treat it for that.

Each marker that names the parent claims a relation. So does the way the session begins, where that is how a
continuation begins. A marker that names another session claims nothing where a compression may have copied
it: with ``model_config``, from a segment before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from statemend.audit.context import Context
from statemend.audit.eras import RELEASES
from statemend.audit.facts import is_time
from statemend.audit.handoff import HOLDS, OPENING, ORPHANED, is_hidden_continuation
from statemend.audit.vanished import rows_vanished
from statemend.store.connection import Store
from statemend.store.lineage import Graph, Node, Relation
from statemend.store.relations import RESET_REASONS
from statemend.store.schema import Era

#: The marker of each relation, and the field of a node that holds it.
MARKERS = {
    Relation.BRANCH: ("_branched_from", "branched_from"),
    Relation.DELEGATE: ("_delegate_from", "delegate_from"),
    Relation.RESET: ("_reset_from", "reset_from"),
}
#: The releases that heed markers, by the era whose rules they follow.
MARKING = {era: RELEASES[era] for era in (Era.V18, Era.V20, Era.V22)}
#: So many of a session's first rows are looked for in its parent, and so many found there were copied.
_FIRST, _COPIED = 12, 2

PRESENT = "SELECT 1 FROM sessions WHERE id = ?"
#: How many of a session's first rows stand in another.
COPIED = f"""
SELECT COUNT(*)
FROM (SELECT role, content FROM messages WHERE session_id = ? ORDER BY id LIMIT {_FIRST}) AS first
WHERE EXISTS (
  SELECT 1 FROM messages AS m WHERE m.session_id = ? AND m.role = first.role AND m.content = first.content
)
"""
#: What a rule that uses this module reads.
READS = (PRESENT, COPIED, OPENING, HOLDS)


class Treatment(NamedTuple):
    """What one release does with a link: whether resume and export follow it, and whether deleting the
    parent takes the child."""

    resumed: bool
    exported: bool
    deleted: bool


#: What is right for each relation.
RIGHT = {
    Relation.CONTINUATION: Treatment(resumed=True, exported=True, deleted=False),
    Relation.BRANCH: Treatment(resumed=False, exported=False, deleted=False),
    Relation.DELEGATE: Treatment(resumed=False, exported=False, deleted=True),
    Relation.RESET: Treatment(resumed=False, exported=False, deleted=False),
}


class Claim(msgspec.Struct, frozen=True):
    """A relation that is claimed, by what, and what speaks for it and against it, each in a few words."""

    relation: Relation
    by: str
    pro: tuple[str, ...] = ()
    contra: tuple[str, ...] = ()


class Contradiction(msgspec.Struct, frozen=True):
    """Claims about one link of which at most one can be true, and which one the evidence makes true."""

    parent: Node
    child: Node
    claims: tuple[Claim, ...]
    true: Relation | None


def contradiction(context: Context, child: Node) -> Contradiction | None:
    """What is claimed about the link of ``child``, if it is more than one thing and some release treats the
    link otherwise than it would by what is true, or may be."""
    parent = context.graph.nodes.get(child.parent_id or "")
    by = _claimed(context, child) if parent is not None else {}
    if parent is None or len(by) < 2:
        return None
    claims = tuple(_weighed(context, parent, child, by))
    true = _decided(claims)
    possible = [true] if true is not None else list(by)
    if not any(harm(context.store, parent, child, relation, by) for relation in possible):
        return None
    return Contradiction(parent, child, claims, true)


def treatment(store: Store, parent: Node, child: Node, era: Era) -> Treatment:
    """What the releases of an era do with this link, whatever the rest of the family is."""
    alone = msgspec.structs.replace(
        parent, parent_id=None, branched_from=None, delegate_from=None, reset_from=None
    )
    family = Graph(store, {parent.id: alone, child.id: child})
    return Treatment(
        resumed=family.resume_tip(parent.id, era) == child.id,
        exported=child.id in (family.export_chain(parent.id, era) or ()),
        deleted=child.id in family.deletion(parent.id, era).deleted,
    )


def harm(
    store: Store, parent: Node, child: Node, relation: Relation, claimed: Iterable[Relation]
) -> dict[Era, Treatment]:
    """The eras that treat the link wrongly if ``relation`` is the true one, and would not without the markers
    of the others that are ``claimed``; with what they do."""
    kept = msgspec.structs.replace(child, **dict.fromkeys(fields_of_others(relation, claimed)))
    found = {}
    for era in MARKING:
        now, then = treatment(store, parent, child, era), treatment(store, parent, kept, era)
        pairs = zip(now, then, RIGHT[relation], strict=True)
        if any(is_now != right and is_then == right for is_now, is_then, right in pairs):
            found[era] = now
    return found


def fields_of_others(relation: Relation, claimed: Iterable[Relation]) -> list[str]:
    """The fields of a node that hold the markers of the relations that are claimed beside this one."""
    return [MARKERS[other][1] for other in claimed if other is not relation and other in MARKERS]


def _claimed(context: Context, child: Node) -> dict[Relation, str]:
    """The relations that are claimed, and by what. What only a delegate marker and a summary say is left to
    the rule about false delegate markers."""
    names = {field for _, field in MARKERS.values() if getattr(child, field) == child.parent_id}
    strays = {field for _, field in MARKERS.values() if _strays(context, child, field)}
    if not strays and names <= {"delegate_from"}:
        return {}
    hidden = is_hidden_continuation(context, child)
    found = {}
    for relation, (key, field) in MARKERS.items():
        if field in names:
            found[relation] = f"{key} names the parent"
        elif field in strays and (hidden or (names and relation is Relation.DELEGATE)):
            found[relation] = f"{key} names a session that it does not come from"
    if hidden:
        found[Relation.CONTINUATION] = "it begins with a summary that the parent does not hold"
    return found


def _strays(context: Context, child: Node, field: str) -> bool:
    """Whether a marker names a session of this store that the child has nothing to do with: no compression
    copied it from the parent, and it names none of those above."""
    value = getattr(child, field)
    if value in (None, "", ORPHANED, child.id, child.parent_id):
        return False
    above = context.graph.nodes.get(child.parent_id or "")
    if above is not None and getattr(above, field) == value:
        return False
    if context.graph.is_above(value, child.id):
        return False
    return context.store.value(PRESENT, (value,)) is not None


def _weighed(context: Context, parent: Node, child: Node, by: Mapping[Relation, str]) -> Iterator[Claim]:
    continues = Relation.CONTINUATION in by
    copied = 0 if continues else context.store.value(COPIED, (child.id, parent.id))
    for relation, claimed in by.items():
        pro: list[str] = []
        contra: list[str] = []
        if relation is Relation.CONTINUATION:
            pro.append("it begins at the end of the parent, and nothing else continues that")
            if Relation.BRANCH in by and rows_vanished(context, parent):
                contra.append("rows are missing from the time after that end: another may have been deleted")
        elif relation is Relation.BRANCH:
            if copied >= _COPIED:
                pro.append(f"{copied} of its first rows stand in the parent")
            if parent.end_reason == "branched" and _begins_after(parent, child):
                pro.append("the parent ended as branched before it began")
        elif relation is Relation.DELEGATE:
            if child.source == "subagent" and parent.source != "subagent":
                pro.append("its source is subagent, the parent's is not")
            elif child.session_key:
                contra.append("it has a routing key and is no subagent's row")
        elif relation is Relation.RESET:
            same_place = child.session_key and child.session_key == parent.session_key
            if same_place and parent.end_reason in RESET_REASONS and _begins_after(parent, child):
                pro.append(f"the parent ended by {parent.end_reason} before it began in the same place")
            if copied >= _COPIED:
                contra.append("a reset begins without rows of the session before")
        yield Claim(relation, claimed, tuple(pro), tuple(contra))


def _begins_after(parent: Node, child: Node) -> bool:
    if not is_time(parent.ended_at) or not is_time(child.started_at):
        return False
    return bool(child.started_at >= parent.ended_at)


def _decided(claims: tuple[Claim, ...]) -> Relation | None:
    """The one claim that something speaks for and nothing against; or, where nothing speaks for any, the one
    that is left when something speaks against all others."""
    supported = [claim for claim in claims if claim.pro]
    standing = supported or [claim for claim in claims if not claim.contra]
    if len(standing) != 1 or standing[0].contra:
        return None
    return standing[0].relation
