"""What an export run yields: one entry for each session, and how it ended."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from statemend.errors import Refused, StatemendError, VerificationFailed
from statemend.formats.artifact import Kind
from statemend.store.history import View

SCHEMA: Literal["statemend/export/v1"] = "statemend/export/v1"


class Format(StrEnum):
    """The format of an export; the value is also the end of its file's name."""

    JSONL = "jsonl"
    MD = "md"
    QMD = "qmd"
    HTML = "html"

    @property
    def kind(self) -> Kind:
        """What the file is when it is read."""
        return Kind.MARKDOWN if self is Format.MD else Kind(self.value)

    @property
    def view(self) -> View:
        """The view that is written unless another is asked for: JSONL keeps every row and its flags."""
        return View.RAW if self is Format.JSONL else View.DISPLAY


class State(StrEnum):
    """How the export of one session ended."""

    COMPLETE = "complete"  # read back, it holds every message of the view
    INCOMPLETE = "incomplete"  # it is there, and not everything of the view is in it
    REFUSED = "refused"  # nothing was written, to keep a file that is there
    FAILED = "failed"  # nothing was written, because something could not be read or written

    @property
    def exit_code(self) -> int:
        return _EXIT_CODES[self]


_EXIT_CODES = {
    State.COMPLETE: 0,
    State.INCOMPLETE: VerificationFailed.exit_code,
    State.REFUSED: Refused.exit_code,
    State.FAILED: StatemendError.exit_code,
}


class ExportedFile(msgspec.Struct, frozen=True, kw_only=True):
    """The export of one session.

    ``path`` is where the file is, or would be if ``state`` says that nothing was written. ``messages`` counts
    what the view shows, ``archived`` those of them whose row shown is archived, ``left_out`` the archived
    rows that the view does not show. ``digest`` is over the contents of the view's messages
    (``store.identity``), ``sha256`` and ``size`` over the bytes of the file. ``exact`` and ``lossy`` count
    messages of the display view that the file holds, ``drops`` are the fields that its format leaves out.
    ``session_row`` is false where the store has no row of the session and its record was made from its
    messages. ``reasons`` say why it is not complete, ``notes`` what else to know.
    """

    session: str
    path: str
    state: State
    session_row: bool
    messages: int = 0
    archived: int = 0
    left_out: int = 0
    digest: str = ""
    size: int = 0
    sha256: str | None = None
    exact: int = 0
    lossy: int = 0
    drops: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Reexport(msgspec.Struct, frozen=True, kw_only=True):
    """One run. ``trouble`` says what kept the sessions at risk from being known, or a file from being listed
    in the manifest."""

    schema: Literal["statemend/export/v1"] = SCHEMA
    store: str
    folder: str
    format: Format
    view: View
    at_risk: bool
    files: tuple[ExportedFile, ...]
    trouble: tuple[str, ...] = ()
    exit_code: int = 0
