"""A cleanup plan: which sessions are to be deleted, down to their rows, and which file preserves each; or in
which sessions archived rows that only repeat others are to be collapsed.

It is its own kind of plan, the only destructive one. It holds no row: for every session that goes it has the
digest of its rows and the file that holds them all. Both are compared again at the moment of the deletion.
Where copies are collapsed no file is asked for, since nothing goes that does not stay: for each row that goes
one that is alike is still there, in the same session.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final, Literal

import msgspec

from statemend.errors import Undetermined, UsageError
from statemend.repair.plan import Plan, StoreIdentity

SCHEMA: Final = "statemend/cleanup/v1"
#: Bytes. A plan is read whole, so its size is bounded.
LARGEST_PLAN: Final = 128 * 1024 * 1024
#: Bytes of rows that one run deletes: its undo record is held in memory.
LARGEST_RUN: Final = 256 * 1024 * 1024


class Rows(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The message rows of a session by state, and their lowest and highest id (``None`` without rows)."""

    live: int = 0
    archived: int = 0
    rewound: int = 0
    unset: int = 0
    first_id: int | None = None
    last_id: int | None = None

    @property
    def total(self) -> int:
        return self.live + self.archived + self.rewound + self.unset


class Preserved(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The file that holds a session, with the sha256 of its bytes and the view that it holds. Only the raw
    view in JSONL is every column of every row, so nothing else ever licenses a deletion."""

    path: str
    sha256: str
    format: Literal["jsonl"] = "jsonl"
    view: Literal["raw"] = "raw"


class Member(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One session that goes. ``size`` is the bytes of its rows, ``digest`` of every stored column of its row
    and of its messages."""

    session: str
    title: str | None
    rows: Rows
    size: int
    digest: str
    preserved: Preserved


class Ancestor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A session above one that goes, and what that means for it. Its own rows stay as they are."""

    session: str
    effect: str


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One session that was asked for. ``members`` are the session itself, first, and the delegates that go
    with it. ``detached`` are the children that stay and lose their parent link. ``besides`` counts rows of
    other tables that go, by table."""

    session: str
    members: tuple[Member, ...]
    detached: tuple[str, ...] = ()
    ancestors: tuple[Ancestor, ...] = ()
    besides: dict[str, int] = {}


class Collapse(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One session in which archived rows go that only repeat another row of it. ``copies`` are their ids,
    ``messages`` counts the rows that they repeat, ``size`` is the bytes that they hold. ``left`` counts the
    copies that stay for now, by the reason. ``rows`` and ``digest`` are of the session as it is before."""

    session: str
    title: str | None
    rows: Rows
    digest: str
    copies: tuple[int, ...]
    messages: int
    size: int
    left: dict[str, int] = {}


class Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A session that was asked for and is kept as it is, and why."""

    session: str
    reason: str


class CleanupPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A whole cleanup plan. ``artifacts`` are the folders and files that were looked at, ``runs`` the folders
    of repairs, beside those that lie at the home, which must be verified first."""

    schema: Literal["statemend/cleanup/v1"] = SCHEMA
    id: str
    made_at: str
    tool: str
    home: str
    store: StoreIdentity
    selection: str
    artifacts: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()
    collapses: tuple[Collapse, ...] = ()
    kept: tuple[Kept, ...] = ()

    @property
    def digest(self) -> str:
        """sha256 (hex) of the plan."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()

    def envelope(self) -> Plan:
        """What the folder of the run has as its plan: the store, and no operation that a repair might carry
        out."""
        return Plan(
            id=self.id,
            made_at=self.made_at,
            tool=self.tool,
            home=self.home,
            store=self.store,
            exports=self.artifacts,
        )


def dump(plan: CleanupPlan) -> bytes:
    """The plan as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(plan), indent=2) + b"\n"


def load(path: Path) -> CleanupPlan:
    """Read a cleanup plan. Raises ``UsageError`` for a file that is none, ``Undetermined`` for one that
    cannot be read."""
    try:
        if path.stat().st_size > LARGEST_PLAN:
            raise UsageError(f"{path}: too large for a cleanup plan; make one with `statemend cleanup plan`")
        data = path.read_bytes()
    except OSError as error:
        raise Undetermined(
            f"{path}: {error.strerror}; name a plan that `statemend cleanup plan` wrote"
        ) from error
    try:
        plan = msgspec.json.decode(data, type=CleanupPlan)
    except msgspec.DecodeError as error:
        raise UsageError(
            f"{path}: not a cleanup plan ({error}); make one with `statemend cleanup plan`"
        ) from error
    _check(plan, path)
    return plan


def _check(plan: CleanupPlan, path: Path) -> None:
    going = {member.session for entry in plan.entries for member in entry.members}
    collapsed = [collapse.session for collapse in plan.collapses]
    asked = [*(entry.session for entry in plan.entries), *collapsed]
    if len(set(asked)) < len(asked) or not going.isdisjoint(collapsed):
        raise UsageError(f"{path}: a session is in it twice; make the plan anew")
    for entry in plan.entries:
        members = [member.session for member in entry.members]
        if members[:1] != [entry.session] or len(set(members)) < len(members):
            raise UsageError(
                f"{path}: what goes with {entry.session!r} is not listed once each, the session first; "
                "make the plan anew"
            )
