"""The texts of the messages that findings name, for reports that were asked to show them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from statemend.audit.finding import Finding
from statemend.report.model import MessageText
from statemend.store.connection import Store
from statemend.store.history import View, messages

#: A message's text is cut after so many characters; the store has the rest.
_LONGEST = 20_000


def texts(store: Store, findings: Iterable[Finding]) -> Iterator[MessageText]:
    """Each message that a finding names by id, once, ordered by session and id. Raises
    ``StoreUnreadable``."""
    wanted: dict[str, set[int]] = {}
    for finding in findings:
        if finding.subject.session is not None and finding.subject.message_ids:
            wanted.setdefault(finding.subject.session, set()).update(finding.subject.message_ids)
    for session, ids in sorted(wanted.items()):
        for message in messages(store, session, View.RAW):
            if message.id in ids:
                yield MessageText(store.path, message.id, session, str(message.role), shown(message.content))


def shown(content: Any) -> str:
    """The text of a message's content, cut where it is very long."""
    if isinstance(content, str):
        return content[:_LONGEST]
    if isinstance(content, bytes):
        return f"{len(content):,} bytes that are no text"
    return "" if content is None else json.dumps(content, ensure_ascii=False)[:_LONGEST]
