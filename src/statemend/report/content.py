"""The texts of the messages by which a person decides, for reports that were asked to show them: of those
that findings name, and of the first of each candidate."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from statemend.audit import candidates
from statemend.audit.finding import Finding
from statemend.report.model import MessageText
from statemend.store.connection import Store
from statemend.store.history import Message, View, first_row, messages

#: A message's text is cut after so many characters; the store has the rest.
LONGEST = 20_000


def texts(store: Store, findings: Iterable[Finding]) -> Iterator[MessageText]:
    """Each message that a finding names by id, and the first of each session that it tells of as a candidate,
    once, ordered by session and id. Raises ``StoreUnreadable``."""
    named: dict[str, set[int]] = {}
    begun: set[str] = set()
    for finding in findings:
        begun.update(session for session, _ in candidates.of(finding))
        if finding.subject.session is not None and finding.subject.message_ids:
            named.setdefault(finding.subject.session, set()).update(finding.subject.message_ids)
    for session in sorted(named.keys() | begun):
        first = first_row(store, session) if session in begun else None
        if first is not None:
            yield _text(store, first, first=True)
        for message in messages(store, session, View.RAW) if session in named else ():
            if message.id in named[session] and (first is None or message.id != first.id):
                yield _text(store, message)


def _text(store: Store, message: Message, *, first: bool = False) -> MessageText:
    return MessageText(
        store=store.path,
        message_id=message.id,
        session=message.session_id,
        role=str(message.role),
        text=shown(message.content),
        first=first,
    )


def shown(content: Any) -> str:
    """The text of a message's content, cut where it is very long, with its length said."""
    if isinstance(content, bytes):
        return f"{len(content):,} bytes that are no text"
    if content is None:
        return ""
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"
