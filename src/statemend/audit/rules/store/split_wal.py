"""The write-ahead log beside the store is broken, belongs to something else, or was lost under a writer.

What it means
Rows that Hermes committed may be in no place where SQLite looks for them. The store itself can be
perfectly sound and simply older than what was written.

How it happens
A second program replaced or deleted the log under a running gateway, which then went on writing into a
file without a name (0.21.2 is known for it). A restore swapped the main file and left the old log beside
it. A disk lost pages of the log.

How we know
From the bytes of the log: whether its header is one, whether its page size is the store's, whether its
frames carry its own salts, and where the chain of checksums breaks. Where the store is damaged, also
whether it is sound without its log. SQLite reads up to the first frame that does not follow and ignores
the rest without a word; committed frames behind that point are transactions that nobody reads any more. A
folder .retired-wal-… is what 0.22 saves when it notices that its log was taken away. With a live copy,
the processes that write into a deleted log are named.

What to do
Stop the writers only after copying the folder: what a process writes into a deleted log is gone when it
ends. Keep the log and every .retired-wal-… folder. Compare their rows with the store before removing any
of them.

When it is a false alarm
A log that merely was not checkpointed is lawful, as is one without its -shm, an empty one, and frames of
an earlier use of the same file behind the valid ones: none of them is reported. A retired log whose rows
reached the store after all is harmless; only a comparison can tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from statemend.audit.context import Context
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import Family, Level, Rule
from statemend.audit.structure import examine
from statemend.errors import StoreUnreadable
from statemend.store.connection import open_for_audit
from statemend.store.wal import Log, read_log

KEEP = "Copy the folder with its sidecars before any program opens the store, then compare the log with it."


def check(context: Context) -> Iterator[Finding]:
    yield from _lost_under_writer(context)
    if context.bundle.wal is not None and context.bundle.wal_content:
        log = read_log(context.bundle.wal, whole=context.deep)
        yield from list(_judged(context, log)) or _mismatched(context, log)
    yield from _retired(context)
    yield from _hot_journal(context)


def _lost_under_writer(context: Context) -> Iterator[Finding]:
    if not context.readable:
        return
    for holder in context.store.holders:
        if holder.holds_deleted:
            yield RULE.finding(
                context,
                key="deleted-log",
                severity=Severity.CRITICAL,
                summary=f"Process {holder.pid} writes into a file of the store that is no longer in its "
                "folder.",
                evidence=[
                    ("process", f"{holder.name} (pid {holder.pid})"),
                    ("files it holds", list(holder.files)),
                ],
                remedy="Do not stop the process yet: what it wrote is gone when it ends. Export its sessions "
                "through it, or copy its open files from /proc, then stop it.",
            )


def _judged(context: Context, log: Log) -> Iterator[Finding]:
    header = context.bundle.header
    measured = [
        ("size of the -wal in bytes", log.size),
        ("frames", log.frames),
        ("frames that SQLite accepts", log.valid),
        ("frames up to the last commit", log.committed),
    ]
    if not log.header:
        yield RULE.finding(
            context,
            key="header",
            summary="The -wal has no valid header, so SQLite ignores every row in it.",
            evidence=measured[:1],
            remedy=KEEP,
        )
    elif header is not None and header.page_size != log.page_size:
        yield RULE.finding(
            context,
            key="page-size",
            summary="The -wal was written for a database with another page size than this store's.",
            evidence=[
                *measured,
                ("page size of the store", header.page_size),
                ("page size of the -wal", log.page_size),
            ],
            remedy=KEEP,
        )
    elif log.lost:
        yield RULE.finding(
            context,
            key="torn",
            summary=f"SQLite stops reading the -wal at frame {log.valid + 1}; {log.lost} committed "
            "transactions behind it are ignored.",
            evidence=[
                *measured,
                ("commits behind the break", log.lost),
                ("frames with their checksum verified", log.verified),
            ],
            remedy=KEEP,
        )
    elif log.frames and not log.valid:
        yield RULE.finding(
            context,
            key="stale",
            verdict=Verdict.UNDECIDABLE,
            severity=Severity.MEDIUM,
            summary="The -wal holds frames of an earlier generation only; SQLite ignores them all.",
            evidence=[*measured, ("frames of another generation", log.foreign)],
            remedy="Usually they were all taken into the store before the log was begun anew. Keep a copy "
            "of the log: only a comparison of its rows with the store can tell.",
        )


def _mismatched(context: Context, log: Log) -> Iterator[Finding]:
    """A log that is sound in itself, and the store is damaged with it and sound without it."""
    if not log.committed or _sound(context) or not _sound_without_log(context):
        return
    yield RULE.finding(
        context,
        key="mismatch",
        severity=Severity.CRITICAL,
        summary="The store is damaged when read with the -wal beside it, and sound without it: the log "
        "belongs to another store, or to another state of this one.",
        evidence=[
            ("frames of the -wal that SQLite accepts", log.valid),
            ("size of the -wal in bytes", log.size),
        ],
        remedy="Copy the folder first. Open nothing: a checkpoint writes the log into the store. Then "
        "compare the store without its log with its other copies.",
    )


def _sound(context: Context) -> bool:
    try:
        return context.readable and not context.structure.untrusted
    except StoreUnreadable:
        return False


def _sound_without_log(context: Context) -> bool:
    if context.bundle.fault is not None:
        return False
    try:
        with open_for_audit(Path(context.bundle.path), live=True, without_wal=True) as store:
            return not examine(store).untrusted
    except StoreUnreadable:
        return False


def _retired(context: Context) -> Iterator[Finding]:
    retired = [name for name in context.bundle.siblings if ".retired-wal-" in name]
    if retired:
        yield RULE.finding(
            context,
            key="retired",
            verdict=Verdict.UNDECIDABLE,
            summary="A write-ahead log was taken away from under a running Hermes, which saved what it had: "
            "rows may be there and not in the store.",
            evidence=[
                ("saved logs", retired),
                ("size of the -wal in bytes", context.bundle.wal.size if context.bundle.wal else 0),
            ],
            remedy="Keep these folders. Audit the state.db in each: a session with more rows there than here "
            "shows what the store lacks.",
        )


def _hot_journal(context: Context) -> Iterator[Finding]:
    bundle = context.bundle
    if not bundle.hot_journal or bundle.journal is None:
        return
    mixed = bundle.header is not None and bundle.header.journal == "wal"
    yield RULE.finding(
        context,
        key="journal",
        verdict=Verdict.UNDECIDABLE if mixed else Verdict.LEFTOVER,
        severity=Severity.MEDIUM if mixed else Severity.INFO,
        summary="A rollback journal lies beside a store that keeps a write-ahead log."
        if mixed
        else "A transaction was interrupted; its journal waits beside the store.",
        evidence=[("size of the -journal in bytes", bundle.journal.size)],
        remedy="Keep a copy: the next program that opens the store rolls its pages back, and they may be "
        "older than the store."
        if mixed
        else "Nothing: the next program that opens the store undoes the interrupted transaction.",
    )


RULE = Rule(
    id="STO002",
    slug="split-wal",
    family=Family.STORE,
    level=Level.BYTES,
    severity=Severity.HIGH,
    verdict=Verdict.FAULT,
    doc=__doc__,
    check=check,
    needs_store=False,
)
