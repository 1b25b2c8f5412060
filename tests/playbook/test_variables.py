"""What a template may be, and what it becomes."""

from __future__ import annotations

from typing import Any

import pytest

from statemend.playbook.variables import TemplateError, names, render

VALUES: dict[str, Any] = {
    "text": "Text",
    "three": 3,
    "flag": True,
    "paths": ["/a", "/b"],
    "nothing": None,
    "run": {"name": "weekly", "folder": "/run", "started": "2026-09-24T03:12:44Z"},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain { text }", "plain { text }"),
        ("{{ text }}", "Text"),
        ("{{ three }}", 3),
        ("{{flag}}", True),
        (" {{ paths }}\n", ["/a", "/b"]),
        ("{{ nothing }}", None),
        ("{{ 'a constant' }}", "a constant"),
        ("{{ run.name }}", "weekly"),
        ("{{ text | lower }}", "text"),
        ("{{ paths | join(':') }}", "/a:/b"),
        ("<{{ text }}, {{ three }}, {{ flag }}, {{ paths }}, {{ nothing }}>", "<Text, 3, true, /a, /b, >"),
        ("{{ text }}{{ text }}", "TextText"),
        ("into {{ run.folder }}/x\n", "into /run/x\n"),
        ("{{ '}}' }}", "}}"),
    ],
    ids=str,
)
def test_a_text_is_filled_and_a_template_alone_gives_the_value_itself(text: str, value: object) -> None:
    filled = render(text, VALUES)

    assert filled == value
    assert type(filled) is type(value)


def test_a_template_names_what_it_uses() -> None:
    assert names("{{ a }} and {{ b | upper }} of {{ run.name }}") == {"a", "b", "run"}
    assert names("nothing {here}") == frozenset()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ missing }}", "no input 'missing'"),
        ("and {{ missing }}", "no input 'missing'"),
        ("{{ run.secret }}", "no run.secret; there are run.folder, run.name, run.started"),
        ("{{ run }}", "`run` alone is no value"),
        ("{{ self }}", "no input 'self'"),
        ("{{ three | join }}", "it cannot be filled"),
        ("{{ text | reverse }}", "no filter 'reverse'; there are join, lower, trim, upper"),
        ("{{ paths | join(text) }}", "the filter join takes constants alone"),
        ("{{ text", "unexpected end of template"),
    ],
    ids=str,
)
def test_what_cannot_be_filled_is_told(text: str, said: str) -> None:
    with pytest.raises(TemplateError) as raised:
        render(text, VALUES)

    assert said in str(raised.value)


def test_a_fault_is_found_in_its_line() -> None:
    with pytest.raises(TemplateError) as raised:
        names("one\ntwo\n{{ 1 + 1 }}\n")

    assert raised.value.line == 3
