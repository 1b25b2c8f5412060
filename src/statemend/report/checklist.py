"""The review of export integrity: twelve questions, each answered from this home's evidence alone.

``yes`` and ``no`` need evidence; where a rule could not run or nothing tells, the answer is ``unknown``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from statemend.audit import registry
from statemend.audit.finding import Finding, Verdict
from statemend.audit.rule import Family
from statemend.evidence.coverage import ArtifactCoverage, Cause, Scope, SessionCoverage
from statemend.formats.artifact import AUTOMATIC, Kind
from statemend.report.model import Answer, ArtifactEntry, Check, RuleEntry, SkippedEntry, StoreEntry
from statemend.report.text import count, listed


class Evidence:
    """What the answers are drawn from."""

    def __init__(
        self,
        *,
        stores: Sequence[StoreEntry],
        artifacts: Sequence[ArtifactEntry],
        rules: Sequence[RuleEntry],
        findings: Sequence[Finding],
        coverage: Sequence[SessionCoverage],
        skipped: Sequence[SkippedEntry],
    ) -> None:
        self.stores = stores
        self.artifacts = artifacts
        self.rules = {rule.id: rule for rule in rules}
        self.findings = findings
        self.coverage = coverage
        self.skipped = skipped
        self.exports = [each for each in artifacts if each.sessions and each.kind != Kind.STORE.value]

    @property
    def covered(self) -> Iterable[ArtifactCoverage]:
        """Every export against every session that is still there."""
        every = (artifact for session in self.coverage for artifact in session.artifacts)
        return (artifact for artifact in every if artifact.kind not in AUTOMATIC)

    def of(self, *rules: str) -> tuple[str, ...]:
        """The ids of the findings of these rules."""
        return tuple(finding.id for finding in self.findings if finding.rule in rules)

    def unsure(self, *rules: str) -> str:
        """Why these rules do not answer, or an empty string when all of them ran."""
        for rule in rules:
            entry = self.rules.get(rule)
            if entry is None:
                return f"{rule} was not part of this audit."
            if entry.status == "ignored":
                return f"{rule} was {entry.reason}."
            if entry.status == "could not run":
                return f"{rule} could not run: {entry.reason}."
        return ""


def checklist(evidence: Evidence) -> tuple[Check, ...]:
    """The twelve answers, in the order of the review."""
    return (
        _view_named(evidence),
        _compacted_history(evidence),
        _destructive_formats(evidence),
        _content_identity(evidence),
        _rewrites(evidence),
        _one_fence(evidence),
        _fail_closed(evidence),
        _both_sides(evidence),
        _lineage(evidence),
        _partial(evidence),
        _regression(evidence),
        _version(evidence),
    )


def _check(
    evidence: Evidence,
    title: str,
    question: str,
    answer: tuple[Answer, str],
    *rules: str,
) -> Check:
    return Check(
        id=title.lower().replace(" ", "-"),
        title=title,
        question=question,
        answer=answer[0],
        because=answer[1],
        rules=rules,
        findings=evidence.of(*rules),
    )


def _by_rules(evidence: Evidence, good: str, bad: str, *rules: str) -> tuple[Answer, str]:
    """``no`` when one of the rules found something, ``yes`` when all of them looked and found nothing."""
    found = len(evidence.of(*rules))
    if found:
        return "no", f"{count(found, 'finding')}: {bad}"
    doubt = evidence.unsure(*rules)
    return ("unknown", doubt) if doubt else ("yes", good)


def _view_named(evidence: Evidence) -> Check:
    covered = list(evidence.covered)
    silent = sum(each.scope is Scope.ACTIVE for each in covered)
    untold = sum(
        each.scope is Scope.UNKNOWN
        and any(missing.cause in (Cause.UNKNOWN, Cause.OTHER_SEGMENT) for missing in each.missing)
        for each in covered
    )
    answer: tuple[Answer, str]
    if not covered:
        answer = "unknown", "No export here belongs to a session that is still in the store."
    elif silent:
        answer = (
            "no",
            f"{count(silent, 'export')} shows live rows alone and does not say so."
            if silent == 1
            else (f"{count(silent, 'export')} show live rows alone and do not say so."),
        )
    elif untold:
        answer = "unknown", f"For {count(untold, 'export')} the view could not be told."
    else:
        answer = "yes", f"{count(len(covered), 'export')} compared: none hides that it leaves history out."
    return _check(evidence, "View named", "Is it plain which view each export shows?", answer)


def _compacted_history(evidence: Evidence) -> Check:
    archived = sum(store.archived or 0 for store in evidence.stores)
    good = (
        f"Each of {count(archived, 'archived row')} is shown by some export."
        if archived
        else ("No row of this store is archived.")
    )
    answer = _by_rules(evidence, good, "archived messages that no export shows.", "EXP001", "EXP002")
    if answer[0] == "yes" and archived and not evidence.exports:
        answer = "unknown", f"{count(archived, 'row')} are archived and there is no export to compare with."
    return _check(
        evidence,
        "Compacted history accounted for",
        "Is what compaction archived in some export?",
        answer,
        "EXP001",
        "EXP002",
    )


def _destructive_formats(evidence: Evidence) -> Check:
    return _check(
        evidence,
        "Destructive formats explicit",
        "Was nothing deleted on the strength of a format that cannot carry the whole history?",
        _by_rules(
            evidence,
            "No session that an export proves incomplete is gone from the store.",
            "gone from the store, with only an incomplete export left.",
            "EXP002",
        ),
        "EXP002",
    )


def _content_identity(evidence: Evidence) -> Check:
    covered = list(evidence.covered)
    changed = sum(len(each.changed) for each in covered)
    lossy = sum(each.lossy + each.masked for each in covered)
    exact = sum(each.exact for each in covered)
    answer: tuple[Answer, str]
    if not covered:
        answer = "unknown", "No export here belongs to a session that is still in the store."
    elif changed:
        answer = (
            "no",
            f"{count(changed, 'message differs', 'messages differ')} in text between export and store.",
        )
    elif exact and not lossy:
        answer = "yes", f"{count(exact, 'message')} equal in every field."
    else:
        answer = (
            "unknown",
            (
                f"{exact:,} equal in every field; for {lossy:,} the format drops or masks fields, "
                "so only what it shows could be compared."
            ),
        )
    return _check(
        evidence,
        "Content identity",
        "Do exports hold the same content as the store, field by field?",
        answer,
        "EXP005",
    )


def _rewrites(evidence: Evidence) -> Check:
    return _check(
        evidence,
        "Rewrites detected",
        "Is every difference between an export and the store explained?",
        _by_rules(
            evidence,
            "No export was altered, and none differs from the store without a reason.",
            "files that were altered, or texts that differ.",
            "EXP003",
            "EXP005",
        ),
        "EXP003",
        "EXP005",
    )


def _one_fence(evidence: Evidence) -> Check:
    found = evidence.of("EXP002", "ORP001", "ORP004", "ORP005")
    answer: tuple[Answer, str] = (
        ("no", "A session went while it was still written to, or before its export was whole.")
        if found
        else (
            "unknown",
            "A store keeps no record of its deletions, and nothing here tells of one that went wrong.",
        )
    )
    return _check(
        evidence,
        "One fence",
        "Did the last check and each deletion share one transaction?",
        answer,
        "EXP002",
        "ORP001",
        "ORP004",
        "ORP005",
    )


def _fail_closed(evidence: Evidence) -> Check:
    blocked = [rule.id for rule in evidence.rules.values() if rule.status == "could not run"]
    faults = [store.fault for store in evidence.stores if store.fault]
    damaged = sum(artifact.damage is not None for artifact in evidence.artifacts)
    unread = sum(item.unread for item in evidence.skipped)
    answer: tuple[Answer, str]
    if blocked or faults:
        answer = "no", f"{count(len(blocked), 'rule')} could not run, so those answers are missing."
    elif damaged or unread:
        kinds = ((damaged, "damaged"), (unread, "unread"))
        left_out = listed(count(number, f"{kind} file") for number, kind in kinds if number)
        answer = "no", f"Left out of the answers: {left_out}."
    else:
        answer = "yes", "Every rule ran, and every file that was found could be read."
    return _check(
        evidence, "Fail closed", "Does no answer here rest on something that could not be read?", answer
    )


def _both_sides(evidence: Evidence) -> Check:
    return _check(
        evidence,
        "Both sides kept",
        "Where an export and the store differ, are both still there unharmed?",
        _by_rules(
            evidence,
            "No export is damaged, and no session of an incomplete export is gone.",
            "one of the two sides is gone or altered.",
            "EXP002",
            "EXP003",
        ),
        "EXP002",
        "EXP003",
    )


def _lineage(evidence: Evidence) -> Check:
    lines = sorted(rule.id for rule in registry.all_rules() if rule.family is Family.LINEAGE)
    rules = (*lines, "ORP002", "PRO004")
    return _check(
        evidence,
        "Lineage explicit",
        "Does each conversation have one line that export and resume both follow?",
        _by_rules(
            evidence, "No fork, ring, dead end or cut was found.", "where lines part, end or close.", *rules
        ),
        *rules,
    )


def _partial(evidence: Evidence) -> Check:
    partial = sum(
        bool(session.unheld) and all(each.scope is Scope.PROMPTS for each in session.artifacts)
        for session in evidence.coverage
        if session.artifacts
    )
    gone = len(evidence.of("EXP002"))
    passing = len(evidence.of("EXP007", "EXP008", "EXP009"))
    answer: tuple[Answer, str]
    if gone:
        answer = "no", f"{count(gone, 'session')} went although the export held a part."
    elif passing:
        answer = "no", f"{count(passing, 'finding')}: exports that hold a part and read as the whole."
    elif not evidence.coverage:
        answer = "unknown", "No export here names a session."
    elif doubt := evidence.unsure("EXP002", "EXP007", "EXP008", "EXP009"):
        answer = "unknown", doubt
    elif partial:
        answer = "yes", f"Nothing was deleted; {count(partial, 'session')} have a filtered export alone."
    else:
        answer = "yes", "Nothing was deleted on the strength of a filtered, masked or single part."
    return _check(
        evidence,
        "Partial never whole",
        "Has no partial export passed for the whole session?",
        answer,
        "EXP002",
        "EXP007",
        "EXP008",
        "EXP009",
    )


def _regression(evidence: Evidence) -> Check:
    unchanged = [store.unchanged for store in evidence.stores]
    faults = sum(finding.verdict is Verdict.FAULT for finding in evidence.findings)
    answer: tuple[Answer, str]
    if False in unchanged:
        answer = "no", "The store changed while it was read, so another audit may see another state."
    elif None in unchanged or not unchanged:
        answer = "unknown", "The store could not be compared before and after."
    else:
        files = count(len(evidence.artifacts), "file")
        answer = (
            "yes",
            f"The store was the same before and after, and {files} are named with their SHA-256: "
            f"the evidence of {count(faults, 'fault')} can be shown again.",
        )
    return _check(evidence, "Regression evidence", "Can what was found be shown again?", answer)


def _version(evidence: Evidence) -> Check:
    eras = list(dict.fromkeys(store.era for store in evidence.stores))
    answer: tuple[Answer, str]
    if evidence.of("STO004"):
        answer = "no", "The store's number and its columns belong to different releases."
    elif not eras or None in eras:
        answer = "unknown", "The store could not be read."
    else:
        told = listed(filter(None, eras), len(eras))
        answer = "yes", f"Its columns are those of {told}, and all answers are for that."
    return _check(
        evidence,
        "Version scope",
        "Is it known which release's behaviour the answers are for?",
        answer,
        "STO004",
    )
