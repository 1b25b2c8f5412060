"""``verify``: what an apply or an export did, held against the store as it is now."""

from __future__ import annotations

from pathlib import Path

import msgspec

from statemend.errors import Refused, Undetermined, UsageError, VerificationFailed
from statemend.playbook.env import Env, Outcome
from statemend.playbook.model import Apply, Export, Verify
from statemend.playbook.steps.export import WRITTEN
from statemend.repair.export_result import Reexport
from statemend.repair.export_verify import reprove
from statemend.repair.run import State
from statemend.repair.verify import verify
from statemend.report.json import dump
from statemend.report.playbook_run import PASSING, StepState
from statemend.store import durable

#: What the files with the proofs are called, before the name of the step.
VERIFIED = "verified-"
#: The fact that names, by comma, the steps that were proven.
PROVEN = "proven"


class _Found(msgspec.Struct, frozen=True):
    """What became of one step: a sentence, and the exit code when it does not hold."""

    step: str
    sentence: str
    exit_code: int = 0


def run(step: Verify, env: Env) -> Outcome:
    """Passes when everything that it is about holds."""
    wanted = _wanted(step, env)
    if env.dry:
        return Outcome(
            state=StepState.PLANNED,
            summary=f"would verify {', '.join(wanted) or 'nothing'}",
            facts={PROVEN: ",".join(wanted)},
        )
    found = [_verified(each, env) for each in wanted]
    wrong = [each for each in found if each.exit_code]
    told = "; ".join(f"{each.step}: {each.sentence}" for each in wrong or found)
    if wrong:
        return Outcome(state=StepState.FAILED, exit_code=max(each.exit_code for each in wrong), summary=told)
    return Outcome(summary=told or "nothing to verify", facts={PROVEN: ",".join(wanted)})


def unproven(env: Env) -> tuple[str, ...]:
    """The steps of this run that did something which no passing verify has proven yet."""
    done = [each.name for each in env.before() if isinstance(each, Apply | Export)]
    proven = {
        name
        for result in env.results.values()
        if result.kind == "verify" and result.state in PASSING
        for name in str(result.facts.get(PROVEN, "")).split(",")
    }
    return tuple(name for name in reversed(done) if name not in proven)


def _wanted(step: Verify, env: Env) -> tuple[str, ...]:
    if step.of is None:
        return unproven(env)
    passed = {each.name for each in env.before() if isinstance(each, Apply | Export)}
    for name in step.of:
        if name not in passed:
            raise Refused(f"the step {name!r} that this one verifies did not pass")
    return step.of


def _verified(name: str, env: Env) -> _Found:
    result = env.results[name]
    if result.kind == "export":
        return _export(name, env)
    place = result.facts.get("run")
    if not isinstance(place, str):
        return _Found(name, "nothing was changed")
    run = verify(env.folder.path / place, progress=env.progress)
    durable.write_new(env.place / f"{VERIFIED}{name}.json", dump(run).encode())
    if run.state is State.APPLIED:
        return _Found(name, run.state.value)
    code = VerificationFailed.exit_code if run.state is State.FAILED else Undetermined.exit_code
    return _Found(name, f"{run.state.value}; {'; '.join([*run.troubles, run.advice])}", code)


def _export(name: str, env: Env) -> _Found:
    record = env.place_of(name) / WRITTEN
    proofs = reprove(_read(record), progress=env.progress) if record.is_file() else ()
    durable.write_new(env.place / f"{VERIFIED}{name}.json", dump(proofs).encode())
    changed = [proof for proof in proofs if proof.reasons]
    holding = len(proofs) - len(changed)
    if changed and not holding:
        first = changed[0]
        return _Found(name, f"{first.path}: {first.reasons[0]}", VerificationFailed.exit_code)
    if changed:
        return _Found(
            name, f"{holding} of {len(proofs)} files hold their sessions whole, the others changed since"
        )
    return _Found(name, f"{holding} files hold their sessions whole" if proofs else "no file was written")


def _read(path: Path) -> Reexport:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Reexport)
    except msgspec.DecodeError as error:
        raise UsageError(f"{path}: not what an export of this run wrote ({error})") from error
