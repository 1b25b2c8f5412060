"""Reports made by hand, so that every output can be tested without an audit."""

from __future__ import annotations

from statemend.audit.finding import Fact, Finding, Remedy, Severity, Subject, Value, Verdict, finding_id
from statemend.report.model import (
    ArtifactEntry,
    Check,
    Event,
    Family,
    FamilyEdge,
    FamilyNode,
    Holding,
    MessageText,
    Report,
    RuleEntry,
    SessionEntry,
    SkippedEntry,
    StoreEntry,
    Tool,
)
from statemend.report.verdict import sentence

STORE = "/srv/hermes/state.db"
EXPORT = "/srv/hermes/session-exports/20260812_091500_4f1d2c-deploy-notes.md"
LOST_EXPORT = "/srv/hermes/session-exports/20260701_184200_77ab10-tax-papers.md"
HOSTILE = '<script>alert("x")</script> | `code` @someone #12 \u202egnp.exe \x1b[31m'


def finding(
    rule: str,
    session: str | None,
    summary: str,
    *,
    verdict: Verdict = Verdict.FAULT,
    severity: Severity = Severity.HIGH,
    evidence: dict[str, Value] | None = None,
    message_ids: tuple[int, ...] = (),
    artifact: str | None = None,
    remedy: str = "Read the evidence first.",
    command: str | None = None,
) -> Finding:
    """A finding with the id that the engine would give it."""
    return Finding(
        id=finding_id(rule, session, artifact),
        rule=rule,
        verdict=verdict,
        severity=severity,
        subject=Subject(store=STORE, session=session, artifact=artifact, message_ids=message_ids),
        summary=summary,
        evidence=tuple(Fact(label, value) for label, value in (evidence or {}).items()),
        remedy=Remedy(remedy, command),
    )


FINDINGS = (
    finding(
        "EXP002",
        "20260701_184200_77ab10",
        "The session is gone, and the only export of it begins with a compaction summary: "
        "the turns before it are in no file here.",
        severity=Severity.CRITICAL,
        artifact=LOST_EXPORT,
        evidence={
            "export": LOST_EXPORT,
            "first message of the export": "a compaction summary",
            "messages the file declares": 42,
            "rows the store declared at export": 42,
            "export begins after session start": "3 d 4 h",
        },
        remedy="Look for older copies of the store: state-snapshots, backups, file-system snapshots.",
        command="statemend explain EXP002",
    ),
    finding(
        "EXP001",
        "20260812_091500_4f1d2c",
        "80 archived messages of this session are in no export.",
        severity=Severity.CRITICAL,
        verdict=Verdict.FAULT,
        artifact=EXPORT,
        message_ids=tuple(range(12, 92)),
        evidence={
            "display messages": 122,
            "held by the export": 42,
            "in no artifact": 80,
            "view of the export": "active",
            "written by": "0.19.0 or older",
        },
        remedy="Do not delete the session. Export its display view, then scan again.",
        command=f"statemend show {STORE} 20260812_091500_4f1d2c --exports /srv/hermes/session-exports",
    ),
    finding(
        "ORP001",
        "20260920_221011_c0ffee",
        "240 messages have no session row, so Hermes refuses every further append.",
        message_ids=(*range(1201, 1433), 1450, 1452, 1460, 1461, 1470, 1480, 1481, 1490),
        evidence={
            "messages": 240,
            "first": "2026-09-20T22:10:11Z",
            "last": "2026-09-24T03:02:40Z",
            "roles": ["user", "assistant", "tool"],
        },
        remedy="Rebuild the session row from what is known. Do not delete the messages.",
        command="statemend show /srv/hermes/state.db 20260920_221011_c0ffee",
    ),
    finding(
        "ORP004",
        "20260920_221011_c0ffee",
        "Hermes failed 17 times to append to this session; those turns are in no table.",
        artifact="/srv/hermes/logs/agent.log",
        evidence={
            "failures": 17,
            "error": "FOREIGN KEY constraint failed",
            "first": "2026-09-24 03:02:41,112",
            "last": "2026-09-24 03:31:07,900",
        },
        remedy="Keep the log. It is the only trace of these turns.",
    ),
    finding(
        "LIN003",
        "20260905_101500_aa0001",
        "An export ends in 20260905_114000_aa0002, a resume opens 20260906_080000_aa0003.",
        severity=Severity.MEDIUM,
        evidence={
            "export writes": ["20260905_101500_aa0001", "20260905_114000_aa0002"],
            "resume opens": "20260906_080000_aa0003",
            "continuations": 2,
        },
        remedy="Decide which continuation is the true one. Both hold turns; nothing is lost yet.",
        command="statemend show /srv/hermes/state.db 20260905_101500_aa0001",
    ),
    finding(
        "EXP010",
        "20260812_091500_4f1d2c",
        "Auto-prune would delete this session in 9 days, and no export holds all of it.",
        severity=Severity.HIGH,
        verdict=Verdict.RISK,
        evidence={"retention": "90 days", "ended": "2026-08-20T10:00:00Z", "sessions.auto_prune": True},
        remedy="Turn auto-prune off until an export holds the whole display view.",
    ),
    finding(
        "CNT001",
        "20260915_070000_beef01",
        "message_count says 31, this release would hold 29.",
        severity=Severity.LOW,
        evidence={"message_count": 31, "live rows": 29},
        remedy="Harmless by itself; a repair recomputes it.",
    ),
    finding(
        "EXP004",
        "20260910_120000_d00d01",
        "6 messages were appended after the export was written.",
        severity=Severity.INFO,
        verdict=Verdict.LEFTOVER,
        message_ids=tuple(range(2101, 2107)),
        artifact="/srv/hermes/session-exports/20260910_120000_d00d01.jsonl",
        evidence={"appended": 6},
        remedy="Export again when the session has ended.",
    ),
    finding(
        "EXP005",
        "20260911_120000_d00d02",
        "3 messages differ between export and store; which is the original cannot be told from here.",
        severity=Severity.MEDIUM,
        verdict=Verdict.UNDECIDABLE,
        message_ids=(2201, 2203, 2209),
        evidence={"changed": 3},
        remedy="An older backup of the store would tell.",
    ),
)

RULES = (
    RuleEntry(
        id="STO001", slug="invalid-header", title="The store's first page is not SQLite's.", status="clean"
    ),
    RuleEntry(id="STO003", slug="structural-damage", title="A table or index is damaged.", status="clean"),
    RuleEntry(
        id="EXP001",
        slug="archived-rows-not-exported",
        title="Archived messages of a session are in no export.",
        status="findings",
        findings=1,
    ),
    RuleEntry(
        id="EXP002",
        slug="deleted-after-incomplete-export",
        title="A session was deleted after an export that did not hold all of it.",
        status="findings",
        findings=1,
    ),
    RuleEntry(
        id="EXP003",
        slug="artifact-altered",
        title="An export was altered after it was written.",
        status="clean",
    ),
    RuleEntry(
        id="EXP004",
        slug="appended-since-export",
        title="Messages were appended after the export.",
        status="findings",
        findings=1,
    ),
    RuleEntry(
        id="EXP005",
        slug="rewritten-since-export",
        title="Export and store differ in content.",
        status="findings",
        findings=1,
    ),
    RuleEntry(
        id="EXP010",
        slug="at-risk-of-prune",
        title="A prune would delete what no export holds.",
        status="findings",
        findings=1,
    ),
    RuleEntry(
        id="ORP001",
        slug="messages-without-session",
        title="Messages have no session row.",
        status="findings",
        findings=1,
    ),
    RuleEntry(
        id="ORP004",
        slug="append-failures",
        title="Appends failed, as the logs tell.",
        status="findings",
        findings=1,
    ),
    RuleEntry(
        id="LIN003",
        slug="export-resume-disagree",
        title="Export and resume follow different children.",
        status="findings",
        findings=1,
    ),
    RuleEntry(
        id="LIN004",
        slug="cycle",
        title="Parent links form a cycle.",
        status="could not run",
        reason="one page of sessions could not be read",
    ),
    RuleEntry(
        id="LIN008",
        slug="migration-mistag",
        title="The v16 migration mis-tagged a chat.",
        status="not applicable",
        reason="the store never passed schema 16",
    ),
    RuleEntry(
        id="CNT001", slug="message-count-drift", title="A counter is wrong.", status="findings", findings=1
    ),
)

SESSIONS = (
    SessionEntry(
        id="20260701_184200_77ab10",
        title="Tax papers",
        present=False,
        artifacts=(Holding(artifact=LOST_EXPORT, kind="markdown", scope="active", extra=42),),
    ),
    SessionEntry(
        id="20260812_091500_4f1d2c",
        title="Deploy notes",
        live=42,
        archived=90,
        rewound=4,
        display=122,
        held=42,
        artifacts=(Holding(artifact=EXPORT, kind="markdown", scope="active", lossy=42, missing=80),),
    ),
    SessionEntry(
        id="20260910_120000_d00d01",
        title=HOSTILE,
        live=60,
        display=60,
        held=54,
        artifacts=(
            Holding(
                artifact="/srv/hermes/session-exports/20260910_120000_d00d01.jsonl",
                kind="jsonl",
                scope="all",
                exact=54,
                missing=6,
            ),
        ),
    ),
    SessionEntry(
        id="20260911_120000_d00d02", title="שלום עולם", live=31, archived=310, unset=2, display=330, held=330
    ),
)

TIMELINE = (
    Event(kind="exported", at="2026-07-04T22:40:00Z", session="20260701_184200_77ab10", source=LOST_EXPORT),
    Event(kind="compacted", at="2026-08-14T11:00:12Z", session="20260812_091500_4f1d2c", source="messages"),
    Event(kind="compacted", at="2026-08-15T16:20:40Z", session="20260812_091500_4f1d2c", source="messages"),
    Event(kind="exported", at="2026-08-20T10:00:00Z", session="20260812_091500_4f1d2c", source=EXPORT),
    Event(
        kind="deleted",
        at="2026-09-24T03:02:40Z",
        session="20260920_221011_c0ffee",
        source="messages",
        detail="last message before the session row went",
    ),
    *(
        Event(
            kind="append-failed",
            clock=f"2026-09-24 03:{2 + 2 * minute:02}:41,112",
            session="20260920_221011_c0ffee",
            source="/srv/hermes/logs/agent.log",
            detail="FOREIGN KEY constraint failed",
        )
        for minute in range(14)
    ),
)

LINEAGE = (
    Family(
        id="20260905_101500_aa0001",
        start="20260905_101500_aa0001",
        nodes=(
            FamilyNode(
                id="20260905_101500_aa0001",
                title="Moving the mail server",
                source="telegram",
                started_at="2026-09-05T10:15:00Z",
                ended_at="2026-09-05T11:40:00Z",
                end_reason="compression",
                messages=88,
            ),
            FamilyNode(
                id="20260905_114000_aa0002",
                title="Moving the mail server #2",
                source="telegram",
                started_at="2026-09-05T11:40:00Z",
                ended_at="2026-09-05T12:00:00Z",
                end_reason="agent_close",
                messages=6,
            ),
            FamilyNode(
                id="20260905_120500_aa0004",
                title="What if we use maildir",
                source="telegram",
                started_at="2026-09-05T12:05:00Z",
                end_reason=None,
                messages=12,
            ),
            FamilyNode(
                id="20260906_080000_aa0003",
                title="Moving the mail server #3",
                source="telegram",
                started_at="2026-09-06T08:00:00Z",
                messages=51,
            ),
        ),
        edges=(
            FamilyEdge(
                parent="20260905_101500_aa0001",
                child="20260905_114000_aa0002",
                relation="continuation",
                evidence=("parent ended by compression", "first row is a summary"),
            ),
            FamilyEdge(
                parent="20260905_101500_aa0001",
                child="20260906_080000_aa0003",
                relation="continuation",
                evidence=("parent ended by compression", "first row is a summary"),
            ),
            FamilyEdge(
                parent="20260905_114000_aa0002",
                child="20260905_120500_aa0004",
                relation="branch",
                evidence=("_branched_from names the parent",),
            ),
        ),
        export=("20260905_101500_aa0001", "20260905_114000_aa0002"),
        resume="20260906_080000_aa0003",
        findings=tuple(item.id for item in FINDINGS if item.rule == "LIN003"),
    ),
)

_BY_RULE = {item.rule: item.id for item in FINDINGS}

CHECKLIST = (
    Check(
        id="view-named",
        title="View named",
        question="Is it known which view each export shows?",
        answer="yes",
        because="The view of all 3 exports was told by comparing them with the store.",
    ),
    Check(
        id="compacted-history",
        title="Compacted history accounted for",
        question="Is every archived message in some export?",
        answer="no",
        because="80 archived messages of 1 session are in no export.",
        rules=("EXP001",),
        findings=(_BY_RULE["EXP001"],),
    ),
    Check(
        id="one-fence",
        title="One fence",
        question="Did the last check and each deletion share one transaction?",
        answer="unknown",
        because="A store keeps no record of its deletions.",
        rules=("EXP002",),
    ),
)


def report(**changes: object) -> Report:
    """A report with every part filled."""
    stores = (
        StoreEntry(
            path=STORE,
            size=88_120_320,
            access="original, immutable",
            schema_version=22,
            era="0.18–0.19",
            unchanged=True,
            sessions=277,
            live=16_288,
            archived=3_680,
            rewound=112,
            unset=0,
        ),
    )
    values: dict[str, object] = {
        "tool": Tool(name="statemend", version="0.1.0", sqlite="3.54.1"),
        "home": "/srv/hermes",
        "generated_at": "2026-10-01T03:12:44Z",
        "verdict": sentence(FINDINGS, RULES, stores),
        "exit_code": 3,
        "stores": stores,
        "artifacts": (
            ArtifactEntry(
                path=LOST_EXPORT,
                kind="markdown",
                size=48_211,
                sha256="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                modified_at="2026-07-04T22:40:00Z",
                sessions=("20260701_184200_77ab10",),
            ),
            ArtifactEntry(
                path=EXPORT,
                kind="markdown",
                size=61_900,
                sha256="2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
                modified_at="2026-08-20T10:00:00Z",
                sessions=("20260812_091500_4f1d2c",),
                damage="the file ends in the middle of a message",
            ),
            ArtifactEntry(
                path="/srv/hermes/logs/agent.log",
                kind="log",
                size=1_204_000,
                sha256="fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9",
                modified_at="2026-09-24T04:00:00Z",
            ),
        ),
        "rules": RULES,
        "findings": FINDINGS,
        "sessions": SESSIONS,
        "timeline": TIMELINE,
        "lineage": LINEAGE,
        "checklist": CHECKLIST,
        "skipped": (
            SkippedEntry(
                "/srv/hermes/session-exports/old.zip", "an archive, which this version does not open"
            ),
            SkippedEntry("/srv/hermes/sessions/link", "a link that leaves the folder"),
        ),
    }
    values.update(changes)
    return Report(**values)  # type: ignore[arg-type]


def clean_report() -> Report:
    """A report of a healthy home."""
    rules = tuple(RuleEntry(id=rule.id, slug=rule.slug, title=rule.title, status="clean") for rule in RULES)
    return clean_report_of(rules=rules, stores=report().stores)


def clean_report_of(*, rules: tuple[RuleEntry, ...], stores: tuple[StoreEntry, ...]) -> Report:
    """A report without findings, sessions and events."""
    return report(
        findings=(),
        rules=rules,
        stores=stores,
        verdict=sentence((), rules, stores),
        timeline=(),
        lineage=(),
        skipped=(),
        exit_code=0,
        sessions=(),
    )


def large_report(number: int = 1000) -> Report:
    """A report with ``number`` findings, sessions and artifacts, each with long evidence."""
    severities = list(Severity)
    verdicts = list(Verdict)
    rules = [rule.id for rule in RULES]
    findings = tuple(
        finding(
            rules[index % len(rules)],
            f"20260912_{index:06}_c0de{index:04x}",
            f"{index + 3} archived messages of this session are in no export, and the only file naming it "
            "shows the active view.",
            severity=severities[index % 5],
            verdict=verdicts[index % 4],
            message_ids=tuple(range(index * 40, index * 40 + 31, 2)),
            artifact=f"/srv/hermes/session-exports/20260912_{index:06}_c0de{index:04x}-a-long-title-{index}.md",
            evidence={
                "display messages": 120 + index,
                "held": 42,
                "written by": "0.19.0 or older",
                "lost": index,
            },
            remedy="Do not delete the session. Export its display view, then scan again.",
            command=f"statemend show {STORE} 20260912_{index:06}_c0de{index:04x} --exports /srv/exports",
        )
        for index in range(number)
    )
    sessions = tuple(
        SessionEntry(
            id=f"20260912_{index:06}_c0de{index:04x}",
            title=f"Session number {index}",
            live=index + 1,
            archived=2 * index,
            display=3 * index + 1,
            held=index,
        )
        for index in range(number)
    )
    artifacts = tuple(
        ArtifactEntry(
            path=f"/srv/hermes/session-exports/20260912_{index:06}_c0de{index:04x}-a-long-title-{index}.md",
            kind="markdown",
            size=10_000 + index,
            sha256=f"{index:064x}",
            sessions=(f"20260912_{index:06}_c0de{index:04x}",),
        )
        for index in range(number)
    )
    timeline = tuple(
        Event(
            kind="append-failed",
            at=f"2026-09-{1 + index % 28:02}T{index % 24:02}:00:00Z",
            session=f"20260912_{index:06}_c0de{index:04x}",
            source="/srv/hermes/logs/agent.log",
            detail="FOREIGN KEY constraint failed",
        )
        for index in range(number)
    )
    return report(findings=findings, sessions=sessions, artifacts=artifacts, timeline=timeline)


def hostile_report() -> Report:
    """A report whose every free text is hostile: markup, overrides, control characters, 10,000 characters."""
    long = HOSTILE + "A" * 10_000
    compared: dict[str, Value] = {f"about candidate {HOSTILE}": [HOSTILE, long]}
    parted = finding("LIN003", HOSTILE, "The line parts.", evidence=compared)
    return report(
        findings=(
            finding(
                "EXP001",
                long,
                f"Session {long} is odd.",
                evidence={HOSTILE: long, "list": [HOSTILE, long]},
                artifact=f"/tmp/{HOSTILE}",
                remedy=HOSTILE,
                command=f"statemend show '{HOSTILE}'",
            ),
            finding("LIN004", HOSTILE, "The line ends.", evidence=compared),
            parted,
        ),
        sessions=(SessionEntry(id=HOSTILE, title=long, live=3, display=3, held=1),),
        home=f"/tmp/{HOSTILE}",
        skipped=(SkippedEntry(HOSTILE, long),),
        timeline=(
            Event(kind="deleted", at="2026-09-01T00:00:00Z", session=long, source=HOSTILE, detail=long),
        ),
        lineage=(
            Family(
                id=HOSTILE,
                start=HOSTILE,
                nodes=(FamilyNode(id=HOSTILE, title=long, source=HOSTILE, end_reason=HOSTILE),),
                edges=(),
                export=(HOSTILE,),
                resume=HOSTILE,
                findings=(parted.id,),
            ),
        ),
        contents=(
            MessageText(STORE, 7, HOSTILE, "user", long + "\nsecond line"),
            MessageText(STORE, 8, HOSTILE, HOSTILE, "first line\n" + long.replace("A", "A\n"), first=True),
        ),
    )
