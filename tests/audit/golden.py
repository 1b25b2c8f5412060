"""Findings that were looked at once and are kept whole: every word, number and command that a user sees.

``golden/LIN001.json`` holds, for some tests of ``rules/test_lin001_*.py``, the findings of that rule in the
audits of the test. After a wanted change ``STATEMEND_GOLDEN=write pytest tests/audit/rules/test_lin001_*.py``
writes it anew; read what ``git diff`` shows.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from statemend.audit.finding import Finding

FOLDER = Path(__file__).parent / "golden"
_TREE = Path(__file__).resolve().parents[2]
WRITING = os.environ.get("STATEMEND_GOLDEN") == "write"
#: Evidence that is another in each run, by rule and label.
_OF_THE_RUN = {("EXP003", "modified at"), ("STO006", "which")}
#: Of each rule, every way to put it is kept once, and no more than so many tests.
_MOST = 12

Told = list[dict[str, Any]]


def plain(findings: Iterable[Finding], home: str, folder: Path) -> Told:
    """Findings as JSON holds them, without the place of the home and of the folder of the test."""
    text = msgspec.json.encode(list(findings)).decode()
    for path, name in ((home, "HOME"), (str(folder), "FOLDER"), (str(_TREE), "TREE")):
        text = text.replace(path, name)
    told: Told = json.loads(text)
    for finding in told:
        finding["evidence"] = [
            fact for fact in finding["evidence"] if (finding["rule"], fact["label"]) not in _OF_THE_RUN
        ]
    return told


def load(rule: str) -> dict[str, list[Told]]:
    """What is kept of a rule: for each test, by its name, the findings of its audits."""
    path = FOLDER / f"{rule}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def write(rule: str, seen: dict[str, list[Told]]) -> None:
    """Keep, of the tests of a rule, those that show a finding put in a way that none before them shows."""
    kept: dict[str, list[Told]] = {}
    known: set[str] = set()
    for test, audits in sorted(seen.items()):
        ways = {way for told in audits for finding in told for way in _ways(finding)}
        elsewhere = any("TREE" in str(told) for told in audits)  # ids hold where such a file lies
        if not ways <= known and not elsewhere and len(kept) < _MOST:
            known |= ways
            kept[test] = audits
    if kept:
        FOLDER.mkdir(exist_ok=True)
        text = json.dumps(kept, ensure_ascii=False, indent=1) + "\n"
        (FOLDER / f"{rule}.json").write_text(text, "utf-8")


def _ways(finding: dict[str, Any]) -> Iterable[str]:
    """The forms of words in a finding, numbers left out."""
    yield f"{finding['verdict']} {finding['severity']}"
    for text in (finding["summary"], finding["remedy"]["text"]):
        yield re.sub(r"\d+", "0", text)
    for fact in finding["evidence"]:
        value = fact["value"]
        yield f"{fact['label']} {value if isinstance(value, bool) else type(value).__name__}"
