from __future__ import annotations

import base64
import hashlib
import re

import msgspec
from selectolax.lexbor import LexborHTMLParser
from tests.report import sample

from statemend.report import html, markdown


def page(report: object = None) -> LexborHTMLParser:
    return LexborHTMLParser(html.render(report or sample.report()))  # type: ignore[arg-type]


def test_the_policy_allows_the_two_inline_texts_and_nothing_else() -> None:
    document = html.render(sample.report())
    policy = page().css_first("meta[http-equiv]").attributes["content"] or ""
    assert policy.startswith("default-src 'none'; ")
    for tag in ("style", "script"):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", document, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy


def test_the_page_asks_for_nothing() -> None:
    document = page()
    loading = [
        node.tag
        for node in document.css("*")
        for name in node.attributes
        if name in ("src", "srcset", "action", "data", "poster", "background", "style")
        or name.startswith("on")
        or (name in ("href", "xlink:href") and not (node.attributes[name] or "").startswith("#"))
    ]
    assert loading == []
    assert "@import" not in document.css_first("style").text()
    assert set(re.findall(r"url\(([^)]*)\)", document.css_first("style").text())) == {
        "#p-archived",
        "#p-rewound",
    }


def test_every_link_in_the_page_leads_somewhere() -> None:
    for report in (sample.report(), sample.clean_report(), sample.large_report(), sample.hostile_report()):
        document = page(report)
        ids = [node.attributes["id"] for node in document.css("[id]")]
        assert len(ids) == len(set(ids))
        links = {(node.attributes["href"] or "")[1:] for node in document.css("a[href], use[href]")}
        told = {
            name
            for node in document.css("[aria-labelledby]")
            for name in node.attributes["aria-labelledby"].split()
        }
        assert (links | told) - set(ids) == set()


def test_a_finding_is_found_by_its_id() -> None:
    document = page()
    for finding in sample.FINDINGS:
        shown = document.css_first(f"#{finding.id}")
        assert finding.summary in shown.text()
        assert finding.remedy.text in shown.text()


def test_severity_is_a_word_and_a_shape_and_not_colour_alone() -> None:
    for badge in page().css(".sev"):
        assert badge.text().strip() in ("critical", "high", "medium", "low", "info")
        assert badge.css_first("i") is not None


def test_every_picture_has_a_title_a_description_and_a_table() -> None:
    pictures = page().css("svg")
    assert len(pictures) >= 5
    for picture in pictures:
        assert picture.css_first("title").text().strip()
        assert picture.css_first("desc").text().strip()
    for figure in page().css("figure"):
        following = figure.next
        while following.tag != "details":
            following = following.next
        assert following.css_first("table caption") is not None


def test_tables_name_their_columns_and_rows() -> None:
    for table in page().css("table"):
        assert table.css_first("caption") is not None
        assert all(head.attributes.get("scope") == "col" for head in table.css("thead th"))
        assert all(head.attributes.get("scope") == "row" for head in table.css("tbody th"))


def test_hostile_text_is_text() -> None:
    document = html.render(sample.hostile_report())
    assert document.count("<script>") == 1
    assert "\u202e" not in document
    assert "\x1b" not in document
    assert "&lt;script&gt;" in document
    assert len(document) < 80_000


def test_a_thousand_findings_fit_and_the_rest_is_counted() -> None:
    report = sample.large_report(1000)
    document = html.render(report)
    assert len(document.encode()) <= 300_000
    shown = html.groups(report)
    cards = sum(len(own.cards) for group in shown for own in group.rules)
    lines = sum(len(own.lines) for group in shown for own in group.rules)
    left = sum(own.left for group in shown for own in group.rules)
    assert (cards, lines, cards + lines + left) == (html.MOST_CARDS, html.MOST_LINES, 1000)
    assert [group.severity.value for group in shown] == ["critical", "high", "medium", "low", "info"]


def test_one_busy_rule_does_not_hide_the_others() -> None:
    busy = tuple(sample.finding("EXP001", f"s{number}", "…") for number in range(900))
    rare = sample.finding("ORP001", "t", "the one that matters")
    document = page(sample.report(findings=(*busy, rare)))
    assert "the one that matters" in document.css_first(f"#{rare.id}").text()


def test_the_texts_of_messages_are_shown_only_when_asked_for() -> None:
    assert page().css(".said") == []
    said = page(sample.hostile_report()).css(".said .meta")
    assert all("row 8" in one.text() for one in said), "row 7 belongs to no finding of this report"
    assert len(said) == 2
    finding = sample.finding("EXP001", "s", "…", message_ids=(7,))
    texts = (html.MessageText(sample.STORE, 7, "s", "user", "first line\n  second <b>line</b>"),)
    (said_one,) = page(sample.report(findings=(finding,), contents=texts)).css(".said pre")
    assert said_one.text() == "first line\n  second <b>line</b>"


def test_the_same_report_is_the_same_page() -> None:
    assert html.render(sample.report()) == html.render(sample.report())


def test_an_empty_home_still_makes_a_page() -> None:
    document = page(
        sample.report(
            findings=(), stores=(), artifacts=(), rules=(), sessions=(), timeline=(), lineage=(), checklist=()
        )
    )
    assert document.css_first("h1").text()


def test_rows_that_were_not_counted_are_not_called_none() -> None:
    (store,) = sample.report().stores
    uncounted = msgspec.structs.replace(store, live=None, archived=None, rewound=None, unset=None)
    for shown in (
        html.render(sample.report(stores=(uncounted,))),
        markdown.render(sample.report(stores=(uncounted,))),
    ):
        assert "277 sessions; its rows could not be counted" in shown
        assert "0 live" not in shown


def test_a_report_of_a_home_named_by_a_relative_path_says_where_its_commands_work() -> None:
    relative = sample.report(home="demo-home")
    for shown in (html.render, markdown.render):
        assert "in the folder where it was made" in " ".join(shown(relative).split())
        assert "in the folder where it was made" not in " ".join(shown(sample.report()).split())
