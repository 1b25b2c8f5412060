"""Proves once more that exported files hold what the store has, at any time after they were written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from statemend.audit.context import Progress
from statemend.errors import StatemendError
from statemend.repair.export_check import prove
from statemend.repair.export_result import ExportedFile, Reexport, State
from statemend.repair.export_session import made_record
from statemend.store.connection import Store, open_for_audit
from statemend.store.history import messages, session_record


class Reproof(msgspec.Struct, frozen=True):
    """What one file was found to be: nothing wrong, or the ``reasons`` why it is not the session any more."""

    session: str
    path: str
    reasons: tuple[str, ...] = ()


def reprove(done: Reexport, *, live: bool = False, progress: Progress | None = None) -> tuple[Reproof, ...]:
    """Hold every file that was complete against the store, row by row, as it was when it was written.

    A session that was written to since is told as such. Raises ``StoreHeld`` and ``StoreUnreadable``.
    """
    with open_for_audit(Path(done.store), live=live) as store:
        return tuple(_reproofs(store, done, progress))


def _reproofs(store: Store, done: Reexport, progress: Progress | None) -> Iterator[Reproof]:
    complete = [file for file in done.files if file.state is State.COMPLETE]
    for number, file in enumerate(complete, start=1):
        if progress is not None:
            progress(f"reading back export {number} of {len(complete)}")
        try:
            yield Reproof(file.session, file.path, _reasons(store, done, file))
        except StatemendError as error:
            yield Reproof(file.session, file.path, (str(error),))


def _reasons(store: Store, done: Reexport, file: ExportedFile) -> tuple[str, ...]:
    record = session_record(store, file.session)
    row_ids = [message.id for message in messages(store, file.session, done.view)]
    if record is None and not row_ids:
        return ("the store no longer has the session",)
    proof = prove(
        store,
        record or made_record(store, file.session),
        Path(file.path),
        sha256=file.sha256 or "",
        kind=done.format.kind,
        view=done.view,
        row_ids=row_ids,
    )
    return proof.reasons
