"""The store lacks a table or a column that its release writes to.

What it means
Hermes cannot work with this store as it stands: a table that every release has is gone, or columns are
missing that were there before the release which last migrated the store. Its statements fail, or it takes
the store for an empty one.

How it happens
A repair that rebuilt the file with only part of its tables, a migration that stopped half way and was
counted as done, a tool that recreated a table in an older form. Or the file is another program's
database. No release leaves it so: each adds what is missing at every start, from 0.13 on. It does so column
by column, so that one which was stopped during its first start leaves some of them.

How we know
Tables and columns are asked for by name. The number in schema_version is not believed: columns are added
at every opening, so a low number with new columns is lawful, and so are columns nobody knows. It is only
used downwards: a store that claims a number had every column of the releases with a smaller one. The number
is written last: where it asks for none of the missing columns, and others that came with them or later are
there, a first start broke off, which is a leftover.

What to do
Copy the folder first. Where only columns are missing, opening a copy with the release in use adds them,
empty. Where a table is gone, take it from a sound copy.

When it is a false alarm
The store was last opened by a build between releases, or by a fork that numbers its schema in its own
way.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.context import Context
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import Family, Level, Rule
from statemend.store.catalogue import CATALOGUE, RELEASES, SCHEMA_NUMBERS
from statemend.store.schema import Era, Schema

#: Without these no release can read or write a conversation.
CORE = {
    "sessions": ("id", "source", "started_at"),
    "messages": ("id", "session_id", "role", "content", "timestamp"),
}
#: The newest release that certainly lies behind a store with the columns of each era.
BEHIND_ERA = {Era.V16: "0.15.2", Era.V18: "0.17.0", Era.V20: "0.19.0", Era.V22: "0.20.1"}


def check(context: Context) -> Iterator[Finding]:
    if context.foreign:
        yield RULE.finding(
            context,
            key="foreign",
            summary="The file is a database, but not a store of Hermes.",
            evidence=[("what was found", context.refusal)],
            remedy="Check the path. If Hermes used this file, its store was replaced: look for a copy beside "
            "it, in state-snapshots/ and in backups/.",
        )
        return
    schema = context.store.schema
    for table in CORE:
        if not schema.has(table):
            yield RULE.finding(
                context,
                key=table,
                summary=f"The store has no table {table}.",
                evidence=[("tables that are there", sorted(schema.tables & set(CATALOGUE)))],
                remedy="Copy the folder first, then take the table from a sound copy of the store.",
            )
        elif missing := _missing(schema, table):
            verdict, severity, remedy = _judge(schema, table, missing)
            yield RULE.finding(
                context,
                key=f"{table}.columns",
                verdict=verdict,
                severity=severity,
                summary=f"The table {table} lacks {len(missing)} of the columns that its release has.",
                evidence=[
                    ("columns missing", missing),
                    ("schema number", schema.version),
                    ("release told from the columns", schema.era.name),
                ],
                remedy=remedy,
            )


def _judge(schema: Schema, table: str, missing: list[str]) -> tuple[Verdict, Severity, str]:
    if any(column in CORE[table] for column in missing):
        remedy = "Copy the folder first, then take the table from a sound copy of the store."
        return Verdict.FAULT, Severity.HIGH, remedy
    if _required(table, _behind_number(schema.version)).isdisjoint(missing):
        return Verdict.LEFTOVER, Severity.LOW, "Open the store with the release in use: it adds the columns."
    remedy = "Open a copy with the release in use: it adds the columns, empty. Then compare."
    return Verdict.FAULT, Severity.MEDIUM, remedy


def _missing(schema: Schema, table: str) -> list[str]:
    """The columns that this store must have had, or was to get with others that it has, and does not have."""
    required = _required(table, BEHIND_ERA.get(schema.era)) | _required(table, _behind_number(schema.version))
    return sorted(column for column in required | set(CORE[table]) if not schema.has(table, column))


def _required(table: str, release: str | None) -> set[str]:
    """The columns of a table in a release."""
    newest = -1 if release is None else RELEASES.index(release)
    return {column.name for column in CATALOGUE[table].columns if RELEASES.index(column.since) <= newest}


def _behind_number(number: int | None) -> str | None:
    """The newest release whose schema number is smaller than the one that the store claims."""
    smaller = [release for release in RELEASES if number is not None and SCHEMA_NUMBERS[release] < number]
    return smaller[-1] if smaller else None


RULE = Rule(
    id="STO004",
    slug="schema-disagrees",
    family=Family.STORE,
    level=Level.SCHEMA,
    severity=Severity.CRITICAL,
    verdict=Verdict.FAULT,
    doc=__doc__,
    check=check,
    needs_store=False,
)
