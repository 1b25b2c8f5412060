"""Several audits as one report: how each rule ended on all of them, and what they list together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from statemend.audit.outcome import Audit, RuleResult, Status
from statemend.evidence.walk import Skipped
from statemend.formats.artifact import Artifact

#: How a rule ended that did not end alike on all stores: the first of these that it was.
_TELLING = (Status.COULD_NOT_RUN, Status.FINDINGS, Status.CLEAN, Status.NOT_APPLICABLE, Status.IGNORED)


def rules(audits: Sequence[Audit]) -> tuple[RuleResult, ...]:
    """One result for each rule, ordered by id. Where it did not end alike, the reason says on which store it
    did not run."""
    if len(audits) == 1:
        return tuple(sorted(audits[0].rules, key=lambda result: result.id))
    by_id: dict[str, list[tuple[str, RuleResult]]] = {}
    for audit in audits:
        for result in audit.rules:
            by_id.setdefault(result.id, []).append((audit.store.path, result))
    return tuple(_joined(by_id[id_]) for id_ in sorted(by_id))


def _joined(results: Sequence[tuple[str, RuleResult]]) -> RuleResult:
    status = min((result.status for _, result in results), key=_TELLING.index)
    reasons = {result.reason for _, result in results}
    everywhere = all(result.status is status for _, result in results) and len(reasons) == 1
    return msgspec.structs.replace(
        results[0][1],
        status=status,
        reason=reasons.pop() if everywhere else "; ".join(_reasons(results)),
        findings=sum(result.findings for _, result in results),
        seconds=sum(result.seconds for _, result in results),
    )


def _reasons(results: Iterable[tuple[str, RuleResult]]) -> Iterator[str]:
    for store, result in results:
        if result.reason:
            yield result.reason if store in result.reason else f"{store}: {result.reason}"


def artifacts(audits: Iterable[Audit]) -> Iterator[Artifact]:
    """Every file beside the stores once, with what each store has of it."""
    found: dict[str, Artifact] = {}
    for audit in audits:
        inventory = audit.inventory
        for artifact in (*inventory.artifacts, *inventory.logs, *inventory.manifests, *inventory.stores):
            known = found.setdefault(artifact.path, artifact)
            if known is not artifact:
                sections = (*known.sections, *artifact.sections)
                found[artifact.path] = msgspec.structs.replace(known, sections=sections)
    yield from found.values()


def skipped(audits: Iterable[Audit]) -> dict[Skipped, bool]:
    """Every file that was passed over once, and whether that leaves something undetermined."""
    found: dict[Skipped, bool] = {}
    for audit in audits:
        unread = frozenset(audit.unread)
        for item in audit.inventory.skipped:
            found[item] = found.get(item, False) or item in unread
    return found
