"""Tool calls and their results, paired again where a format dropped what pairs them.

A model takes a result for the answer of the call whose id it bears. Some formats keep the ids of calls and
not those of results, some keep none. The results of a call stand right behind the message that made it, so
where no id contradicts it, the place tells whose a result is. An id that no format kept is made up, and said
to be.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from statemend.evidence.rows import Fidelity
from statemend.repair.salvaged_rows import Filled, SalvagedRow
from statemend.store.content import parse_json
from statemend.store.message import RowState

_PLACE = "its place: the result stands behind the call, and nothing else does that could answer it"
_CALL = "the call that it answers"
_MADE_UP = "made up: no file keeps the id of the call"


class Calls(NamedTuple):
    """Messages, by their number in the union: those with a call that no result answers, and results of which
    no call is known."""

    unanswered: tuple[int, ...] = ()
    unasked: tuple[int, ...] = ()


class _Call(NamedTuple):
    """One call: its place among those of its message, its ids, all that it may be named by, and the tool."""

    place: int
    ids: tuple[str, ...]
    names: frozenset[str]
    tool: str | None


def paired(
    session_id: str, rows: Sequence[SalvagedRow], stored: Iterable[tuple[Any, ...]]
) -> tuple[tuple[SalvagedRow, ...], Calls]:
    """The rows, their results bearing the ids of their calls, and what stays without a partner. ``stored``
    are role, calls and id of the call of the rows that the session has besides."""
    found = list(rows)
    for is_live in (False, True):
        places = [place for place, row in enumerate(found) if (row.state is RowState.LIVE) is is_live]
        for block in _blocks(found, places):
            _pair(session_id, found, block)
    return tuple(_with_tools(found)), _partnerless(found, list(stored))


def _blocks(rows: Sequence[SalvagedRow], places: Sequence[int]) -> Iterator[list[int]]:
    """Each row with calls, and the results behind it."""
    block: list[int] = []
    for place in places:
        role, values = rows[place].values.get("role"), rows[place].values
        if role == "tool" and block:
            block.append(place)
            continue
        if block:
            yield block
        block = [place] if role == "assistant" and values.get("tool_calls") else []
    if block:
        yield block


def _pair(session_id: str, rows: list[SalvagedRow], block: Sequence[int]) -> None:
    """Give the results of one block the ids of the calls that they answer."""
    asking, *results = block
    calls = list(_calls_of(rows[asking]))
    known = {place: str(rows[place].values["tool_call_id"]) for place in results if _is_named(rows[place])}
    asked = frozenset[str]().union(*(call.names for call in calls))
    open_calls = [call for call in calls if not call.names & set(known.values())]
    open_results = [place for place in results if known.get(place) not in asked and _drops(rows[place])]
    for place, call in _matched(rows, open_calls, open_results):
        call_id = known.get(place) or next(iter(call.ids), None)
        how = _PLACE if call_id else _MADE_UP
        call_id = call_id or _made_up(session_id, rows[asking].message, call.place)
        if not call.ids and _drops(rows[asking]):
            rows[asking] = _with_id(rows[asking], call.place, call_id, how)
        elif not call.ids or place in known:
            continue
        if place not in known:
            rows[place] = rows[place].with_column(Filled("tool_call_id", call_id, how))


def _drops(row: SalvagedRow) -> bool:
    """Whether the source of a row may have dropped some of it."""
    return row.fidelity is not Fidelity.EXACT


def _matched(
    rows: Sequence[SalvagedRow], calls: Sequence[_Call], results: Sequence[int]
) -> Iterator[tuple[int, _Call]]:
    """Results and the calls that they must be of: in order where there is one for each, else by the name of a
    tool that only one of them has."""
    names = [rows[place].values.get("tool_name") for place in results]
    in_order = len(calls) == len(results) and all(
        name is None or call.tool is None or name == call.tool
        for name, call in zip(names, calls, strict=True)
    )
    if in_order:
        yield from zip(results, calls, strict=True)
        return
    for place, name in zip(results, names, strict=True):
        able = [call for call in calls if call.tool == name]
        if name is not None and len(able) == 1 and names.count(name) == 1:
            yield place, able[0]


def _with_tools(rows: Sequence[SalvagedRow]) -> Iterator[SalvagedRow]:
    """The rows, their results bearing the name of the tool that their call names."""
    tools = {name: call.tool for row in rows for call in _calls_of(row) for name in call.names}
    for row in rows:
        tool = tools.get(str(row.values.get("tool_call_id")))
        nameless = row.values.get("role") == "tool" and row.values.get("tool_name") is None
        yield row.with_column(Filled("tool_name", tool, _CALL)) if nameless and tool and _drops(row) else row


def _partnerless(rows: Sequence[SalvagedRow], stored: Sequence[tuple[Any, ...]]) -> Calls:
    """What has no partner, neither among the rows nor in the store."""
    asked: set[str] = set()
    answered: set[str] = set()
    for role, calls, call_id in stored:
        asked |= {name for call in _list(calls) for name in _names(_ids(call))}
        if role == "tool" and isinstance(call_id, str):
            answered.add(call_id)
    for row in rows:
        asked |= {name for call in _calls_of(row) for name in call.names}
        if _is_named(row):
            answered.add(str(row.values["tool_call_id"]))
    unanswered = {row.message for row in rows for call in _calls_of(row) if not call.names & answered}
    unasked = {
        row.message
        for row in rows
        if row.values.get("role") == "tool" and not (_is_named(row) and row.values["tool_call_id"] in asked)
    }
    return Calls(tuple(sorted(unanswered)), tuple(sorted(unasked)))


def _is_named(row: SalvagedRow) -> bool:
    return isinstance(row.values.get("tool_call_id"), str) and row.values["tool_call_id"] != ""


def _calls_of(row: SalvagedRow) -> Iterator[_Call]:
    if row.values.get("role") != "assistant":
        return
    for place, call in enumerate(_list(row.values.get("tool_calls"))):
        if not isinstance(call, dict):
            continue
        function = call.get("function")
        named = function if isinstance(function, dict) else call
        tool, ids = named.get("name"), _ids(call)
        yield _Call(place, ids, _names(ids), tool if isinstance(tool, str) else None)


def _list(stored: Any) -> list[Any]:
    calls = parse_json(stored, None) if isinstance(stored, str) else stored
    return calls if isinstance(calls, list) else []


def _ids(call: Any) -> tuple[str, ...]:
    named = call if isinstance(call, dict) else {}
    ids = (named.get(key) for key in ("id", "call_id", "tool_call_id"))
    return tuple(each for each in ids if isinstance(each, str) and each)


def _names(ids: Iterable[str]) -> frozenset[str]:
    """What a call may be named by: each id, with and without the suffix of a bridge."""
    return frozenset(name for each in ids for name in (each, each.partition("|")[0]))


def _made_up(session_id: str, message: int, place: int) -> str:
    """An id that no call of another message has, the same whenever the plan is made."""
    digest = hashlib.sha256(f"{session_id}\0{message}\0{place}".encode("utf-8", "surrogatepass"))
    return f"call_{digest.hexdigest()[:24]}"


def _with_id(row: SalvagedRow, place: int, call_id: str, how: str) -> SalvagedRow:
    """The row of calls with an id on one of them."""
    calls = _list(row.values["tool_calls"])
    calls[place] = {"id": call_id, "type": "function"} | calls[place] | {"id": call_id}
    return row.with_column(Filled("tool_calls", json.dumps(calls), how))
