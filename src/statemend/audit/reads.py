"""Which tables a rule reads, derived from its SQL."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache


def tables_read(statements: Iterable[str], among: Collection[str]) -> frozenset[str]:
    """Those of the tables ``among`` that one of the SQL ``statements`` reads.

    The parser is slow to import, so it is asked only about a statement that mentions one of the names at all.
    """
    found: set[str] = set()
    for statement in statements:
        if any(re.search(rf"\b{re.escape(name)}\b", statement) for name in among):
            found |= _tables(statement) & set(among)
    return frozenset(found)


@lru_cache(maxsize=256)
def _tables(statement: str) -> frozenset[str]:
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(statement, dialect="sqlite")
    defined_here = {cte.alias for cte in tree.find_all(exp.CTE)}
    return frozenset(table.name for table in tree.find_all(exp.Table)) - defined_here
