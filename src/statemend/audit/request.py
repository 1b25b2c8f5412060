"""What an audit is asked, said once for all that audit."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

import msgspec

from statemend.audit import registry
from statemend.audit.context import Context, Progress
from statemend.audit.finding import Finding
from statemend.audit.rule import Rule

#: Looks at an audit whose rules have run while its store is still open.
Observer = Callable[[Context, Sequence[Finding]], None]


class Asked(TypedDict, total=False):
    """The keywords of everything that audits; each may be left out.

    ``exports`` are folders and files to look at beside the store. ``rules`` names the rules to run (ids,
    slugs or families); ``None`` runs all. ``ignore`` names those of them to leave out; a mapping says for
    each name who asked for it, for the report to tell. ``deep`` checks the whole file, search indexes
    included, and not only its tables. ``now`` is epoch seconds, by default the present. ``progress`` is told
    what is being done.
    """

    exports: Sequence[Path]
    rules: Sequence[str] | None
    ignore: Sequence[str] | Mapping[str, str]
    deep: bool
    now: float | None
    progress: Progress | None


class Request(msgspec.Struct, frozen=True):
    """What was asked for, the same for each store of a home: the rules found by their names, and of those
    left out, by id, who asked for it."""

    exports: Sequence[Path]
    rules: Sequence[Rule]
    ignored: Mapping[str, str]
    live: bool
    deep: bool
    now: float
    progress: Progress | None
    observe: Observer | None


def settle(
    *,
    live: bool,
    observe: Observer | None,
    exports: Sequence[Path] = (),
    rules: Sequence[str] | None = None,
    ignore: Sequence[str] | Mapping[str, str] = (),
    deep: bool = False,
    now: float | None = None,
    progress: Progress | None = None,
) -> Request:
    """The request that the keywords of ``Asked`` make. Raises ``UsageError`` for a rule that there is not, or
    when none is left."""
    chosen, ignored = registry.without(registry.select(rules), ignore)
    at = time.time() if now is None else now
    return Request(exports, chosen, ignored, live, deep, at, progress, observe)
