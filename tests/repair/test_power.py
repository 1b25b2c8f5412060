"""A process that dies before any one of its operations leaves the old store or the new one.

Every third operation is tried; ``STATEMEND_FAULTS=all`` tries them all.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from statemend.repair.run import State

OLD = {State.NOT_APPLIED, State.BEFORE_COMMIT}


@pytest.mark.parametrize("verb", ["apply", "undo"])
def test_the_power_fails_before_each_operation(stores: Mapping[str, Path], tmp_path: Path, verb: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.repair.cut", verb, str(stores["0.22.2"]), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(told) > 50
    assert [one["through"] for one in told] == [False] * (len(told) - 1) + [True]
    digests = {one["digest"] for one in told}
    assert len(digests) == 2
    for one in told:
        is_old = one["digest"] == one["old"]
        assert one["after"] == one["digest"]
        assert one["check"] == "ok"
        assert one["broken"] == (3 if is_old else 0)
        if verb == "apply":
            assert (one["state"] in OLD) if is_old else (one["state"] == State.AFTER_COMMIT)
        else:
            assert one["state"] == (State.UNDONE if is_old else None)
