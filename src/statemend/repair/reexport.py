"""Writes sessions again, whole: each in a file of its own that Hermes reads, proved against the store.

Exports of releases before the fix hold the live rows alone. Here every row that a display shows is written,
the archived ones included, and no file counts as complete before it has been read back and compared with
the store. The store is only read; nothing is written in its home.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from statemend.audit.context import Context
from statemend.audit.engine import audit
from statemend.audit.finding import Finding
from statemend.audit.outcome import Audit, Status
from statemend.errors import StatemendError, UsageError
from statemend.evidence.inventory import find_home
from statemend.repair.export_result import ExportedFile, Format, Reexport, State
from statemend.repair.export_session import SessionExporter
from statemend.repair.export_target import check_manifest, prepare_folder
from statemend.store.connection import Store, open_for_audit
from statemend.store.history import View

__all__ = ["ExportedFile", "Format", "Reexport", "State", "View", "reexport"]

#: The findings that a complete export ends.
AT_RISK = ("EXP001", "EXP010")
_MOST_CANDIDATES = 8

Progress = Callable[[str], None]


def reexport(
    path: Path,
    sessions: Sequence[str],
    folder: Path,
    *,
    form: Format = Format.JSONL,
    view: View | None = None,
    at_risk: bool = False,
    exports: Sequence[Path] = (),
    force: bool = False,
    live: bool = False,
    now: float | None = None,
    progress: Progress | None = None,
) -> Reexport:
    """Export ``sessions`` of the home or store at ``path`` into ``folder``, one file each, and prove them.

    A session is named by its id, or a beginning of it that no other session shares. ``at_risk`` adds the
    sessions of which no file holds the archived turns (findings ``EXP001`` and ``EXP010``), judged with the
    files in ``exports`` and ``folder``. ``force`` replaces an export of the same session that holds nothing
    which the store does not have. ``now`` is epoch seconds.

    What one session meets is in its entry, and the others go on. Raises ``UsageError`` and ``Refused`` before
    anything is written, ``StoreHeld`` for a store in use without ``live``, ``StoreUnreadable``.
    """
    if not sessions and not at_risk:
        raise UsageError("no session was named; name one or more, or ask for those --at-risk")
    home = find_home(path)
    prepare_folder(folder, home, whole_home=path.is_dir())
    check_manifest(folder)
    exporter = SessionExporter(folder, form, view or form.view, force=force, now=now)
    files: list[ExportedFile] = []

    def write(store: Store, wanted: Sequence[str]) -> None:
        session_ids = list(dict.fromkeys(resolve(store, each) for each in wanted))
        for number, session_id in enumerate(session_ids, start=1):
            if progress is not None:
                progress(f"writing session {number} of {len(session_ids)}")
            files.append(exporter.export(store, session_id))

    trouble: list[str] = []
    if at_risk:

        def observe(context: Context, findings: Sequence[Finding]) -> None:
            write(context.store, [*sessions, *_in_danger(findings)])

        beside = [folder, *exports]
        audited = audit(
            path, exports=beside, rules=AT_RISK, live=live, now=now, progress=progress, observe=observe
        )
        trouble += _gaps(audited)
    else:
        with open_for_audit(Path(home.store), live=live) as store:
            write(store, sessions)
    trouble += exporter.trouble
    codes = [file.state.exit_code for file in files]
    return Reexport(
        store=home.store,
        folder=str(folder),
        format=form,
        view=exporter.view,
        at_risk=at_risk,
        files=tuple(files),
        trouble=tuple(trouble),
        exit_code=max([*codes, StatemendError.exit_code if trouble else 0]),
    )


def _in_danger(findings: Iterable[Finding]) -> Iterator[str]:
    for finding in findings:
        if finding.subject.session is not None:
            yield finding.subject.session


def _gaps(audited: Audit) -> Iterator[str]:
    """Why not every session at risk may be known."""
    for result in audited.rules:
        if result.status is Status.COULD_NOT_RUN:
            yield f"{result.id}: {result.reason}"
    for skipped in audited.unread:
        yield f"{skipped.path}: {skipped.reason}"


def resolve(store: Store, wanted: str) -> str:
    """The id of the session that ``wanted`` is, or begins. Raises ``UsageError`` when it is none, or
    several."""
    for exact in ("SELECT 1 FROM sessions WHERE id = ?", "SELECT 1 FROM messages WHERE session_id = ?"):
        if store.one(exact, (wanted,)) is not None:
            return wanted
    ids = "SELECT id FROM sessions UNION SELECT session_id FROM messages"
    known = [sid for (sid,) in store.rows(ids) if isinstance(sid, str) and sid.startswith(wanted)]
    if len(known) == 1:
        return known[0]
    if not known:
        raise UsageError(f"{store.path}: no session {wanted!r} in the store")
    more = len(known) - _MOST_CANDIDATES
    listed = ", ".join(sorted(known)[:_MOST_CANDIDATES]) + (f" and {more} more" if more > 0 else "")
    raise UsageError(f"{wanted!r} begins {len(known)} sessions: {listed}; give more of the id")
