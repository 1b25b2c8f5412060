from __future__ import annotations

from tests.formats.messages import START, message

from statemend.evidence.carried import carried_copies
from statemend.store.history import Message, RowState

SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were summarized."
NOW = START + 1000


def history(*texts: str) -> list[Message]:
    return [message(n, content=text, state=RowState.ARCHIVED) for n, text in enumerate(texts, start=1)]


def copies(first_id: int, *texts: str, step: float = 1e-6) -> list[Message]:
    """Rows of one insert, stamped as Hermes stamps what has no time of its own."""
    return [message(first_id + n, content=text, timestamp=NOW + n * step) for n, text in enumerate(texts)]


def test_head_and_tail_are_traced_to_their_originals() -> None:
    rows = [*history("a", "b", "c", "d", "e"), *copies(6, "a", SUMMARY, "d", "e")]
    assert carried_copies(rows) == {6: 1, 8: 4, 9: 5}


def test_rows_stamped_all_alike_are_copies_too() -> None:
    rows = [*history("a", "b", "c"), *copies(4, SUMMARY, "c", step=0.0)]
    assert carried_copies(rows) == {5: 3}


def test_what_was_said_after_the_compaction_is_no_copy() -> None:
    rows = [*history("a", "ok"), *copies(3, SUMMARY), message(4, content="ok", timestamp=NOW + 20)]
    assert carried_copies(rows) == {}


def test_a_turn_that_had_not_been_stored_has_no_original() -> None:
    rows = [*history("ok", "b", "c", "d"), *copies(5, SUMMARY, "c", "d", "ok")]
    assert carried_copies(rows) == {6: 3, 7: 4}


def test_a_shortened_row_does_not_hide_the_others() -> None:
    long = message(2, "tool", "a long result", tool_call_id="t", state=RowState.ARCHIVED)
    short = message(6, "tool", "[pruned]", tool_call_id="t", timestamp=NOW + 2e-6)
    before = [message(1, content="a"), long, message(3, content="c")]
    rows = [*before, *copies(5, SUMMARY), short, message(7, content="c", timestamp=NOW + 3e-6)]
    assert carried_copies(rows) == {7: 3}


def test_a_row_that_the_summary_absorbed_is_in_it() -> None:
    merged = (
        "[PRIOR CONTEXT — for reference only; not a new message]\nthe words\n\n"
        f"[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]\n{SUMMARY}"
    )
    rows = [*history("a", "b", "the words", "d"), *copies(5, merged, "d")]
    assert carried_copies(rows) == {5: 3, 6: 4}


def test_copies_of_copies_lead_back_step_by_step() -> None:
    first = [*history("a", "b", "c"), *copies(4, SUMMARY, "c")]
    later = [message(6, content="d", timestamp=NOW + 10)]
    second = [
        message(7, content=SUMMARY + "2", timestamp=NOW + 99),
        message(8, content="d", timestamp=NOW + 99),
    ]
    assert carried_copies([*first, *later, *second]) == {5: 3, 8: 6}


def test_rows_that_kept_their_time_need_no_tracing() -> None:
    rows = [*history("a", "b"), *copies(3, SUMMARY), message(4, content="b", timestamp=START + 1)]
    assert carried_copies(rows) == {}


def test_a_head_that_kept_its_time_belongs_to_the_compaction() -> None:
    head = [message(6, content="a", timestamp=START + 0.5), message(7, content="b", timestamp=START + 1)]
    rows = [*history("a", "b", "c", "d", "e"), *head, *copies(8, SUMMARY, "d", "e")]
    assert carried_copies(rows) == {9: 4, 10: 5}


def test_a_loaded_row_lost_the_space_around_its_text_and_kept_its_time() -> None:
    tail = message(6, content="c", timestamp=START + 1.5)
    head = message(4, content="a", timestamp=START + 0.5)
    rows = [*history("a", "b", " c\n"), head, message(5, content=SUMMARY, timestamp=NOW), tail]
    assert carried_copies(rows) == {6: 3}


def test_undone_rows_are_passed_over() -> None:
    undone = message(3, content="undone", state=RowState.REWOUND)
    rows = [*history("a", "b"), undone, *copies(4, SUMMARY, "a", "b")]
    assert carried_copies(rows) == {5: 1, 6: 2}
