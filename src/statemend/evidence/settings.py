"""What a home's ``config.yaml`` says about the life of its sessions."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import msgspec

#: A configuration is a few KiB. What is larger would take minutes to parse.
_LARGEST = 256 * 1024
#: The name of the file in a home.
CONFIGURATION = "config.yaml"
#: What the parser raises beside its own errors: for a number of too many digits, an empty ``!!int``, a
#: ``!!bool`` that is neither, a ``!!timestamp`` that is no time, and for nesting without end.
_REFUSALS = (ValueError, LookupError, AttributeError, TypeError, RecursionError)


class Settings(msgspec.Struct, frozen=True):
    """The settings that decide whether Hermes deletes sessions by itself.

    ``None`` means not set: the release's default holds. ``auto_prune`` is false too where pruning is asked
    for and cannot be done. ``retention_days`` are days, ``interval_hours`` the least hours between two
    prunings. ``source`` says where the values come from, or why there are none. ``trouble`` says why the file
    gives none although it is there; ``unread`` is whether that leaves open what Hermes reads in it. From a
    file that is no valid YAML, Hermes too takes nothing."""

    auto_prune: bool | None
    retention_days: float | None
    source: str
    trouble: str | None = None
    unread: bool = False
    interval_hours: float | None = None


def read_settings(root: Path) -> Settings:
    """The settings of the home ``root``. Never fails: what cannot be read is not set, and ``source`` says
    why."""
    path = root / CONFIGURATION
    try:
        if not stat.S_ISREG((status := path.stat()).st_mode):
            return _unread("not a regular file")
        if status.st_size > _LARGEST:
            return _unread(f"too large to be a configuration ({status.st_size:,} bytes)")
        text = path.read_bytes()
    except FileNotFoundError:
        return Settings(None, None, f"no {CONFIGURATION}")
    except OSError as error:
        return _unread(f"could not be read: {error.strerror or error}")
    import yaml

    try:
        config = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, *_REFUSALS) as error:
        reason = f"not valid YAML{_place(error)}"
        return Settings(
            None, None, f"{CONFIGURATION} is {reason}", trouble=f"{reason}, so its settings do not hold"
        )
    sessions = config.get("sessions") if isinstance(config, dict) else None
    if sessions is None:
        return Settings(None, None, f"{CONFIGURATION}, which says nothing of sessions")
    return _settings(sessions)


def _settings(sessions: Any) -> Settings:
    """The settings as Hermes takes them: any value that Python calls true is a yes, the text ``off`` too, and
    a value that is no number makes pruning fail before it deletes anything."""
    if not isinstance(sessions, dict):
        return Settings(False, None, f"{CONFIGURATION}, where sessions are no mapping: nothing is pruned")
    auto_prune = bool(sessions["auto_prune"]) if "auto_prune" in sessions else None
    numbers: dict[str, float | None] = {}
    for key in ("retention_days", "min_interval_hours"):
        try:
            numbers[key] = int(sessions[key]) if key in sessions else None
        except (TypeError, ValueError, OverflowError):
            return Settings(False, None, f"{CONFIGURATION}, whose {key} is no number: pruning fails")
    return Settings(
        auto_prune,
        numbers["retention_days"],
        CONFIGURATION,
        interval_hours=numbers["min_interval_hours"],
    )


def _unread(reason: str) -> Settings:
    return Settings(None, None, f"{CONFIGURATION} was not read: {reason}", trouble=reason, unread=True)


def _place(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return f" (line {mark.line + 1})" if mark is not None else ""
