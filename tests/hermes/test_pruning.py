"""The releases prune as the rules about pruning say: whether, what, and from when."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from tests.hermes.home import DAY, HermesHome

from statemend.audit.engine import audit
from statemend.evidence.settings import read_settings

Homes = Callable[..., HermesHome]
FIRST, SECOND, PINNED, OPEN = (f"2026111{number}_090000_00000{number}" for number in range(1, 5))


def schedule(home: HermesHome) -> dict[str, float]:
    """When pruning takes each session, in epoch seconds, as the audit tells; the release is stopped first."""
    home.stop()
    outcome = audit(home.path, rules=["EXP012"], now=home.now)
    assert outcome.undetermined == ()
    listed = [
        fact.value for one in outcome.findings for fact in one.evidence if fact.label.startswith("which")
    ]
    told = [str(entry).split(" from ") for entries in listed for entry in entries]
    return {session: datetime.fromisoformat(at).timestamp() for session, at in told}


@pytest.mark.fires("EXP012")
@pytest.mark.parametrize("release", ["0.13.0", "0.19.0", "0.20.1", "0.22.2"])
def test_what_is_told_goes_on_that_day_and_not_before(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    home.path.joinpath("config.yaml").write_text("sessions: {auto_prune: true, retention_days: 30}\n")
    for session_id in (FIRST, SECOND, PINNED, OPEN):
        home.create_session(session_id)
        home.exchange(session_id, 1)
        home.advance(3 * DAY)
    for session_id in (FIRST, SECOND, PINNED):
        home.end(session_id)
    if home.release.at_least("0.20.6"):
        home.rows("UPDATE sessions SET pinned = 1 WHERE id = ?", PINNED)
    else:
        home.store("reopen_session", PINNED)
    if home.release.at_least("0.16"):
        home.rows("UPDATE sessions SET archived = 1 WHERE id = ?", FIRST)
    told = schedule(home)
    assert list(told) == [FIRST, SECOND]

    for number, session_id in enumerate(told):
        left = [one for one in (FIRST, SECOND, PINNED, OPEN) if one not in list(told)[:number]]
        for moment, expected in (
            (told[session_id] - 60, left),
            (told[session_id] + 60, [one for one in left if one != session_id]),
        ):
            home.restart()
            home.advance(moment - home.now)
            home.store("maybe_auto_prune_and_vacuum", retention_days=30, min_interval_hours=0, vacuum=False)
            assert home.session_ids() == expected
            home.stop()


@pytest.mark.parametrize("release", ["0.19.0", "0.20.1", "0.21.4", "0.22.2"])
def test_conversations_of_several_parts_go_as_their_release_takes_them(
    hermes_home: Homes, release: str
) -> None:
    """One that is over, one that goes on, one whose first part is pinned."""
    home = hermes_home(release)
    home.path.joinpath("config.yaml").write_text("sessions: {auto_prune: true, retention_days: 30}\n")
    over, goes_on, kept = (
        [f"2026111{number}_0{part}0000_abcdef" for part in range(2)] for number in (1, 2, 3)
    )
    for first, second in (over, goes_on, kept):
        home.create_session(first, "telegram")
        home.exchange(first, 1)
        home.end(first, "compression")
        home.create_session(second, "telegram", parent_session_id=first)
        home.advance(2 * DAY)
        home.exchange(second, 2)
    home.end(over[1])
    home.end(kept[1])
    if home.release.at_least("0.20"):
        home.rows("UPDATE sessions SET pinned = 1 WHERE id = ?", kept[0])
    left = {*over, *goes_on, *kept}
    told = schedule(home)
    stays = {goes_on[1]}
    stays |= {kept[0]} if home.release.at_least("0.20.6") else set()
    stays |= {goes_on[0], kept[1]} if home.release.at_least("0.22") else set()
    assert told.keys() == left - stays

    home.restart()
    for moment in sorted({at + shift for at in told.values() for shift in (-60, 60)}):
        home.advance(moment - home.now)
        home.store("maybe_auto_prune_and_vacuum", retention_days=30, min_interval_hours=0, vacuum=False)
        assert set(home.session_ids()) == {each for each in left if told.get(each, moment) >= moment}


def test_what_pruning_closes_ages_from_then(hermes_home: Homes) -> None:
    home = hermes_home("0.22.2")
    home.path.joinpath("config.yaml").write_text("sessions: {auto_prune: true, retention_days: 30}\n")
    home.create_session(FIRST)
    home.exchange(FIRST, 1)
    home.advance(40 * DAY)
    closed_at = home.now
    for days in (0, 29, 2):
        home.advance(days * DAY)
        home.store("maybe_auto_prune_and_vacuum", retention_days=30, min_interval_hours=0, vacuum=False)
        assert home.session_ids() == ([] if days == 2 else [FIRST])
        told = schedule(home)
        assert [round((at - closed_at) / DAY) for at in told.values()] == ([] if days == 2 else [30])
        home.restart()


@pytest.mark.parametrize("release", ["0.19.0", "0.20.1", "0.22.2"])
def test_a_configuration_means_to_the_release_what_it_means_here(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    default = release == "0.22.2"
    for text, prunes in (
        ("a: b\n", default),
        ("sessions:\n", default),
        ("sessions: {auto_prune: 'off'}\n", True),
        ("sessions: {auto_prune: maybe}\n", True),
        ("sessions: {auto_prune: null}\n", False),
        ("sessions: {auto_prune: 0}\n", False),
        ("sessions: {auto_prune: true, retention_days: null}\n", False),
        ("sessions: {auto_prune: true, retention_days: .nan}\n", False),
        ("sessions: {auto_prune: true, retention_days: '30'}\n", True),
        ("sessions: 3\n", False),
    ):
        home.path.joinpath("config.yaml").write_text(text)
        settings = read_settings(home.path)
        assert settings.trouble is None
        assert pruned(home) is prunes, text
        assert (default if settings.auto_prune is None else settings.auto_prune) is prunes, text


def pruned(home: HermesHome) -> bool:
    """Whether the release would prune: what each of its callers asks of the configuration."""
    config: dict[str, Any] = home.process.call(
        "function", module="hermes_cli.config", name="load_config", args=[]
    )
    try:
        sessions = config.get("sessions") or {}
        if not sessions.get("auto_prune", False):
            return False
        int(sessions.get("retention_days", 90))
    except (TypeError, ValueError, AttributeError):
        return False
    return True
