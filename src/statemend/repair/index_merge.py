"""Merges the search indexes after rows of messages came or went.

An older SQLite, as Hermes may run on, damages an index in which a newer one has left deletions waiting to be
merged (seen with 3.40.1 behind 3.54.1). Merged into one segment, both go on with it. No text is split anew.
"""

from __future__ import annotations

import apsw

from statemend.repair.digests import quoted, search_indexes
from statemend.store.permissions import Allowed
from statemend.store.writing import RepairConnection


def merge(connection: RepairConnection) -> None:
    """Merge each search index into one segment. One with a tokenizer that this SQLite lacks is left alone:
    nothing was written to it either."""
    for index in search_indexes(connection.store):
        name = quoted(index)
        with connection.allowing({index: Allowed(insert=True)}):
            try:
                connection.execute(f"INSERT INTO main.{name}({name}) VALUES ('optimize')")
            except apsw.CorruptError:
                raise
            except apsw.SQLError:
                continue
