"""The session graph: what each release follows, as recorded from the releases, and what a link means."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.rows import DATA, ERA_RELEASES, Rows

from statemend.store.lineage import Deletion, Graph, Relation
from statemend.store.schema import Era

MakeRows = Callable[[str], Rows]
RECORDED = sorted((DATA / "lineage").glob("*.json"))
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns."
ERAS = dict(zip(ERA_RELEASES, Era, strict=True))
WITH_EXPORT = [release for release in ERA_RELEASES if ERAS[release] >= Era.V18]


@pytest.fixture
def rows(tmp_path: Path) -> MakeRows:
    return lambda release: Rows(tmp_path / release, release)


def ended(at: float = 2000.0, why: str = "compression") -> dict[str, Any]:
    return {"ended_at": at, "end_reason": why}


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_each_release_is_followed_where_it_went(rows: MakeRows, path: Path) -> None:
    """Tips and chains that the release itself returned for random sessions."""
    recorded = json.loads(path.read_text())
    made = rows(recorded["release"])
    made.insert(
        "sessions", [dict(zip(recorded["columns"], row, strict=True)) for row in recorded["sessions"]]
    )
    made.insert(
        "messages",
        [
            {"session_id": sid, "role": "user", "content": "x", "timestamp": time}
            for sid, time in recorded["messages"]
        ],
    )
    with made.opened() as store:
        graph, era = Graph.load(store), store.schema.era
        for sid, tip, chain in recorded["answers"]:
            assert graph.resume_tip(sid, era) == tip
            found = graph.export_chain(sid, era)
            assert (None if found is None else list(found)) == chain


def test_a_session_without_family_is_its_own(rows: MakeRows) -> None:
    with rows("0.22.2").session("alone").session("other").opened() as store:
        graph = Graph.load(store)
        assert dict(graph.nodes) == {}
        for era in Era:
            assert graph.resume_tip("alone", era) == "alone"
            assert graph.export_chain("alone", era) == (("alone",) if era >= Era.V18 else None)
            assert graph.deletion("alone", era) == Deletion(("alone",), ())
        assert graph.family("alone") == ("alone",)
        assert graph.edge("alone") is None
        assert graph.children("alone") == graph.continuations("alone") == ()


@pytest.mark.parametrize("release", ERA_RELEASES)
def test_a_chain_is_followed_to_its_end(rows: MakeRows, release: str) -> None:
    made = rows(release)
    made.session("s0", started_at=1000.0, **ended(1010.0))
    for n in range(1, 4):
        made.session(
            f"s{n}", parent_session_id=f"s{n - 1}", started_at=1000.0 + 10 * n, **ended(1010.0 + 10 * n)
        )
    made.session("s4", parent_session_id="s3", started_at=1041.0, title="tip")
    with made.opened() as store:
        graph = Graph.load(store)
        assert list(graph.nodes) == ["s0", "s1", "s2", "s3", "s4"]
        for sid in graph.nodes:
            assert graph.resume_tip(sid, store.schema.era) == "s4"
            assert graph.family(sid) == ("s0", "s1", "s2", "s3", "s4")
        chain = graph.export_chain("s2", store.schema.era)
        assert chain == (("s0", "s1", "s2", "s3", "s4") if release in WITH_EXPORT else None)
        assert {edge.relation for edge in graph.edges()} == {Relation.CONTINUATION}
        assert [node.id for node in graph.continuations("s3")] == ["s4"]
        assert graph.continuations("s4") == ()
        assert graph.nodes["s4"].title == "tip"


@pytest.mark.parametrize(("depth", "found"), [(31, "yyyyy"), (32, "yynnn"), (33, "nnnnn")])
def test_no_release_looks_for_messages_further_than_it_goes(rows: MakeRows, depth: int, found: str) -> None:
    made = rows("0.22.2").session("s0")
    for number in range(1, depth + 1):
        made.session(f"s{number}", parent_session_id=f"s{number - 1}")
    made.message(f"s{depth}", "x")
    with made.opened() as store:
        graph = Graph.load(store)
        opened = [graph.opened_by_id("s0", era) for era in Era]
        assert opened == [f"s{depth}" if each == "y" else "s0" for each in found]


def test_only_0_22_follows_more_than_a_hundred_segments(rows: MakeRows) -> None:
    made = rows("0.22.2")
    made.insert(
        "sessions",
        [
            {"id": f"s{n}", "source": "cli", "parent_session_id": f"s{n - 1}" if n else None,
             "started_at": 1000.0 + n, "ended_at": 1001.0 + n, "end_reason": "compression"}
            for n in range(150)
        ],
    )  # fmt: skip
    with made.opened() as store:
        graph = Graph.load(store)
        assert {era: graph.resume_tip("s0", era) for era in Era} == {
            **dict.fromkeys((Era.V13, Era.V16, Era.V18, Era.V20), "s100"),
            Era.V22: "s149",
        }
        assert len(graph.export_chain("s0", Era.V22) or ()) == 150


def test_resume_takes_the_used_fork_and_export_the_old_one(rows: MakeRows) -> None:
    made = rows("0.22.2").session("root", **ended())
    made.session("stale", parent_session_id="root", started_at=2000.0, **ended(2600.0, "ws_orphan_reap"))
    made.session("used", parent_session_id="root", started_at=2001.0)
    made.session("newer", parent_session_id="root", started_at=2002.0)
    made.message("used", "x", at=3000.0).message("stale", "x", at=9000.0)
    with made.opened() as store:
        graph = Graph.load(store)
        assert graph.resume_tip("root", Era.V22) == graph.resume_tip("root", Era.V18) == "used"
        assert graph.resume_tip("root", Era.V13) == "newer"
        assert graph.export_chain("root", Era.V22) == ("root", "stale")
        assert [node.id for node in graph.continuations("root")] == ["stale", "used", "newer"]
        assert graph.nodes["used"].last_active == 3000.0
        assert graph.nodes["root"].last_active is None


@pytest.mark.parametrize(
    ("heartbeat", "newest", "tips"),
    [
        (5000.0, 3000.0, ("b", "a", "a")),  # only 0.20 and 0.22 know heartbeats
        (8e252, 3000.0, ("b", "a", "b")),  # only 0.22 distrusts impossible times
        (None, 8e252, ("a", "a", "b")),
        (None, "late", ("a", "a", "b")),
    ],
)
def test_each_era_has_its_own_idea_of_activity(
    rows: MakeRows, heartbeat: Any, newest: Any, tips: tuple[str, ...]
) -> None:
    made = rows("0.22.2").session("root", **ended())
    made.session("a", parent_session_id="root", started_at=2000.0, last_activity_at=heartbeat)
    made.session("b", parent_session_id="root", started_at=2000.0)
    made.message("a", "x", at=newest).message("b", "x", at=4000.0)
    with made.opened() as store:
        graph = Graph.load(store)
        assert tuple(graph.resume_tip("root", era) for era in (Era.V18, Era.V20, Era.V22)) == tips


def test_equally_active_forks_rank_by_start_and_then_by_id(rows: MakeRows) -> None:
    made = rows("0.22.2").session("root", **ended())
    for sid, start in (("z", 2000.0), ("a", 2001.0), ("b", 2001.0)):
        made.session(sid, parent_session_id="root", started_at=start).message(sid, "x", at=3000.0)
    with made.opened() as store:
        graph = Graph.load(store)
        assert [graph.resume_tip("root", era) for era in Era] == ["a", "a", "b", "b", "b"]


@pytest.mark.parametrize(
    ("parent", "child", "opened"),
    [
        (ended(), {}, "pnnnn"),
        (ended(why="cli_close"), {}, "ppnnn"),
        (ended(why="cli_close"), {"source": "tool"}, "ppppp"),
        (ended(why="cli_close"), {"config": {"_branched_from": "parent"}}, "ppppp"),
        (ended(why="cli_close"), {"config": {"_reset_from": "parent"}}, "ppnpp"),
        ({**ended(why="idle"), "session_key": "k"}, {"session_key": "k"}, "ppnpp"),
        ({**ended(why="idle"), "session_key": "k"}, {"session_key": "l"}, "ppnnn"),
        ({**ended(why="idle"), "session_key": ""}, {"session_key": ""}, "ppnnn"),
    ],
    ids=["compressed", "closed", "tool", "branch", "reset", "same chat", "another chat", "no chat"],
)
def test_each_era_opens_another_session_by_its_id(
    rows: MakeRows, parent: dict[str, Any], child: dict[str, Any], opened: str
) -> None:
    made = rows("0.22.2").session("parent", **parent).message("parent", "x")
    made.session("next", parent_session_id="parent", started_at=2000.0, **child).message("next", "x")
    made.session("empty", parent_session_id="next", started_at=2001.0)
    with made.opened() as store:
        graph = Graph.load(store)
        assert "".join(graph.opened_by_id("parent", era)[0] for era in Era) == opened


def test_a_delegate_is_exported_as_a_segment_before_0_20(rows: MakeRows) -> None:
    made = rows("0.19.0").session("root", **ended())
    made.session("helper", parent_session_id="root", started_at=1500.0, config={"_delegate_from": "root"})
    made.session("next", parent_session_id="root", started_at=2000.0)
    with made.opened() as store:
        graph = Graph.load(store)
        assert graph.export_chain("root", Era.V18) == ("root", "helper")
        assert graph.export_chain("root", Era.V20) == ("root", "next")
        assert graph.export_chain("helper", Era.V20) == ("helper",)
        assert graph.resume_tip("root", Era.V18) == "next"


def test_only_0_22_knows_a_reset_from_a_segment(rows: MakeRows) -> None:
    made = rows("0.22.2").session("root", **ended())
    made.session("reset", parent_session_id="root", started_at=2000.0, config={"_reset_from": "root"})
    made.session("next", parent_session_id="root", started_at=2001.0, **ended(2002.0, "cli_close"))
    with made.opened() as store:
        graph = Graph.load(store)
        assert {era: graph.export_chain("root", era) for era in (Era.V18, Era.V20, Era.V22)} == {
            Era.V18: ("root", "reset"),
            Era.V20: ("root", "reset"),
            Era.V22: ("root", "next"),
        }
        assert [graph.resume_tip("root", era) for era in (Era.V18, Era.V20, Era.V22)] == [
            "reset",
            "reset",
            "next",
        ]
        assert [node.id for node in graph.continuations("root")] == ["next"]


def test_an_inherited_marker_makes_no_fork(rows: MakeRows) -> None:
    """A delegate that was compressed itself: its continuation carries the marker of the delegate."""
    made = rows("0.22.2").session("root")
    made.session(
        "run", parent_session_id="root", source="subagent", config={"_delegate_from": "root"}, **ended()
    )
    made.session(
        "more",
        parent_session_id="run",
        started_at=2000.0,
        source="subagent",
        config={"_delegate_from": "root"},
    )
    with made.opened() as store:
        graph = Graph.load(store)
        assert [node.id for node in graph.continuations("run")] == ["more"]
        edge = graph.edge("more")
        assert edge is not None
        assert edge.relation is Relation.CONTINUATION
        assert "_delegate_from names another session" in edge.evidence
        assert graph.export_chain("run", Era.V22) == ("run",)  # it is a fork of its own parent
        assert graph.export_chain("more", Era.V22) == ("run", "more")
        assert graph.resume_tip("run", Era.V22) == "run"  # resume minds markers whomever they name


LINKS: dict[str, tuple[dict[str, Any], dict[str, Any], Relation, str]] = {
    "branch": ({}, {"config": {"_branched_from": "p"}}, Relation.BRANCH, "marked _branched_from its parent"),
    "delegate": (
        {},
        {"config": {"_delegate_from": "p"}},
        Relation.DELEGATE,
        "marked _delegate_from its parent",
    ),
    "delegate of a compressed parent": (
        ended(),
        {"config": {"_delegate_from": "p"}, "started_at": 2000.0},
        Relation.DELEGATE,
        "marked _delegate_from its parent",
    ),
    "reset": ({}, {"config": {"_reset_from": "p"}}, Relation.RESET, "marked _reset_from its parent"),
    "branch stamped as a reset": (
        {},
        {"config": {"_reset_from": "p", "_branched_from": "p"}},
        Relation.BRANCH,
        "marked _reset_from its parent",
    ),
    "two markers": (
        {},
        {"config": {"_delegate_from": "p", "_branched_from": "p"}},
        Relation.UNKNOWN,
        "the markers contradict each other",
    ),
    "branch without marker": (
        ended(1500.0, "branched"),
        {"started_at": 1500.0},
        Relation.BRANCH,
        "the parent ended as branched before it started",
    ),
    "reset without marker": (
        {"session_key": "k", **ended(1500.0, "session_reset")},
        {"session_key": "k"},
        Relation.RESET,
        "the same session key",
    ),
    "another place": (
        {"session_key": "k", **ended(1500.0, "session_reset")},
        {"session_key": "l"},
        Relation.UNKNOWN,
        "no marker",
    ),
    "tool": (ended(), {"source": "tool", "started_at": 2000.0}, Relation.DELEGATE, "its source is tool"),
    "subagent": (
        ended(),
        {"source": "subagent", "started_at": 2000.0},
        Relation.DELEGATE,
        "its source is subagent, the parent's is not",
    ),
    "continuation": (ended(), {"started_at": 2003.0}, Relation.CONTINUATION, "started 3 s after that"),
    "continuation written early": (
        ended(),
        {"started_at": 1996.0},
        Relation.CONTINUATION,
        "started 4 s before that",
    ),
    "no times": (
        ended(2000.0),
        {"started_at": "soon"},
        Relation.CONTINUATION,
        "the times of the two cannot be compared",
    ),
    "marker that names nobody": (
        ended(),
        {"config": {"_delegate_from": "__orphaned__"}, "started_at": 2000.0},
        Relation.CONTINUATION,
        "_delegate_from names no session",
    ),
    "marker that is no text": (
        ended(),
        {"config": {"_branched_from": 5}, "started_at": 2000.0},
        Relation.CONTINUATION,
        "_branched_from names another session",
    ),
    "broken config": (
        ended(),
        {"config": '{"_delegate_from": "p"', "started_at": 2000.0},
        Relation.CONTINUATION,
        "the parent ended by compression",
    ),
    "nothing said": ({}, {}, Relation.UNKNOWN, "the parent never ended"),
    "ended later": (
        ended(3000.0, "cli_close"),
        {},
        Relation.UNKNOWN,
        "the parent ended by cli_close after it started",
    ),
}


@pytest.mark.parametrize(("parent", "child", "relation", "phrase"), LINKS.values(), ids=LINKS)
def test_a_link_is_told_from_evidence(
    rows: MakeRows, parent: dict[str, Any], child: dict[str, Any], relation: Relation, phrase: str
) -> None:
    made = rows("0.22.2").session("p", **parent)
    made.session("c", **{"parent_session_id": "p", "started_at": 1800.0, **child})
    with made.opened() as store:
        edge = Graph.load(store).edge("c")
    assert edge is not None
    assert (edge.parent_id, edge.child_id, edge.relation) == ("p", "c", relation)
    assert phrase in edge.evidence


def test_a_link_to_a_session_that_is_gone_is_unknown(rows: MakeRows) -> None:
    with rows("0.19.0").session("c", parent_session_id="gone").opened() as store:
        graph = Graph.load(store)
        edge = graph.edge("c")
        assert edge is not None
        assert (edge.relation, edge.evidence) == (Relation.UNKNOWN, ("the parent has no row",))
        assert [node.id for node in graph.children("gone")] == ["c"]
        assert graph.family("c") == ("c",)


@pytest.mark.parametrize("before", range(5))
def test_a_session_that_opens_with_a_summary_goes_on_from_a_parent_ended_otherwise(
    rows: MakeRows, before: int
) -> None:
    made = rows("0.17.0").session("p", **ended(1500.0, "cli_close"))
    made.session("c", parent_session_id="p", started_at=1200.0)
    for n in range(before):
        made.message("c", f"kept {n}")
    made.message("c", SUMMARY)
    with made.opened() as store:
        edge = Graph.load(store).edge("c")
    assert edge is not None
    assert edge.relation is Relation.CONTINUATION
    assert "opens with a compaction summary" in edge.evidence


@pytest.mark.parametrize(
    ("release", "sibling", "expected"),
    [
        ("0.15.2", False, []),
        ("0.15.2", True, ["next"]),
        ("0.19.0", True, ["next"]),
        ("0.19.0", False, ["early"]),  # nothing fits better, and it may be a continuation
    ],
)
def test_a_delegate_from_before_markers_is_no_continuation(
    rows: MakeRows, release: str, sibling: bool, expected: list[str]
) -> None:
    made = rows(release).session("p", **ended()).session("early", parent_session_id="p", started_at=1500.0)
    made.message("early", "do this")
    if sibling:
        made.session("next", parent_session_id="p", started_at=2000.0)
    with made.opened() as store:
        assert [node.id for node in Graph.load(store).continuations("p")] == expected


@pytest.mark.parametrize("release", ERA_RELEASES)
def test_an_early_child_with_a_summary_is_a_continuation(rows: MakeRows, release: str) -> None:
    made = rows(release).session("p", **ended()).session("early", parent_session_id="p", started_at=1500.0)
    made.message("early", "kept").message("early", SUMMARY, role="assistant")
    with made.opened() as store:
        assert [node.id for node in Graph.load(store).continuations("p")] == ["early"]


def test_a_sibling_known_by_its_summary_fits_better(rows: MakeRows) -> None:
    made = rows("0.19.0").session("p", **ended())
    made.session("helper", parent_session_id="p", started_at=1400.0).message("helper", "do this")
    made.session("next", parent_session_id="p", started_at=1500.0).message("next", SUMMARY)
    with made.opened() as store:
        graph = Graph.load(store)
        assert [node.id for node in graph.continuations("p")] == ["next"]
        edge = graph.edge("helper")
    assert edge is not None
    assert edge.relation is Relation.DELEGATE
    assert "started 600 s before the parent ended, without a summary" in edge.evidence


def family_of_delegates(made: Rows) -> Rows:
    made.session("p").session("plain", parent_session_id="p")
    made.session("run", parent_session_id="p", config={"_delegate_from": "p"})
    made.session("nested", parent_session_id="run", config={"_delegate_from": "run"})
    made.session("tagged", parent_session_id="run", config={"_delegate_from": "elsewhere"})
    made.session("kept", parent_session_id="run")
    made.session("moved", config={"_delegate_from": "p"})
    return made.session("below", parent_session_id="plain", config={"_delegate_from": "plain"})


def test_deleting_takes_delegates_from_0_17_on(rows: MakeRows) -> None:
    with family_of_delegates(rows("0.22.2")).opened() as store:
        graph = Graph.load(store)
        assert graph.deletion("p", Era.V13) == Deletion(("p",), ("plain", "run"))
        for era in (Era.V16, Era.V18, Era.V20, Era.V22):
            assert graph.deletion("p", era) == Deletion(
                ("moved", "nested", "p", "run", "tagged"), ("kept", "plain")
            )
        assert graph.deletion("below", Era.V22) == Deletion(("below",), ())


def test_deleting_ends_where_delegates_loop(rows: MakeRows) -> None:
    made = rows("0.17.0").session("a", parent_session_id="b", config={"_delegate_from": "b"})
    made.session("b", parent_session_id="a", config={"_delegate_from": "a"})
    with made.opened() as store:
        assert Graph.load(store).deletion("a", Era.V16) == Deletion(("a", "b"), ())


def test_rings_are_found_once_each(rows: MakeRows) -> None:
    made = (
        rows("0.19.0")
        .session("c", parent_session_id="b", **ended())
        .session("b", parent_session_id="a", **ended())
    )
    made.session("a", parent_session_id="c", **ended()).session("tail", parent_session_id="a")
    made.session("self", parent_session_id="self")
    made.session("x", config={"_delegate_from": "y"}).session("y", config={"_delegate_from": "x"})
    with made.opened() as store:
        graph = Graph.load(store)
        assert graph.cycles() == (("a", "c", "b"), ("self",), ("x", "y"))
        assert graph.family("tail") == ("a", "b", "c", "tail")
        assert graph.resume_tip("a", Era.V18) == "c"
        assert graph.export_chain("b", Era.V18) == ("c", "a", "b")


def test_a_store_without_sessions_has_no_graph(rows: MakeRows) -> None:
    made = rows("0.19.0").message("s", "x")
    made.run("PRAGMA foreign_keys = OFF", "DROP TABLE sessions")
    with made.opened() as store:
        graph = Graph.load(store)
        assert list(graph.edges()) == []
        assert graph.cycles() == ()


SIDS = st.sampled_from([f"s{n}" for n in range(8)])
MARKER = st.none() | SIDS | st.sampled_from(["__orphaned__", 5, True, ["s1"]])
SESSION = st.fixed_dictionaries(
    {
        "parent_session_id": st.none() | SIDS,
        "source": st.sampled_from(["cli", "tool", "subagent"]),
        "started_at": st.sampled_from([1000.0, 1010.0, 2000.0, "text", -1.0]),
        "ended_at": st.none() | st.sampled_from([1010.0, 2000.0, "text"]),
        "end_reason": st.sampled_from([None, "compression", "compression", "branched", "session_reset"]),
        "model_config": st.none()
        | st.sampled_from(["{broken", "[]", '"_from"'])
        | st.fixed_dictionaries(
            {}, optional={"_branched_from": MARKER, "_delegate_from": MARKER, "_reset_from": MARKER}
        ).map(json.dumps),
    }
)


def above(graph: Graph, session_id: str) -> set[str]:
    """The sessions that following parent links from one leads to."""
    found: set[str] = set()
    node = graph.nodes.get(session_id)
    while node is not None and node.parent_id in graph.nodes and node.parent_id not in found:
        found.add(node.parent_id)
        node = graph.nodes[node.parent_id]
    return found


@settings(deadline=None)
@given(sessions=st.lists(SESSION, max_size=8))
def test_any_graph_is_answered(
    tmp_path_factory: pytest.TempPathFactory, sessions: list[dict[str, Any]]
) -> None:
    made = Rows(tmp_path_factory.mktemp("graph"), "0.22.2")
    made.insert("sessions", [{"id": f"s{n}", **session} for n, session in enumerate(sessions)])
    with made.opened() as store:
        graph = Graph.load(store)
        related = {edge.child_id for edge in graph.edges()}
        assert related == {node.id for node in graph.nodes.values() if node.parent_id}
        for ring in graph.cycles():
            assert len(set(ring)) == len(ring)
        for sid in graph.nodes:
            assert sid in graph.family(sid)
            continuing = {node.id for node in graph.continuations(sid)}
            assert continuing <= {node.id for node in graph.children(sid)}
            assert continuing == {each for each in graph.nodes if graph.continues(sid, each)}
            assert above(graph, sid) == {each for each in graph.nodes if graph.is_above(each, sid)}
            for era in Era:
                assert graph.resume_tip(sid, era) in graph.family(sid)
                assert sid in (graph.export_chain(sid, era) or (sid,))
                assert (graph.resumes_with(sid, era) is None) <= (graph.resume_tip(sid, era) == sid)
                assert graph.exports_with(sid, era) in {None, *(node.id for node in graph.children(sid))}
                gone = graph.deletion(sid, era)
                assert sid in gone.deleted
                assert not set(gone.deleted) & set(gone.detached)
