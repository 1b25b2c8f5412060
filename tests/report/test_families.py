"""The families of a report tell their candidates, each once, in both forms that people read."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from markdown_it import MarkdownIt
from selectolax.lexbor import LexborHTMLParser
from tests.audit.builder import NOW, START, HomeBuilder

from statemend.report import families, html, json, jsonlines, markdown
from statemend.report.content import LONGEST
from statemend.report.model import Report
from statemend.report.produce import produce

SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."
END = START + 100


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Of a home with two forks: one of three sessions, whose title is an attack, and one of two."""
    home = HomeBuilder(Path(tmp_path_factory.mktemp("forks")) / "home", "0.22.2")
    for parent, number in (("old", 3), ("other", 2)):
        home.chat(parent, 6, ended_at=END, end_reason="compression")
        for each in range(number):
            child = home.session(
                f"{parent}-{each}",
                parent_session_id=parent,
                started_at=END + each,
                title=f"<img src=x onerror=alert({each})> {parent}",
            )
            home.message(child, "user", SUMMARY, timestamp=END + each)
    return produce(home.root, now=NOW)


def test_each_family_has_its_own_candidates_once(report: Report) -> None:
    known = families.Candidates(report)
    told = [[candidate.session for candidate in known.of_family(family)] for family in report.lineage]
    assert told == [["old-0", "old-1", "old-2"], ["other-0", "other-1"]]


def test_both_forms_show_what_is_known_of_each(report: Report) -> None:
    page, text = html.render(report), markdown.render(report)
    assert "<summary>3 candidates, and what is known of each</summary>" in page
    assert "- Candidate `old-2`" in text
    for shown in (page, text):
        assert "stand among the last of old" in shown
        assert "deleting it takes no other session" in shown
    assert "<img" not in page
    assert "  - title: &lt;img" in text


def test_a_family_without_candidates_tells_of_none(report: Report) -> None:
    (family, *_) = report.lineage
    bare = type(family)(id="x", start="x", nodes=(), edges=())
    assert families.Candidates(report).of_family(bare) == ()


SCRIPT = "<script>alert(1)</script></pre>\n```\n# Not a heading @someone \x1b[31mred\u202e"


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> HomeBuilder:
    """A fork whose candidates begin with an attack, with ten million letters, and with a cell that is no
    text; beside it a dead end that a session without a parent fits."""
    home = HomeBuilder(Path(tmp_path_factory.mktemp("attacked")) / "home", "0.22.2")
    home.chat("old", 6, ended_at=END, end_reason="compression")
    for number, content in enumerate((SCRIPT, "y" * 10_000_000, b"\0\xff\xfe")):
        child = home.session(f"c{number}", parent_session_id="old", started_at=END + number)
        home.message(child, "user", content, timestamp=END + number)
        home.message(child, "assistant", f"said later in {child}", timestamp=END + number + 1)
    home.chat("dead", 6, ended_at=END, end_reason="compression")
    home.session("cut-off", started_at=END + 1)
    home.message("cut-off", "user", f"{SUMMARY} Of dead.", timestamp=END + 1)
    return home


@pytest.fixture(scope="module")
def asked(attacked: HomeBuilder) -> Report:
    return produce(attacked.root, now=NOW, with_content=True)


@pytest.fixture(scope="module")
def unasked(attacked: HomeBuilder) -> Report:
    return produce(attacked.root, now=NOW)


def test_the_first_message_of_each_candidate_is_in_the_report_that_was_asked_for_texts(
    attacked: HomeBuilder, asked: Report
) -> None:
    begun = {said.session: said for said in asked.contents or () if said.first}
    rows = dict(attacked.sql("SELECT session_id, MIN(id) FROM messages GROUP BY session_id"))
    assert {session: said.message_id for session, said in begun.items()} == {
        session: rows[session] for session in ("c0", "c1", "c2", "cut-off", "dead")
    }
    assert begun["c0"].text == SCRIPT
    assert begun["c1"].text == f"{'y' * LONGEST}… (10,000,000 characters)"
    assert begun["c2"].text == "3 bytes that are no text"
    assert "said later" not in json.render(asked)


def test_a_candidate_is_told_with_its_first_message(asked: Report) -> None:
    (family,) = (one for one in asked.lineage if one.start == "old")
    told = families.Candidates(asked).of_family(family)
    assert [(each.session, each.first and each.first.session) for each in told] == [
        (session, session) for session in ("c0", "c1", "c2")
    ]


def test_first_messages_are_text_in_the_page_and_cut_with_a_word(asked: Report) -> None:
    document = html.render(asked)
    page = LexborHTMLParser(document)

    attack, long, _ = [node.text() for node in page.css("#lineage .said pre")]
    assert attack == SCRIPT.replace("\x1b", "[U+001B]").replace("\u202e", "[U+202E]")
    assert long == f"{'y' * 4000}… (cut here; the store has the rest)"
    assert document.count("<script>") == 1


def test_the_candidates_of_a_finding_are_told_once(asked: Report) -> None:
    page, document = LexborHTMLParser(html.render(asked)), markdown.render(asked)

    told = [node.text() for node in page.css(".candidate > .id")]
    assert sorted(told) == ["c0", "c1", "c2", "cut-off", "dead"]
    assert [document.count(f"- Candidate `{session}`") for session in told] == [1] * 5
    assert "about candidate" not in document
    assert "  - 3 candidates, told with the family under Lineage" in document
    (alone,) = (finding for finding in asked.findings if finding.rule == "LIN001")
    assert "Of dead." in page.css_first(f"#{alone.id} .candidate .said").text()
    (fork,) = (finding for finding in asked.findings if finding.rule == "LIN002")
    (link,) = page.css(f'#{fork.id} a[href^="#family-"]')
    assert "Family of old" in " ".join(page.css_first(link.attributes["href"] or "").text().split())


def test_first_messages_are_code_in_the_document(asked: Report) -> None:
    document = markdown.render(asked)

    found = MarkdownIt("gfm-like", {"linkify": False, "html": True}).parse(document)
    inline = [child for token in found for child in token.children or ()]
    assert any(each.type == "code_inline" and "alert(1)</script></pre>␊" in each.content for each in inline)
    assert [token.content.strip() for token in found if token.type == "html_block"] == [markdown.MARK]
    assert {each.content for each in inline if each.type == "html_inline"} <= {"<!-- -->"}
    heads = [found[at + 1].content for at, token in enumerate(found) if token.type == "heading_open"]
    assert not [head for head in heads if "Not a heading" in head]
    assert ", session `c0`, the first message of a candidate:" in document
    assert "y" * 4001 not in document


def test_no_first_message_is_anywhere_unless_asked_for(unasked: Report) -> None:
    known = families.Candidates(unasked)
    assert all(each.first is None for finding in unasked.findings for each in known.of_finding(finding))
    for form in (html, markdown, json, jsonlines):
        shown = form.render(unasked)  # type: ignore[attr-defined]
        assert "alert(1)" not in shown
        assert "yyyy" not in shown


def test_asking_for_texts_changes_no_finding(asked: Report, unasked: Report) -> None:
    assert asked.findings == unasked.findings


def test_a_report_with_first_messages_is_read_back(asked: Report) -> None:
    assert msgspec.json.decode(json.render(asked), type=Report) == asked
