"""Which store a plan is for, told from inside the file: planning and applying ask the same questions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from statemend.repair.plan import StoreIdentity
from statemend.store.connection import Store

#: Everything that the schema defines. Names and SQL come as bytes: they may be no valid text.
SCHEMA_OBJECTS: Final = """
    SELECT type, CAST(name AS BLOB), CAST(tbl_name AS BLOB), CAST(COALESCE(sql, '') AS BLOB)
    FROM main.sqlite_schema
    ORDER BY type, name
"""
#: The id that newer releases give a store when they create it.
INSTANCE: Final = "SELECT value FROM main.state_meta WHERE key = 'store_instance_id'"


def has_tables_of(store: Store, identity: StoreIdentity) -> bool:
    """Whether everything that the schema of a store defines is as it was when the identity was taken."""
    return schema_digest(store.rows(SCHEMA_OBJECTS)) == identity.schema_digest


def schema_digest(objects: Iterable[tuple[Any, ...]]) -> str:
    """sha256 (hex) of the rows of ``SCHEMA_OBJECTS``."""
    listed = [[kind, *(bytes(part).hex() for part in parts)] for kind, *parts in objects]
    return hashlib.sha256(msgspec.json.encode(listed)).hexdigest()
