"""One pass over the messages for several rules: it passes over nothing that a rule alone would find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.audit.builder import HomeBuilder
from tests.audit.damaged import CALL, damage

from statemend.audit.context import Context
from statemend.audit.finding import Finding
from statemend.audit.outcome import Status
from statemend.audit.registry import all_rules, get
from statemend.store import connection
from statemend.store.connection import Store

Build = Callable[..., HomeBuilder]
SIGNED = [rule.id for rule in all_rules() if rule.sign is not None]
#: They look at every row if one has the sign; what the third finds is defined by its sign.
ROW_BY_ROW = ("MSG002", "MSG006")


def found_by(home: HomeBuilder, *rules: str) -> list[Finding]:
    return [finding for finding in home.audit(*rules).findings if finding.rule in SIGNED]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that a store is asked."""
    statements: list[str] = []
    rows = Store.rows

    def told(store: Store, sql: str, *arguments: Any, **options: Any) -> Iterator[tuple[Any, ...]]:
        statements.append(" ".join(sql.split()))
        return rows(store, sql, *arguments, **options)

    monkeypatch.setattr(Store, "rows", told)
    return statements


def test_one_pass_serves_every_rule_that_has_a_sign(build: Build, asked: list[str]) -> None:
    home = build("0.22.2")
    home.chat("sound", 4)

    assert found_by(home, *SIGNED) == []

    assert len([sql for sql in asked if "GROUP BY session_id HAVING sign0" in sql]) == 1


def test_a_session_without_the_sign_has_nothing_to_find(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = damage(build("0.19.0"))
    home.session("unanswered")
    home.message("unanswered", "assistant", tool_calls=CALL)
    home.message("unanswered", "user")

    together = found_by(home, *SIGNED)

    assert {finding.rule for finding in together} == set(SIGNED)
    alone = [finding for rule in SIGNED for finding in found_by(home, rule)]
    assert sorted(alone, key=repr) == sorted(together, key=repr)
    every = "SELECT DISTINCT session_id FROM messages"
    monkeypatch.setattr(Context, "suspects", lambda context, _: list(context.store.rows(every)))
    assert found_by(home, *ROW_BY_ROW) == [each for each in together if each.rule in ROW_BY_ROW]


def test_a_cell_that_one_rule_cannot_read_stops_that_rule_alone(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = build("0.22.2")
    home.session("odd")
    home.message("odd", content="x" * 20_000)
    home.message("odd", active=7)
    monkeypatch.setattr(connection, "_LONGEST_CELL", 10_000)

    outcome = home.audit("MSG002", "MSG006")

    ended = {result.id: result.status for result in outcome.rules}
    assert ended == {"MSG002": Status.FINDINGS, "MSG006": Status.COULD_NOT_RUN}


def test_a_rule_without_a_sign_has_no_suspects(build: Build) -> None:
    home = build()
    seen: list[Context] = []
    home.audit("LIF001", observe=lambda context, _: seen.append(context))

    with pytest.raises(ValueError, match="LIF001 has no sign"):
        seen[0].suspects(get("LIF001"))
