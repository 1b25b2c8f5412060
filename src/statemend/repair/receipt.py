"""The receipt of a cleanup: what was deleted, from which store, and what holds it now."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from statemend.repair.cleanup_plan import Ancestor, Kept, Preserved, Rows

SCHEMA: Final = "statemend/receipt/v1"


class Deleted(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One session that is gone. ``asked`` is the session that was named: itself, or the one whose delegate
    it was. ``digest`` is of all its rows, as in the plan."""

    session: str
    asked: str
    rows: Rows
    digest: str
    preserved: Preserved


class Collapsed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One session in which rows went that only repeated others. ``copies`` counts them, ``messages`` the rows
    that they repeated. ``digest`` is of all its rows before, as in the plan. ``display`` and ``active`` are
    the digests of what a person sees and of what the model reads, the same before and after."""

    session: str
    copies: int
    messages: int
    size: int
    digest: str
    display: str
    active: str


class Receipt(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What one cleanup did. ``deleted_at`` is epoch seconds. ``rows`` counts the rows deleted by table.
    ``collapsed`` are the sessions that lost copies of rows and nothing else.
    ``detached`` maps each child that lost its parent link to that parent. ``kept`` are the sessions that the
    plan names and that were kept, each with the reason. ``snapshot`` and ``changeset`` are the sha256 of the
    files in the folder of the run from which everything can be had back; ``digest_before`` and
    ``digest_after`` are of the whole store."""

    schema: Literal["statemend/receipt/v1"] = SCHEMA
    plan: str
    plan_digest: str
    tool: str
    store: str
    deleted_at: float
    deleted: tuple[Deleted, ...]
    collapsed: tuple[Collapsed, ...] = ()
    rows: dict[str, int]
    detached: dict[str, str]
    ancestors: tuple[Ancestor, ...]
    kept: tuple[Kept, ...]
    snapshot: str
    changeset: str
    digest_before: str
    digest_after: str
