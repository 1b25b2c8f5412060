"""``check``: one question to the store."""

from __future__ import annotations

from pathlib import Path

import msgspec

from statemend.errors import StoreUnreadable
from statemend.evidence.inventory import find_home
from statemend.playbook import query
from statemend.playbook.env import Env, Outcome
from statemend.playbook.model import Check, Scan
from statemend.playbook.steps.scan import REPORT
from statemend.report.json import dump
from statemend.report.load import load_report
from statemend.report.playbook_run import StepState
from statemend.store import durable
from statemend.store.connection import Access, open_for_audit


def run(step: Check, env: Env) -> Outcome:
    """Passes if the answer is as expected."""
    scans = any(isinstance(each, Scan) for each in env.before())
    tables = query.Tables.of(load_report(env.scan(None) / REPORT)) if scans else query.Tables()
    with open_for_audit(Path(find_home(env.home).store)) as store:
        answer = query.ask(store, step, env.inputs, tables)
        if store.access is Access.ORIGINAL and not store.unchanged():
            raise StoreUnreadable(f"{store.path}: it changed while it was read; stop its user, run again")
    passed, sentence = query.judge(step, answer)
    shown = msgspec.structs.replace(answer, value=None)
    durable.write_new(env.place / "answer.json", dump(shown).encode())
    return Outcome(
        state=StepState.PASSED if passed else StepState.FAILED,
        exit_code=0 if passed else 1,
        summary=sentence,
        facts={"rows": answer.count, "more": answer.truncated},
    )
