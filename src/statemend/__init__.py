"""Audit and repair the session store of Hermes Agent, offline.

``open_home(path)`` takes stock of what lies in a home; ``scan(path)`` audits it and returns what was found,
``survey(path)`` does so for each store of a home with profiles.
``plan(path)`` makes a repair plan of the findings; ``rehearse``, ``apply``, ``verify`` and ``undo`` try it,
carry it out, tell what became of it and take it back; ``cleanup`` deletes what a file preserves. Everything
behind them is imported at the first use.

What an audit is asked is said by keyword, alike for ``scan``, ``survey`` and ``plan``: ``exports``,
``rules``, ``ignore``, ``deep``, ``now``, ``progress``; ``statemend.audit.request.Asked`` tells what each
means.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statemend.audit.engine import audit as scan
    from statemend.audit.engine import survey
    from statemend.evidence.inventory import find_home as open_home
    from statemend.repair.apply import apply
    from statemend.repair.cleanup import apply as cleanup
    from statemend.repair.planner import make_plan as plan
    from statemend.repair.rehearse import rehearse
    from statemend.repair.undo import undo
    from statemend.repair.verify import verify

__all__ = [
    "__version__",
    "apply",
    "cleanup",
    "open_home",
    "plan",
    "rehearse",
    "scan",
    "survey",
    "undo",
    "verify",
]

_PUBLIC = {
    "scan": ("statemend.audit.engine", "audit"),
    "survey": ("statemend.audit.engine", "survey"),
    "open_home": ("statemend.evidence.inventory", "find_home"),
    "plan": ("statemend.repair.planner", "make_plan"),
    "rehearse": ("statemend.repair.rehearse", "rehearse"),
    "apply": ("statemend.repair.apply", "apply"),
    "verify": ("statemend.repair.verify", "verify"),
    "undo": ("statemend.repair.undo", "undo"),
    "cleanup": ("statemend.repair.cleanup", "apply"),
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
