"""Writing JSONL exports byte for byte as Hermes does."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from statemend.formats.clock import trusted_epoch

#: Members that 0.22.2 derives from ``model_config``; they stand last.
_DERIVED = frozenset({"_branched_from", "_reset_from"})
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def render(
    session: Mapping[str, Any],
    messages: Iterable[Mapping[str, Any]],
    *,
    last_active: float | None = None,
    timings: bool = False,
) -> Iterator[str]:
    """The line of one session, in pieces, newline included.

    ``session`` and ``messages`` are the export dicts of ``store.history``; the members keep their order. An
    export of all sessions also writes ``last_active``, the time of the last message (epoch seconds); it
    stands behind the columns. ``timings`` adds the summary of message times that 0.22.2 puts last.

    Two things Hermes cannot write at all are written so that nothing is lost: a lone surrogate as its
    ``\\udXXX`` escape, a blob as ``{"blob": "<hex>"}``.
    """
    members = _with_last_active(session, last_active)
    yield _dump(members)[:-1] + (", " if members else "") + '"messages": ['
    summary = _Timings() if timings else None
    separator = ""
    for message in messages:
        yield separator + _dump(message)
        separator = ", "
        if summary is not None:
            summary.add(message)
    yield "]"
    if summary is not None:
        yield ', "timings": ' + _dump(summary.as_dict())
    yield "}\n"


def _with_last_active(session: Mapping[str, Any], last_active: float | None) -> dict[str, Any]:
    """The session with the computed member behind its columns and before the markers derived from them."""
    if last_active is None:
        return dict(session)
    columns = {name: value for name, value in session.items() if name not in _DERIVED}
    derived = {name: value for name, value in session.items() if name in _DERIVED}
    return {**columns, "last_active": last_active, **derived}


def _dump(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=_blob)
    return _LONE_SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def _blob(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"blob": value.hex()}
    raise TypeError(f"{type(value).__name__} has no place in an export")


class _Timings:
    """The text-free summary of message times: counts, ends, and the gap between neighbours."""

    def __init__(self) -> None:
        self._total = 0
        self._calls = 0
        self._roles: Counter[str] = Counter()
        self._intervals: list[dict[str, Any]] = []
        self._timed = 0
        self._first: float | None = None
        self._last: float | None = None
        self._previous: Mapping[str, Any] = {}

    def add(self, message: Mapping[str, Any]) -> None:
        self._total += 1
        self._roles[str(message.get("role") or "unknown")] += 1
        calls = message.get("tool_calls")
        if calls:
            self._calls += len(calls) if isinstance(calls, list) else 1
        at = trusted_epoch(message.get("timestamp"))
        if at is None:
            return
        if self._last is None:
            self._first = at
        else:
            before = self._previous
            self._intervals.append(
                {
                    "from_message_id": before.get("id"),
                    "to_message_id": message.get("id"),
                    "from_role": before.get("role"),
                    "to_role": message.get("role"),
                    "gap_ms": _milliseconds(self._last, at),
                }
            )
        self._timed += 1
        self._last, self._previous = at, message

    def as_dict(self) -> dict[str, Any]:
        first, last = self._first, self._last
        timed = first is not None and last is not None
        return {
            "source": "message_timestamps",
            "available": timed,
            "complete": False,
            "unavailable_reason": None if timed else "no_timestamped_messages",
            "message_timestamps": {"available": self._timed, "missing": self._total - self._timed},
            "first_message_at": None if first is None else _iso(first),
            "last_message_at": None if last is None else _iso(last),
            "wall_clock_ms": None if first is None or last is None else _milliseconds(first, last),
            "largest_gap_ms": max((one["gap_ms"] for one in self._intervals), default=None),
            "role_counts": dict(self._roles),
            "tool_result_count": self._roles.get("tool", 0),
            "tool_calls_emitted": self._calls,
            "intervals": self._intervals,
        }


def _milliseconds(earlier: float, later: float) -> int:
    return max(0, round((later - earlier) * 1000))


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, tz=UTC).isoformat()
