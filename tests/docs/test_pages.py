"""The pages are fresh, their links lead somewhere, and the tests that they name are there."""

from __future__ import annotations

import ast
import re
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from docs.build import PAGES as GENERATED
from docs.format_page import MADE_BY, described
from docs.playbook_page import LEAVES, step_types
from tests.docs.blocks import PAGES, ROOT, name

_LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")
_TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
_PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.svg"))


@pytest.mark.parametrize("page", sorted(GENERATED))
def test_a_generated_page_is_fresh(page: str) -> None:
    kept = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert kept == GENERATED[page](), f"docs/{page} is stale: run `make docs`"


def test_every_schema_says_what_makes_it() -> None:
    assert {schema for schema, _, _ in described()} == set(MADE_BY)


def test_every_kind_of_step_says_what_it_leaves() -> None:
    assert set(LEAVES) == {str(step.__struct_config__.tag) for step in step_types()}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    broken = [link for link in _links(page) if not _there(page, link)]
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_test_that_a_page_names_is_there(page: Path) -> None:
    named = _TEST.findall(page.read_text(encoding="utf-8"))
    missing = [
        f"{file}::{test}"
        for file, test in named
        if not (ROOT / file).is_file() or (test and test not in _tests(ROOT / file))
    ]
    assert not missing


def test_each_invariant_names_tests_that_hold_it() -> None:
    text = (ROOT / "docs" / "safety.md").read_text(encoding="utf-8")
    sections = re.split(r"^## (?=\d+\. )", text, flags=re.MULTILINE)[1:]
    assert [int(section.split(".", 1)[0]) for section in sections] == list(range(1, 11))
    for section in sections:
        assert len(_TEST.findall(section.partition("\n## ")[0])) >= 2, section.splitlines()[0]


@pytest.mark.parametrize("picture", _PICTURES, ids=lambda path: path.name)
def test_a_picture_stands_alone(picture: Path) -> None:
    """It says in words what it shows, and asks for nothing else."""
    text = picture.read_text(encoding="utf-8")
    root = ET.fromstring(text)
    names = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert {"title", "desc"} <= names
    assert not names & {"script", "image", "use", "foreignObject", "a"}
    assert "prefers-color-scheme: dark" in text
    assert "url(" not in text
    assert re.findall(r"https?://[^\"]+", text) == ["http://www.w3.org/2000/svg"]
    assert any(f"pictures/{picture.name}" in page.read_text(encoding="utf-8") for page in PAGES)


def test_the_readme_gives_a_reason_for_each_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {re.split(r"[<>=~!\[]", one)[0].lower() for one in project["dependencies"]}
    rows = re.findall(r"^\| (`.+?`) \| (\S.*) \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    named = {word.lower() for names, reason in rows if reason for word in re.findall(r"`([\w-]+)`", names)}
    assert needed <= named


def test_no_page_names_a_place_of_a_machine() -> None:
    for page in PAGES:
        assert not re.search(r"/(home|root|tmp|work|Users)/", page.read_text(encoding="utf-8")), name(page)


def _links(page: Path) -> Iterator[str]:
    text = re.sub(r"^```.*?^```|`[^`\n]+`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    yield from (link for link in _LINK.findall(text) if not link.startswith("https://"))


def _there(page: Path, link: str) -> bool:
    path, _, fragment = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    return target.exists() and (not fragment or fragment in _anchors(target))


@cache
def _anchors(page: Path) -> frozenset[str]:
    """What GitHub makes of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)


@cache
def _tests(file: Path) -> frozenset[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
