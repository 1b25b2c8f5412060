"""Audit the session store of Hermes Agent, offline.

``scan(path)`` audits a home and returns what it found; ``open_home(path)`` takes stock of what lies in one.
Everything behind them is imported at the first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statemend.audit.engine import audit as scan
    from statemend.evidence.inventory import find_home as open_home

__all__ = ["__version__", "open_home", "scan"]

_PUBLIC = {
    "scan": ("statemend.audit.engine", "audit"),
    "open_home": ("statemend.evidence.inventory", "find_home"),
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("statemend")
        except PackageNotFoundError:  # run from a source tree that was never installed
            return "0+unknown"
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _PUBLIC[name]
    return getattr(import_module(module), attribute)
