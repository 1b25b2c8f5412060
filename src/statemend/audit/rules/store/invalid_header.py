"""The file is not, or is no longer, an SQLite database.

What it means
The first bytes of state.db are not those of a database that can be opened: the file is empty, holds only
zeros, is cut short, lost its first page, or is something else. Nothing in it can be read until it is
replaced or salvaged, and every rule that needs the store could not run.

How it happens
A full disk or a power cut while the file was written, a copy or a restore that stopped half way, a file
system that lost pages, a process that wrote to the wrong file. No release leaves such a file by itself, but
for an empty one where the very first start was stopped before it wrote anything.

How we know
From the bytes, before SQLite is asked: the 16 that name the format, the fields of the 100-byte header,
whether the file has the pages that the header promises, whether the root of the schema table is one.
SQLite itself is not a safe witness here: it takes an empty file for a new database and then deletes the
-wal beside it, which may be the last copy of the rows. An empty file is a fault where something shows that
there was a store: a -wal that is not empty, a copy beside it, another store, an export or a transcript in
the home, a turn in its logs. Where nothing does, the finding is undecidable: a store that lost everything,
and a first start that was stopped, leave the same file.

What to do
Stop every Hermes process and start none: on this file some releases begin a new, empty store. Copy the
whole folder, sidecars and all, before anything else. Then look for a sound copy: the quarantined and
backed up files beside the store, state-snapshots/, backups/.

When it is a false alarm
The path is not the store that is in use, or the file was still being copied when it was looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.anew import of_home
from statemend.audit.context import Context
from statemend.audit.finding import Finding, Severity, Value, Verdict
from statemend.audit.rule import Family, Level, Rule

STATEMENTS = {
    "empty": "The store is an empty file.",
    "zeroed": "The store holds nothing but zeros.",
    "too-short": "The store is shorter than one page of a database.",
    "not-sqlite": "The store is not an SQLite database.",
    "overwritten-first-page": "The first page of the store is overwritten.",
    "page-count": "The store is cut short: pages that its header promises are missing.",
}


def check(context: Context) -> Iterator[Finding]:
    bundle = context.bundle
    if bundle.fault is None:
        return
    lost = bundle.fault != "empty" or _was_used(context)
    evidence: list[tuple[str, Value]] = [
        ("fault", bundle.fault),
        ("detail", bundle.detail),
        ("size in bytes", bundle.main.size),
        ("size of the -wal in bytes", bundle.wal.size if bundle.wal else 0),
    ]
    if bundle.siblings:
        evidence.append(("copies beside the store", list(bundle.siblings)))
    if not lost:
        evidence.append(("what would decide", "whether Hermes was ever used with this home"))
    yield RULE.finding(
        context,
        verdict=Verdict.FAULT if lost else Verdict.UNDECIDABLE,
        severity=Severity.CRITICAL if lost else Severity.MEDIUM,
        summary=STATEMENTS.get(bundle.fault, f"The store cannot be opened ({bundle.fault}).")
        if lost
        else "The store is an empty file, and nothing in the home shows that it was ever used.",
        evidence=evidence,
        remedy="Start no Hermes process on this file. Copy the folder with its sidecars, then look for a "
        "sound copy beside the store, in state-snapshots/ and in backups/.",
    )


def _was_used(context: Context) -> bool:
    """Whether anything but the file itself shows that there was a store."""
    bundle, inventory = context.bundle, context.inventory
    return bool(
        (bundle.wal and bundle.wal.size)
        or bundle.siblings
        or inventory.stores
        or any(of_home(context, artifact) for artifact, _ in inventory.sections())
        or any(log.turns and of_home(context, log) for log in inventory.logs)
    )


RULE = Rule(
    id="STO001",
    slug="invalid-header",
    family=Family.STORE,
    level=Level.BYTES,
    severity=Severity.CRITICAL,
    verdict=Verdict.FAULT,
    doc=__doc__,
    check=check,
    needs_store=False,
)
