"""What a ``check`` asks the store: one SELECT, guarded before it runs and while it does.

Its words say early what is wrong. What holds is the engine: it compiles the question under an authorizer that
knows what may be read, and says of every column of the answer where it comes from.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from contextlib import closing
from functools import lru_cache
from typing import Any, Final

import msgspec

from statemend.errors import Undetermined, UsageError
from statemend.playbook.model import Check, Expect
from statemend.playbook.select import in_words, inspect, reads_numbers
from statemend.playbook.tables import Tables
from statemend.report import text
from statemend.store.connection import Store, compile_question
from statemend.store.question import Origin, Shape

__all__ = ["Answer", "Tables", "ask", "guard", "judge", "shape"]

Row = tuple[Any, ...]

#: Rows of an answer that are kept, and characters of a cell. The rest is only counted.
MOST_SHOWN: Final = 1000
LONGEST_SHOWN: Final = 200
_SECONDS_TO_COMPILE: Final = 5.0

#: Columns that hold what people or models said, or may quote it.
_CONTENT: Final = frozenset(
    {
        ("async_delegations", "event_json"),
        ("async_delegations", "result_json"),
        ("async_delegations", "task_json"),
        ("delivery_obligations", "content"),
        ("delivery_obligations", "last_error"),
        ("messages", "api_content"),
        ("messages", "codex_message_items"),
        ("messages", "codex_reasoning_items"),
        ("messages", "content"),
        ("messages", "display_metadata"),
        ("messages", "reasoning"),
        ("messages", "reasoning_content"),
        ("messages", "reasoning_details"),
        ("messages", "tool_calls"),
        ("sessions", "compression_failure_error"),
        ("sessions", "handoff_error"),
        ("sessions", "last_activity_description"),
        ("sessions", "system_prompt"),
        ("sessions", "tool_names"),
        ("state_meta", "value"),
        ("system_prompts", "prompt"),
    }
)
#: Of a statement with one of these, SQLite names the origin of a column by its first part alone.
_SEVERAL_ORIGINS = re.compile(r"\b(UNION|INTERSECT|EXCEPT|VALUES|USING|NATURAL)\b", re.IGNORECASE)


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a query gave. ``count`` rows were read, and ``truncated`` says that there were more. ``rows`` are
    the first of them as they may be shown: text that may come from a message, and bytes, by their length
    alone, and of a number that may have stood in such text only that it is one. ``value`` is the first cell
    as it is, to be compared and never shown."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    count: int
    truncated: bool = False
    value: Any = None


def guard(sql: str) -> None:
    """Raise ``UsageError`` unless ``sql`` is one SELECT over tables and columns that a check may see."""
    shape(sql)


@lru_cache(maxsize=256)
def shape(sql: str) -> Shape:
    """What the query reads, gives and wants bound, found without a store. Raises as ``guard`` does."""
    inspect(sql)
    try:
        return compile_question(sql, relations=Tables().relations(), seconds=_SECONDS_TO_COMPILE)
    except UsageError as error:
        raise UsageError(in_words(str(error))) from error
    except Undetermined as error:
        raise UsageError("it takes too long to understand; make it simpler") from error


def ask(store: Store, step: Check, inputs: Mapping[str, object], tables: Tables) -> Answer:
    """Ask the store the question of ``step``, with ``inputs`` bound by name.

    Raises ``UsageError`` for one that may not be asked, ``Undetermined`` when it takes too long,
    ``StoreUnreadable`` where the store cannot be read.
    """
    guard(step.sql)
    kept: list[Row] = []
    count, value, truncated = 0, None, False
    with store.asking(step.sql, relations=tables.relations(), seconds=step.seconds) as found:
        bindings = {name: _bound(name, inputs) for name in found.bindings}
        shown = [_shown(step.sql, found, origin) for origin in found.columns]
        made = reads_numbers(step.sql)
        with closing(store.rows(step.sql, bindings)) as rows:
            for row in rows:
                if count == step.rows:
                    truncated = True
                    break
                if not count:
                    value = row[0]
                if count < MOST_SHOWN:
                    kept.append(tuple(_cell(*cell, made) for cell in zip(row, shown, strict=True)))
                count += 1
    names = tuple(text.clip(origin.name, LONGEST_SHOWN) for origin in found.columns)
    return Answer(columns=names, rows=tuple(kept), count=count, truncated=truncated, value=value)


def judge(step: Check, answer: Answer) -> tuple[bool, str]:
    """Whether the answer is as expected, and a sentence that says so. The playbook's own message leads where
    it is not."""
    if step.expect is Expect.VALUE:
        passed = answer.count == 1 and not answer.truncated and _equal(answer.value, step.value)
        spelled = isinstance(answer.value, str) and not isinstance(step.value, str)
        got = f"{_first(answer)}{' (text)' if spelled else ''}"
        said = f"expected {_quoted(step.value)}, got {got}"
        return passed, f"the value is {got}" if passed else f"{step.message} ({said})"
    number = f"{'more than ' if answer.truncated else ''}{text.count(answer.count, 'row')}"
    if step.expect is Expect.EMPTY:
        return answer.count == 0, f"{step.message} ({number})" if answer.count else "no row, as expected"
    return answer.count > 0, f"{number}, as expected" if answer.count else f"{step.message} (no row)"


def _first(answer: Answer) -> str:
    if not answer.count:
        return "no row"
    if answer.count > 1 or answer.truncated:
        return "more than one row"
    return _quoted(answer.rows[0][0])


def _quoted(value: Any) -> str:
    return "nothing" if value is None else str(value)


def _equal(found: Any, wanted: int | float | str | None) -> bool:
    """Whether a cell is the wanted value. A number is never equal to text that spells it."""
    if isinstance(found, int | float) and isinstance(wanted, int | float):
        return found == wanted
    return type(found) is type(wanted) and bool(found == wanted)


def _bound(name: str, inputs: Mapping[str, object]) -> Any:
    """An input as SQLite takes it: several paths as a JSON array, for ``json_each``."""
    if name not in inputs:
        raise UsageError(f":{name} is no input; add it under `inputs`")
    value = inputs[name]
    if isinstance(value, list | tuple):
        return json.dumps([str(item) for item in value])
    return int(value) if isinstance(value, bool) else value


def _shown(sql: str, found: Shape, origin: Origin) -> bool:
    """Whether text in that column may be shown: no message text was read at all, or it is, unchanged, a
    column that holds none."""
    if not found.reads & _CONTENT:
        return True
    if origin.table is None or origin.column is None or _SEVERAL_ORIGINS.search(sql):
        return False
    column = origin.table.lower(), origin.column.lower()
    return column in found.reads and column not in _CONTENT


def _cell(value: Any, shown: bool, made: bool) -> Any:
    """A cell of the answer. ``made`` says that a number may have been made of a text."""
    if isinstance(value, str):
        return text.clip(value, LONGEST_SHOWN) if shown else f"text of {text.count(len(value), 'character')}"
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if made and not shown and isinstance(value, int | float):
        return "a number"
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
