"""How the steps of a playbook hang together: what each needs, speaks of and must come after.

The gate before a cleanup is here: whatever a file says, a cleanup depends on a verify, and nothing that was
done before it is left unverified.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from statemend.errors import UsageError
from statemend.playbook import query
from statemend.playbook.convert import near
from statemend.playbook.model import (
    TOLD,
    Apply,
    Check,
    Choose,
    Cleanup,
    Expect,
    Export,
    Input,
    Plan,
    Rehearse,
    Report,
    Scan,
    Step,
    Verify,
)
from statemend.playbook.tables import SCAN_TABLES

Kind = TypeVar("Kind", bound=Step)
#: The path below a step, and what is wrong there.
Fault = tuple[str, str]


class Flow:
    """The steps of a playbook in order, each known by its number from 0."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps
        self.numbers: dict[str, int] = {}
        for number, step in enumerate(steps):
            self.numbers.setdefault(step.name, number)
        self._verified = self._covered()

    def needs(self, number: int) -> tuple[int, ...]:
        """The steps that one waits for itself: those it names, or the one before it."""
        given = self.steps[number].needs
        if given is None:
            return (number - 1,) if number else ()
        found = (self.numbers.get(name, number) for name in given)
        return tuple(one for one in found if one < number)

    def ancestors(self, number: int) -> frozenset[int]:
        """Every step that must have passed before this one runs."""
        reached: set[int] = set()
        waiting = [*self.needs(number)]
        while waiting:
            one = waiting.pop()
            if one not in reached:
                reached.add(one)
                waiting += self.needs(one)
        return frozenset(reached)

    def before(self, number: int, kind: type[Kind]) -> list[int]:
        """The steps of a kind before this one."""
        return [one for one in range(number) if isinstance(self.steps[one], kind)]

    def done(self, number: int) -> list[int]:
        """The applies and exports before this step."""
        return sorted(self.before(number, Apply) + self.before(number, Export))

    def verified(self, number: int) -> frozenset[int]:
        """What the verify at ``number`` verifies: the steps it names, or each apply and export before it that
        no verify before it does."""
        return self._verified.get(number, frozenset())

    def _covered(self) -> dict[int, frozenset[int]]:
        covered: dict[int, frozenset[int]] = {}
        for number, step in enumerate(self.steps):
            if isinstance(step, Verify) and step.of is not None:
                covered[number] = frozenset(self.numbers[name] for name in step.of if name in self.numbers)
            elif isinstance(step, Verify):
                covered[number] = frozenset(self.done(number)).difference(*covered.values())
        return covered


def faults(
    steps: Sequence[Step], inputs: Mapping[str, Input], unsettled: Collection[int] = ()
) -> Iterator[tuple[int, str, str]]:
    """What is wrong between the steps: the step's number, the path below it, and the fault. What the steps
    ``unsettled`` select depends on inputs, and is not judged."""
    flow = Flow(steps)
    for number, step in enumerate(steps):
        found = [*_name(flow, number), *_references(flow, number), *_own(flow, number, step, inputs)]
        if number not in unsettled:
            found += _selection(step)
        for path, text in found:
            yield number, path, text


def _name(flow: Flow, number: int) -> Iterator[Fault]:
    step = flow.steps[number]
    if flow.numbers[step.name] != number:
        path = ".id" if step.id else ".do"
        yield path, f"a second step called {step.name!r}; give it an `id` of its own"
    for index, name in enumerate(step.needs or ()):
        yield from _earlier(flow, number, name, f".needs[{index}]")


def _earlier(flow: Flow, number: int, name: str, path: str) -> Iterator[Fault]:
    if name not in flow.numbers:
        yield path, f"no step {name!r}{near(name, flow.numbers)}"
    elif flow.numbers[name] >= number:
        yield path, f"the step {name!r} does not come before this one; move it up"


def _references(flow: Flow, number: int) -> Iterator[Fault]:
    step = flow.steps[number]
    if isinstance(step, Choose | Rehearse | Apply):
        yield from _reference(flow, number, step.plan, ".plan", Plan, ancestor=True)
    elif isinstance(step, Report) and (step.scan is not None or not step.story):
        yield from _reference(flow, number, step.scan, ".scan", Scan, ancestor=False)
    elif isinstance(step, Verify):
        yield from _verifies(flow, number, step)


def _reference(
    flow: Flow, number: int, name: str | None, path: str, kind: type[Step], *, ancestor: bool
) -> Iterator[Fault]:
    word = kind.__name__.lower()
    earlier = flow.before(number, kind)
    if name is None:
        if not earlier:
            yield ".do", f"it needs a `{word}` before it; add one"
            return
        found = earlier[-1]
    else:
        problem = [*_earlier(flow, number, name, path)]
        if problem:
            yield from problem
            return
        found = flow.numbers[name]
        if found not in earlier:
            yield path, f"the step {name!r} is no `{word}`"
            return
    if ancestor and found not in flow.ancestors(number):
        yield ".needs", f"it uses {flow.steps[found].name!r} without needing it; add that to `needs`"


def _verifies(flow: Flow, number: int, step: Verify) -> Iterator[Fault]:
    yield from _twice(step.of or (), ".of")
    for index, name in enumerate(step.of or ()):
        problem = [*_earlier(flow, number, name, f".of[{index}]")]
        yield from problem
        if not problem and not isinstance(flow.steps[flow.numbers[name]], Apply | Export):
            yield f".of[{index}]", f"the step {name!r} is neither an `apply` nor an `export`"
    verified = flow.verified(number)
    if not verified and not step.of:
        yield ".do", "nothing to verify: no `apply` or `export` before it is left; remove it, or say `of`"
    for one in sorted(verified - flow.ancestors(number)):
        if one < number:
            yield ".needs", f"it verifies {flow.steps[one].name!r} without needing it; add that to `needs`"


def _own(flow: Flow, number: int, step: Step, inputs: Mapping[str, Input]) -> Iterator[Fault]:
    if isinstance(step, Check):
        yield from _question(flow, number, step, inputs)
    elif isinstance(step, Cleanup):
        yield from _gate(flow, number, step)
    elif isinstance(step, Report):
        yield from _written(flow, number, step)


def _written(flow: Flow, number: int, step: Report) -> Iterator[Fault]:
    yield from _twice(step.formats, ".formats")
    if step.story and (other := [form.value for form in step.formats if form not in TOLD]):
        yield ".formats", f"a story is told as html, md or json, not as {other[0]}"
    if step.only == "changes":
        scans = flow.before(number, Scan)
        scan = flow.steps[flow.numbers.get(step.scan, number) if step.scan else scans[-1]] if scans else None
        if isinstance(scan, Scan) and scan.baseline is None:
            yield ".only", f"the scan {scan.name!r} has no `baseline` to tell changes from; give it one"


def _twice(names: Sequence[str], path: str) -> Iterator[Fault]:
    for index, name in enumerate(names):
        if name in names[:index]:
            yield f"{path}[{index}]", f"{str(name)!r} is there twice; remove one"


def _question(flow: Flow, number: int, step: Check, inputs: Mapping[str, Input]) -> Iterator[Fault]:
    if step.expect is Expect.VALUE and step.value is None:
        yield ".expect", "`value` is missing; say which value is expected"
    if step.expect is not Expect.VALUE and step.value is not None:
        yield ".value", "a `value` is compared only with `expect: value`"
    try:
        shape = query.shape(step.sql)
    except UsageError as error:
        yield ".sql", str(error)
        return
    for name in sorted(set(shape.bindings) - inputs.keys()):
        yield ".sql", f"no input :{name[:60]}{near(name, inputs)}"
    used = sorted({table for table, _ in shape.reads} & SCAN_TABLES.keys())
    if used and not flow.before(number, Scan):
        yield ".sql", f"the table {used[0]!r} is what a scan found; add a `scan` before it"


def _gate(flow: Flow, number: int, step: Cleanup) -> Iterator[Fault]:
    verifies = [one for one in flow.ancestors(number) if isinstance(flow.steps[one], Verify)]
    if not verifies:
        yield ".do", "a cleanup needs a `verify` before it that it depends on; nothing is deleted unverified"
        return
    verified = frozenset[int]().union(*map(flow.verified, verifies))
    for one in flow.done(number):
        if one not in verified:
            name = flow.steps[one].name
            yield ".do", f"{name!r} is not verified before this cleanup; add a `verify` that it depends on"
    if not step.artifacts and not flow.before(number, Export):
        yield ".do", "nothing exported before this cleanup; add an `export`, or name folders in `artifacts`"


def _selection(step: Step) -> Iterator[Fault]:
    if isinstance(step, Export):
        given = [bool(step.sessions), step.at_risk, step.older_than is not None]
        if given.count(True) != 1:
            yield ".do", "say exactly one of `sessions`, `at_risk` and `older_than`"
    elif isinstance(step, Cleanup):
        given = [bool(step.sessions), step.older_than is not None]
        if given.count(True) != 1:
            yield ".do", "say exactly one of `sessions` and `older_than`"
