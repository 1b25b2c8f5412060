"""Says of a mutant what kind of change it is, from the source of its function before and after."""

from __future__ import annotations

import ast
import io
import textwrap
import tokenize
from difflib import SequenceMatcher
from pathlib import Path

_LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT}
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!=", "is", "in", "not"})
_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "+=", "-=", "="})


def functions(module: Path) -> dict[str, str]:
    """The source of each function that mutmut wrote into a module, by its mangled name."""
    text = module.read_text("utf-8")
    lines = text.splitlines(keepends=True)
    return {
        node.name: "".join(lines[node.lineno - 1 : node.end_lineno])
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
    }


def kind(before: str, after: str) -> str:
    """The kind of the one change between two forms of a function."""
    old, new = _tokens(before), _tokens(after)
    gone: list[str] = []
    come: list[str] = []
    for _, start, end, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if old[start:end] != new[first:last]:
            gone += old[start:end]
            come += new[first:last]
    return _kind(frozenset(gone), frozenset(come))


def _kind(gone: frozenset[str], come: frozenset[str]) -> str:
    if any(token.endswith(('"', "'")) for token in come):
        return "a text"
    if {"or", "True"} <= come or {"and", "False"} <= come:
        return "a condition made constant"
    if not come:
        return "an argument left out"
    if "break" in come:
        return "`continue` to `break`"
    if "None" in come:
        return "a value replaced by `None`"
    if come <= {"and", "or"}:
        return "`and` for `or`, or the reverse"
    if (gone | come) & _COMPARISONS:
        return "a comparison"
    if any(token[:1].isdigit() for token in come):
        return "a number"
    if come & _ARITHMETIC:
        return "arithmetic"
    return "`True` for `False`, a method for its opposite"


def _tokens(function: str) -> list[str]:
    """All but the name of the function, which says of which mutant it is."""
    source = io.StringIO(textwrap.dedent(function)).readline
    found = [token.string for token in tokenize.generate_tokens(source) if token.type not in _LAYOUT]
    place = found.index("def") + 1
    return found[:place] + found[place + 1 :]
