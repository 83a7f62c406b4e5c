"""The reference's ZeRO-1 and ZeRO-2 on real ranks, against what one process computes alone."""

from __future__ import annotations

import pytest
import torch

from fixtures.world.pool import WorldPool
from tests.impls import zero2_programs
from tests.impls import zero_programs as programs
from tests.impls import zero_state_programs as state_programs

# Parameters of order one after a few steps with rates of 0.05, from gradients that were summed in another order.
ROUNDING = 1e-6

stages = pytest.mark.parametrize("stage", ["1", "2"])


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("world_size", "microbatches"), [(1, 1), (3, 1), (3, 2), (4, 1)])
@pytest.mark.parametrize("optimizer", list(programs.OPTIMIZERS))
@stages
def test_trains_as_a_single_process(
    worlds: WorldPool, stage: str, optimizer: str, world_size: int, microbatches: int
) -> None:
    values = worlds.world(world_size).run(programs.trained, stage, optimizer, microbatches).values
    assert max(difference for difference, _ in values) < ROUNDING
    assert all(torch.equal(values[0][1], parameters) for _, parameters in values)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.complex64], ids=str)
@pytest.mark.parametrize("numel", [1, 3, 4, 6])
@stages
def test_fewer_elements_than_ranks_and_sizes_that_do_not_divide(
    worlds: WorldPool, stage: str, numel: int, dtype: torch.dtype
) -> None:
    expected = torch.arange(numel).to(dtype)
    expected[1:] -= 1.0
    outcomes = worlds.world(4).run(programs.few_elements, stage, numel, dtype)
    for (vector, number, nothing), _ in outcomes.values:
        assert torch.equal(vector, expected)
        assert number == torch.tensor(-2.0, dtype=dtype)
        assert nothing.shape == (0, 2)
    assert sum(held for _, held in outcomes.values) == numel + 1
    assert max(held for _, held in outcomes.values) == -(-(numel + 1) // 4)


@stages
def test_without_a_gradient_on_any_rank_nothing_happens_and_with_a_zero_one_it_decays(
    worlds: WorldPool, stage: str
) -> None:
    for without, with_zero, with_negative_zero in (
        worlds.world(3).run(programs.no_gradient_and_zero_gradient, stage).values
    ):
        assert torch.equal(without, torch.ones(5))
        assert torch.equal(with_zero, torch.full((5,), 0.5))
        assert torch.equal(with_negative_zero, torch.full((5,), 0.5))


@pytest.mark.parametrize("clear", ["module", "optimizer"])
def test_a_parameter_without_gradient_does_not_go_on_by_its_momentum(worlds: WorldPool, clear: str) -> None:
    for weight in worlds.world(3).run(programs.used_once, clear).values:
        assert torch.equal(weight, torch.full((5,), -1.0))


@pytest.mark.parametrize("max_norm", [0.05, 1e6])
@stages
def test_clips_by_the_global_norm_and_reduces_once(worlds: WorldPool, stage: str, max_norm: float) -> None:
    for outcome in worlds.world(3).run(programs.clipped, stage, max_norm):
        difference, of_norms, num_flats = outcome.value
        assert difference < ROUNDING
        assert of_norms < ROUNDING
        sends = [op for op in outcome.operations if op.kind == "send"]
        assert len(sends) == 2 * 2 * num_flats  # steps, messages around a ring of three


@stages
def test_steps_too_small_for_16_bits_count_in_the_master(worlds: WorldPool, stage: str) -> None:
    for moved, dtypes in worlds.world(3).run(programs.bf16, stage).values:
        assert moved == pytest.approx(40 * 1e-3, abs=2**-9)  # half of what bfloat16 can tell apart there
        assert dtypes == ["torch.float32"]


@stages
def test_trains_in_a_group_of_some_ranks(worlds: WorldPool, stage: str) -> None:
    assert max(worlds.world(4).run(programs.in_a_group, stage).values) < ROUNDING


# -- parameters that change --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["momentum", "AdamW"])
@stages
def test_frozen_parameters_stay_untouched_and_train_once_thawed(worlds: WorldPool, stage: str, optimizer: str) -> None:
    for early, late, untouched in worlds.world(3).run(programs.frozen_then_thawed, stage, optimizer).values:
        assert untouched
        assert max(early, late) < ROUNDING


@stages
def test_a_parameter_group_can_be_added_later(worlds: WorldPool, stage: str) -> None:
    assert max(worlds.world(3).run(programs.added_later, stage).values) < ROUNDING


@pytest.mark.parametrize("how", ["data", "load"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@stages
def test_values_written_into_parameters_count(worlds: WorldPool, stage: str, dtype: torch.dtype, how: str) -> None:
    for weight in worlds.world(2).run(programs.written_from_outside, stage, dtype, how).values:
        assert torch.equal(weight, torch.full((1, 3), 3.0))


# -- memory and traffic ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("stage", ["1", "2"])
def test_holds_what_the_formula_says(worlds: WorldPool, stage: str, dtype: torch.dtype) -> None:
    world_size = 4
    for found, other, numel, num_pieces in worlds.world(world_size).run(programs.held_bytes, stage, dtype).values:
        buffers = 1 if stage == "1" else 4  # a bucket for each parameter here
        padding = buffers * (world_size - 1)
        per_shard = 12 if dtype == torch.bfloat16 else 8
        shard = numel // world_size
        assert numel * dtype.itemsize <= found["parameters"] <= (numel + padding) * dtype.itemsize
        if stage == "1":
            assert found["gradients"] == numel * dtype.itemsize
        else:
            assert shard * dtype.itemsize <= found["gradients"] <= (shard + buffers) * dtype.itemsize
        steps = 4 * num_pieces
        assert abs(found["optimizer"] - steps - per_shard * numel / world_size) <= per_shard * buffers * world_size
        assert other == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("numel", [4096, 4097])
@stages
def test_sends_each_gradient_and_each_parameter_once(
    worlds: WorldPool, stage: str, numel: int, dtype: torch.dtype
) -> None:
    world_size = 4
    for outcome in worlds.world(world_size).run(programs.one_step, stage, numel, dtype):
        step = next(mark for mark in outcome.marks if mark.name == "step")
        operations = [op for op in outcome.operations if op.issued_ns > step.at_ns and op.kind != "recv"]
        shard_bytes = -(-numel // world_size) * dtype.itemsize
        assert [(op.kind, op.num_bytes) for op in operations] == [
            *[("send", shard_bytes)] * (world_size - 1),
            ("all_gather", shard_bytes * world_size),
        ]


def test_zero2_keeps_one_bucket_of_gradients_at_most(worlds: WorldPool) -> None:
    for *during, after in worlds.world(2).run(zero2_programs.gradients_alive).values:
        assert len(during) == 4
        assert max(during) <= 1
        assert after == 0


# -- states ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world_size", [1, 3])
@pytest.mark.parametrize("optimizer", sorted(set(programs.OPTIMIZERS) - {"Adagrad"}))  # which has one for frozen ones
@stages
def test_the_state_dict_is_that_of_a_single_process(
    worlds: WorldPool, stage: str, optimizer: str, world_size: int
) -> None:
    assert worlds.world(world_size).run(state_programs.whole_state, stage, optimizer).values == [[]] * world_size


@pytest.mark.parametrize(("before", "after"), [(2, 2), (2, 3), (4, 1), (1, 4)])
@pytest.mark.parametrize("optimizer", ["momentum", "Adam", "NAdam"])
@stages
def test_goes_on_from_a_state_dict_on_any_number_of_ranks(
    worlds: WorldPool, stage: str, optimizer: str, before: int, after: int
) -> None:
    saved = worlds.world(before).run(state_programs.resumed, stage, optimizer, None).values[0]
    single = programs.zoo()
    plain = programs.plain(optimizer, single)
    state_programs.two_steps(single, plain)
    _, expected = state_programs.two_steps(single, plain)
    for _, weights in worlds.world(after).run(state_programs.resumed, stage, optimizer, saved).values:
        assert programs.worst_difference(list(weights.values()), list(expected.values())) < ROUNDING


@pytest.mark.parametrize("optimizer", ["momentum", "Adam", "NAdam"])
@stages
def test_goes_on_from_a_plain_optimizer_and_a_plain_one_from_it(worlds: WorldPool, stage: str, optimizer: str) -> None:
    first = programs.zoo()
    plain = programs.plain(optimizer, first)
    saved = state_programs.two_steps(first, plain)
    state, weights = worlds.world(3).run(state_programs.resumed, stage, optimizer, saved).values[0]
    second = programs.zoo()
    second.load_state_dict(weights)
    again = programs.plain(optimizer, second)
    again.load_state_dict(state)
    for _ in range(2):
        _, expected = state_programs.two_steps(first, plain)
    _, got = state_programs.two_steps(second, again)
    assert programs.worst_difference(list(got.values()), list(expected.values())) < ROUNDING


@stages
def test_masters_travel_in_the_state_dict(worlds: WorldPool, stage: str) -> None:
    for through, across, master in worlds.world(3).run(state_programs.masters_travel, stage).values:
        assert torch.equal(master, torch.full((5,), 1.0) - 1e-3)
        assert torch.equal(through, across)
        assert torch.equal(across, (torch.ones(5) - 4e-3).bfloat16())


def test_a_state_dict_of_other_groups_is_refused(worlds: WorldPool) -> None:
    told = worlds.world(2).run(state_programs.other_groups).describe()
    assert "build it from the same parameters in the same groups" in told


# -- backward and ZeRO-2 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world_size", [1, 3])
def test_after_backward_the_shard_of_the_mean_is_all_that_is_left(worlds: WorldPool, world_size: int) -> None:
    for left, difference in worlds.world(world_size).run(zero2_programs.after_backward).values:
        assert left == 0
        assert difference < ROUNDING


@pytest.mark.parametrize("told", [True, False])
def test_a_rank_without_backward_takes_part(worlds: WorldPool, told: bool) -> None:
    assert max(worlds.world(3).run(zero2_programs.rank_without_backward, told).values) < ROUNDING


def test_gradients_may_come_in_another_order_on_each_rank(worlds: WorldPool) -> None:
    assert max(worlds.world(3).run(zero2_programs.in_any_order).values) == 0


def test_after_an_exception_in_backward_zero_grad_clears_the_way(worlds: WorldPool) -> None:
    assert max(worlds.world(2).run(zero2_programs.after_an_exception, True).values) < ROUNDING
    told = worlds.world(2).run(zero2_programs.after_an_exception, False).describe()
    assert "call zero_grad() first" in told


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_layer_may_be_recomputed_in_backward(worlds: WorldPool, use_reentrant: bool) -> None:
    assert max(worlds.world(2).run(zero2_programs.recomputed, use_reentrant).values) < ROUNDING


def test_an_optimizer_that_is_gone_leaves_gradients_alone(worlds: WorldPool) -> None:
    assert all(worlds.world(2).run(zero2_programs.forgotten).values)


# -- as an optimizer of torch ------------------------------------------------------------------------------------------


@stages
def test_takes_a_scheduler_a_closure_and_named_parameters(worlds: WorldPool, stage: str) -> None:
    assert max(worlds.world(2).run(programs.scheduled, stage).values) < ROUNDING


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("LBFGS", "take an optimizer that works element by element"),
        ("tied by data", "tied by a.data = b.data"),
        ("cast", "Cast or move the module first"),
        ("two groups", "more than one parameter group"),
    ],
)
def test_refuses_with_a_reason(worlds: WorldPool, what: str, reason: str) -> None:
    assert reason in worlds.world(2).run(programs.refused, what).describe()
