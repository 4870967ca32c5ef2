"""The tables of the conversation: every step follows its table, and ids never mix."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telex.rpc import limits
from telex.rpc.errors import Condition, Problem
from telex.rpc.messages import Cancel, Failure, Notification, Part, Reply, Request
from telex.rpc.state import (
    ASKED,
    SERVED,
    Begin,
    Conversation,
    Deliver,
    Fail,
    Feed,
    Send,
    State,
    Step,
    Stop,
)


def asked(*ids: int, timeout: float | None = None) -> Conversation:
    conversation = Conversation()
    for id in ids:
        conversation.ask(id, now=0, timeout=timeout)
    return conversation


@pytest.mark.parametrize("table", [ASKED, SERVED], ids=["asked", "served"])
def test_every_state_leads_to_the_end_and_the_end_leads_nowhere(
    table: dict[State, dict[Step, State]],
) -> None:
    assert table[State.ENDED] == {}
    assert set().union(*(then.values() for then in table.values())) <= set(table)
    for state, then in table.items():
        assert state is State.ENDED or then[Step.CLOSED] is State.ENDED


def test_an_answer_ends_a_call() -> None:
    conversation = asked(1)
    assert conversation.receive(Reply(1, "x"), 0) == [Deliver(Reply(1, "x"))]
    assert conversation.calls == 0


def test_parts_keep_a_call_open_until_the_last_one() -> None:
    conversation = asked(1)
    assert conversation.receive(Reply(1, "a", more=True), 0) == [Deliver(Reply(1, "a", more=True))]
    assert conversation.calls == 1
    assert conversation.receive(Reply(1, "b"), 0) == [Deliver(Reply(1, "b"))]
    assert conversation.calls == 0


def test_a_duplicate_answer_is_absorbed_and_counted() -> None:
    conversation = asked(1)
    conversation.receive(Reply(1), 0)
    assert conversation.receive(Reply(1), 0) == []
    assert conversation.counts.unknown == 1


def test_a_call_that_times_out_sends_a_cancel_and_absorbs_the_late_answer() -> None:
    conversation = asked(1, timeout=5)
    assert conversation.next_deadline() == 5
    assert conversation.expire(4.9) == []
    assert conversation.expire(5) == [Fail(1, None), Send(Cancel(1))]
    assert conversation.receive(Reply(1, "part", more=True), 6) == []
    assert conversation.receive(Reply(1, "late"), 6) == []
    assert conversation.counts.late == 2
    assert conversation.receive(Reply(1, "again"), 6) == []
    assert conversation.counts.unknown == 1


def test_an_abandoned_call_sends_one_cancel() -> None:
    conversation = asked(1)
    assert conversation.abandon(1) == [Send(Cancel(1))]
    assert conversation.abandon(1) == []


def test_the_number_of_remembered_abandoned_ids_is_bounded() -> None:
    many = limits.IDS_REMEMBERED + 5
    conversation = asked(*range(many))
    for id in range(many):
        conversation.abandon(id)
    for id in range(many):
        conversation.receive(Reply(id), 0)
    assert (conversation.counts.late, conversation.counts.unknown) == (limits.IDS_REMEMBERED, 5)


def test_an_id_in_use_cannot_be_used_for_another_call() -> None:
    with pytest.raises(ValueError, match="already open"):
        asked(1, 1)


def test_a_request_is_begun_once_and_answered_once() -> None:
    conversation = Conversation()
    request = Request(1, "m")
    assert conversation.receive(request, 0) == [Begin(request)]
    (refusal,) = conversation.receive(request, 0)
    assert isinstance(refusal, Send)
    assert isinstance(refusal.message, Failure)
    assert conversation.answered(1)
    assert not conversation.answered(1)
    assert conversation.receive(request, 0) == [Begin(request)]


def test_parts_of_a_request_are_fed_until_the_last_one() -> None:
    conversation = Conversation()
    conversation.receive(Request("1", "m", more=True), 0)
    part, last = Part("1", 1, more=True), Part("1", 2)
    assert conversation.receive(part, 0) == [Feed(part)]
    assert conversation.receive(last, 0) == [Feed(last)]
    assert conversation.receive(part, 0) == []
    assert conversation.counts.unknown == 1


def test_a_cancel_stops_a_request_with_the_cancelled_problem_and_may_be_too_late() -> None:
    conversation = Conversation()
    conversation.receive(Request(1, "m"), 0)
    assert conversation.receive(Cancel(1), 0) == [Stop(1, Problem.of(Condition.CANCELLED))]
    assert not conversation.answered(1)
    assert conversation.receive(Cancel(1), 0) == []
    assert conversation.counts.unknown == 0


def test_a_requests_own_timeout_stops_it() -> None:
    conversation = Conversation()
    conversation.receive(Request(1, "m", timeout=2), 10)
    assert conversation.expire(12) == [Stop(1, Problem.of(Condition.TIMED_OUT))]
    assert conversation.serving == 0


def test_a_deadline_of_an_ended_request_does_not_touch_a_new_one_with_its_id() -> None:
    conversation = Conversation()
    conversation.receive(Request(1, "m", timeout=2), 0)
    conversation.answered(1)
    conversation.receive(Request(1, "m", timeout=50), 1)
    assert conversation.expire(2) == []
    assert conversation.is_served(1)


def test_closing_fails_open_calls_and_stops_served_requests() -> None:
    conversation = asked(1, 2)
    conversation.receive(Request("a", "m"), 0)
    assert conversation.close() == [Fail(1, None), Fail(2, None), Stop("a", None)]
    assert (conversation.calls, conversation.serving, conversation.next_deadline()) == (0, 0, None)


def test_deadlines_of_ended_calls_are_swept_out() -> None:
    conversation = Conversation()
    for id in range(10_000):
        conversation.ask(id, now=id, timeout=1_000_000)
        conversation.receive(Reply(id), id)
    assert len(conversation._deadlines) < 200


messages = st.one_of(
    st.builds(
        Request,
        st.integers(0, 3),
        st.just("m"),
        st.just(None),
        st.none() | st.just(1.0),
        st.booleans(),
    ),
    st.builds(Part, st.integers(0, 3), st.just(None), st.booleans()),
    st.builds(Reply, st.integers(0, 3), st.just(None), st.booleans()),
    st.builds(Failure, st.none() | st.integers(0, 3), st.just(Problem(1, "x"))),
    st.builds(Cancel, st.integers(0, 3)),
    st.builds(Notification, st.just("m")),
)


def test_the_deadline_of_a_request_can_be_paused() -> None:
    conversation = Conversation()
    conversation.receive(Request(1, "m", timeout=2), 0)
    assert conversation.expire(2, lambda id: id == 1) == []
    assert conversation.expire(3) == []
    assert conversation.expire(4) == [Stop(1, Problem.of(Condition.TIMED_OUT))]


def test_the_deadlines_of_our_calls_can_be_renewed() -> None:
    conversation = asked(1, timeout=5)
    conversation.renew_calls(4)
    assert conversation.expire(8) == []
    assert conversation.expire(9) == [Fail(1, None), Send(Cancel(1))]


@given(st.lists(messages | st.sampled_from(["ask", "answer", "abandon", "expire"]), max_size=30))
def test_each_call_and_each_request_ends_at_most_once_for_any_input(steps: list[object]) -> None:
    conversation = Conversation()
    asked_ids = iter(range(4))
    open_calls: set[object] = set()
    served: set[object] = set()
    now = 0.0
    for step in steps:
        now += 0.4
        effects = []
        if step == "ask":
            if (id := next(asked_ids, None)) is not None:
                conversation.ask(id, now, 1.0)
                open_calls.add(id)
        elif step == "answer":
            for id in list(served):
                assert conversation.answered(id)
                served.discard(id)
        elif step == "abandon":
            for id in list(open_calls):
                conversation.abandon(id)
                open_calls.discard(id)
        elif step == "expire":
            effects = conversation.expire(now)
        else:
            effects = conversation.receive(step, now)
        for effect in effects:
            match effect:
                case Deliver(Reply(id, _, more=False)) | Fail(id, _):
                    assert id in open_calls
                    open_calls.discard(id)
                case Begin(request):
                    assert request.id not in served
                    served.add(request.id)
                case Stop(id, _):
                    assert id in served
                    served.discard(id)
                case Feed(part):
                    assert part.id in served
    assert conversation.calls == len(open_calls)
    assert conversation.serving == len(served)
