"""The receipt of a cleanup: what was deleted, from which store, and which file holds it now."""

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


class Receipt(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What one cleanup did. ``deleted_at`` is epoch seconds. ``rows`` counts the rows deleted by table.
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
    rows: dict[str, int]
    detached: dict[str, str]
    ancestors: tuple[Ancestor, ...]
    kept: tuple[Kept, ...]
    snapshot: str
    changeset: str
    digest_before: str
    digest_after: str
