"""How rules and reports word the releases whose behaviour they assume."""

from __future__ import annotations

from statemend.store.connection import Store
from statemend.store.schema import Era

#: The releases of each era.
RELEASES = {
    Era.V13: "0.13 to 0.15",
    Era.V16: "0.16 and 0.17",
    Era.V18: "0.18 and 0.19",
    Era.V20: "0.20 to 0.21.0",
    Era.V22: "0.21.3 to 0.22",
}
#: The same of what a release opens where a session is asked for by its id.
RELEASES_BY_ID = RELEASES | {Era.V13: "0.13 to 0.16", Era.V16: "0.17"}


def written_by(store: Store) -> tuple[str, str]:
    """Evidence of which releases a store is taken to be of, for a rule whose answer depends on it."""
    return "taken for a store of", f"{RELEASES[store.schema.era]}, by its columns"


def heeding_marks(store: Store) -> tuple[str, str]:
    """Evidence of which releases heed the mark that a finding is about, and what that means for this
    store."""
    now = "" if store.schema.era >= Era.V16 else "; this store is of older ones, which heed none"
    return "releases that heed the mark", f"0.17 and newer{now}"
