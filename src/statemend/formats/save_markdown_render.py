"""How ``/save md`` shows a message (0.20 and newer), byte for byte.

Text is not escaped, so a message may hold anything, even what looks like the next one.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from statemend.formats.clock import utc_seconds
from statemend.formats.prompts_writer import prompt_text

if TYPE_CHECKING:
    from statemend.store.history import Message

SINGLE_TITLE = "# Session: "
MULTI_TITLE = "# Hermes sessions export"
SECTION_TITLE = "## Session: "
#: Rows of this role are not shown.
HIDDEN_ROLE = "system"
#: What stands for the name of a tool that has none.
NAMELESS = "tool"
_LABELS = {"user": "User", "assistant": "Assistant"}


def shown_name(name: str) -> str:
    """The name of a tool as a heading shows it."""
    return " ".join(name.splitlines()).strip() or "unknown"


def render_message(row: Message, *, level: int = 2) -> str:
    """One message as it stands between others, its empty last line included; at the end of a file the empty
    lines are missing. ``level`` is 2 in a file of one session, 3 in a file of many."""
    time = utc_seconds(row.timestamp)
    suffix = f" - {time}" if time else ""
    text = prompt_text(row.content)
    if row.role != "tool":
        return f"{'#' * level} {_LABELS.get(row.role, row.role.title())}{suffix}\n\n{text}\n\n"
    name = str(row.tool_name or NAMELESS)
    fence = "```"
    while fence in text:
        fence += "`"
    return (
        f"{'#' * level} Tool: {shown_name(name)}{suffix}\n\n"
        f"<details><summary>{escape(name)}</summary>\n\n"
        f"{fence}text\n{text}\n{fence}\n\n</details>\n\n"
    )
