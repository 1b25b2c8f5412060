"""What is said of a query before the engine sees it: errors in words, and what would take too long.

The words of the query are looked at one after the other, and no tree is made of them: the time that takes
grows with their number alone, whatever they are. What holds is the engine, which compiles the query next.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from statemend.errors import UsageError
from statemend.playbook.tables import SCAN_TABLES
from statemend.store.catalogue import CATALOGUE

#: Tables that a check sees, by the names that it writes.
VISIBLE: Final = frozenset((*CATALOGUE, *SCAN_TABLES))

_TOKEN = re.compile(
    r"""
    (?P<blank> [ \t\n\f\r]+ | --[^\n]* | /\*.*?(?:\*/|\Z) )
  | (?P<literal> [xX]?'(?:[^']|'')*' | \.?[0-9][\w.]* )
  | (?P<input> [:@$#]\w+ | \?[0-9]* )
  | (?P<quoted> "(?:[^"]|"")*" | `(?:[^`]|``)*` | \[[^\]]*\] )
  | (?P<word> [A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]* )
  | (?P<sign> ->>? | \|\| | << | >> | . )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
#: What may make a number of a text: calculation, and what reads one out of it.
_READING = frozenset(
    word
    for line in (
        "+ - / % & | ~ << >> -> ->> abs avg cast ceil ceiling floor json_each json_extract json_tree",
        "julianday median mod round sign sum total trunc unixepoch",
    )
    for word in line.split()
)
#: After these ``*`` multiplies nothing: it is every column, or every row.
_EVERY = frozenset({"(", ",", ".", "all", "distinct", "select"})
_NO_TABLE = re.compile(r"no such table: (.+)", re.DOTALL)
_TRIMS = ("trim", "ltrim", "rtrim")
_DEEPEST = 50
_LONGEST_NAME = 60
_LONGEST_TRIMMED = 20


class _Token(NamedTuple):
    kind: str
    text: str

    @property
    def name(self) -> str:
        """What a word means: in lower case, without quotes."""
        return (self.text[1:-1] if self.kind == "quoted" else self.text).lower()


def inspect(sql: str) -> None:
    """Raise ``UsageError`` for what cannot be one SELECT over tables that a check may see, or may take
    long."""
    if "\0" in sql or sql.encode("utf-8", "ignore").decode() != sql:
        raise UsageError("a character that no SQL has (NUL, or half of one); remove it")
    tokens = _tokens(sql)
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    if not tokens or tokens[0].name not in ("select", "with"):
        raise UsageError("not a SELECT; a check asks, and changes nothing")
    if any(token.text == ";" for token in tokens):
        raise UsageError("more than one statement; a check asks one question")
    depths = [*accumulate((token.text == "(") - (token.text == ")") for token in tokens)]
    if max(depths) > _DEEPEST:
        raise UsageError(f"nested more than {_DEEPEST} deep; make it simpler")
    if taken := sorted(VISIBLE.intersection(_defined(tokens, depths))):
        raise UsageError(f"WITH {taken[0]}: that is the name of a table; choose another")
    for call, searched in _searches(tokens, depths):
        _check_searched(call, searched)


def reads_numbers(sql: str) -> bool:
    """Whether a number in the answer may be one that stood in a text."""
    return any(
        token.kind != "literal"
        and (token.name in _READING or (token.name == "*" and before.name not in _EVERY))
        for before, token in pairwise(_tokens(sql))
    )


def in_words(error: str) -> str:
    """What the engine says of a query, with the table that is meant where there is none of the name."""
    found = _NO_TABLE.fullmatch(error)
    if found is None:
        return error
    name = found[1]
    if "." in name:
        return f"{name[:_LONGEST_NAME]}: name the table alone"
    near = difflib.get_close_matches(name.lower(), VISIBLE, 1)
    hint = f"did you mean {near[0]}?" if near else "see the tables of a check in the playbook reference"
    return f"no table {name[:_LONGEST_NAME]!r}; {hint}"


def _tokens(sql: str) -> list[_Token]:
    return [_Token(str(one.lastgroup), one[0]) for one in _TOKEN.finditer(sql) if one.lastgroup != "blank"]


def _defined(tokens: Sequence[_Token], depths: Sequence[int]) -> Iterator[str]:
    """The names that the query itself gives to tables: ``name AS (`` and ``name (columns) AS (``."""
    for number in range(1, len(tokens) - 1):
        if tokens[number].name != "as" or tokens[number + 1].name not in ("(", "not", "materialized"):
            continue
        named = number - 1
        if tokens[named].text == ")":
            opened = (one for one in range(named, 0, -1) if depths[one - 1] == depths[named])
            named = next(opened, 1) - 1
        yield tokens[named].name


def _searches(tokens: Sequence[_Token], depths: Sequence[int]) -> Iterator[tuple[str, Sequence[_Token]]]:
    """What functions look for whose time is the product of two lengths."""
    for number, token in enumerate(tokens[:-1]):
        if token.name not in ("instr", *_TRIMS) or tokens[number + 1].text != "(":
            continue
        depth, begun = depths[number + 1], None
        for place in range(number + 2, len(tokens)):
            closed = depths[place] < depth
            if begun is not None and (closed or (depths[place] == depth and tokens[place].text == ",")):
                yield token.name, tokens[begun:place]
            if closed:
                break
            if depths[place] == depth and tokens[place].text == ",":
                begun = place + 1


def _check_searched(call: str, searched: Sequence[_Token]) -> None:
    kind = searched[0].kind if len(searched) == 1 else None
    if call == "instr" and kind not in ("literal", "input"):
        raise UsageError("instr() takes what it looks for as a literal or an input, not computed")
    if call in _TRIMS and (kind != "literal" or len(searched[0].text) > _LONGEST_TRIMMED):
        raise UsageError(f"{call}() takes what it removes as a literal of a few characters")
