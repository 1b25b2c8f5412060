"""What a home's ``config.yaml`` says about the life of its sessions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec

_LARGEST = 4 * 1024 * 1024


class Settings(msgspec.Struct, frozen=True):
    """The settings that decide whether Hermes deletes sessions by itself.

    ``None`` means not set: the release's default holds. ``source`` says where the values come from, or
    why there are none."""

    auto_prune: bool | None
    retention_days: float | None
    source: str


def read_settings(root: Path) -> Settings:
    """The settings of the home ``root``. Never fails: what cannot be read is not set, and ``source`` says
    why."""
    path = root / "config.yaml"
    if not path.is_file():
        return Settings(None, None, "no config.yaml")
    try:
        if path.stat().st_size > _LARGEST:
            return Settings(None, None, "config.yaml is too large to be a configuration")
        text = path.read_bytes()
    except OSError as error:
        return Settings(None, None, f"config.yaml could not be read: {error.strerror}")
    import yaml

    try:
        config = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return Settings(None, None, f"config.yaml is not valid YAML{_place(error)}")
    sessions = config.get("sessions") if isinstance(config, dict) else None
    if not isinstance(sessions, dict):
        return Settings(None, None, "config.yaml, which says nothing of sessions")
    return Settings(_flag(sessions.get("auto_prune")), _days(sessions.get("retention_days")), "config.yaml")


def _place(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return f" (line {mark.line + 1})" if mark is not None else ""


def _flag(value: Any) -> bool | None:
    if isinstance(value, str):
        return {
            "true": True,
            "yes": True,
            "on": True,
            "1": True,
            "false": False,
            "no": False,
            "off": False,
            "0": False,
        }.get(value.strip().lower())
    return bool(value) if isinstance(value, bool | int) else None


def _days(value: Any) -> float | None:
    try:
        days = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError, OverflowError):
        return None
    return days if math.isfinite(days) else None
