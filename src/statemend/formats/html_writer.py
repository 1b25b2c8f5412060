"""Writing HTML pages: sessions and messages byte for byte as Hermes does, in a page of our own.

The page around them has neither script nor style of Hermes: all sessions are shown one below the other, the
list at the side links to them, and nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from statemend.formats import html_template as template
from statemend.formats.clock import wall_seconds
from statemend.formats.html_template import Page, escape

if TYPE_CHECKING:
    from statemend.store.history import Message

#: Rows of this role are bookkeeping and never shown, but they count for the position of those after them.
HIDDEN_ROLE = "session_meta"
#: So many messages at the start of a session carry a delay for their entrance.
_DELAYED = 10

_STYLE = """
:root { color-scheme: light dark; }
body { margin: 0 auto; max-width: 60rem; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; }
.message { margin: 1rem 0; padding: .5rem 1rem; border: 1px solid gray; }
.message-header, .meta { display: flex; flex-wrap: wrap; gap: 1rem; font-size: .85rem; }
.content, pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.session-view { margin-top: 3rem; }
.session-item { display: block; }
"""


def message_text(content: Any) -> Any:
    """What a page shows of a message's content: the text parts of a list, a mark for each image."""
    if not isinstance(content, list):
        return content
    shown: list[str] = []
    for part in content:
        if not isinstance(part, dict):
            shown.append(str(part))
        elif part.get("type") == "text":
            shown.append(str(part.get("text", "")))
        elif part.get("type") == "image_url":
            shown.append("[Image Attachment]")
    return "\n".join(shown)


def render_message(message: Message, index: int, *, page: Page = Page.V20, zone: tzinfo = UTC) -> str:
    """The block of one message. ``index`` is its place in the session from 0, hidden rows counted.

    ``zone`` is the zone of the exporting machine: a page shows its wall time.
    """
    role = message.role
    shown_role = role if page is Page.V18 else escape(role)
    delay = f' style="animation-delay: {min(index * 0.05, 1.0)}s"' if index < _DELAYED else ""
    icon = template.ROLE_ICONS.get(role, template.TERMINAL)
    parts = [
        f'{template.MESSAGE_OPEN}{_class_token(role, page)} active"{delay}>',
        f"{template.HEADER}{template.CHEVRON} {icon} {shown_role}",
        f"{template.TIMESTAMP}{wall_seconds(message.timestamp, zone)}",
        template.BODY,
    ]
    parts.extend(_tool_call(call, page) for call in _calls(message.tool_calls))
    content = message_text(message.content or "")
    if content:
        text = escape(content)
        inner = f"{template.CODE_OPEN}{text}{template.CODE_CLOSE}" if role == "tool" else text
        parts.append(f"{template.CONTENT}{inner}</div>")
    reasoning = message.reasoning or message.reasoning_content
    if reasoning:
        parts.append(escape(reasoning).join(template.REASONING))
    parts.append(template.MESSAGE_CLOSE)
    return "".join(parts)


def _class_token(role: str, page: Page) -> str:
    if page is Page.V18:
        return role
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in role.lower())


def _calls(tool_calls: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tool_calls, list):
        for call in tool_calls:
            function = call.get("function") if isinstance(call, dict) else None
            yield function if isinstance(function, dict) else {}


def _tool_call(function: dict[str, Any], page: Page) -> str:
    before, between, after = template.TOOL_CALL
    name = function.get("name", "unknown")
    shown_name = str(name) if page is Page.V18 else escape(name)
    return f"{before}{shown_name}{between}{escape(function.get('arguments', '{}'))}{after}"


def render_messages(
    messages: Iterable[Message], *, page: Page = Page.V20, zone: tzinfo = UTC
) -> Iterator[str]:
    """The blocks of a session's messages, the line breaks between them included."""
    separator = ""
    for index, message in enumerate(messages):
        if message.role != HIDDEN_ROLE:
            yield separator + render_message(message, index, page=page, zone=zone)
            separator = "\n"


def render_session(
    session: Mapping[str, Any],
    messages: Iterable[Message],
    *,
    alone: bool = True,
    page: Page = Page.V20,
    zone: tzinfo = UTC,
) -> Iterator[str]:
    """The view of one session: its header, then its messages. ``alone``: it is the only one of the page."""
    session_id = str(session.get("id", "N/A"))
    shown_id = session_id if page is Page.V18 else escape(session_id)
    model = session.get("model", "Unknown")
    if page is Page.V20:
        model = model or "Unknown"
    started = wall_seconds(session.get("started_at"), zone)
    prompt = session.get("system_prompt")
    yield f"""
        <div class="session-view{" active" if alone else ""}" id="view-{shown_id}">
            <header class="fade-in">
                <h1>{escape(session.get("title") or template.UNTITLED)}</h1>
                <div class="meta">
                    <div class="meta-item"><strong>ID:</strong> {shown_id}</div>
                    <div class="meta-item"><strong>Model:</strong> {escape(model)}</div>
                    <div class="meta-item"><strong>Started:</strong> {started}</div>
                </div>
                {escape(prompt).join(template.SYSTEM_PROMPT) if prompt else ""}
            </header>
            <main>
                """
    yield from render_messages(messages, page=page, zone=zone)
    yield """
            </main>
        </div>
        """


def render(
    sessions: Sequence[tuple[Mapping[str, Any], Iterable[Message]]],
    *,
    generated_at: str,
    page: Page = Page.V20,
    zone: tzinfo = UTC,
) -> Iterator[str]:
    """A whole page of ``sessions``, pairs of a session's export dict and its messages, in pieces.

    ``generated_at`` is printed as it is. The page has no script, and its policy forbids every request.
    """
    alone = len(sessions) == 1
    title = (sessions[0][0].get("title") or template.UNTITLED) if alone else "Hermes sessions"
    yield f"""<!DOCTYPE html>
<html lang="en">
<head>
    <meta charset="UTF-8">
    <meta name="viewport" content="width=device-width, initial-scale=1.0">
    <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
    <title>{escape(title)}</title>
    <style>{_STYLE}</style>
</head>
<body>
    <div class="layout layout-{"single" if alone else "multi"}">
"""
    if not alone:
        yield _sidebar(session for session, _ in sessions)
    yield '        <div class="main-content">\n'
    for session, messages in sessions:
        yield from render_session(session, messages, alone=alone, page=page, zone=zone)
    yield f"""
            <footer>
                Written by statemend from a store of Hermes Agent • Generated on {escape(generated_at)}
            </footer>
        </div>
    </div>
</body>
</html>
"""


def _sidebar(sessions: Iterable[Mapping[str, Any]]) -> str:
    items = []
    for session in sessions:
        session_id = str(session.get("id", "N/A"))
        title = escape(session.get("title") or template.UNTITLED)
        target = f'data-id="{escape(session_id)}" href="#{quote(f"view-{session_id}", safe="")}"'
        items.append(f'            <a class="session-item" {target}>{title}</a>\n')
    return f'        <aside class="sidebar">\n{"".join(items)}        </aside>\n'
