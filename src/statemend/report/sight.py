"""What a report could have seen: whether a finding that it lacks is not there, or was not looked for."""

from __future__ import annotations

import os

from statemend.audit.finding import Finding
from statemend.report.model import Report
from statemend.report.paths import relative, within

#: Rules that find more with ``--deep``.
DEEPER = frozenset({"FTS001", "FTS002", "MSG006", "STO002", "STO003"})


def undetermined(report: Report) -> tuple[str, ...]:
    """Why the report cannot say everything it was asked: one clause for each cause."""
    causes = [
        f"{rule.id} {rule.slug} could not run: {rule.reason}"
        for rule in report.rules
        if rule.status == "could not run"
    ]
    causes += [
        f"{store.path} changed while it was read" for store in report.stores if store.unchanged is False
    ]
    causes += [f"{item.path}: {item.reason}" for item in report.skipped if item.unread]
    return tuple(causes)


def deep(report: Report) -> bool:
    """Whether the whole store was checked, and not only its tables."""
    return any(store.deep for store in report.stores)


class Sight:
    """How far one report could see."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._rules = {rule.id: rule for rule in report.rules}
        self._files = {entry.path for entry in report.artifacts}
        self._unread = [item for item in report.skipped if item.unread]
        self._by_session: dict[str, list[str]] = {}
        for entry in report.artifacts:
            for session in entry.sessions:
                self._by_session.setdefault(session, []).append(entry.path)

    def blind_to_rule(self, rule: str) -> str | None:
        """Why no finding of ``rule`` can be missed here; ``None`` when its absence says that there is
        none."""
        entry = self._rules.get(rule)
        if entry is None:
            return "its rule was not run"
        if entry.status == "ignored":
            return f"its rule was {entry.reason}"
        if entry.status == "could not run":
            return f"its rule could not run: {entry.reason}"
        if any(store.unchanged is False for store in self._report.stores):
            return "the store changed while it was read"
        return None

    def blind_to(self, finding: Finding, told_by: Sight) -> str | None:
        """Why this report, which lacks a finding of ``told_by``, could not have seen it; ``None`` when it
        could."""
        if blind := self.blind_to_rule(finding.rule):
            return blind
        store = self._name_of(finding.subject.store, told_by)
        if len(told_by._report.stores) > 1 and store not in {each.path for each in self._report.stores}:
            return f"{store} was not looked at"
        if finding.rule in DEEPER and deep(told_by._report) and not deep(self._report):
            return "the whole store was not checked (--deep)"
        for path in told_by._sources(finding):
            here = self._name_of(path, told_by)
            for folder in told_by._report.exports:
                if within(path, folder) and not self._looked_at(folder) and here not in self._files:
                    return f"{folder} was not looked at"
            for item in self._unread:
                if within(here, item.path):
                    return f"{item.path} could not be read: {item.reason}"
        return None

    def lost_source(self, finding: Finding, told_by: Sight) -> str | None:
        """Says so when the file that told of the finding is no longer here: then nothing was mended."""
        file = finding.subject.artifact
        if file is None or file not in told_by._files or self._name_of(file, told_by) in self._files:
            return None
        return f"the file that told of it is no longer there: {file}"

    def _sources(self, finding: Finding) -> list[str]:
        """The files that the finding may rest on: the one it names, and those of its session."""
        named = [] if finding.subject.artifact is None else [finding.subject.artifact]
        return named + self._by_session.get(finding.subject.session or "", [])

    def _looked_at(self, folder: str) -> bool:
        return any(within(folder, root) for root in self._report.exports)

    def _name_of(self, path: str, told_by: Sight) -> str:
        """``path`` as this report names it, whose home may go by another name."""
        home, theirs = self._report.home, told_by._report.home
        if home == theirs or not within(path, theirs):
            return path
        return os.path.join(home, relative(path, theirs))
