"""The markup that a Hermes page puts around each message: the part that must match to the byte.

The icons are outlines of the Lucide set (ISC licence); they stand in every message block.
"""

from __future__ import annotations

from enum import StrEnum


class Page(StrEnum):
    """Which releases a page follows, where they differ."""

    V18 = "0.18"  # role, tool name and session id stand unescaped
    V19 = "0.19"  # escaped; a session without model shows "None"
    V20 = "0.20"  # "Unknown" instead; 0.20.1 to 0.22.2


def _icon(size: int, name: str, shapes: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" viewBox="0 0 24 24" '
        'fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round" '
        f'class="{name}">{shapes}</svg>'
    )


CHEVRON = _icon(14, "chevron lucide lucide-chevron-right", '<path d="m9 18 6-6-6-6"/>')
SEARCH = _icon(16, "lucide lucide-search", '<circle cx="11" cy="11" r="8"/><path d="m21 21-4.3-4.3"/>')
WRENCH = _icon(
    16,
    "lucide lucide-wrench",
    '<path d="M14.7 6.3a1 1 0 0 0 0 1.4l1.6 1.6a1 1 0 0 0 1.4 0l3.77-3.77a6 6 0 0 1-7.94 7.94l-6.91 6.91'
    'a2.12 2.12 0 0 1-3-3l6.91-6.91a6 6 0 0 1 7.94-7.94l-3.76 3.76z"/>',
)
SPARKLES = _icon(
    16,
    "lucide lucide-sparkles",
    '<path d="m12 3-1.912 5.813a2 2 0 0 1-1.275 1.275L3 12l5.813 1.912a2 2 0 0 1 1.275 1.275L12 21'
    'l1.912-5.813a2 2 0 0 1 1.275-1.275L21 12l-5.813-1.912a2 2 0 0 1-1.275-1.275L12 3Z"/>'
    '<path d="M5 3v4"/><path d="M19 17v4"/><path d="M3 5h4"/><path d="M17 19h4"/>',
)
SHIELD = _icon(
    16,
    "lucide lucide-shield",
    '<path d="M20 13c0 5-3.5 7.5-7.66 8.95a1 1 0 0 1-.67-.01C7.5 20.5 4 18 4 13V6a1 1 0 0 1 1-1'
    'c2 0 4.5-1.2 6.24-2.72a1.17 1.17 0 0 1 1.52 0C14.5 3.8 17 5 19 5a1 1 0 0 1 1 1z"/>',
)
TERMINAL = _icon(
    16,
    "lucide lucide-terminal",
    '<polyline points="4 17 10 11 4 5"/><line x1="12" x2="20" y1="19" y2="19"/>',
)
ROLE_ICONS = {
    "user": _icon(
        16,
        "lucide lucide-user",
        '<path d="M19 21v-2a4 4 0 0 0-4-4H9a4 4 0 0 0-4 4v2"/><circle cx="12" cy="7" r="4"/>',
    ),
    "assistant": _icon(
        16,
        "lucide lucide-bot",
        '<path d="M12 8V4H8"/><rect width="16" height="12" x="4" y="8" rx="2"/><path d="M2 14h2"/>'
        '<path d="M20 14h2"/><path d="M15 13v2"/><path d="M9 13v2"/>',
    ),
    "system": SHIELD,
}

MESSAGE_OPEN = '<div class="message message-'
HEADER = '  <div class="message-header">    <div class="role-badge">'
TIMESTAMP = '</div>    <div class="timestamp">'
BODY = '</div>  </div>  <div class="message-body">'
MESSAGE_CLOSE = "  </div></div>"
CONTENT = '  <div class="content">'
CODE_OPEN, CODE_CLOSE = "<pre><code>", "</code></pre>"

#: Around a tool call: before its name, between name and arguments, after the arguments.
TOOL_CALL = (
    f"""
                <div class="tool-call">
                    <div class="tool-call-header">
                        {CHEVRON}
                        {WRENCH} Tool Call: """,
    """
                    </div>
                    <div class="tool-call-content">
                        <pre><code>""",
    """</code></pre>
                    </div>
                </div>
                """,
)
#: Around the reasoning of a message.
REASONING = (
    f"""
            <div class="reasoning">
                <div class="reasoning-header">
                    {CHEVRON}
                    {SPARKLES} Reasoning
                </div>
                <div class="reasoning-content">
                    <div class="content">""",
    """</div>
                </div>
            </div>
            """,
)
#: Around the system prompt in a session's header.
SYSTEM_PROMPT = (
    f"""
            <div class="system-prompt-section active">
                <div class="system-prompt-header">
                    {CHEVRON}
                    {SHIELD} System Prompt (Persona)
                </div>
                <div class="system-prompt-content">
                    <div class="content">""",
    """</div>
                </div>
            </div>
            """,
)
#: Shown for a session without a title.
UNTITLED = "Hermes Session"

_ENTITIES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#39;"))


def escape(value: object) -> str:
    """``value`` as text with the five characters escaped that a page escapes."""
    text = str(value)
    for character, entity in _ENTITIES:
        text = text.replace(character, entity)
    return text


def unescape(text: str) -> str:
    """The inverse of :func:`escape`."""
    if "&" not in text:
        return text
    for character, entity in reversed(_ENTITIES):
        text = text.replace(entity, character)
    return text
