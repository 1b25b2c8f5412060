"""Makes a plan: one audit, then each recipe over the findings that it serves, while the store is still open.

Nothing is changed. The same store, looked at with the same files beside it, gives the same plan with the same
id.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Unpack

import msgspec

import statemend
from statemend.audit import registry
from statemend.audit.context import Context
from statemend.audit.engine import audit
from statemend.audit.facts import moment
from statemend.audit.finding import Finding, Verdict
from statemend.audit.request import Asked
from statemend.audit.structure import Part
from statemend.errors import StatemendError, StoreUnreadable, UsageError
from statemend.evidence.inventory import Home
from statemend.repair.conflicts import Claims, in_order, steps_of
from statemend.repair.marks import CannotChangeError
from statemend.repair.plan import Choice, Left, Plan, Planned, Step, StoreIdentity
from statemend.repair.recipe import Proposal, Recipe, RecipeContext, leave, select
from statemend.repair.store_identity import INSTANCE, SCHEMA_OBJECTS, schema_digest

_ID_LENGTH = 16
#: The tables that every recipe reads.
_READ = ("sessions", "messages")


class Draft(msgspec.Struct, frozen=True):
    """A plan, and what the audit that it rests on did not say: why it could not say everything it was asked,
    and what it was asked to leave out (one sentence for each cause)."""

    plan: Plan
    undetermined: tuple[str, ...]
    ignored: tuple[str, ...] = ()


def make_plan(
    path: Path | Home,
    *,
    recipes: Sequence[str] | None = None,
    restore: Sequence[str] = (),
    **asked: Unpack[Asked],
) -> Plan:
    """Plan the repair of the home or store at ``path``; see ``draft``."""
    return draft(path, recipes=recipes, restore=restore, **asked).plan


def draft(
    path: Path | Home,
    *,
    recipes: Sequence[str] | None = None,
    restore: Sequence[str] = (),
    **asked: Unpack[Asked],
) -> Draft:
    """Audit the home or store at ``path`` as ``asked``, and plan its repair. Of a home with profiles it is
    the repair of its own store; a profile is planned for by its folder.

    ``recipes`` names those that may be used; ``None`` means all. ``restore`` are ids of sessions that were
    lawfully deleted, as far as can be told, and are wanted back. ``SOURCE_DATE_EPOCH`` in the environment
    fixes the time that the plan bears. A plan with nothing to do has no steps and no choices.

    Raises ``UsageError`` for a path without a store, a name that does not exist or a session of which nothing
    is left to restore, ``StoreHeld`` for a store in use, ``StoreUnreadable`` for one that cannot be read.
    """
    exports = asked.get("exports", ())
    chosen = select(recipes)
    for named in (path.store if isinstance(path, Home) else path, *exports):
        if not _is_text(str(named)):
            raise UsageError(f"{named}: not a valid name in UTF-8, so no plan can hold it; give it another")
    home = path if isinstance(path, Home) else Path(os.path.abspath(path))
    beside = [Path(os.path.abspath(each)) for each in exports]
    made: list[Plan] = []

    def observe(context: Context, findings: Sequence[Finding]) -> None:
        if not context.readable:
            raise StoreUnreadable(context.refusal or f"{context.store_label}: cannot be read")
        made.append(_plan(RecipeContext(context, findings, restore), chosen, beside))

    asked["exports"] = beside
    looked = audit(home, observe=observe, **asked)
    (plan,) = made
    return Draft(
        msgspec.structs.replace(plan, made_at=_made_at(looked.at)), looked.undetermined, looked.ignored
    )


def _plan(context: RecipeContext, recipes: tuple[Recipe, ...], exports: Sequence[Path]) -> Plan:
    steps: list[Step] = []
    choices: list[Choice] = []
    planned: list[Planned] = []
    left: list[Left] = []
    claims = Claims()
    for finding, proposals in _proposals(context, recipes):
        found = [one for one in proposals if not isinstance(one, Left)]
        reasons = [one.reason for one in proposals if isinstance(one, Left)]
        if found and (taken := claims.held_by_another(found)):
            found, reasons = [], [f"{taken} changes the same row; plan again when that is done"]
        if not found:
            left.append(Left(id=finding.id, rule=finding.rule, reason="; ".join(reasons)))
            continue
        claims.add(found)
        planned.append(Planned(id=finding.id, rule=finding.rule, summary=finding.summary))
        steps += [one for one in found if isinstance(one, Step)]
        choices += [one for one in found if isinstance(one, Choice)]
    if context.wanted:
        raise UsageError(
            f"{context.home.store}: nothing to restore of session {min(context.wanted)}: it is in the store, "
            "or no file beside it has a message of it; `statemend show` tells which"
        )
    plan = Plan(
        id="",
        made_at="",
        tool=f"statemend {statemend.__version__}",
        home=context.home.root,
        store=_identity(context),
        exports=tuple(map(str, exports)),
        deep=context.audit.deep,
        findings=tuple(planned),
        steps=in_order(steps),
        choices=tuple(choices),
        left=tuple(left),
    )
    plan = msgspec.convert(_as_text(msgspec.to_builtins(plan)), Plan)
    digest = hashlib.sha256(msgspec.json.encode(plan)).hexdigest()
    return msgspec.structs.replace(plan, id=digest[:_ID_LENGTH])


def _as_text(value: Any) -> Any:
    """The value with what UTF-8 cannot hold spelled out: the name of a file found beside the store may be
    anything. Cells of rows never hold such text."""
    if isinstance(value, str):
        return value if _is_text(value) else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_as_text(key): _as_text(item) for key, item in value.items()}
    return [_as_text(item) for item in value] if isinstance(value, list | tuple) else value


def _is_text(value: str) -> bool:
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


def _proposals(
    context: RecipeContext, recipes: tuple[Recipe, ...]
) -> Iterator[tuple[Finding, list[Proposal]]]:
    """Each finding in the order of the rules, with what the recipes make of it: never nothing."""
    order = {rule.id: position for position, rule in enumerate(registry.all_rules())}
    obstacle = _obstacle(context.audit)
    for finding in sorted(context.findings, key=lambda f: (order[f.rule], f.subject.session or "", f.id)):
        context.audit.report(f"planning for {finding.id}")
        serving = [recipe for recipe in recipes if finding.rule in recipe.serves]
        found: list[Proposal] = []
        for recipe in () if obstacle else serving:
            found += _ask(recipe, context, finding)
        yield finding, found or [leave(finding, _why_not(finding, serving, obstacle))]


def _ask(recipe: Recipe, context: RecipeContext, finding: Finding) -> list[Proposal]:
    try:
        found = list(recipe.propose(context, finding))
    except CannotChangeError as obstacle:
        return [leave(finding, str(obstacle))]
    except StatemendError as error:
        return [leave(finding, f"{recipe.name} could not read what it needs: {error}")]
    odd = _no_text(found)
    if odd is not None:
        return [
            leave(finding, f"its {odd} is no valid text, and no undo could bring that back: mend it by hand")
        ]
    return found


def _no_text(proposals: Sequence[Proposal]) -> str | None:
    """A column that a step would change, or drop, of which the store has text that is not valid."""
    cells = (cell for step in steps_of(proposals) for each in step.operations for cell in each.before.items())
    return next((name for name, cell in cells if isinstance(cell, dict) and "text" in cell), None)


def _obstacle(audit: Context) -> str | None:
    """Why no recipe can be asked about this store at all, and what to do first."""
    if audit.trusts(*_READ):
        return None
    missing = [table for table in _READ if not audit.store.table_exists(table)]
    if missing:
        return f"the store has no table {' and no table '.join(missing)}: salvage it into a new file first"
    damages = [
        each
        for each in audit.structure.damages
        if each.part in (Part.TABLE, Part.INDEX) and each.table in _READ
    ]
    named = " and ".join(f"the {each.part.value} {each.name}" for each in damages)
    first = "salvage the store into a new file first"
    if all(each.part is Part.INDEX for each in damages):
        first = "REINDEX a copy of the store, check it, and put it in place first"
    return f"{named} {'is' if len(damages) == 1 else 'are'} damaged: {first}"


def _why_not(finding: Finding, serving: Sequence[Recipe], obstacle: str | None) -> str:
    if finding.verdict is Verdict.LEFTOVER:
        return f"lawful as it is: {finding.summary} {finding.remedy.text}"
    if serving and obstacle:
        return obstacle
    if serving:
        return f"{serving[0].name} has no answer to it: {finding.remedy.text}"
    known = registry.get(finding.rule).recipe
    return f"{known} was not asked for" if known else f"no recipe mends it: {finding.remedy.text}"


def _identity(context: RecipeContext) -> StoreIdentity:
    store = context.store
    instance = store.value(INSTANCE) if store.table_exists("state_meta") else None
    return StoreIdentity(
        path=context.home.store,
        schema_digest=schema_digest(store.rows(SCHEMA_OBJECTS)),
        instance=None if instance is None else str(instance),
    )


def _made_at(at: float) -> str:
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    return moment(int(fixed) if fixed.isdigit() else at)
