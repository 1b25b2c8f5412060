from __future__ import annotations

import html
import re

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from tests.report import sample

from statemend.report import markdown, text

GITHUB = MarkdownIt("gfm-like", {"linkify": False, "html": True})
NASTY = st.text(alphabet=st.sampled_from("`|@#<>&[]()*_~$!\\-+=:/.w gh1aA\n\u202e"), max_size=40)


def tokens(document: str) -> list[Token]:
    flat = []
    for token in GITHUB.parse(document):
        flat.append(token)
        flat.extend(token.children or ())
    return flat


def shown(document: str) -> str:
    """What a reader sees of running text."""
    return "".join(token.content for token in tokens(document) if token.type in ("text", "code_inline"))


@given(NASTY)
@example("@someone")
@example("see #12 and GH-3")
@example("www.example.org https://example.org a@b.example")
@example("<script>alert(1)</script> &lt; <!-- x -->")
@example("`a` ``b`` | c")
def test_escaped_text_reads_as_it_is_and_obeys_nothing(raw: str) -> None:
    document = f"x {markdown.escape(raw)} x"
    kinds = {token.type for token in tokens(document)}
    assert kinds <= {"paragraph_open", "inline", "paragraph_close", "text", "text_special", "html_inline"}
    comments = [token.content for token in tokens(document) if token.type == "html_inline"]
    assert set(comments) <= {"<!-- -->"}
    read = "".join(token.content for token in tokens(document) if token.type in ("text", "text_special"))
    assert read == f"x {text.clip(raw, 300)} x"
    rendered = html.unescape(GITHUB.render(document))
    assert not re.search(r"@\w|#\d|https?://|\bwww\.|\bgh-\d", rendered, flags=re.IGNORECASE)


@given(NASTY)
@example("`")
@example(" ` ")
@example("``` | ```")
def test_a_code_span_holds_what_it_is_given(raw: str) -> None:
    spans = [token for token in tokens(f"x {markdown.code(raw)} x") if token.type == "code_inline"]
    assert [span.content for span in spans] == [text.clip(raw, 200) or " "]


@given(NASTY)
def test_a_cell_stays_one_cell(raw: str) -> None:
    document = f"| a | b |\n| --- | --- |\n| {markdown.code(raw, cell=True)} | {markdown.escape(raw)} |\n"
    kinds = [token.type for token in tokens(document)]
    assert kinds.count("td_open") == 2
    assert kinds.count("tr_open") == 2


def test_a_hostile_report_shows_no_markup_of_others() -> None:
    found = tokens(markdown.render(sample.hostile_report()))
    assert {token.content for token in found if token.type == "html_inline"} <= {"<!-- -->"}
    assert [token.content.strip() for token in found if token.type == "html_block"] == [markdown.MARK]
    assert not [token for token in found if token.type in ("link_open", "image")]


def test_the_document_keeps_the_order_of_the_page() -> None:
    heads = re.findall(r"^## (.*)$", markdown.render(sample.report()), flags=re.MULTILINE)
    assert heads == [
        "What was looked at, and what was not",
        "Counts",
        "Findings",
        "Timeline",
        "Lineage",
        "Sessions",
        "Files beside the store",
        "Export review",
        "Rules",
    ]


def test_tables_are_tables() -> None:
    found = [token.type for token in tokens(markdown.render(sample.report()))]
    assert found.count("table_open") == 6


def test_the_document_is_the_same_for_the_same_report_and_ends_in_one_newline() -> None:
    document = markdown.render(sample.report())
    assert document == markdown.render(sample.report())
    assert document.endswith("\n")
    assert not document.endswith("\n\n")
    assert "\n\n\n" not in document
