"""Scenes that several tests look at and none changes: built once, whatever test worker asks first."""

from __future__ import annotations

import fcntl
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

Built = TypeVar("Built")


def once(factory: pytest.TempPathFactory, worker_id: str, name: str, build: Callable[[Path], Built]) -> Built:
    """What ``build`` makes in a folder of that name. It has to pickle."""
    base = factory.getbasetemp()
    base = base if worker_id == "master" else base.parent
    kept = base / f"{name}.pickle"
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            folder = base / name
            folder.mkdir()
            made = build(folder)
            kept.write_bytes(pickle.dumps(made))
    return pickle.loads(kept.read_bytes())
