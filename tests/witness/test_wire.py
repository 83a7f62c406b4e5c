from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures.witness import wire
from fixtures.witness.compare import Reconciliation, in_window, reconcile
from fixtures.world.outcome import Outcome, Outcomes
from impls.mesh import HEADER_TAG
from tests.witness import lying, traced
from tests.witness.traced import MIB

if TYPE_CHECKING:
    from fixtures.world.pool import WorldPool

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the wire witness needs /proc/<pid>/io")


def reconciled(outcome: Outcome, window: str, world_size: int) -> Reconciliation:
    operations = in_window(outcome.operations, outcome.marks, window)
    return reconcile(operations, outcome.sent_bytes(window), world_size, outcome.rank)


def assert_all_returned(outcomes: Outcomes) -> None:
    assert outcomes.all_returned, outcomes.describe()


def test_a_16_mib_all_reduce_on_4_ranks_sends_25_169_280_bytes(worlds: WorldPool) -> None:
    outcomes = worlds.world(4).run(traced.all_reduce_on_the_wire, 16 * MIB)
    assert_all_returned(outcomes)
    assert [outcome.sent_bytes("all_reduce") for outcome in outcomes] == [25_169_280] * 4


@pytest.mark.parametrize("world_size", [2, 3, 5])
@pytest.mark.parametrize("numel", [1, 1000, 2**18 + 1])
def test_the_trace_explains_every_operation_of_gloo_to_the_byte(worlds: WorldPool, world_size: int, numel: int) -> None:
    outcomes = worlds.world(world_size).run(traced.each_on_the_wire, numel)
    assert_all_returned(outcomes)
    for outcome in outcomes:
        windows = [window.name for window in outcome.wire if window.name != "new_group"]
        found = {name: reconciled(outcome, name, world_size) for name in windows}
        assert len(found) == 16
        assert {name: r.difference_bytes for name, r in found.items()} == dict.fromkeys(found, 0)


@pytest.mark.parametrize("numel", [7, 2**18])
def test_the_trace_explains_a_ring_of_sends_to_the_byte(worlds: WorldPool, numel: int) -> None:
    outcomes = worlds.world(4).run(traced.ring_over_a_mesh, numel)
    assert outcomes.values == [4.0 * numel] * 4
    assert [reconciled(outcome, "ring", 4).difference_bytes for outcome in outcomes] == [0] * 4
    sent = [
        op.num_bytes for outcome in outcomes for op in outcome.operations if op.kind == "send" and op.tag != HEADER_TAG
    ]
    assert sum(sent) == 2 * (4 * numel) * 3


def test_making_a_group_costs_less_than_its_tolerance(worlds: WorldPool) -> None:
    outcomes = worlds.world(5).run(traced.each_on_the_wire, 1)
    assert_all_returned(outcomes)
    for outcome in outcomes:
        found = reconciled(outcome, "new_group", 5)
        assert found.explained
        assert found.sent_bytes is not None
        assert 0 < found.sent_bytes < found.tolerance_bytes


def test_what_a_rank_prints_is_not_counted_as_sent(worlds: WorldPool) -> None:
    outcomes = worlds.world(2).run(traced.printing)
    assert_all_returned(outcomes)
    assert [outcome.sent_bytes("print") for outcome in outcomes] == [0, 0]


@pytest.mark.parametrize(
    "program", [lying.own_process_group, lying.past_the_trace, lying.through_a_file, lying.through_a_pipe]
)
def test_bytes_sent_behind_the_back_of_the_trace_are_left_over(worlds: WorldPool, program: object) -> None:
    outcomes = worlds.world(2).run(program)
    assert_all_returned(outcomes)
    for outcome in outcomes:
        found = reconciled(outcome, "reduction", 2)
        assert found.explained is False
        assert found.difference_bytes is not None
        assert MIB <= found.difference_bytes < MIB + 4096
        assert "behind the trace's back" in found.sentence


def test_what_goes_past_the_trace_is_unseen_in_the_window_it_happened_in(worlds: WorldPool) -> None:
    outcomes = worlds.world(2).run(lying.past_the_trace)
    assert_all_returned(outcomes)
    for outcome in outcomes:
        assert [op.kind for op in in_window(outcome.operations, outcome.marks, "reduction")] == ["unseen"]


def test_an_operation_that_sent_nothing_is_not_explained() -> None:
    outcome = Outcome(rank=0, ending="returned", operations=(all_reduce(16 * MIB),))
    found = reconcile(outcome.operations, 0, 4, 0)
    assert found.explained is False
    assert found.difference_bytes == -25_169_280
    assert "never left" in found.sentence


def test_without_an_account_nothing_is_claimed() -> None:
    found = reconcile([all_reduce(16 * MIB)], None, 4, 0)
    assert found.explained is None
    assert found.difference_bytes is None
    assert found.expected_bytes == 25_169_280


def all_reduce(num_bytes: int) -> object:
    from tests.witness.test_compare import operation

    return operation(num_bytes=num_bytes, shape=(num_bytes // 4,), ranks=(0, 1, 2, 3))


def test_the_account_grows_by_what_a_process_writes(tmp_path: Path) -> None:
    before = wire.sent_bytes(os.getpid())
    with (tmp_path / "file").open("wb", buffering=0) as file:
        file.write(bytes(100_000))
    after = wire.sent_bytes(os.getpid())
    assert before is not None
    assert after is not None
    assert after - before == 100_000


def test_a_process_that_is_not_there_has_no_account() -> None:
    assert wire.sent_bytes(2**22 + 1) is None


def test_a_platform_without_accounts_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert wire.sent_bytes(os.getpid()) is None
    assert not wire.is_available()
