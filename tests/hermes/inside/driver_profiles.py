"""A gateway that serves the chats of several profiles, as a release runs it where a home asks for that."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

_GATEWAYS: list[Any] = []


def chat_of(profile: str | None, chat_id: str, reset: bool = False) -> str:
    """The session of a chat that is routed to a profile, found, made or reset."""
    session = importlib.import_module("gateway.session")
    config = importlib.import_module("gateway.config")
    if not _GATEWAYS:
        folder = Path(os.environ["HERMES_HOME"]) / "sessions"
        _GATEWAYS.append(session.SessionStore(folder, config.GatewayConfig(multiplex_profiles=True)))
    (gateway,) = _GATEWAYS
    source = session.SessionSource(
        platform=config.Platform("telegram"),
        chat_id=chat_id,
        chat_type="dm",
        user_id=chat_id,
        profile=profile,
    )
    entry = gateway.get_or_create_session(source)
    return (gateway.reset_session(entry.session_key) if reset else entry).session_id


def leave() -> None:
    """The gateway ends."""
    _GATEWAYS.clear()


def adopt(session_id: str, donor: str, target: str) -> dict[str, Any]:
    """What 0.22 does with a session of a profile that it finds in another profile's store."""
    kind = importlib.import_module("hermes_state").SessionDB
    return kind(Path(target)).adopt_session_lineage_from(kind(Path(donor)), session_id)
