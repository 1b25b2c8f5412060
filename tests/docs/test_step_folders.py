"""The reference of playbooks names everything that a step leaves in its folder."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

from docs.playbook_page import LEAVES
from tests.docs.conftest import Statemend

EVERY_STEP = """
schema: statemend/playbook/v1
name: every-step
title: Every kind of step
purpose: Shows what each leaves.
inputs:
  home: {type: path, help: The home.}
steps:
  - {do: scan}
  - {id: again, do: scan, baseline: scan}
  - {do: check, sql: SELECT id FROM sessions, expect: rows, message: There is no session.}
  - {do: plan, recipes: [rebuild-session]}
  - {do: choose}
  - {do: rehearse}
  - {do: apply}
  - {do: export, at_risk: true}
  - {do: verify}
  - {do: snapshot}
  - {do: report, formats: [html, md, json, jsonl, sarif, junit, summary]}
  - {id: story, do: report, story: true, formats: [html, md, json]}
  - {do: cleanup, older_than: 0}
  - {do: bundle}
  - {do: pause, message: The end.}
"""


def test_everything_that_a_step_leaves_is_told(sandbox: Path, statemend: Statemend) -> None:
    (sandbox / "all.yaml").write_text(EVERY_STEP, encoding="utf-8")
    arguments = ["playbook", "run", "all.yaml", "--set", "home=~/.hermes", "--yes", "--run-dir", "run"]
    assert statemend(arguments)[0] in (0, 4)  # the cleanup keeps what no file preserves
    kinds = {"again": "scan", "story": "report"}
    seen = set()
    for place in sorted((sandbox / "run" / "steps").iterdir()):
        name = place.name.partition("-")[2]
        kind = kinds.get(name, name)
        left = {path.name for path in place.iterdir()} - {"result.json"}
        assert not [file for file in left if not any(fnmatch(file, told) for told in _told(kind))], name
        seen.add(kind)
    assert seen == set(LEAVES)


def _told(kind: str) -> list[str]:
    """The names in what is told of a kind, as patterns."""
    names = re.findall(r"`([\w.-]+)/?`", LEAVES[kind])
    return [name.replace("STEP", "*").replace(".html", ".*") for name in names]
