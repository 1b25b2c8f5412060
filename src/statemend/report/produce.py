"""Audit a home and make its report, in one step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from statemend.audit.engine import audit
from statemend.audit.outcome import Audit, FailOn
from statemend.errors import StatemendError
from statemend.report import content
from statemend.report.build import build
from statemend.report.excerpt import Excerpt, take
from statemend.report.model import MessageText, Report
from statemend.store.connection import open_for_audit


def produce(
    path: Path,
    *,
    exports: Sequence[Path] = (),
    rules: Sequence[str] | None = None,
    live: bool = False,
    deep: bool = False,
    with_content: bool = False,
    fail_on: FailOn = FailOn.FAULT,
    now: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """The report of the home or store at ``path``. ``with_content`` adds the texts of the messages that
    findings name. Everything else is as for ``audit``, and so are the errors."""
    found = audit(path, exports=exports, rules=rules, live=live, deep=deep, now=now, progress=progress)
    if progress is not None:
        progress("writing the report")
    excerpt, contents = _read(found, with_content=with_content)
    return build(found, excerpt, fail_on=fail_on, contents=contents)


def _read(found: Audit, *, with_content: bool) -> tuple[Excerpt | None, tuple[MessageText, ...] | None]:
    """What the report shows of the store itself. A store that cannot be read has none of it, as the rules
    say that could not run."""
    nothing = () if with_content else None
    if found.store.refusal is not None:
        return None, nothing
    try:
        with open_for_audit(Path(found.store.path), live=found.live) as store:
            excerpt = take(store, found.findings, found.coverage)
            texts = tuple(content.texts(store, found.findings)) if with_content else None
    except StatemendError:
        return None, nothing
    return excerpt, texts
