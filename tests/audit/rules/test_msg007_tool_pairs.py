"""MSG007 tool-pairs."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.audit.builder import EXPORTED, VERSIONS, HomeBuilder, facts
from tests.audit.unset import loosen

from statemend.audit.facts import MOST_LISTED
from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]

#: The first schema, one between, and the newest.
SCHEMAS = ["0.13.0", "0.19.0", "0.22.2"]


def calls(*ids: str, **more: str) -> str:
    return json.dumps([{"id": name, "function": {"name": "sh", "arguments": "{}"}, **more} for name in ids])


@pytest.mark.fires("MSG007")
@pytest.mark.parametrize("version", SCHEMAS)
def test_a_call_that_was_never_answered_is_residue_once_the_talk_went_on(build: Build, version: str) -> None:
    home = build(version)
    home.chat("right", 2)
    home.session("odd")
    home.message("odd")
    row = home.message("odd", "assistant", "Running.", tool_calls=calls("call_1", "call_2"))
    home.message("odd", "tool", "ok", tool_call_id="call_1")
    assert home.findings("MSG007") == []  # the other may be running
    home.message("odd")

    (finding,) = home.findings("MSG007")

    assert (finding.subject.session, finding.subject.message_ids) == ("odd", (row,))
    assert (finding.verdict, finding.severity) == (Verdict.LEFTOVER, Severity.LOW)
    assert "1 message calls a tool" in finding.summary


@pytest.mark.parametrize("answered", [False, True])
def test_a_call_that_was_encoded_twice_counts_as_one(build: Build, answered: bool) -> None:
    home = build()
    home.session("odd")
    row = home.message("odd", "assistant", "Running.", tool_calls=json.dumps(calls("call_1")))
    if answered:
        home.message("odd", "tool", "ok", tool_call_id="call_1")
    home.message("odd")
    assert [finding.subject.message_ids for finding in home.findings("MSG007")] == (
        [] if answered else [(row,)]
    )


@pytest.mark.parametrize("version", SCHEMAS)
def test_a_result_without_its_call_is_undecided(build: Build, version: str) -> None:
    home = build(version)
    home.session("odd")
    rows = [
        home.message("odd", "tool", f"secret {i}", tool_call_id=f"call_{i}") for i in range(MOST_LISTED + 2)
    ]
    home.message("odd", "assistant", "Done.")

    (finding,) = home.findings("MSG007")

    assert finding.verdict is Verdict.UNDECIDABLE
    assert finding.subject.message_ids == tuple(rows[:MOST_LISTED])
    assert facts(finding)["results that answer no call"] == len(rows)
    assert "secret" not in repr(finding)


def test_a_session_may_have_both(build: Build) -> None:
    home = build("0.22.2")
    home.session("odd")
    home.message("odd", "assistant", tool_calls=calls("call_1", "call_2"))
    home.message("odd", "tool", tool_call_id="call_3")
    home.message("odd")

    found = {one.verdict: one.id for one in home.findings("MSG007")}

    assert found.keys() == {Verdict.LEFTOVER, Verdict.UNDECIDABLE}
    assert len(set(found.values())) == 2


@pytest.mark.near_miss("MSG007")
@pytest.mark.parametrize("version", ["0.19.0", "0.22.2"])
@pytest.mark.parametrize("state", [{"active": 0, "compacted": 1}, {"active": 0}], ids=["archived", "rewound"])
def test_a_partner_out_of_sight_is_a_partner(build: Build, version: str, state: dict[str, int]) -> None:
    home = build(version)
    home.session("compacted")
    home.message("compacted", "assistant", tool_calls=calls("call_1"), **state)
    home.message("compacted", "tool", tool_call_id="call_1")
    home.message("compacted", "assistant", tool_calls=calls("call_2"))
    home.message("compacted", "assistant", tool_calls=calls("call_3"))
    home.message("compacted", "tool", tool_call_id="call_2", **state)
    home.message("compacted", "tool", tool_call_id="call_3", **state)
    home.message("compacted", "assistant", tool_calls=calls("call_4"), **state)
    home.message("compacted")

    assert home.findings("MSG007") == []


@pytest.mark.parametrize(
    ("stored", "answer"),
    [
        (calls("fc_1", call_id="call_1"), "call_1"),
        (calls("call_1|fc_1"), "call_1"),
        (calls("call_1"), "call_1|fc_1"),
        (json.dumps(calls("call_1")), "call_1"),
        ('[{"function": {"name": "sh"}}]', "call_1"),
        ("[cut", "call_1"),
        ('[{"id": "call_9"}, "sh"]', "call_1"),
        ("null", None),
        (None, None),
        (None, ""),
    ],
    ids=lambda value: str(value)[:16],
)
def test_calls_that_go_by_another_name_or_by_none_are_left_alone(
    build: Build, stored: str | None, answer: str | None
) -> None:
    home = build("0.19.0")
    home.session("named")
    home.message("named", "assistant", tool_calls=stored)
    home.message("named", "tool", tool_call_id=answer)
    home.message("named", "tool", tool_call_id=answer)  # so that the numbers differ and the ids are read
    home.message("named")

    assert home.findings("MSG007") == []


@pytest.mark.parametrize("stored", ['[{"tool_call_id": "a"}]', '[{"call_id": "a"}]'])
def test_a_call_may_be_named_in_several_ways(build: Build, stored: str) -> None:
    home = build("0.19.0")
    home.session("named")
    rows = [home.message("named", "assistant", tool_calls=stored) for _ in range(2)]
    home.message("named", active=0)
    home.message(b"named", "assistant", tool_calls=stored)  # type: ignore[arg-type]
    home.message(b"named")  # type: ignore[arg-type]

    (finding,) = home.findings("MSG007")

    assert finding.subject.message_ids == (rows[0],)  # the talk went on after the first alone

    home.message("named")
    (finding,) = home.findings("MSG007")
    assert "2 messages call tools" in finding.summary


def test_a_row_without_a_state_counts_as_the_live_one_that_hermes_makes_of_it(build: Build) -> None:
    home = loosen(build("0.19.0"))
    home.session("odd")
    home.message("odd", "assistant", tool_calls=calls("call_1"), active=None)
    home.message("odd", active=None)
    before = home.findings("MSG007")
    home.sql("UPDATE messages SET active = 1")

    assert [one.id for one in home.findings("MSG007")] == [one.id for one in before]
    assert len(before) == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sound_store_of_each_release_has_none(build: Build, version: str) -> None:
    assert build(version, empty=False).result("MSG007").status == "clean"


@pytest.mark.parametrize("version", EXPORTED)
def test_a_used_store_of_each_release_has_none(build: Build, version: str) -> None:
    assert build(version, rich=True).result("MSG007").status == "clean"
