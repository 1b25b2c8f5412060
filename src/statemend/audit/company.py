"""The other stores of the home that an audited store belongs to: what they hold that it lacks, or has too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from statemend.audit.known import is_known
from statemend.errors import StatemendError, Undetermined
from statemend.evidence.inventory import Home
from statemend.store.connection import Store

T = TypeVar("T")


class Member:
    """One other store of the home. It is opened when it is first asked."""

    def __init__(self, home: Home, open_: Callable[[], Store]) -> None:
        self.home = home
        self._open = open_

    @property
    def path(self) -> str:
        """The store's path, as a report shows it."""
        return self.home.store

    @property
    def profile(self) -> str:
        """The profile whose store it is."""
        return self.home.profile or self.home.root

    @property
    def store(self) -> Store:
        """The opened store. Raises ``StatemendError`` when it could not be opened."""
        return self._open()


class Company:
    """The other stores of a home. Those ``before`` this one are audited before it: what is true of a pair of
    stores is told once, with the later of the two. ``audited`` is false where they are only asked."""

    def __init__(
        self, before: Sequence[Member] = (), after: Sequence[Member] = (), *, audited: bool = True
    ) -> None:
        self.before = tuple(before)
        self.after = tuple(after)
        self.audited = audited
        self._trouble: dict[str, str] = {}

    def __iter__(self) -> Iterator[Member]:
        return iter((*self.before, *self.after))

    def __len__(self) -> int:
        return len(self.before) + len(self.after)

    def of_profile(self, name: str) -> Member | None:
        """The store of that profile, if it is one of these."""
        return next((member for member in self if member.profile == name), None)

    def holding(self, session_id: str) -> tuple[Member, ...]:
        """Those with the row of a session, or a message of it. One that cannot be read holds nothing here;
        ``require_all`` tells of it."""

        def holds(store: Store) -> bool:
            return is_known(store, session_id)

        return tuple(member for member in self if self.ask(member, holds, otherwise=False))

    def ask(self, member: Member, question: Callable[[Store], T], otherwise: T) -> T:
        """What one of the stores answers, ``otherwise`` where it cannot be read; ``require_all`` tells of
        it."""
        try:
            return question(member.store)
        except StatemendError as error:
            self._trouble.setdefault(member.path, str(error))
            return otherwise

    def require_all(self) -> None:
        """Raise ``Undetermined`` when one of the stores that were asked could not be read: what was found is
        then not all."""
        if self._trouble:
            told = "; ".join(self._trouble.values())
            raise Undetermined(f"not every store of the home could be asked: {told}")
