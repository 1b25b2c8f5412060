"""Wording for what is wrong with a file, kept short however much is wrong."""

from __future__ import annotations

_NAMED = 3


class Damage:
    """Collects faults of one file while it is read, and says them in one phrase.

    Faults of single lines are counted per kind and the first few are named; a fault of the whole file is
    said once.
    """

    def __init__(self) -> None:
        self._lines: dict[str, list[int]] = {}
        self._counts: dict[str, int] = {}
        self._whole: list[str] = []

    def line(self, number: int, singular: str, plural: str) -> None:
        """Line ``number`` has a fault, worded for one line and for several ("is unreadable", "are …")."""
        key = f"{singular}\n{plural}"
        self._counts[key] = self._counts.get(key, 0) + 1
        named = self._lines.setdefault(key, [])
        if len(named) < _NAMED:
            named.append(number)

    def unreadable(self, number: int) -> None:
        self.line(number, "is unreadable", "are unreadable")

    def whole(self, phrase: str) -> None:
        """The file as a whole has a fault."""
        if phrase not in self._whole:
            self._whole.append(phrase)

    def phrase(self) -> str | None:
        """The one phrase, or ``None`` when nothing is wrong."""
        parts = [self._said(key, named) for key, named in self._lines.items()]
        return "; ".join([*parts, *self._whole]) or None

    def _said(self, key: str, named: list[int]) -> str:
        singular, plural = key.split("\n")
        count = self._counts[key]
        if count == 1:
            return f"line {named[0]} {singular}"
        shown = [str(number) for number in named]
        if count > len(named):
            return f"lines {', '.join(shown)} and {count - len(named)} more {plural}"
        return f"lines {', '.join(shown[:-1])} and {shown[-1]} {plural}"
