"""Build the demo home: a HERMES_HOME as version 0.19.0 might leave it, with healthy sessions and real damage.

Nothing here is random and no clock is read: the same call writes the same rows, exports and logs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from statemend.demo import story
from statemend.demo.home import DemoHome, at
from statemend.demo.story import Talk
from statemend.demo.talk import continue_talk, summary_of, write_talk
from statemend.demo.writer import StoreWriter
from statemend.errors import UsageError

#: The moment at which the demo home is audited (epoch seconds): the report of the demo does not age.
AUDITED_AT = at("2026-10-05T08:00:00")

COMPACTED = "20260812_190500_3f81c2"
SWEPT = "20260818_201500_9be410"
ORPHANED = "20260914_205500_0a11ce"
FORKED, REAPED, CONTINUED = "20260822_083000_51d7aa", "20260822_084015_7c02f4", "20260822_084018_e86b13"
MISTAGGED = "20260703_214400_d0ce55"
DEAD_END, CUT = "20260829_170000_6aa9f0", "20260829_170712_b7e3d1"
AT_RISK = "20260725_090000_c45e77"
HELD = "20260806_071500_48ab3e"


def build(folder: Path) -> Path:
    """Write the demo home into ``folder``, which must not exist or be empty; returns it.

    Raises ``UsageError`` where there is something already: the demo never writes into a home.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: already holds something; name a new folder for the demo home")
    try:
        home = DemoHome(folder)
    except OSError as error:
        raise UsageError(
            f"{folder}: cannot write the demo home there ({error.strerror}); name another"
        ) from None
    with StoreWriter(home.store) as writer:
        _everyday_life(writer)
        _family_of_sessions(writer)
        _before_the_exports(writer)
    _export(home)
    with StoreWriter(home.store) as writer:
        _after_the_exports(writer)
    _write_logs(home)
    home.write(
        "config.yaml", "sessions:\n  auto_prune: true\n  retention_days: 90\n", at("2026-07-01T09:00:00")
    )
    home.finish(AUDITED_AT)
    return folder


def _everyday_life(writer: StoreWriter) -> None:
    """Healthy sessions, most of them short."""
    for week in range(6):
        for number, talk in enumerate(story.EVERYDAY):
            start = at("2026-07-06T07:20:00") + week * 604_800 + number * 93_600
            title = talk.title if week == 0 else f"{talk.title} #{week + 1}"
            reason = "session_reset" if talk.source == "telegram" else "cli_close"
            write_talk(writer, _id(start, week * 16 + number), talk, start, end=reason, title=title)
    report = Talk(None, "cron", story.EVERYDAY[0].turns[:1])
    for night in range(3):
        start = at("2026-09-01T02:00:00") + night * 86_400
        write_talk(writer, f"cron_disk-report_{_id(start, 0)[:15]}", report, start, end="cron_complete")


def _family_of_sessions(writer: StoreWriter) -> None:
    """Healthy relations: a branch, a delegate, a rotation, an undone turn."""
    start = at("2026-08-03T18:00:00")
    parent = _id(start, 0xA1)
    write_talk(writer, parent, story.GREENHOUSE, start, end="branched", title="Sensors, first attempt")
    marker = f'{{"_branched_from": "{parent}"}}'
    write_talk(
        writer,
        _id(start + 900, 0xA2),
        story.GREENHOUSE,
        start + 900,
        end="cli_close",
        title="Sensors, first attempt #2",
        parent_session_id=parent,
        model_config=marker,
    )
    start = at("2026-08-04T09:00:00")
    parent = _id(start, 0xB1)
    write_talk(writer, parent, story.MIGRATION, start, end="cli_close", title="Plan of the wiki move")
    errand = Talk(None, "subagent", story.MIGRATION.turns[2:4])
    marker = f'{{"_delegate_from": "{parent}"}}'
    write_talk(
        writer,
        _id(start + 240, 0xB2),
        errand,
        start + 240,
        end="agent_close",
        parent_session_id=parent,
        model_config=marker,
    )
    start = at("2026-08-05T16:00:00")
    parent, child = _id(start, 0xC1), _id(start + 1200, 0xC2)
    end = write_talk(writer, parent, story.TAXES, start, end="compression", title="Receipts, the long way")
    continue_talk(writer, child, story.TAXES, end + 30.4, parent=parent, title="Receipts, the long way #2")
    start = at("2026-08-07T20:00:00")
    undone = _id(start, 0xD1)
    write_talk(writer, undone, story.TAXES, start, title="Receipts, once more")
    writer.rewind(undone, writer.first_row(undone) + 5)
    writer.end(undone, start + 2400, "cli_close")


def _before_the_exports(writer: StoreWriter) -> None:
    """The sessions that are damaged later, up to the moment at which they were exported."""
    start = at("2026-07-03T21:44:00")
    write_talk(
        writer,
        MISTAGGED,
        story.ROUTER,
        start,
        end="cli_close",
        model_config='{"_delegate_from": "__orphaned__"}',
    )
    start = at("2026-07-25T09:00:00")
    end = write_talk(writer, AT_RISK, story.MIGRATION, start, title="Wiki: what the macros did")
    writer.compact(AT_RISK, summary_of(story.MIGRATION, start, end + 40, keep=1))
    writer.end(AT_RISK, end + 300, "cli_close")
    start = at("2026-08-06T07:15:00")
    write_talk(writer, HELD, story.GREENHOUSE, start, title="Greenhouse, exported in time")
    start = at("2026-08-12T19:05:00")
    end = write_talk(writer, COMPACTED, story.BACKUPS, start, title=story.BACKUPS.title)
    writer.compact(COMPACTED, summary_of(story.BACKUPS, start, end + 40, keep=2))
    writer.end(COMPACTED, end + 900, "cli_close")
    start = at("2026-08-18T20:15:00")
    end = write_talk(writer, SWEPT, story.TRANSLATION, start, title="Statutes, second reading")
    writer.compact(SWEPT, summary_of(story.TRANSLATION, start, end + 75, keep=1))
    writer.end(SWEPT, end + 600, "session_reset")


def _after_the_exports(writer: StoreWriter) -> None:
    """What went wrong, in the order in which it did."""
    start, end = at("2026-08-06T07:15:00"), at("2026-08-06T08:30:00")
    writer.compact(HELD, summary_of(story.GREENHOUSE, start, end, keep=2))
    writer.end(HELD, end + 300, "cli_close")
    writer.delete(SWEPT)

    start = at("2026-08-22T08:30:00")
    write_talk(writer, FORKED, story.GREENHOUSE, start, end="compression", title="Irrigation plan")
    continue_talk(
        writer,
        REAPED,
        story.GREENHOUSE,
        at("2026-08-22T08:40:15"),
        parent=FORKED,
        end="ws_orphan_reap",
        turns=1,
    )
    continue_talk(
        writer,
        CONTINUED,
        story.GREENHOUSE,
        at("2026-08-22T08:40:18"),
        parent=FORKED,
        title="Irrigation plan #2",
    )
    start = at("2026-08-29T17:00:00")
    write_talk(writer, DEAD_END, story.MIGRATION, start, end="compression", title=story.MIGRATION.title)
    continue_talk(
        writer, CUT, story.MIGRATION, at("2026-08-29T17:07:12"), title=f"{story.MIGRATION.title} #2"
    )

    start = at("2026-09-14T20:55:00")
    write_talk(writer, ORPHANED, story.TAXES, start, title="Receipts for the accountant")
    writer.delete_row_only(ORPHANED)


def _export(home: DemoHome) -> None:
    """The exports that were made: two of them after a compaction, by a release that left the archive out."""
    home.export_jsonl(HELD, at("2026-08-06T08:00:00"))
    home.export_markdown(COMPACTED, at("2026-08-15T09:12:30"))
    home.export_markdown(SWEPT, at("2026-08-19T07:02:11"))
    home.export_markdown(_id(at("2026-08-05T16:00:00"), 0xC1), at("2026-08-20T10:00:00"))


def _write_logs(home: DemoHome) -> None:
    """The log of the evening on which the session row went away under a running agent."""
    first = at("2026-09-14T21:03:11")
    home.log(first - 480, "INFO", ORPHANED, "run_agent", "conversation turn: session=" + ORPHANED)
    for turn, wait in enumerate(_failures()):
        home.log(
            first + wait,
            "WARNING",
            ORPHANED,
            "run_agent",
            "Session DB append_message failed: FOREIGN KEY constraint failed",
        )
        if turn % 2 == 1:
            home.log(first + wait + 0.2, "INFO", ORPHANED, "run_agent", "conversation turn finished")


def _failures() -> Sequence[float]:
    """Seconds after the first failed append of each append that failed."""
    return (0.0, 9.4, 141.0, 155.2, 420.9, 431.3)


def _id(start: float, number: int) -> str:
    return DemoHome.session_id(start, number)
