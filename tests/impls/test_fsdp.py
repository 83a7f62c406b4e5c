"""The reference's ZeRO-3 on real ranks, against what one process computes alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.distributed.fake_pg import FakeStore

from fixtures.witness import memory
from fixtures.world.outcome import Ending
from fixtures.world.pool import WorldPool
from impls.reference import fully_shard
from impls.reference.cut import cut_into_units
from tests.impls import fsdp_programs as programs
from tests.impls import fsdp_state_programs as state_programs
from tests.impls import fsdp_training

# Parameters and gradients of order one, from gradients that were summed in another order.
ROUNDING = 1e-5

FORMS: dict[str, dict[str, Any]] = {
    "resharded": {},
    "without prefetch": {"prefetch": False},
    "kept": {"reshard_after_forward": False},
    "kept without prefetch": {"reshard_after_forward": False, "prefetch": False},
}
forms = pytest.mark.parametrize("options", FORMS.values(), ids=FORMS)


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("optimizer", "world_size"), [*((name, 3) for name in fsdp_training.OPTIMIZERS), ("Adam", 1), ("Adam", 4)]
)
def test_trains_as_a_single_process(worlds: WorldPool, optimizer: str, world_size: int) -> None:
    assert max(worlds.world(world_size).run(programs.trained, optimizer, {}).values) < ROUNDING


@forms
def test_every_form_has_the_mean_gradient(worlds: WorldPool, options: dict[str, Any]) -> None:
    assert max(worlds.world(3).run(programs.gradients, options).values) < ROUNDING


@forms
@pytest.mark.parametrize("together", [True, False])
def test_forward_passes_may_come_before_backward_passes(
    worlds: WorldPool, options: dict[str, Any], together: bool
) -> None:
    assert max(worlds.world(3).run(programs.two_forwards, options, together).values) < ROUNDING


def test_a_second_backward_through_the_same_graph_adds(worlds: WorldPool) -> None:
    assert max(worlds.world(2).run(programs.backward_twice).values) < ROUNDING


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64], ids=str)
@pytest.mark.parametrize("numel", [1, 3, 4, 6])
def test_fewer_elements_than_ranks_and_sizes_that_do_not_divide(
    worlds: WorldPool, numel: int, dtype: torch.dtype
) -> None:
    expected = torch.arange(numel).to(dtype)
    expected[1:] -= 3.0
    outcomes = worlds.world(4).run(programs.few_elements, numel, dtype)
    for parameters, _ in outcomes.values:
        assert torch.equal(parameters["vector"], expected)
        assert parameters["nothing"].shape == (0, 2)
    assert sum(held for _, (held, _) in outcomes.values) == numel
    assert max(held for _, (held, _) in outcomes.values) == -(-numel // 4)


def test_over_some_of_the_ranks(worlds: WorldPool) -> None:
    assert max(worlds.world(4).run(programs.sub_group).values) < ROUNDING


@pytest.mark.parametrize("max_norm", [0.05, 1e6])
def test_clips_by_the_norm_over_all_ranks(worlds: WorldPool, max_norm: float) -> None:
    for norm, expected, error in worlds.world(3).run(programs.clipped, max_norm).values:
        assert norm == pytest.approx(expected, rel=ROUNDING)
        assert error < ROUNDING


# -- units -------------------------------------------------------------------------------------------------------------


def test_units_are_the_children_and_the_blocks_in_lists_of_them() -> None:
    module = fsdp_training.menagerie()
    names = {unit: name for name, unit in module.named_modules()}
    cut = {
        names[unit]: {place.names[0] for place in places.values()} for unit, places in cut_into_units(module).items()
    }
    assert set(cut) == {
        *("blocks.0", "blocks.1.0", "frozen", "half_frozen", "twice", "recurrent", "wide", "on_even", "never", ""),
    }
    assert cut[""] == {"embedding.weight", "scale", "nothing", "unused", "listed.0"}
    assert cut["blocks.0"] == {
        f"blocks.0.{name}" for name in ("inner.weight", "inner.bias", "outer.weight", "outer.bias")
    }


def test_a_layer_of_torch_s_own_is_one_unit() -> None:
    attention = nn.MultiheadAttention(4, 2)  # reads the weight of its child out_proj without calling it
    assert [*cut_into_units(attention)] == [attention]


def test_a_unit_left_out_of_the_loss_of_a_rank_counts_as_zero_there(worlds: WorldPool) -> None:
    for gradients, _ in worlds.world(3).run(programs.left_out_of_the_loss, False).values:
        assert [float(gradient) for gradient in gradients] == pytest.approx([2, 4 / 3, 2])


def test_a_unit_left_out_of_every_loss_keeps_no_gradient(worlds: WorldPool) -> None:
    for (first, middle, last), _ in worlds.world(3).run(programs.left_out_of_the_loss, True).values:
        assert (float(first), middle, float(last)) == (2, None, 2)


def test_the_order_of_units_may_change(worlds: WorldPool) -> None:
    assert max(worlds.world(2).run(programs.another_order).values) < ROUNDING


def test_a_unit_that_calls_another_is_refused(worlds: WorldPool) -> None:
    for outcome in worlds.world(2).run(programs.nested_units):
        assert outcome.ending is Ending.RAISED
        assert outcome.raised is not None
        assert "called inside the forward pass of another unit" in outcome.raised.text


@pytest.mark.parametrize("where", ["around", "inside", "around two", "everything"])
@forms
def test_activation_checkpointing(worlds: WorldPool, where: str, options: dict[str, Any]) -> None:
    assert max(worlds.world(2).run(programs.checkpointed, where, options).values) < ROUNDING


@pytest.mark.parametrize("in_backward", [False, True])
def test_a_step_after_one_that_raised(worlds: WorldPool, in_backward: bool) -> None:
    assert max(worlds.world(2).run(programs.after_an_exception, in_backward).values) < ROUNDING


def test_parameters_that_got_new_memory_are_noticed(worlds: WorldPool) -> None:
    for outcome in worlds.world(2).run(programs.cast_afterwards):
        assert outcome.raised is not None
        assert "Cast, move and load first" in outcome.raised.text


# -- memory and traffic ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "expected"),
    [("resharded", (2, 2, 0)), ("without prefetch", (1, 1, 0)), ("kept", (4, 4, 0))],
)
def test_units_are_whole_one_or_two_at_a_time(worlds: WorldPool, form: str, expected: tuple[int, int, int]) -> None:
    assert set(worlds.world(2).run(state_programs.most_whole, FORMS[form]).values) == {expected}


@pytest.mark.parametrize("train", [True, False])
def test_at_rest_there_is_one_nth_of_everything(worlds: WorldPool, train: bool) -> None:
    world_size = 4
    padding = 16 * (world_size - 1) * 8  # 16 flat parameters at most, of doubles at most
    for categories, whole_bytes, total in worlds.world(world_size).run(state_programs.at_rest, train).values:
        assert whole_bytes == categories["kept"] == 0
        assert total / world_size <= categories["parameters"] <= total / world_size + padding
        assert categories["gradients"] <= (total / world_size + padding) * train
        assert bool(categories["gradients"]) == train


@pytest.mark.parametrize("world_size", [2, 4])
def test_three_passes_over_the_parameters_travel_each_step(worlds: WorldPool, world_size: int) -> None:
    for form in ("resharded", "without prefetch"):
        for count, total in worlds.world(world_size).run(state_programs.traffic, FORMS[form], 3).values:
            share = 3 * total * (world_size - 1) // world_size  # of three steps
            assert count == {"gathered": 2 * share, "num_gathers": 3 * 8, "pushed": share}


def test_parameters_that_are_kept_travel_once(worlds: WorldPool) -> None:
    for count, total in worlds.world(4).run(state_programs.traffic, FORMS["kept"], 3).values:
        share = 3 * total * 3 // 4
        assert count == {"gathered": share, "num_gathers": 3 * 4, "pushed": share}


def test_runs_on_tensors_without_memory() -> None:
    dist.init_process_group("fake", store=FakeStore(), rank=3, world_size=8)
    try:
        with FakeTensorMode():
            model = fully_shard(fsdp_training.layers(num_layers=2, width=1 << 20))  # 8 TB
            optimizer = torch.optim.Adam(model.parameters(), foreach=False)
            model(torch.ones(1, 1 << 20)).sum().backward()
            optimizer.step()
            reading = memory.weigh("fake", module=model, optimizer=optimizer)
    finally:
        dist.destroy_process_group()
    share = 2 * 4 * ((1 << 40) + (1 << 20)) // 8
    assert reading.categories["parameters"] == reading.categories["gradients"] == share
    assert 2 * share <= reading.categories["optimizer"] <= 2 * share + 4 * 4  # a step count for each parameter


# -- state -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_ranks", [1, 3, 4])
@pytest.mark.parametrize("optimizer", ["Adam", "Adagrad", "NAdam"])
def test_goes_on_from_the_state_of_three_ranks_on_any_number(worlds: WorldPool, optimizer: str, num_ranks: int) -> None:
    state = worlds.world(3).run(state_programs.saved, optimizer).values[0]
    assert max(worlds.world(num_ranks).run(state_programs.resumed, optimizer, state, 3).values) < ROUNDING


def test_other_parameter_groups_than_those_saved_are_refused(worlds: WorldPool) -> None:
    state = worlds.world(2).run(state_programs.saved, "SGD").values[0]
    for outcome in worlds.world(2).run(state_programs.loaded_into_one_group, state):
        assert outcome.raised is not None
        assert "2 parameter groups, this one has 1" in outcome.raised.text
