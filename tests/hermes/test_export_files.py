"""What becomes of real exports in people's hands, and what the rules about exports then say."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.hermes.home import HOUR, HermesHome, assistant, user

from statemend.audit.engine import audit
from statemend.audit.finding import Finding, Verdict

Make = Callable[..., HermesHome]
FIRST, SECOND, THIRD = "20260801_090000_aaaaaa", "20260801_100000_bbbbbb", "20260801_110000_cccccc"


def found(home: HermesHome, *rules: str) -> list[Finding]:
    home.stop()
    outcome = audit(home.path, rules=rules, now=home.now)
    assert outcome.undetermined == ()
    return list(outcome.findings)


@pytest.mark.fires("EXP002")
def test_one_deleted_after_its_export_that_began_where_another_was_compressed(hermes_home: Make) -> None:
    """The other one's continuation is here, so the deleted one was compacted in place."""
    home = hermes_home("0.19.0")
    other = home.chat(FIRST)
    other.turns(9)
    other.rotate()
    chat = home.chat(SECOND)
    chat.turns(9)
    chat.compact()
    chat.say(user("And the end?"), assistant("The end."))
    home.end(SECOND)
    home.advance(HOUR)
    done = home.delete_after_verified(SECOND)
    assert home.session(SECOND) is None, done.said

    (finding,) = found(home, "EXP002")

    assert (finding.subject.session, finding.verdict) == (SECOND, Verdict.UNDECIDABLE)
