"""Builds homes with profiles: one store in the home's folder, one in each profile's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.audit.builder import NOW, HomeBuilder

from statemend.audit.engine import Audit, survey
from statemend.audit.finding import Finding


class House:
    """A home with the named profiles, each with an empty store of one release until something is put in."""

    def __init__(self, root: Path, version: str = "0.22.2", profiles: Sequence[str] = ("work",)) -> None:
        self.path = root
        self.version = version
        self.root = HomeBuilder(root, version)
        self.profiles = {name: self.profile(name) for name in profiles}

    def __getitem__(self, name: str) -> HomeBuilder:
        return self.profiles[name]

    def profile(self, name: str) -> HomeBuilder:
        return HomeBuilder(self.path / "profiles" / name, self.version)

    def survey(self, *rules: str, **options: Any) -> tuple[Audit, ...]:
        """Audit every store with the named rules, or with all of them."""
        return survey(self.path, rules=rules or None, now=options.pop("now", NOW), **options)

    def findings(self, *rules: str, **options: Any) -> list[Finding]:
        """The findings of all stores. Fails when a rule could not run."""
        audits = self.survey(*rules, **options)
        broken = [result for one in audits for result in one.rules if result.status == "could not run"]
        assert not broken, broken[0].reason
        return [finding for one in audits for finding in one.findings]
