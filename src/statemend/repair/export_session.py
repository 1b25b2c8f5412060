"""Writing one session into one file, proving it, and only then giving it its name."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from statemend import formats
from statemend.errors import Refused, StatemendError, StoreUnreadable
from statemend.formats import html, jsonl, markdown_writer
from statemend.formats.artifact import FILTERED, TRANSCRIPTS, Kind
from statemend.formats.clock import utc_seconds
from statemend.formats.manifest import ManifestLine
from statemend.repair.export_check import Proof, coverage_of, prove
from statemend.repair.export_result import ExportedFile, Format, State
from statemend.repair.export_target import append_manifest, drafted, file_name, taken
from statemend.store.connection import Access, Store
from statemend.store.history import RowState, View, census, messages, records, session_record
from statemend.store.identity import view_digest
from statemend.store.message import Message

#: What ``SessionDB.import_sessions`` of 0.22.2 takes of one session.
_IMPORT_MESSAGES, _IMPORT_BYTES = 10_000, 5 * 1024 * 1024


class _Survey(msgspec.Struct, frozen=True):
    """A view before it is written."""

    row_ids: tuple[int, ...]
    archived: int
    left_out: int
    digest: str


class SessionExporter:
    """Writes sessions of one store into one folder. ``now`` is epoch seconds.

    ``trouble`` collects what went wrong beside the files themselves.
    """

    def __init__(
        self,
        folder: Path,
        form: Format,
        view: View,
        *,
        force: bool,
        now: float | None,
    ) -> None:
        self.view = view
        self.trouble: list[str] = []
        self._folder = folder
        self._form = form
        self._force = force
        self._now = now

    def export(self, store: Store, session_id: str) -> ExportedFile:
        """Write one session and prove it. What goes wrong is in the entry; nothing is raised for it."""
        record = session_record(store, session_id)
        session = made_record(store, session_id) if record is None else record
        target = self._folder / file_name(session_id, session.get("title"), self._form.value)
        entry = ExportedFile(
            session=session_id, path=str(target), state=State.FAILED, session_row=record is not None
        )
        try:
            return self._write(store, session, target, entry)
        except Refused as error:
            return _ended(entry, State.REFUSED, str(error))
        except StatemendError as error:
            return _ended(entry, State.FAILED, str(error))
        except OSError as error:
            return _ended(entry, State.FAILED, f"{target}: {error.strerror or error}")
        except RecursionError:
            return _ended(entry, State.FAILED, "a message of it is nested too deeply to be written")

    def _write(
        self, store: Store, session: dict[str, Any], target: Path, entry: ExportedFile
    ) -> ExportedFile:
        replaces = os.path.lexists(target)
        if replaces:
            self._check_replaceable(store, target, entry.session)
        survey = self._survey(store, entry.session)
        at = time.time() if self._now is None else self._now
        with drafted(target) as draft:
            draft.write(self._pieces(store, session, len(survey.row_ids), at))
            proof = prove(
                store,
                session,
                draft.path,
                sha256=draft.sha256,
                kind=self._form.kind,
                view=self.view,
                row_ids=survey.row_ids,
            )
            if store.access is Access.ORIGINAL and not store.unchanged():
                raise StoreUnreadable(f"{store.path}: it changed while it was read; stop its user, run again")
            if replaces and not proof.complete:
                raise Refused(
                    f"{target}: is kept, since the new one would not be complete: {'; '.join(proof.reasons)}"
                )
            draft.publish(target, replace=replaces)
            done = self._entry(entry, survey, proof, draft.size, draft.sha256)
        if proof.complete:
            try:
                append_manifest(self._folder, self._manifest_line(done, at))
            except StatemendError as error:
                self.trouble.append(str(error))
        return done

    def _survey(self, store: Store, session_id: str) -> _Survey:
        row_ids: list[int] = []
        archived = 0

        def counted() -> Iterator[Message]:
            nonlocal archived
            for message in messages(store, session_id, self.view):
                row_ids.append(message.id)
                archived += message.state is RowState.ARCHIVED
                yield message

        digest = view_digest(counted())
        rows = next(iter(census(store, session_id)), None)
        left_out = rows.archived if rows is not None and self.view is View.ACTIVE else 0
        return _Survey(tuple(row_ids), archived, left_out, digest)

    def _pieces(self, store: Store, session: dict[str, Any], count: int, at: float) -> Iterable[bytes]:
        session_id = session["id"]
        if self._form is Format.JSONL:
            rows = records(store, session_id, self.view)
            return (piece.encode() for piece in jsonl.render(session, rows))
        shown = messages(store, session_id, self.view)
        if self._form is Format.HTML:
            page = html.render([(session, shown)], generated_at=utc_seconds(at) or "")
            return (piece.encode("utf-8", "backslashreplace") for piece in page)
        return markdown_writer.pieces(session, shown, count=count, kind=self._form.kind, exported_at=at)

    def _entry(
        self, entry: ExportedFile, survey: _Survey, proof: Proof, size: int, sha256: str
    ) -> ExportedFile:
        return msgspec.structs.replace(
            entry,
            state=State.COMPLETE if proof.complete else State.INCOMPLETE,
            messages=len(survey.row_ids),
            archived=survey.archived,
            left_out=survey.left_out,
            digest=survey.digest,
            size=size,
            sha256=sha256,
            exact=proof.exact,
            lossy=proof.lossy,
            drops=proof.drops,
            reasons=proof.reasons,
            notes=(*proof.notes, *self._notes(entry, survey, size)),
        )

    def _notes(self, entry: ExportedFile, survey: _Survey, size: int) -> Iterator[str]:
        if not entry.session_row:
            yield "the store has no row of this session: its record is made from its messages"
        if survey.left_out:
            yield f"the view leaves out {survey.left_out:,} archived rows; --view display has them"
        if self._form is Format.JSONL and (len(survey.row_ids) > _IMPORT_MESSAGES or size > _IMPORT_BYTES):
            yield "longer than what Hermes imports of one session (10,000 messages, 5 MiB)"

    def _manifest_line(self, done: ExportedFile, at: float) -> ManifestLine:
        return ManifestLine(
            path=done.path,
            session_id=done.session,
            sha256=done.sha256 or "",
            message_count=done.messages,
            exported_at=at,
            format=self._form.value,
            lineage=(done.session,),
        )

    def _check_replaceable(self, store: Store, target: Path, session_id: str) -> None:
        """Raise ``Refused`` unless the file may be replaced: it was asked for, it is an export of this
        session alone, and the store has everything that it shows."""
        if not self._force:
            raise taken(target)
        if target.is_symlink() or not target.is_file():
            raise Refused(f"{target}: no regular file, so it is not replaced; choose another folder")
        artifact = formats.read(target)
        if artifact.kind is Kind.EMPTY:
            return
        owners = {owner for section in artifact.sections for owner in (section.session_id, *section.lineage)}
        if artifact.kind not in TRANSCRIPTS | FILTERED or owners != {session_id}:
            raise Refused(f"{target}: no export of this session alone, so it is not replaced; move it aside")
        held = coverage_of(store, artifact, session_id)
        if held is None or held.extra or held.changed:
            raise Refused(
                f"{target}: shows messages that the store does not have, so it is not replaced; move it aside"
            )


def made_record(store: Store, session_id: str) -> dict[str, Any]:
    """A record for messages whose session row is gone, of what they tell; Hermes calls such a row
    ``recovered``."""
    known = next(iter(census(store, session_id)), None)
    record: dict[str, Any] = {"id": session_id, "source": "recovered"}
    if known is not None and known.first_at is not None:
        record["started_at"] = known.first_at
    return record


def _ended(entry: ExportedFile, state: State, reason: str) -> ExportedFile:
    return msgspec.structs.replace(entry, state=state, reasons=(reason,))
