"""What two records of one message have in common, whatever formats they stand in.

Formats drop different things: the white space at an end, the parts of a list, the ids of tool calls, the
fraction of a second. ``phrases`` is what is left in all of them; ``agrees`` compares what both still have.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

from statemend.evidence.carried import frozen
from statemend.evidence.drops import WITHOUT_CALLS
from statemend.evidence.memory import spoken
from statemend.evidence.zones import epoch_second
from statemend.formats.artifact import IN_MEMORY, Kind, Record
from statemend.formats.html import message_text
from statemend.formats.prompts import prompt_text
from statemend.formats.save_markdown import shown_name
from statemend.store.content import parse_json

#: Kinds whose records have every field as it was stored.
WHOLE = frozenset({Kind.JSONL, Kind.STORE, Kind.DESKTOP_JSON})
MARKDOWN = frozenset({Kind.MARKDOWN, Kind.QMD})
#: Kinds that cut times to the second.
SECONDS = frozenset({Kind.HTML, Kind.PROMPTS_JSONL, Kind.PROMPTS_MARKDOWN, Kind.SAVE_MARKDOWN})
#: Kinds that drop the white space at the end of a text, or of the last one.
_TRIMMED = MARKDOWN | {Kind.PROMPTS_MARKDOWN, Kind.SAVE_MARKDOWN}

#: What redaction leaves of a secret: a mark, three stars as a value, or the two ends of a key.
_MARK = re.compile(
    r"\[REDACTED|«redacted|\[redaction-|[=:\"'/] ?\*{3}(?![\w*])"
    r"|\b(?=[\w.-]*[\d_-])[\w-]{6}\.\.\.[\w-]{4}(?![\w-])"
)
#: What every mark contains. Looking for these first is many times faster than the pattern on a long text.
_TOKENS = ("***", "...", "[REDACTED", "«redacted", "[redaction-")

_FENCE = re.compile(r"```json\n(.*)\n```\Z", re.DOTALL)
_IMAGE = "[Image Attachment]"
_PART = re.compile(r'\{.*"type": .*\}\Z')
_MICROSECOND = 1e-6


class Phrase(NamedTuple):
    """Role, words and tool calls of a message as every format that shows them has them. ``calls`` are
    ``None`` for whatever it calls: a format that drops calls shows no more than that."""

    role: str
    words: str
    calls: tuple[Hashable, ...] | None


def phrases(record: Record, kind: Kind) -> frozenset[Phrase]:
    """What a record says, which is what a message is looked for by. A record of structured content says it in
    several ways, for formats flatten it differently; one whose format drops calls may have any, or none."""
    calls = ((), None) if kind in WITHOUT_CALLS else (_calls(record.tool_calls),)
    role = record.role.lower()
    return frozenset(Phrase(role, words, each) for words in _wordings(record, kind) for each in calls)


def known_by(record: Record, kind: Kind) -> frozenset[Phrase]:
    """Everything that other records of the same message may say: its phrases, and those without its calls."""
    said = phrases(record, kind)
    return said | {each._replace(calls=None) for each in said if each.calls}


def _wordings(record: Record, kind: Kind) -> Iterable[str]:
    content = _as_stored(record, kind)
    texts = {record.content} if isinstance(record.content, str) else set()
    if not isinstance(content, str):
        shown = message_text(content)
        texts |= {str(shown) if shown else "", prompt_text(content)}
    yield from {_words(spoken(record.role.lower(), text)) for text in texts}
    spelled = _spelled_alike(content)
    if spelled is not None:
        yield spelled


def text_of(record: Record, *, with_calls: bool = True) -> str:
    """All words of a record in one text, for telling a mask."""
    content = record.content if isinstance(record.content, str) else str(message_text(record.content) or "")
    if not with_calls:
        return content.strip()
    calls = "\n".join(f"{name}\n{arguments}" for name, arguments in _spelled(record.tool_calls))
    return f"{content.strip()}\n{calls}".strip()


def texts_of(one: Record, kind: Kind, other: Record, other_kind: Kind) -> tuple[str, str]:
    """All words of two records that both formats show, without calls that are the same."""
    dropped = not {kind, other_kind}.isdisjoint(WITHOUT_CALLS)
    with_calls = not dropped and _calls(one.tool_calls) != _calls(other.tool_calls)
    return text_of(one, with_calls=with_calls), text_of(other, with_calls=with_calls)


def looks_redacted(record: Record) -> bool:
    """Whether the text of a record holds what redaction leaves. A text may hold it for another reason."""
    text = text_of(record)
    return any(token in text for token in _TOKENS) and _MARK.search(text) is not None


def agrees(one: Record, kind: Kind, other: Record, other_kind: Kind) -> bool:
    """Whether nothing that both records have tells them apart. Their ``phrases`` meet, and their times are
    known to agree, or one has none."""
    if _differ(one.tool_call_id, other.tool_call_id) or _differ(*_names(one, kind, other, other_kind)):
        return False
    mine, its = _as_stored(one, kind), _as_stored(other, other_kind)
    if not isinstance(mine, str) or not isinstance(its, str):
        return True
    if kind in IN_MEMORY or other_kind in IN_MEMORY or _shows_parts(mine) or _shows_parts(its):
        return True
    if kind in _TRIMMED or other_kind in _TRIMMED:
        return mine.rstrip() == its.rstrip()
    return mine == its


def same_moment(one: float, kind: Kind, other: float, other_kind: Kind) -> bool:
    """Whether two times are one as far as the coarser of two formats tells."""
    if kind in SECONDS or other_kind in SECONDS:
        return epoch_second(one) == epoch_second(other)
    return one == other if {kind, other_kind} <= WHOLE else abs(one - other) < 2 * _MICROSECOND


def structured(content: Any) -> Any:
    """Content as it was before Markdown showed it as JSON; any other text is left as it is."""
    fence = _FENCE.match(content) if isinstance(content, str) else None
    value = None if fence is None else parse_json(fence[1], None)
    return value if isinstance(value, list | dict) else content


def _as_stored(record: Record, kind: Kind) -> Any:
    """Content as it was before a format showed it as JSON."""
    if kind in MARKDOWN:
        return structured(record.content)
    if kind is Kind.TRACE and record.role == "tool" and _looks_like_json(record.content):
        return parse_json(record.content, record.content)
    return record.content


def _looks_like_json(content: Any) -> bool:
    return isinstance(content, str) and content.lstrip()[:1] in ("{", "[")


def _names(one: Record, kind: Kind, other: Record, other_kind: Kind) -> Iterable[str | None]:
    """The names of the tools of two records as both formats have them."""
    names = one.tool_name, other.tool_name
    if Kind.SAVE_MARKDOWN not in (kind, other_kind):
        return names
    return tuple(shown_name(name) if name else None for name in names)


def _differ(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one != other


def _shows_parts(text: str) -> bool:
    """Whether lines of a text may stand for parts that are no text."""
    return _IMAGE in text or '"type": ' in text


def _words(text: str) -> str:
    """A text without what stands for parts that are no text."""
    if _shows_parts(text):
        lines = text.split("\n")
        text = "\n".join(line for line in lines if line != _IMAGE and not _PART.match(line))
    return text.strip()


def _spelled_alike(content: Any) -> str | None:
    """JSON in one spelling: a format may show a text as what it parses to, or the other way round."""
    if _looks_like_json(content):
        content = parse_json(content, None)
    if not isinstance(content, list | dict):
        return None
    spelled = frozen(content)
    return spelled.decode() if isinstance(spelled, bytes) else str(spelled)


def _calls(calls: Any) -> tuple[Hashable, ...]:
    return tuple((name, frozen(parse_json(arguments, arguments))) for name, arguments in _spelled(calls))


def _spelled(calls: Any) -> Iterable[tuple[str, str]]:
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        function = function if isinstance(function, dict) else {}
        arguments = function.get("arguments", "{}")
        yield (
            str(function.get("name", "unknown")),
            arguments if isinstance(arguments, str) else json.dumps(arguments),
        )
