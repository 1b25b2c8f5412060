"""What a parser says of a query before the engine sees it: errors in words, with the table or function that
is meant."""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from statemend.errors import UsageError
from statemend.playbook.tables import SCAN_TABLES
from statemend.store.catalogue import CATALOGUE
from statemend.store.question import TAKING_APART

if TYPE_CHECKING:
    from sqlglot import exp

#: Tables that a check sees, by the names that it writes.
VISIBLE: Final = frozenset((*CATALOGUE, *SCAN_TABLES))
#: The parser warns on standard error of what it does not know, where nobody listens.
logging.getLogger("sqlglot").addHandler(logging.NullHandler())

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_DEEPEST = 50
_LONGEST_NAME = 60


def inspect(sql: str) -> None:
    """Raise ``UsageError`` unless ``sql`` is one SELECT over tables that a check may see."""
    tree = _parsed(sql)
    defined = {cte.alias.lower() for cte in tree.find_all(_exp().CTE)}
    if taken := sorted(defined & VISIBLE):
        raise UsageError(f"WITH {taken[0]}: that is the name of a table; choose another")
    for table in tree.find_all(_exp().Table):
        _check_table(table, defined)
    for call, searched in _searches(tree):
        if not isinstance(searched, _exp().Literal | _exp().Placeholder | _exp().Parameter):
            raise UsageError(f"{call}() takes what it looks for as a literal or an input, not computed")


def _exp() -> Any:
    """The parser is slow to import, so it is imported when a query is there."""
    from sqlglot import exp

    return exp


def _parsed(sql: str) -> exp.Expr:
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError
    from sqlglot.tokenizer_core import Token, TokenType

    if "\0" in sql or sql.encode("utf-8", "ignore").decode() != sql:
        raise UsageError("a character that no SQL has (NUL, or half of one); remove it")
    try:
        tokens: list[Token] = sqlglot.tokenize(sql, dialect="sqlite")
        while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
            tokens.pop()
        if not tokens or tokens[0].token_type not in (TokenType.SELECT, TokenType.WITH):
            raise UsageError("not a SELECT; a check asks, and changes nothing")
        if any(token.token_type is TokenType.SEMICOLON for token in tokens):
            raise UsageError("more than one statement; a check asks one question")
        if _depth([token.token_type for token in tokens], TokenType.L_PAREN, TokenType.R_PAREN) > _DEEPEST:
            raise UsageError(f"nested more than {_DEEPEST} deep; make it simpler")
        tree = sqlglot.parse_one(_anonymous(sql, tokens), dialect="sqlite")
    except RecursionError as error:
        raise UsageError("nested too deep; make it simpler") from error
    except SqlglotError as error:
        raise UsageError(f"not SQL that can be understood{_where(error)}") from error
    if not isinstance(tree, exp.Select | exp.SetOperation):
        raise UsageError("not a SELECT; a check asks, and changes nothing")
    return tree


def _anonymous(sql: str, tokens: Sequence[Any]) -> str:
    """The statement with ``?`` for each ``:name``: one like ``:on`` the parser would take for a word."""
    for colon, name in reversed([*pairwise(tokens)]):
        if colon.text == ":" and name.start == colon.end + 1 and _NAME.fullmatch(name.text):
            sql = f"{sql[: colon.start]}?{sql[name.end + 1 :]}"
    return sql


def _depth(kinds: list[Any], opening: Any, closing: Any) -> int:
    depth = deepest = 0
    for kind in kinds:
        depth += (kind is opening) - (kind is closing)
        deepest = max(deepest, depth)
    return deepest


def _where(error: Exception) -> str:
    for one in getattr(error, "errors", None) or ():
        if one.get("line"):
            return f", in its line {one['line']} near {str(one.get('highlight'))[:_LONGEST_NAME]!r}"
    return ""


def _check_table(table: exp.Table, defined: set[str]) -> None:
    exp = _exp()
    if not isinstance(table.this, exp.Identifier):
        function = table.this.name or table.this.sql(dialect="sqlite").partition("(")[0]
        if function.lower() not in TAKING_APART:
            raise UsageError(f"{function[:_LONGEST_NAME]}() gives no table that a check may read")
        return
    if table.db:
        raise UsageError(f"{table.db[:_LONGEST_NAME]}.{table.name[:_LONGEST_NAME]}: name the table alone")
    name = table.name.lower()
    if name not in VISIBLE and name not in defined:
        near = difflib.get_close_matches(name, VISIBLE, 1)
        hint = f"did you mean {near[0]}?" if near else "see the tables of a check in the playbook reference"
        raise UsageError(f"no table {table.name[:_LONGEST_NAME]!r}; {hint}")


def _searches(tree: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    """What functions look for whose time is the product of two lengths."""
    exp = _exp()
    for node in tree.find_all(exp.StrPosition, exp.Trim, exp.Anonymous):
        if isinstance(node, exp.StrPosition):
            yield "instr", node.args["substr"]
        elif isinstance(node, exp.Trim) and node.expression is not None:
            yield "trim", node.expression
        elif isinstance(node, exp.Anonymous) and node.name.lower() in ("instr", "trim", "ltrim", "rtrim"):
            yield from ((node.name.lower(), argument) for argument in node.expressions[1:])
