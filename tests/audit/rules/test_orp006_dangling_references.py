"""ORP006 dangling-references."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import EXPORTED, NOW, START, VERSIONS, HomeBuilder, facts
from tests.audit.routes import HEALING, KEY, ROUTING, bind, route

from statemend.audit.facts import MOST_LISTED
from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]


@pytest.mark.fires("ORP006")
@pytest.mark.parametrize("version", ROUTING)
def test_a_chat_that_is_routed_to_a_session_that_is_gone(build: Build, version: str) -> None:
    home = build(version)
    home.chat("here", 2)
    route(home, "here", f"{KEY}1")
    route(home, "gone")

    (finding,) = home.findings("ORP006")

    heals = version in HEALING
    assert finding.subject.session == "gone"
    assert (finding.verdict, finding.severity) == (
        (Verdict.LEFTOVER, Severity.INFO) if heals else (Verdict.RISK, Severity.MEDIUM)
    )
    assert facts(finding)["keys of the chats"] == [KEY]
    assert facts(finding)["this release begins a new session by itself"] is heals


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_that_is_bound_to_a_session_that_is_gone(build: Build, version: str) -> None:
    home = build(version)
    home.chat("here", 2)
    bind(home, "here", "1")
    bind(home, "gone")

    (finding,) = home.findings("ORP006")

    assert (finding.subject.session, finding.verdict) == ("gone", Verdict.FAULT)
    assert facts(finding)["topics"] == ["topic 7 of chat 42"]


def test_one_finding_tells_of_all_that_leads_to_a_session(build: Build) -> None:
    home = build("0.19.0")
    for number in range(MOST_LISTED + 3):
        route(home, "gone", f"{KEY}{number}")
    bind(home, "gone")

    (finding,) = home.findings("ORP006")

    assert facts(finding)["routes"] == MOST_LISTED + 3
    assert len(facts(finding)["keys of the chats"]) == MOST_LISTED
    assert finding.verdict is Verdict.FAULT


def test_a_session_whose_messages_are_there_is_told_of_by_another_rule(build: Build) -> None:
    home = build("0.19.0")
    home.chat("orphan", 2)
    home.sql("DELETE FROM sessions")
    route(home, "orphan")
    bind(home, "orphan")
    home.insert("session_model_usage", session_id="orphan", model="m")

    assert home.findings("ORP006") == []
    assert len(home.findings("ORP001")) == 1


@pytest.mark.parametrize(
    ("name", "key", "told"),
    [
        ("home", "agent:coder:telegram:dm:42", False),
        ("profiles/coder", "agent:coder:telegram:dm:42", True),
        ("profiles/coder", KEY, True),
        ("profiles/coder", "agent:writer:telegram:dm:42", False),
        ("home", "an-old-key", True),
    ],
)
def test_routes_of_other_profiles_say_nothing_about_this_store(
    build: Build, name: str, key: str, told: bool
) -> None:
    home = build("0.22.2", name=name)
    route(home, "gone", key)

    assert bool(home.findings("ORP006")) is told


@pytest.mark.parametrize("entry", ["", "{", "[]", "null", '{"session_id": 5}', '{"session_id": ""}', "{}"])
def test_a_route_that_leads_nowhere_is_no_route(build: Build, entry: str) -> None:
    home = build("0.19.0")
    home.insert("gateway_routing", scope="", session_key=KEY, entry_json=entry, updated_at=START)

    assert home.findings("ORP006") == []


@pytest.mark.parametrize("version", ["0.19.0", "0.20.1", "0.22.2"])
def test_the_account_of_a_session_that_is_gone_is_a_leftover(build: Build, version: str) -> None:
    home = build(version)
    home.chat("here", 2)
    for session_id, model in (("here", "m"), ("gone", "m"), ("gone", "n")):
        home.insert("session_model_usage", session_id=session_id, model=model)

    (finding,) = home.findings("ORP006")

    assert (finding.verdict, finding.severity) == (Verdict.LEFTOVER, Severity.INFO)
    assert facts(finding)["ids"] == ["gone"]
    assert facts(finding)["rows of token usage"] == 2


@pytest.mark.near_miss("ORP006")
@pytest.mark.parametrize("version", ["0.16.0", "0.20.1", "0.22.2"])
def test_leases_and_locks_that_every_release_leaves_are_lawful(build: Build, version: str) -> None:
    home = build(version)
    for expires_at in (START, NOW + 60):
        claim = {"holder": "a", "acquired_at": START, "expires_at": expires_at}
        home.insert("compression_locks", session_id=f"gone at {expires_at}", **claim)
        if "session_turn_leases" in {name for (name,) in home.sql("SELECT name FROM sqlite_schema")}:
            home.insert("session_turn_leases", conversation_id=f"gone at {expires_at}", **claim)

    assert home.findings("ORP006") == []


@pytest.mark.parametrize("version", ["0.20.1", "0.22.2"])
def test_a_prompt_that_is_not_there_is_a_fault(build: Build, version: str) -> None:
    home = build(version)
    home.insert("system_prompts", hash="a" * 64, prompt="Be kind.")
    home.chat("whole", 2, system_prompt_hash="a" * 64, tool_names="a" * 64)
    home.chat("named", 2, tool_names='["terminal"]')
    home.chat("empty", 2, system_prompt_hash="b" * 64)
    home.chat("toolless", 2, tool_names="c" * 64)

    (finding,) = home.findings("ORP006")

    assert (finding.subject.session, finding.verdict, finding.severity) == (None, Verdict.FAULT, Severity.LOW)
    assert facts(finding)["ids"] == (["empty", "toolless"] if version == "0.22.2" else ["empty"])


def test_a_cell_that_holds_no_text_is_not_shown(build: Build) -> None:
    home = build("0.19.0")
    bind(home, "gone")
    route(home, "gone")
    home.sql("UPDATE telegram_dm_topic_bindings SET thread_id = x'736563726574'")
    home.sql("UPDATE gateway_routing SET session_key = x'736563726574'")

    (finding,) = home.findings("ORP006")

    assert "secret" not in repr(finding)
    assert "736563726574" not in repr(finding)


def test_an_id_that_is_no_valid_text_is_told_of(build: Build) -> None:
    home = build("0.19.0")
    bind(home, "gone")
    home.sql("UPDATE telegram_dm_topic_bindings SET session_id = CAST(x'61ff' AS TEXT)")

    (finding,) = home.findings("ORP006")

    assert finding.subject.session == "a\\xff"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sound_store_of_each_release_is_clean(build: Build, version: str) -> None:
    assert build(version, empty=False).result("ORP006").status == "clean"


@pytest.mark.parametrize("version", EXPORTED)
def test_a_used_store_of_each_release_is_clean(build: Build, version: str) -> None:
    assert build(version, rich=True).result("ORP006").status == "clean"
