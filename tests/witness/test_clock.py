from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn

from fixtures.witness import clock, compute
from fixtures.witness.clock import backward_overlap, backward_spans, overlap
from fixtures.world.outcome import Mark
from tests.witness import traced
from tests.witness.test_compare import operation

if TYPE_CHECKING:
    from fixtures.world.pool import WorldPool


def marks(*named: tuple[str, int]) -> list[Mark]:
    return [Mark(name=name, at_ns=at) for name, at in named]


@pytest.mark.parametrize(
    ("issued", "waited", "done", "hidden", "communication"),
    [
        (100, 0, 200, 100, 100),  # all of it during the computation
        (150, 250, 350, 50, 200),  # launched in time, the computation ended first
        (150, 180, 190, 30, 40),  # waited for in the midst of it
        (120, 120, 220, 0, 100),  # a blocking call: nothing is hidden
        (250, 250, 300, 0, 50),  # after the computation
    ],
)
def test_overlap_is_the_share_of_communication_under_computation_that_does_not_wait(
    issued: int, waited: int, done: int, hidden: int, communication: int
) -> None:
    found = overlap([operation(issued_ns=issued, waited_ns=waited, done_ns=done)], [(100, 200)])
    assert (found.hidden_ns, found.communication_ns) == (hidden, communication)
    assert found.fraction == hidden / communication


def test_operations_under_way_together_are_counted_once() -> None:
    operations = [operation(issued_ns=begin, done_ns=end) for begin, end in ((100, 200), (150, 260), (300, 340))]
    found = overlap(operations, [(0, 180), (320, 400)])
    assert (found.communication_ns, found.hidden_ns) == (160 + 40, 80 + 20)
    assert (found.num_operations, found.num_launched) == (3, 3)


def test_waiting_for_one_operation_hides_no_other() -> None:
    blocking = operation(issued_ns=120, waited_ns=120, done_ns=160)
    background = operation(issued_ns=100, done_ns=200)
    assert overlap([blocking, background], [(100, 200)]).hidden_ns == 60


def test_an_operation_that_never_ended_is_left_out() -> None:
    found = overlap([operation(issued_ns=100)], [(100, 200)])
    assert (found.num_operations, found.fraction) == (0, 0.0)


def test_a_backward_pass_lasts_to_its_last_gradient() -> None:
    found = backward_spans(
        marks(
            *(("forward-begin", 1), ("backward-begin", 10), ("weight-gradient", 20), ("backward-begin", 21)),
            *(("weight-gradient", 30), ("backward-end", 90)),
            *(("forward-begin", 100), ("backward-begin", 110), ("backward-end", 150)),
        )
    )
    assert found == [(10, 30), (110, 150)]


def test_spans_pair_begin_and_end_of_one_detail() -> None:
    found = clock.spans(
        [
            Mark(name="F-begin", at_ns=1, detail="0"),
            Mark(name="F-begin", at_ns=2, detail="1"),
            Mark(name="F-end", at_ns=3, detail="0"),
            Mark(name="F-end", at_ns=5, detail="1"),
        ],
        "F",
    )
    assert found == [(1, 3), (2, 5)]


def test_the_marks_of_a_model_follow_its_layers_forward_and_back() -> None:
    seen: list[tuple[str, str]] = []
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    stop = compute.watch(model, lambda name, detail: seen.append((name, detail)))
    model(torch.ones(1, 2)).sum().backward()
    stop()
    assert seen[:6] == [
        ("forward-begin", ""),
        *(("forward-begin", "0"), ("forward-end", "0")),
        *(("forward-begin", "1"), ("forward-end", "1")),
        ("forward-end", ""),
    ]
    backward = seen[6:]
    assert backward[0][0] == "backward-begin"
    assert backward.index(("weight-gradient", "1.weight")) < backward.index(("weight-gradient", "0.weight"))
    assert backward.index(("backward-begin", "1")) < backward.index(("input-gradient", "1"))
    assert backward[-1] == ("weight-gradient", "0.weight")


def test_watching_changes_no_gradient_and_ends_when_told() -> None:
    torch.manual_seed(0)
    model, seen = nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True), nn.Linear(3, 1)), []
    model(torch.ones(2, 3)).sum().backward()
    expected = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    stop = compute.watch(model, lambda name, detail: seen.append(name))
    model(torch.ones(2, 3)).sum().backward()
    stop()
    assert all(torch.equal(a, b.grad) for a, b in zip(expected, model.parameters(), strict=True))
    seen.clear()
    model(torch.ones(2, 3)).sum().backward()
    assert seen == []


def test_the_reductions_of_ddp_run_under_its_backward(worlds: WorldPool) -> None:
    outcomes = worlds.world(2).run(traced.ddp_under_watch, width=256)
    assert outcomes.all_returned, outcomes.describe()
    for outcome in outcomes:
        reductions: list[Any] = [op for op in outcome.operations if op.kind == "all_reduce"]
        found = backward_overlap(reductions, outcome.marks)
        assert found.num_launched >= 3
        assert 0.0 < found.fraction <= 1.0


def test_reductions_after_backward_hide_nothing(worlds: WorldPool) -> None:
    outcomes = worlds.world(2).run(traced.reduce_after_backward, width=64)
    assert outcomes.all_returned, outcomes.describe()
    for outcome in outcomes:
        found = backward_overlap(outcome.operations, outcome.marks)
        assert found.num_operations == 8
        assert (found.num_launched, found.fraction) == (0, 0.0)
