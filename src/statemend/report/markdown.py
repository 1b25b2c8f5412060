"""The report as Markdown for an issue, a pull request or a notebook: same order as the page, stable for
diffs.

Everything that comes from a store or a file is either shown as code, where GitHub obeys nothing, or escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from statemend.audit import candidates
from statemend.audit.finding import Finding, Value
from statemend.report import baseline, families, text
from statemend.report.gaps import gaps, ignored, in_files, lineage_known, rows_known
from statemend.report.html import SEVERITY_MEANS, counts, shown_value
from statemend.report.model import SCHEMA, VERDICTS, Family, Report, StoreEntry, worst_first
from statemend.report.paths import note, relative

#: First line of every Markdown report; tells one from any other file.
MARK = f"<!-- {SCHEMA} -->"
MOST_FINDINGS = 200
MOST_ROWS = 100
MOST_FACTS = 12

_SPECIAL = re.compile(r"[\\`*\[\]#|~$]|(?<![^\W_])_|_(?![^\W_])")
#: Signs of what GitHub turns into links by itself: mentions, mail, issues, addresses.
_LINKING = re.compile(r"@|\\#(?=\d)|\b(?:www|GH|gh)(?=[.-])|:(?=//)")


def escape(value: str, limit: int = 300) -> str:
    """Free text for running Markdown: no markup, no HTML, no mention, no reference, no automatic link.

    An empty comment breaks what GitHub would link; a reader does not see it."""
    shown = text.clip(value, limit).replace("&", "&amp;").replace("<", "&lt;")
    shown = _SPECIAL.sub(lambda match: f"\\{match[0]}", shown)
    return _LINKING.sub(lambda match: f"{match[0]}<!-- -->", shown)


def code(value: str, limit: int = 200, *, cell: bool = False) -> str:
    """Free text as a code span that no backtick in it can end. ``cell`` escapes pipes for a table."""
    shown = text.clip(value, limit) or " "
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest or (shown.startswith(" ") and shown.endswith(" ") and shown.strip()) else ""
    if cell:
        shown = shown.replace("|", "\\|")
    return f"{fence}{pad}{shown}{pad}{fence}"


def render(report: Report) -> str:
    """The whole document, ending in one newline."""
    kept: list[str] = []
    for block in _blocks(report):
        if block or (kept and kept[-1]):
            kept.append(block)
    return "\n".join(kept).rstrip("\n") + "\n"


def _blocks(report: Report) -> Iterator[str]:
    yield MARK
    yield f"# {escape(report.verdict)}"
    yield ""
    yield (
        f"statemend {report.tool.version} on {code(report.home)}, {report.generated_at}, "
        f"exit code {report.exit_code}. {note(report.home)}".rstrip()
    )
    yield from _looked(report)
    yield from _counts(report)
    yield from _findings(report)
    yield from _timeline(report)
    yield from _lineage(report)
    yield from _sessions(report)
    yield from _files(report)
    yield from _review(report)
    yield from _rules(report)


def _looked(report: Report) -> Iterator[str]:
    yield from _heading("What was looked at, and what was not")
    for store in report.stores:
        yield f"- Store {code(store.path)}, {text.size(store.size)}" + (
            f", read as {escape(store.access)}" if store.access else ""
        )
        if store.sessions is not None:
            yield f"- {text.count(store.sessions, 'session')}; {_rows(store)}"
        if store.era:
            yield f"- Shape: {escape(store.era)}, schema number {store.schema_version}"
        unchanged = {True: "yes", False: "no", None: "not determined"}[store.unchanged]
        yield f"- Unchanged by the audit: {unchanged}"
        if not store.deep and not store.fault:
            yield "- **Not looked at:** what lies outside the tables; `--deep` looks there too"
    yield f"- {text.count(len(report.artifacts), 'file')} beside the {_stores(report)}"
    ran = sum(rule.status in ("clean", "findings") for rule in report.rules)
    yield f"- {ran} of {text.count(len(report.rules), 'rule')} ran"
    for gap in (*gaps(report), *ignored(report)):
        yield f"- **Not looked at:** {escape(gap.what)}: {escape(gap.reason)}"
    for item in report.skipped[:MOST_ROWS]:
        yield f"- **Not looked at:** {code(item.path)}: {escape(item.reason)}"
    yield from _more(len(report.skipped), MOST_ROWS, "skipped files")


def _stores(report: Report) -> str:
    return "stores" if len(report.stores) > 1 else "store"


def _rows(store: StoreEntry) -> str:
    if store.live is None:
        return "its rows could not be counted"
    return f"{store.live:,} live, {store.archived or 0:,} archived, {store.rewound or 0:,} rewound rows"


def _counts(report: Report) -> Iterator[str]:
    yield from _heading("Counts")
    if not report.findings:
        yield "No findings."
        return
    rows = (
        [severity.value, *(f"{number:,}" for number in row.values()), f"{sum(row.values()):,}"]
        for severity, row in counts(report).items()
    )
    yield from table(
        ["severity", *(verdict.value for verdict in VERDICTS), "all"], rows, numbers=len(VERDICTS) + 1
    )


def _findings(report: Report) -> Iterator[str]:
    yield from _heading("Findings")
    for line in baseline.said(report.baseline, hidden=False):
        yield escape(line, 800)
        yield ""
    if not report.findings:
        yield "None."
    ordered = worst_first(report.findings)
    titles = {rule.id: rule.title for rule in report.rules}
    several, known = len(report.stores) > 1, families.Candidates(report)
    severity, rule = None, ""
    for finding in ordered[:MOST_FINDINGS]:
        if finding.severity is not severity:
            severity, rule = finding.severity, ""
            yield from _heading(f"{severity.value.capitalize()}: {SEVERITY_MEANS[severity]}", 3)
        if finding.rule != rule:
            rule = finding.rule
            yield f"**{rule}** {escape(titles.get(rule, ''))}"
            yield ""
        yield from _finding(finding, known, several=several)
    yield from _more(len(ordered), MOST_FINDINGS, "findings")
    yield from _contents(report, several=several)


def _finding(finding: Finding, known: families.Candidates, *, several: bool) -> Iterator[str]:
    yield f"- **{escape(finding.summary)}**"
    yield f"  - id {code(finding.id)}, {finding.verdict.value}"
    if several:
        yield f"  - store {code(finding.subject.store)}"
    if finding.subject.session:
        yield f"  - session {code(finding.subject.session, 80)}"
    if finding.subject.artifact:
        yield f"  - file {code(finding.subject.artifact)}"
    if finding.subject.message_ids:
        ids = finding.subject.message_ids
        yield f"  - messages: {len(ids):,} ({text.ranges(ids)})"
    evidence = candidates.beside(finding)
    for fact in evidence[:MOST_FACTS]:
        yield f"  - {escape(fact.label, 60)}: {_evidence(fact.value)}"
    if len(evidence) > MOST_FACTS:
        yield f"  - {len(evidence) - MOST_FACTS:,} more pieces of evidence in the JSON form of this report"
    compared = known.of_finding(finding)
    if compared and finding.id in known.told_in:
        yield f"  - {text.count(len(compared), 'candidate')}, told with the family under Lineage"
    else:
        yield from _candidates(compared, "  ")
    yield f"  - What to do: {escape(finding.remedy.text)}"
    if finding.remedy.command:
        yield f"  - Next: {code(finding.remedy.command, 600)}"
    yield ""


def _evidence(value: Value) -> str:
    shown = shown_value(value)
    return code(shown, 500) if isinstance(value, str | list) else escape(shown)


def _contents(report: Report, *, several: bool) -> Iterator[str]:
    if report.contents is None:
        return
    yield from _heading("Texts of the messages that findings name", 3)
    for said in report.contents[:MOST_FINDINGS]:
        place = f", store {code(said.store)}" if several else ""
        what = ", the first message of a candidate" if said.first else ""
        yield f"Row {said.message_id}, {code(said.role, 20)}, session {code(said.session, 80)}{place}{what}:"
        yield ""
        shown = text.passage(said.text)
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", shown)), default=0))
        yield f"{fence}text\n{shown}\n{fence}"
        yield ""
    yield from _more(len(report.contents), MOST_FINDINGS, "messages")


_EVENTS = {
    "append-failed": "append failed",
    "deleted": "session deleted",
    "compacted": "compacted",
    "exported": "exported",
}


def _timeline(report: Report) -> Iterator[str]:
    yield from _heading("Timeline")
    if not report.timeline:
        yield (
            "Nothing in this home tells of exports, compactions, deletions or failed appends."
            if rows_known(report)
            else "No file here tells of exports or failed appends; the store could not be read for the rest."
        )
        return
    rows = (
        [
            (event.at or f"{event.clock or 'unknown'} (local clock)").replace("|", ""),
            _EVENTS[event.kind] + (f" × {event.count}" if event.count > 1 else ""),
            code(event.session, 60, cell=True) if event.session else "",
            code(event.source, cell=True),
        ]
        for event in report.timeline[:MOST_ROWS]
    )
    yield from table(["when", "what", "session", "told by"], rows)
    yield from _more(len(report.timeline), MOST_ROWS, "events")


def _lineage(report: Report) -> Iterator[str]:
    yield from _heading("Lineage")
    if not report.lineage:
        yield (
            "No family of sessions is ambiguous."
            if lineage_known(report)
            else "Not every rule about lineage could say something, so nothing is said about families here."
        )
    known = families.Candidates(report)
    for family in report.lineage[: families.MOST_FAMILIES]:
        yield from _family(family, known.of_family(family))
    yield from _more(len(report.lineage), families.MOST_FAMILIES, "families")


def _family(family: Family, known: Sequence[families.Candidate]) -> Iterator[str]:
    yield from _heading(f"Family of {code(family.start, 60)}", 3)
    chain = ", ".join(code(node, 60) for node in family.export[:12]) if family.export else "no lineage"
    opened = code(family.resume, 60) if family.resume else "nothing"
    place = f"In {code(family.store)}: an" if family.store else "An"
    yield f"{place} export writes {chain}; a resume opens {opened}."
    yield ""
    edges = {edge.child: edge for edge in family.edges}
    rows = []
    for node in family.nodes[:MOST_ROWS]:
        edge = edges.get(node.id)
        rows.append(
            [
                code(node.id, 60, cell=True),
                code(edge.parent, 60, cell=True) if edge else "",
                escape(edge.relation) if edge else "root",
                escape(node.end_reason or "open", 40),
                "" if node.messages is None else f"{node.messages:,}",
            ]
        )
    yield from table(["session", "parent", "link", "end", "messages"], rows, numbers=1)
    if known:
        yield ""
        yield from _candidates(known)


def _candidates(known: Sequence[families.Candidate], indent: str = "") -> Iterator[str]:
    for candidate in known[:MOST_ROWS]:
        yield f"{indent}- Candidate {code(candidate.session, 60)}"
        yield from (f"{indent}  - {escape(line)}" for line in candidate.lines)
        if candidate.first is not None:
            yield f"{indent}  - begins: {code(candidate.first.text)}"
    yield from _more(len(known), MOST_ROWS, "candidates")


def _sessions(report: Report) -> Iterator[str]:
    yield from _heading("Sessions")
    if not report.sessions:
        yield (
            "No session has archived or rewound rows, a file, or a finding."
            if rows_known(report)
            else "The rows could not be counted, so no session is shown."
        )
        return
    rows = (
        [
            code(session.id, 60, cell=True),
            code(session.title, 60, cell=True) if session.title else "",
            *([code(relative(session.store, report.home), cell=True)] if session.store else []),
            text.number(session.live) if session.present else "gone",
            text.number(session.archived),
            text.number(session.rewound),
            in_files(report, session),
        ]
        for session in report.sessions[:MOST_ROWS]
    )
    head = ["session", "title", *(["store"] if len(report.stores) > 1 else [])]
    yield from table([*head, "live", "archived", "rewound", "in a file"], rows, numbers=4)
    yield from _more(len(report.sessions), MOST_ROWS, "sessions")


def _files(report: Report) -> Iterator[str]:
    yield from _heading(f"Files beside the {_stores(report)}")
    if not report.artifacts:
        yield "None."
        return
    rows = (
        [
            code(artifact.path, cell=True),
            artifact.kind + (f"; damaged: {escape(artifact.damage)}" if artifact.damage else ""),
            text.size(artifact.size),
            code(artifact.sha256, cell=True) if artifact.sha256 else "",
        ]
        for artifact in report.artifacts[:MOST_ROWS]
    )
    yield from table(["file", "kind", "size", "SHA-256"], rows)
    yield from _more(len(report.artifacts), MOST_ROWS, "files")


def _review(report: Report) -> Iterator[str]:
    yield from _heading("Export review")
    for check in report.checklist:
        told = [*check.rules, *(code(item) for item in check.findings[:3])]
        if len(check.findings) > 3:
            told.append(f"{len(check.findings) - 3:,} more")
        yield (
            f"- **{check.answer}** {check.title}: {check.question} {escape(check.because)}"
            + (f" ({', '.join(told)})" if told else "")
        )


def _rules(report: Report) -> Iterator[str]:
    yield from _heading("Rules")
    rows = (
        [
            rule.id,
            rule.slug,
            rule.status,
            f"{rule.findings:,}" + (f" ({rule.hidden:,} hidden)" if rule.hidden else ""),
            escape(rule.reason),
        ]
        for rule in report.rules
    )
    yield from table(["rule", "name", "result", "findings", "reason"], rows)


def _heading(title: str, level: int = 2) -> tuple[str, str, str]:
    return "", f"{'#' * level} {title}", ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: int = 0) -> Iterator[str]:
    """A table whose last ``numbers`` columns are aligned to the right."""
    yield f"| {' | '.join(head)} |"
    words = len(head) - numbers
    yield f"| {' | '.join(['---'] * words + ['---:'] * numbers)} |"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _more(total: int, shown: int, what: str) -> Iterator[str]:
    if total > shown:
        yield ""
        yield f"{total - shown:,} more {what} in the JSON form of this report."
