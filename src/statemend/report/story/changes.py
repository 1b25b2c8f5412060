"""What statemend changed, and what the operator decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from statemend.repair.run import State
from statemend.report.cleanup_words import deleted
from statemend.report.story.commands import command
from statemend.report.story.model import Changed, Decision
from statemend.report.story.sources import CHANGED, Cleaned, Played, Repaired, Source, of
from statemend.report.text import count, iso


def changes(sources: Sequence[Source]) -> Iterator[Changed]:
    """Each repair and cleanup that was committed, also one that was taken back."""
    for source in sources:
        if isinstance(source, Repaired) and source.run.state in CHANGED:
            operations = source.plan.work().operations
            tables: dict[str, int] = {}
            for operation in operations:
                tables[operation.table] = tables.get(operation.table, 0) + 1
            touched = dict.fromkeys(sid for step in source.plan.selected() for sid in step.sessions)
            yield _changed("repair", source, tables, tuple(touched))
        if isinstance(source, Cleaned) and source.receipt is not None:
            receipt = source.receipt
            gone = [each.session for each in receipt.deleted]
            gone += [each.session for each in receipt.collapsed]
            yield _changed("cleanup", source, receipt.rows, tuple(dict.fromkeys(gone)))


def _changed(
    what: str, source: Repaired | Cleaned, rows: dict[str, int], sessions: tuple[str, ...]
) -> Changed:
    run = source.run
    return Changed(
        what=what,
        run=source.path,
        store=run.store,
        state=State.UNDONE.value if source.undone else run.state.value,
        at=iso(source.steps.get("committed", run.started_at)),
        rows=dict(sorted(rows.items())),
        sessions=sessions,
        digest_before=run.digest_before,
        digest_after=run.digest_after,
        snapshot=run.snapshot.sha256 if run.snapshot else None,
        notes=run.notes,
        command=command("undo", source.path),
    )


def decisions(sources: Sequence[Source]) -> Iterator[Decision]:
    """Each choice of a plan that was carried out, and each cleanup."""
    whys = {
        answer.choice: answer.why
        for played in of(sources, Played)
        for answer in played.decided
        if answer.why is not None
    }
    for repaired in of(sources, Repaired):
        for choice in repaired.plan.choices:
            option = next((each for each in choice.options if each.id == choice.chosen), None)
            yield Decision(
                question=choice.question,
                answer="left open" if option is None else option.title,
                why=whys.get(choice.id) or whys.get(choice.finding),
                evidence=() if option is None else option.evidence,
                command=command("verify", repaired.path),
            )
    for cleaned in of(sources, Cleaned):
        if cleaned.receipt is not None:
            yield Decision(
                question=f"What may go ({cleaned.plan.selection})?",
                answer=f"{deleted(cleaned.receipt)}, "
                f"{count(len(cleaned.plan.kept) + len(cleaned.receipt.kept), 'session')} kept",
                evidence=tuple(f"{each.session}: {each.reason}" for each in cleaned.plan.kept),
                command=command("verify", cleaned.path),
            )
