"""What was not looked at, each cause once."""

from __future__ import annotations

import msgspec

from statemend.report.families import ABOUT_LINES
from statemend.report.model import Report, SessionEntry
from statemend.report.text import count, listed

#: A rule that compares every file with every session that it names, in stores of all releases.
_COMPARES = "EXP004"


class Gap(msgspec.Struct, frozen=True):
    """Something that was not looked at: what, and why. ``rules`` are the ids of the rules that were
    not run."""

    what: str
    reason: str
    rules: tuple[str, ...] = ()


def gaps(report: Report) -> tuple[Gap, ...]:
    """Stores that could not be read, then rules that could not run; those with one reason are one gap."""
    faults = {
        store.fault: Gap("the store" if len(report.stores) == 1 else f"the store {store.path}", store.fault)
        for store in report.stores
        if store.fault
    }
    by_reason: dict[str, list[str]] = {}
    for rule in report.rules:
        if rule.status == "could not run":
            by_reason.setdefault(rule.reason, []).append(rule.id)
    found = list(faults.values())
    for reason, rules in by_reason.items():
        if reason in faults:
            found.append(
                Gap(
                    count(len(rules), "rule"),
                    "it needs the store" if len(rules) == 1 else "they need the store",
                )
            )
        else:
            found.append(Gap(listed(rules), reason, tuple(rules)))
    return tuple(found)


def ignored(report: Report) -> tuple[Gap, ...]:
    """The rules that were left out on purpose; those that one choice left out are one gap."""
    by_reason: dict[str, list[str]] = {}
    for rule in report.rules:
        if rule.status == "ignored":
            by_reason.setdefault(rule.reason, []).append(rule.id)
    return tuple(Gap(listed(rules), reason, tuple(rules)) for reason, rules in by_reason.items())


def rows_known(report: Report) -> bool:
    """Whether the rows of every store were counted, so that what is not listed is not there."""
    return all(store.live is not None for store in report.stores)


def in_files(report: Report, session: SessionEntry) -> str:
    """How much of a session's display history some file holds: ``18 of 47``, ``none``, or a dash where no
    rule compared the files with the store, or the session is gone."""
    if session.display is not None:
        return f"{session.held or 0:,} of {session.display:,}"
    compared = any(rule.id == _COMPARES and rule.status in ("clean", "findings") for rule in report.rules)
    return "none" if session.present and compared and not session.artifacts else "–"


def lineage_known(report: Report) -> bool:
    """Whether every rule about lineage ran or did not apply, so that a family that is not shown is plain."""
    told = {rule.id for rule in report.rules if rule.status not in ("could not run", "ignored")}
    return rows_known(report) and told.issuperset(ABOUT_LINES)
