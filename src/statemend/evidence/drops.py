"""Which columns of the messages an artifact holds its format leaves out."""

from __future__ import annotations

from collections.abc import Callable

from statemend.evidence.rows import SessionRows, Tally
from statemend.formats.artifact import FILTERED, IN_MEMORY, Kind
from statemend.store.history import Message

_Carries = Callable[[Message], bool]

_REASONING: tuple[str, _Carries] = "reasoning", lambda row: bool(row.reasoning or row.reasoning_content)
_FINISH: tuple[str, _Carries] = "finish_reason", lambda row: bool(row.finish_reason)
_PLATFORM: tuple[str, _Carries] = "platform_message_id", lambda row: bool(row.platform_message_id)
_CALL_ID: tuple[str, _Carries] = "tool_call_id", lambda row: bool(row.tool_call_id)
_NAME: tuple[str, _Carries] = "tool_name", lambda row: bool(row.tool_name)
_CALLS: tuple[str, _Carries] = "tool_calls", lambda row: bool(row.tool_calls)
_PARTS: tuple[str, _Carries] = "content parts", lambda row: isinstance(row.content, list)
_TRAILING: tuple[str, _Carries] = (
    "trailing space",
    lambda row: isinstance(row.content, str) and row.content != row.content.rstrip(),
)

_MARKDOWN = (_CALL_ID, _REASONING, _FINISH, _PLATFORM, _TRAILING)
_HTML = (_CALL_ID, ("tool call ids", _CALLS[1]), _NAME, _FINISH, _PLATFORM, _PARTS)
_PROMPTS = (_PARTS,)
_SAVE_MARKDOWN = (_CALLS, _CALL_ID, _REASONING, _FINISH, _PLATFORM, _PARTS)
_TRACE = (_REASONING, _FINISH, _PLATFORM, _NAME, _PARTS)
_TRAJECTORY = (_FINISH, _PLATFORM, _NAME, _PARTS, ("tool call ids", _CALLS[1]))
_SPACE: tuple[str, _Carries] = (
    "space around the text",
    lambda row: isinstance(row.content, str) and row.content != row.content.strip(),
)
_CLEANED = ("id", "row state")

#: What every message loses in a format, and what only some messages have to lose.
_ALWAYS = {
    Kind.MARKDOWN: ("id", "row state"),
    Kind.QMD: ("id", "row state"),
    Kind.HTML: ("id", "row state", "fraction of the second"),
    Kind.PROMPTS_JSONL: ("row state", "fraction of the second"),
    Kind.PROMPTS_MARKDOWN: ("row state", "fraction of the second"),
    Kind.SAVE_MARKDOWN: ("id", "row state", "fraction of the second"),
    Kind.TRACE: (*_CLEANED, "timestamp"),
    Kind.TRAJECTORY: (*_CLEANED, "timestamp"),
    Kind.REQUEST_DUMP: (*_CLEANED, "timestamp"),
    Kind.INDEX: ("role", "timestamp", "row state", "session"),
    **dict.fromkeys(IN_MEMORY - {Kind.TRACE, Kind.TRAJECTORY, Kind.REQUEST_DUMP}, _CLEANED),
}
_SOMETIMES = {
    Kind.MARKDOWN: _MARKDOWN,
    Kind.QMD: _MARKDOWN,
    Kind.HTML: _HTML,
    Kind.PROMPTS_JSONL: _PROMPTS,
    Kind.PROMPTS_MARKDOWN: (*_PROMPTS, _PLATFORM),
    Kind.SAVE_MARKDOWN: _SAVE_MARKDOWN,
    Kind.TRACE: (*_TRACE, _SPACE),
    Kind.TRAJECTORY: (*_TRAJECTORY, _SPACE),
    Kind.REQUEST_DUMP: (*_TRACE, _SPACE),
    **dict.fromkeys(IN_MEMORY - {Kind.TRACE, Kind.TRAJECTORY, Kind.REQUEST_DUMP}, (_PLATFORM, _SPACE)),
}

#: Kinds that never show the tool calls of a message. Prompts, of which none has any, are of such a kind too.
WITHOUT_CALLS = FILTERED | {kind for kind, dropped in _SOMETIMES.items() if _CALLS in dropped}


def dropped_fields(rows: SessionRows, tally: Tally, kind: Kind, *, copied: bool) -> tuple[str, ...]:
    """The fields that held messages have in the store and not in the artifact. ``copied``: some are held
    only as copies under a new time."""
    if not tally.held:
        return ()
    held = [rows.by_id[row_id] for row_id in tally.held]
    dropped = [*_ALWAYS.get(kind, ())]
    dropped += [name for name, carries in _SOMETIMES.get(kind, ()) if any(map(carries, held))]
    if kind in FILTERED:
        dropped.append("every other role")
    if copied:
        dropped.append("timestamp")
    return tuple(dropped)


def left_out(kind: Kind) -> tuple[str, ...]:
    """Everything of a message that a format leaves out, whether or not a message has it."""
    every_role = ("every other role",) if kind in FILTERED else ()
    return (*_ALWAYS.get(kind, ()), *(name for name, _ in _SOMETIMES.get(kind, ())), *every_role)
