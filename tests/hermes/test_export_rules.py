"""What real releases leave of their exports, and what the rules about them and about lost sessions say."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.hermes.home import HOUR, HermesHome, assistant, user

from statemend.audit.engine import audit
from statemend.audit.finding import Finding, Verdict
from statemend.evidence.inventory import find_home, take
from statemend.evidence.salvage import Fidelity, salvage
from statemend.store.connection import open_for_audit

Make = Callable[..., HermesHome]
FIRST, SECOND, THIRD = "20260801_090000_aaaaaa", "20260801_100000_bbbbbb", "20260801_110000_cccccc"
OPEN = "20260801_093000_dddddd"
SECRET = "The token is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ, keep it."


def found(home: HermesHome, *rules: str) -> list[Finding]:
    home.stop()
    outcome = audit(home.path, rules=rules, now=home.now)
    assert outcome.undetermined == ()
    return list(outcome.findings)


def short_chat(home: HermesHome, session_id: str, *, end: bool = True) -> None:
    home.chat(session_id).say(user(f"question of {session_id}"), assistant("answer"))
    if end:
        home.end(session_id)


@pytest.mark.fires("EXP007", only=("0.19.0",))
@pytest.mark.parametrize("release", ["0.19.0", "0.20.1"])
def test_a_subagent_is_taken_for_the_next_part_up_to_0_19(hermes_home: Make, release: str) -> None:
    home = hermes_home(release)
    chat = home.chat(FIRST)
    chat.turns(9)
    helper = chat.delegate("Which flowers bloom in autumn?")
    helper.say(user("Which flowers bloom in autumn?"), assistant("Asters."))
    helper.close()
    rest = chat.rotate()
    chat.say(user("and the fence?"), assistant("Paint it."))
    home.end(rest)
    done = home.export(FIRST, "md", "--lineage", "logical")
    (file,) = [file for file in done.files if file.suffix == ".md"]

    findings = found(home, "EXP007")

    if release == "0.20.1":
        assert findings == []
        return
    (finding,) = findings
    evidence = {fact.label: fact.value for fact in finding.evidence}
    assert (finding.verdict, finding.subject.artifact) == (Verdict.FAULT, str(file))
    assert finding.subject.session == helper.session_id
    assert evidence["delegates among them"] == [helper.session_id]
    assert evidence["sessions of the conversation that it lacks"] == [rest]
    assert b"Paint it." not in file.read_bytes()


@pytest.mark.fires("EXP009")
def test_an_export_with_a_filter_leaves_out_what_never_ended(hermes_home: Make) -> None:
    home = hermes_home("0.22.2")
    short_chat(home, FIRST)
    home.advance(HOUR)
    short_chat(home, OPEN, end=False)
    home.advance(HOUR)
    short_chat(home, SECOND)
    short_chat(home, THIRD)
    home.advance(HOUR)
    folder = home.path / "session-exports"
    bulk = folder / "bulk"
    done = home.hermes("sessions", "export", str(bulk), "--format", "md", "--source", "cli", "--yes")
    assert len([file for file in done.files if file.suffix == ".md"]) == 3, done.said
    others = home.path / "others"
    for fmt in ("jsonl", "html"):
        home.export(None, fmt, "--source", "cli", "--yes", name=f"filtered.{fmt}")
        home.export(None, fmt, name=f"all.{fmt}")
    kept = {name: folder / name for name in ("filtered.jsonl", "filtered.html", "all.jsonl", "all.html")}
    others.mkdir()
    for name, file in kept.items():
        assert file.exists(), name
        file.rename(others / name)

    (finding,) = found(home, "EXP009")

    assert (finding.verdict, finding.subject.session) == (Verdict.RISK, OPEN)
    assert finding.subject.artifact == str(bulk / "manifest.jsonl")
    (bulk / "manifest.jsonl").unlink()
    (finding,) = found(home, "EXP009")
    assert (finding.subject.session, finding.subject.artifact) == (OPEN, str(bulk))
    shutil.rmtree(bulk)
    for name, file in kept.items():
        (others / name).rename(file)
        told = [(each.subject.session, each.subject.artifact) for each in found(home, "EXP009")]
        assert told == ([(OPEN, str(file))] if name.startswith("filtered") else []), name
        file.unlink()


@pytest.mark.fires("ORP003")
@pytest.mark.fires("EXP008")
def test_a_redacted_export_that_outlives_its_session(hermes_home: Make) -> None:
    home = hermes_home("0.19.0")
    home.chat(FIRST).say(user(SECRET), assistant("I will."))
    home.title(FIRST, "Secret")
    home.end(FIRST)
    done = home.export(FIRST, "md", "--redact", "--yes", "--delete-after-verified")
    assert home.session(FIRST) is None, done.said

    by_rule = {finding.rule: finding for finding in found(home, "EXP", "ORP")}

    assert by_rule.keys() == {"EXP008", "ORP003"}
    assert by_rule["EXP008"].verdict is Verdict.UNDECIDABLE
    assert by_rule["ORP003"].verdict is Verdict.LEFTOVER


def test_exports_that_were_renamed_moved_or_deleted(hermes_home: Make) -> None:
    home = hermes_home("0.19.0")
    files: dict[str, Path] = {}
    for session_id in (FIRST, SECOND, THIRD):
        short_chat(home, session_id)
        done = home.delete_after_verified(session_id)
        (files[session_id],) = [file for file in done.files if file.suffix == ".md"]
        assert home.session(session_id) is None, done.said
    files[FIRST].rename(files[FIRST].with_name("renamed.md"))
    (home.path / "sessions" / "kept").mkdir(parents=True)
    shutil.move(files[SECOND], home.path / "sessions" / "kept")
    files[THIRD].unlink()

    by_rule = {finding.rule: finding for finding in found(home, "EXP", "ORP")}

    assert by_rule.keys() == {"EXP011", "ORP003"}
    assert by_rule["EXP011"].subject.session == THIRD
    assert by_rule["EXP011"].verdict is Verdict.UNDECIDABLE
    ids = {fact.label: fact.value for fact in by_rule["ORP003"].evidence}["ids"]
    assert ids == [FIRST, SECOND]


@pytest.mark.fires("ORP005")
@pytest.mark.parametrize("release", ["0.19.0", "0.20.1"])
def test_accounting_makes_a_ghost_that_collects_the_tail(hermes_home: Make, release: str) -> None:
    home = hermes_home(release)
    chat = home.chat(FIRST)
    chat.turns(3)
    told = [(message["role"], message["content"], message["timestamp"]) for message in home.messages(FIRST)]
    home.export(FIRST, "jsonl")
    home.advance(HOUR)
    home.delete(FIRST)
    home.store("update_token_counts", FIRST, input_tokens=10, output_tokens=2)
    chat.say(user("Are you still there?"), assistant("I am."), gap=60)
    tail = [(message["role"], message["content"], message["timestamp"]) for message in home.messages(FIRST)]
    assert 0 < len(tail) < len(told)

    (finding,) = found(home, "ORP005")

    assert (finding.verdict, finding.subject.session) == (Verdict.FAULT, FIRST)
    with open_for_audit(home.state_db) as store:
        left = salvage(store, take(find_home(home.path)), FIRST)
    assert [(each.record.role, each.record.content, each.at) for each in left.messages] == told + tail
    assert {each.fidelity for each in left.messages} == {Fidelity.EXACT}
    assert (left.conflicts, left.gaps) == ((), ())


@pytest.mark.parametrize("release", ["0.19.0", "0.22.2"])
def test_all_exports_of_a_compacted_session_together_are_its_display(hermes_home: Make, release: str) -> None:
    """Before and after the compaction, in every format; what the newest release shows comes back."""
    home = hermes_home(release, zone="America/New_York")
    chat = home.chat(FIRST)
    chat.turns(9)
    chat.tool_turn("How far are we?", "wc -l plan.md", "12 plan.md", "Twelve lines.")
    home.title(FIRST, "Plan")
    for fmt in ("jsonl", "md", "html", "prompts-md"):
        home.export(FIRST, fmt, name=f"before.{fmt}")
    before = [(each["role"], each["content"], each["timestamp"]) for each in home.messages(FIRST)]
    chat.compact()
    chat.say(user("And the end?"), assistant("The end."))
    home.end(FIRST)
    after = [(each["role"], each["content"], each["timestamp"]) for each in home.messages(FIRST)]
    for fmt in ("md", "html", "prompts-jsonl"):
        home.export(FIRST, fmt, "--force" if fmt == "md" else "--yes", name=f"after.{fmt}")
    home.delete(FIRST)
    home.stop()

    with open_for_audit(home.state_db) as store:
        left = salvage(store, take(find_home(home.path)), FIRST)

    got = [(each.record.role, str(each.record.content).strip()) for each in left.messages]
    wanted = {(role, str(content or "").strip()) for role, content, _ in (*before, *after)}
    assert {(role, "" if text == "None" else text) for role, text in got} == wanted
    assert [text for _, text in got][-2:] == ["And the end?", "The end."]
    assert left.count(Fidelity.EXACT) == len(before)
    assert left.gaps == ()
