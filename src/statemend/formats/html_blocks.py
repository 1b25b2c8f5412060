"""Reading one message block of an HTML page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from statemend.formats import html_template as template
from statemend.formats.artifact import Record
from statemend.formats.html_template import unescape

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_TEXT = "([^<]*)"
#: 0.18.2 wrote roles and tool names unescaped. The bound keeps the cost of a hostile block linear.
_RAW = ".{0,1000}?"
_ICON = r"<svg [^<]*(?:<(?!/svg>)[^<]*)*</svg>"
_OPENING = re.compile(
    r'\s*<div class="message message-[^"]{0,1000} active"(?: style="animation-delay: [0-9.]+s")?>'
    + re.escape(f"{template.HEADER}{template.CHEVRON} ")
    + _ICON
    + f" (?P<role>{_RAW})"
    + re.escape(template.TIMESTAMP)
    + r"(?P<clock>[^<]*)"
    + re.escape(template.BODY),
    re.DOTALL,
)
_TOOL_CALL = re.compile(
    f"{re.escape(template.TOOL_CALL[0])}({_RAW}){re.escape(template.TOOL_CALL[1])}{_TEXT}"
    f"{re.escape(template.TOOL_CALL[2])}",
    re.DOTALL,
)
_CONTENT = re.compile(f"{re.escape(template.CONTENT)}{_TEXT}</div>")
_CODE = re.compile(
    f"{re.escape(template.CONTENT + template.CODE_OPEN)}{_TEXT}{re.escape(template.CODE_CLOSE)}</div>"
)
_REASONING = re.compile(_TEXT.join(re.escape(part) for part in template.REASONING))
_OPEN = template.MESSAGE_OPEN.encode()
_OPENS = re.compile(rb"\s*" + re.escape(_OPEN))
_END = template.MESSAGE_CLOSE.strip().encode()
_CLOSING = re.compile(r"\s*</div>\s*</div>\s*\Z")


def opens(line: bytes) -> bool:
    """Whether a message block begins with this line."""
    return _OPEN in line and _OPENS.match(line) is not None


def is_whole(line: bytes) -> bool:
    """Whether a message block ends with this line. No other line of a block ends like this."""
    return line.endswith((_END, _END + b"\n")) or line.rstrip().endswith(_END)


def blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The bytes of each whole message block, from its opening tag to the end of its last line.

    ``pieces`` are whole lines, any number of them in each; no more is held than a block and a piece."""
    held: list[bytes] = []
    for piece in pieces:
        if held and _END not in piece:
            held.append(piece)
            continue
        data = b"".join((*held, piece))
        position = 0
        while (end := _end_of_block(data, position)) is not None:
            start = _start_of_block(data, position, end)
            if start is not None:
                yield data[start:end]
            position = end
        start = _start_of_block(data, position, len(data))
        held = [] if start is None else [data[start:]]


def _end_of_block(data: bytes, position: int) -> int | None:
    """The end of the next line with which a block ends."""
    while (place := data.find(_END, position)) >= 0:
        position = data.find(b"\n", place) + 1 or len(data)
        if is_whole(data[place:position]):
            return position
    return None


def _start_of_block(data: bytes, position: int, end: int) -> int | None:
    """The start of the last line between the two places with which a block begins."""
    while (place := data.rfind(_OPEN, position, end)) >= 0:
        end = data.rfind(b"\n", position, place) + 1 or position
        if _OPENS.match(data, end):
            return end
    return None


def record_of(block: bytes, position: int) -> Record:
    """The message of a whole block, in Hermes' own bytes or as another program wrote them again.

    A tool call has only its name and its arguments: the page drops its id.
    """
    text = block.decode("utf-8", "surrogateescape")
    return _by_template(text, position) or _by_parser(text, position)


def _by_template(text: str, position: int) -> Record | None:
    opening = _OPENING.match(text)
    if opening is None:
        return None
    at, calls = opening.end(), []
    while call := _TOOL_CALL.match(text, at):
        calls.append(_call(unescape(call[1]), unescape(call[2])))
        at = call.end()
    content = _CODE.match(text, at) or _CONTENT.match(text, at)
    at = content.end() if content else at
    reasoning = _REASONING.match(text, at)
    at = reasoning.end() if reasoning else at
    if _CLOSING.match(text, at) is None:
        return None
    return Record(
        position=position,
        role=unescape(opening["role"]),
        content=unescape(content[1]) if content else None,
        clock=_clock(opening["clock"]),
        tool_calls=calls or None,
        reasoning=unescape(reasoning[1]) if reasoning else None,
    )


def _by_parser(text: str, position: int) -> Record:
    from selectolax.lexbor import LexborHTMLParser

    # Lone surrogates stand for bytes that are not UTF-8; a parser of UTF-8 cannot take them.
    tree = LexborHTMLParser(text.encode("utf-8", "replace").decode("utf-8"))
    body = tree.css_first(".message-body")
    calls = [_parsed_call(call) for call in tree.css(".tool-call")]
    content = None if body is None else next((n for n in body.iter() if _has_class(n, "content")), None)
    return Record(
        position=position,
        role=_node_text(tree.css_first(".role-badge")).strip() or "unknown",
        content=None if content is None else _node_text(content),
        clock=_clock(_node_text(tree.css_first(".timestamp"))),
        tool_calls=calls or None,
        reasoning=_node_text(tree.css_first(".reasoning-content .content")) or None,
    )


def _parsed_call(node: LexborNode) -> dict[str, Any]:
    name = _node_text(node.css_first(".tool-call-header")).partition("Tool Call:")[2].strip()
    return _call(name, _node_text(node.css_first("code")))


def _call(name: str, arguments: str) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}}


def _has_class(node: LexborNode, name: str) -> bool:
    return name in (node.attributes.get("class") or "").split()


def _node_text(node: LexborNode | None) -> str:
    return "" if node is None else node.text(deep=True, strip=False)


def _clock(shown: str) -> str | None:
    clock = shown.strip()
    return None if clock in ("", "N/A") else clock
