"""``bundle``: the run so far, packed for others to read."""

from __future__ import annotations

from statemend.playbook.bundle import pack
from statemend.playbook.env import Env, Outcome
from statemend.playbook.model import Bundle
from statemend.report.text import count, size

FILE = "bundle.tar.gz"


def run(step: Bundle, env: Env) -> Outcome:
    """Passes when it is packed."""
    packed = pack(env.folder.path, env.place / FILE, with_content=step.with_content)
    left = f", {count(len(packed.left_out), 'file')} left out" if packed.left_out else ""
    return Outcome(
        summary=f"{count(len(packed.files), 'file')} packed ({size(packed.size)}){left}",
        facts={"files": len(packed.files), "left_out": len(packed.left_out), "sha256": packed.sha256},
    )
