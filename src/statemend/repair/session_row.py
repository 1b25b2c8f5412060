"""Puts a session row together again from what is left of it, each column with its source.

In this order: an export of the session or another store that has it, the gateway's route to it, the shape and
time of its id, the log of its turns, accounts of tokens, its children, and at last its messages. What none of
them tells stays as Hermes would leave it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from statemend.audit.facts import is_time
from statemend.audit.zone import LocalClocks
from statemend.repair.cells import SqlValue
from statemend.repair.counting import Counted, count
from statemend.repair.model_config import NotEditableError, with_key
from statemend.repair.plan import Operation, Source
from statemend.repair.recipe import RecipeContext, insert_of
from statemend.repair.session_headers import account_of
from statemend.repair.session_traces import Logged, Route, read_logs, read_routes
from statemend.repair.substring_index import index_with_row
from statemend.store.catalogue import CATALOGUE
from statemend.store.records import table_columns
from statemend.store.schema import Era

#: The key in ``model_config`` that marks a rebuilt row whose source is known. Hermes asks this text only for
#: keys of its own; a row of unknown source is marked as Hermes' own recovery marks it, by its source.
MARK = "_statemend_recovered"
RECOVERED = "recovered"

#: What a rebuilt row takes over from an export. The rest is counted anew, belongs to a moment that has
#: passed (a hand-over, a cooldown), or names texts that are kept elsewhere.
_CARRIED = (
    "actual_cost_usd",
    "api_call_count",
    "archived",
    "auto_archived",
    "billing_base_url",
    "billing_mode",
    "billing_provider",
    "cache_read_tokens",
    "cache_write_tokens",
    "chat_id",
    "chat_type",
    "cost_source",
    "cost_status",
    "created_source",
    "cwd",
    "display_name",
    "end_reason",
    "ended_at",
    "estimated_cost_usd",
    "git_branch",
    "git_repo_root",
    "hidden",
    "input_tokens",
    "origin_json",
    "output_tokens",
    "pinned",
    "pricing_version",
    "profile_name",
    "reasoning_tokens",
    "rewind_count",
    "session_key",
    "thread_id",
    "title_source",
    "transport_profile",
    "user_id",
)
#: Sources that say nothing of where a session was.
NAMELESS = frozenset({"", "unknown", RECOVERED})
#: Sources of children that are not their parent's.
_OWN = frozenset({"subagent", "tool", "cron", *NAMELESS})

_ID_TIME = re.compile(r"(?:^|_)([12]\d{7}_\d{6})(?:_|$)")
_ID_SHAPES = (
    (re.compile(r"cron_.+_\d{8}_\d{6}"), "cron"),
    (re.compile(r"api_\d{9,11}_[0-9a-f]{8}"), "api_server"),
)
#: A first message this much (seconds) behind the time in the id was not the first.
_LATE = 12 * 3600.0
_ROUNDING = 1.0

_USAGE = """
    SELECT model FROM session_model_usage
    WHERE session_id = ? AND COALESCE(task, '') = ''
    ORDER BY last_seen DESC, model
    LIMIT 1
"""
_CHILDREN = "SELECT id, source FROM sessions WHERE parent_session_id = ? ORDER BY started_at, id"
_IS_SESSION = "SELECT 1 FROM sessions WHERE id = ?"
_TITLED = "SELECT 1 FROM sessions WHERE title = ?"
_PROMPT = "SELECT 1 FROM system_prompts WHERE hash = ?"


class Rebuilt(msgspec.Struct, frozen=True):
    """The operations that make a session row, the search indexes that must follow, and where each value of
    the row comes from."""

    operations: tuple[Operation, ...]
    reindex: tuple[str, ...]
    sources: tuple[Source, ...]
    parent: str | None
    title: str | None


class Rows(NamedTuple):
    """The messages that a session has, or will have: their first and last time (epoch seconds, ``None`` where
    no row tells one), and what its counters are to be."""

    first_at: float | None
    last_at: float | None
    counted: Counted


class SessionRow:
    """One session row in the making. ``is_planned`` tells of the id of a session whether its row is rebuilt
    by the same plan, ``is_free`` whether a title may still be given. ``rows`` are the session's messages, by
    default those in the store."""

    def __init__(
        self,
        context: RecipeContext,
        session_id: str,
        mark: str,
        *,
        is_planned: Callable[[str], bool],
        is_free: Callable[[str], bool],
        rows: Rows | None = None,
    ) -> None:
        self._context = context
        self._store = context.store
        self._id = session_id
        self._mark = mark
        self._is_planned = is_planned
        self._is_free = is_free
        self._physical = frozenset(table_columns(self._store, "sessions"))
        self._values: dict[str, SqlValue] = {}
        self._sources: dict[str, Source] = {}
        self._before: list[Operation] = []
        self._rows = rows or _stored_rows(context, session_id)
        self._header = account_of(context, session_id)
        routes: dict[str, Route] = context.once(
            "routes", lambda: read_routes(context.store, context.inventory)
        )
        self._route = routes.get(session_id)
        logged: Logged = context.once("logged", lambda: read_logs(context.inventory))
        self._turn = logged.turns.get(session_id)

    def rebuild(self) -> Rebuilt:
        """Fill every column that evidence fills. Raises ``CannotChangeError`` where the row cannot be made
        without damage to a search index."""
        self._set("id", self._id, self._told("session_id of its messages", table="messages"))
        self._set("source", *self._source())
        self._set("started_at", *self._started_at())
        self._carry()
        self._model()
        self._parent()
        self._title()
        self._prompt()
        self._count()
        self._activity()
        self._mark_it()
        self._keep_it()
        return Rebuilt(
            operations=(*self._before, insert_of(self._store, "sessions", self._values)),
            reindex=index_with_row(
                self._context, self._id, self._values["source"], self._values.get("model_config")
            ),
            sources=tuple(self._sources.values()),
            parent=_text(self._values.get("parent_session_id")),
            title=_text(self._values.get("title")),
        )

    def _set(self, column: str, value: SqlValue, source: Source) -> None:
        if column in self._physical:
            self._values[column] = value
            self._sources[column] = msgspec.structs.replace(source, column=f"sessions.{column}")

    def _leave_out(self, column: str, why: str) -> None:
        self._values.pop(column, None)
        self._sources[column] = Source(column=f"sessions.{column}", origin=f"left out: {why}")

    def _told(self, origin: str, *, table: str | None = None) -> Source:
        return Source(column="", origin=origin, locator=table)

    def _said(self, column: str) -> Any:
        """What the export has in a column, ``None`` where it has nothing that fits."""
        return None if self._header is None else _fitting(column, self._header.values.get(column))

    def _source(self) -> tuple[str, Source]:
        header, route, turn = self._header, self._route, self._turn
        exported = self._said("source")
        if header is not None and exported not in (None, *NAMELESS):
            return exported, header.source("source")
        if route is not None and route.columns.get("source", "") not in NAMELESS:
            return route.columns["source"], route.source("")
        for shape, source in _ID_SHAPES:
            if shape.fullmatch(self._id):
                return source, self._told("the shape of the id")
        if turn is not None and turn.platform is not None:
            return turn.platform, turn.source("")
        children = [
            (each, source) for each, source in self._store.rows(_CHILDREN, (self._id,)) if source not in _OWN
        ]
        if len({source for _, source in children}) == 1:
            child, source = children[0]
            return str(source), self._told("the source of its child", table=f"sessions {child}")
        return RECOVERED, self._told(
            "made up: nothing tells the source; it is the one of Hermes' own recovery"
        )

    def _started_at(self) -> tuple[float, Source]:
        exported = self._said("started_at")
        if self._header is not None and exported is not None:
            return exported, self._header.source("started_at")
        first = self._rows.first_at
        clock = _clock_of(self._id)
        offset = None if clock is None else self._clocks().offset_near(clock)
        if clock is not None and offset is not None:
            begun = clock - offset
            if first is None or -_ROUNDING <= first - begun <= _LATE:
                return begun, self._told(
                    f"the time in the id; local time was {offset / 3600:+g} h from UTC, as in ids beside it"
                )
        if first is not None:
            return first, self._told("the earliest message", table="messages.timestamp")
        if clock is not None:
            return clock, self._told("the time in the id, taken as UTC")
        return 0.0, self._told(
            "made up: no message bears a time and the id holds none; as in Hermes' recovery"
        )

    def _clocks(self) -> LocalClocks:
        clocks: LocalClocks = self._context.once("clocks", lambda: LocalClocks.load(self._store))
        return clocks

    def _carry(self) -> None:
        """Take over what an export has beside the columns that are weighed one by one; then the route."""
        header, route = self._header, self._route
        for column in _CARRIED if header is not None else ():
            value = self._said(column)
            if header is None or value is None:
                continue
            if column in ("ended_at", "end_reason") and not self._may_be_ended():
                continue
            self._set(column, value, header.source(column))
        for column, text in sorted(route.columns.items()) if route is not None else ():
            if route is not None and column not in self._values:
                self._set(column, text, route.source(""))

    def _may_be_ended(self) -> bool:
        """Whether the end that an export tells may stand: nothing was said after it, and no pruning that no
        pin stops would take the ended session."""
        ended, last = self._said("ended_at"), self._rows.last_at
        if ended is None or (last is not None and last > ended + _ROUNDING):
            return False
        return "pinned" in self._physical or self._context.inventory.settings.auto_prune is not True

    def _model(self) -> None:
        exported = self._said("model")
        if self._header is not None and exported is not None:
            self._set("model", exported, self._header.source("model"))
            return
        if self._store.table_exists("session_model_usage"):
            used = self._store.value(_USAGE, (self._id,))
            if isinstance(used, str) and used:
                self._set("model", used, self._told("its account of tokens", table="session_model_usage"))
                return
        if self._turn is not None and self._turn.model is not None:
            self._set("model", self._turn.model, self._turn.source(""))

    def _parent(self) -> None:
        parent = self._said("parent_session_id")
        if self._header is None or parent is None or parent == self._id:
            return
        if self._store.value(_IS_SESSION, (parent,)) is not None or self._is_planned(parent):
            self._set("parent_session_id", parent, self._header.source("parent_session_id"))
        else:
            self._leave_out("parent_session_id", f"the export names {parent}, which is not in the store")

    def _title(self) -> None:
        title = self._said("title")
        if self._header is not None and title:
            if self._store.value(_TITLED, (title,)) is None and self._is_free(title):
                self._set("title", title, self._header.source("title"))
            else:
                self._leave_out("title", "another session has it by now, and titles are unique")
        if "title" not in self._values and "title_source" in self._values:
            self._leave_out("title_source", "the row has no title")

    def _prompt(self) -> None:
        prompt = self._said("system_prompt")
        if self._header is None or not self._header.whole or not prompt:
            return
        if "system_prompt_hash" not in self._physical or not self._store.table_exists("system_prompts"):
            self._set("system_prompt", prompt, self._header.source("system_prompt"))
            return
        digest = hashlib.sha256(prompt.encode()).hexdigest()
        if self._store.value(_PROMPT, (digest,)) is None:
            self._before.append(insert_of(self._store, "system_prompts", {"hash": digest, "prompt": prompt}))
        self._set("system_prompt_hash", digest, self._header.source("system_prompt"))

    def _count(self) -> None:
        counted = self._rows.counted
        origin = "its rows, counted by the rule of this release"
        self._set("message_count", counted.messages, self._told(origin, table="messages"))
        self._set("tool_call_count", counted.calls, self._told(origin, table="messages"))

    def _activity(self) -> None:
        last = self._rows.last_at
        if last is not None:
            self._set("last_activity_at", last, self._told("the latest message", table="messages.timestamp"))

    def _mark_it(self) -> None:
        """Mark the row as rebuilt. One of unknown source is marked by its source."""
        exported = self._said("model_config")
        config = exported
        if self._values["source"] != RECOVERED:
            try:
                config = with_key(exported, MARK, self._mark)
            except NotEditableError:
                config = exported
        if config is None:
            return
        source = self._told(f"the mark of a rebuilt row, {MARK}")
        if exported is not None and self._header is not None:
            source = self._header.source("model_config")
            if config != exported:
                source = msgspec.structs.replace(source, origin=f"{source.origin}, and the mark {MARK}")
        self._set("model_config", config, source)

    def _keep_it(self) -> None:
        """Pin the row where Hermes prunes by itself: messages without a session were never pruned."""
        prunes = self._context.inventory.settings.auto_prune
        if prunes or (prunes is None and self._store.schema.era >= Era.V22):
            self._set(
                "pinned", 1, self._told("made up: so that no automatic pruning takes it; unpin it in Hermes")
            )


def _stored_rows(context: RecipeContext, session_id: str) -> Rows:
    counted = context.census.get(session_id)
    first, last = (counted.first_at, counted.last_at) if counted is not None else (None, None)
    return Rows(
        first_at=first if is_time(first) else None,
        last_at=last if is_time(last) else None,
        counted=count(context.store, session_id),
    )


def _fitting(column: str, value: Any) -> Any:
    """The value as the column holds it, ``None`` where it does not fit its type."""
    declared = {each.name: each.type for each in CATALOGUE["sessions"].columns}.get(column)
    if isinstance(value, dict) and declared == "TEXT":
        return json.dumps(value)
    if declared == "TEXT":
        return value if isinstance(value, str) and _is_text(value) else None
    if isinstance(value, bool):
        value = int(value)
    if declared == "REAL":
        return float(value) if is_time(value) else None
    return value if isinstance(value, int) and -(2**63) <= value < 2**63 else None


def _is_text(value: str) -> bool:
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


def _text(value: SqlValue) -> str | None:
    return value if isinstance(value, str) else None


def _clock_of(session_id: str) -> float | None:
    """The local time that an id holds, in epoch seconds as if it were UTC."""
    found = _ID_TIME.search(session_id)
    if found is None:
        return None
    try:
        return datetime.strptime(found[1], "%Y%m%d_%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
