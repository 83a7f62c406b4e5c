"""The reference's mixed precision: against FP32 copies by hand, and on ranks where one of them overflows."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from fixtures.world.pool import WorldPool
from impls.reference import MixedPrecision
from tests.impls import mixed_programs as programs

BF16, FP16 = torch.bfloat16, torch.float16
SCALE = 2.0**10  # small enough that no gradient of `Net` overflows
OPTIMIZERS: list[tuple[type[torch.optim.Optimizer], dict[str, Any]]] = [
    (torch.optim.SGD, {"momentum": 0.9}),
    (torch.optim.Adam, {}),
    (torch.optim.AdamW, {"eps": 1e-6}),
]


def _same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(map(torch.equal, one, other))


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_norm", [None, 0.125])
@pytest.mark.parametrize(("optimizer_cls", "options"), OPTIMIZERS)
@pytest.mark.parametrize("dtype", [BF16, FP16])
def test_a_training_is_that_of_fp32_copies_to_the_bit(
    dtype: torch.dtype, optimizer_cls: type[torch.optim.Optimizer], options: dict[str, Any], max_norm: float | None
) -> None:
    module, by_hand = programs.net(dtype), programs.net(dtype)
    before = programs.values(module)
    optimizer = MixedPrecision(
        programs.groups_of(module), optimizer_cls, dtype=dtype, init_scale=SCALE, lr=2.0**-5, **options
    )
    programs.train(module, optimizer, range(5), max_norm)
    programs.train_by_hand(
        by_hand, optimizer_cls, range(5), SCALE if dtype == FP16 else 1.0, max_norm, lr=2.0**-5, **options
    )
    assert _same(programs.values(module), programs.values(by_hand))
    moved = {name for (name, p), old in zip(module.named_parameters(), before, strict=True) if not torch.equal(p, old)}
    assert moved == {f"{layer}.{part}" for layer in ("hidden", "norm", "head") for part in ("weight", "bias")}


@pytest.mark.parametrize("dtype", [BF16, FP16])
def test_parameters_are_the_rounded_masters_and_wide_ones_have_none(dtype: torch.dtype) -> None:
    module = programs.net(dtype)
    optimizer = MixedPrecision(module.parameters(), torch.optim.Adam, init_scale=SCALE, lr=2.0**-5)
    programs.train(module, optimizer, range(3))
    names = [name for name, _ in module.named_parameters()]
    masters = {names[i]: master for i, master in optimizer.state_dict()["master"].items()}
    assert set(masters) == {"hidden.weight", "hidden.bias", "head.weight", "head.bias"}
    for name, master in masters.items():
        assert master.dtype == torch.float32
        assert torch.equal(module.get_parameter(name), master.to(dtype))
        assert not torch.equal(module.get_parameter(name).float(), master)
    for state in optimizer.state_dict()["state"].values():
        assert {state["exp_avg"].dtype, state["exp_avg_sq"].dtype} == {torch.float32}


def test_updates_too_small_for_16_bits_add_up_in_the_master_alone() -> None:
    small = 2.0**-10  # half a unit in the last place of 1 in bfloat16 is 2**-8 upwards, 2**-9 downwards
    with_master, without = programs.one([1.0], BF16), programs.one([1.0], BF16)
    for parameter, master in ((with_master, True), (without, False)):
        optimizer = MixedPrecision([parameter], torch.optim.SGD, master=master, lr=1.0)
        for _ in range(16):
            programs.step_with(optimizer, parameter, small)
    assert with_master.item() == 1.0 - 16 * small
    assert without.item() == 1.0


def test_gradients_too_small_for_16_bits_survive_scaling_and_unscaling() -> None:
    parameter = programs.one([0.0])
    optimizer = MixedPrecision([parameter], torch.optim.SGD, lr=2.0**20)
    optimizer.backward((parameter.float() * 2.0**-30).sum())
    assert parameter.grad is not None
    assert parameter.grad.item() == 2.0**-14
    optimizer.step()
    assert parameter.item() == -(2.0**-10)


def test_the_clipped_norm_is_that_of_the_true_gradient_and_is_forgotten_after_the_step() -> None:
    parameter = programs.one([0.0, 0.0])
    optimizer = MixedPrecision([parameter], torch.optim.SGD, lr=1.0, init_scale=16.0)
    parameter.grad = torch.tensor([3.0, 4.0], dtype=FP16) * 16
    assert optimizer.clip_grad_norm_(10.0).item() == 5.0
    assert optimizer.clip_grad_norm_(2.5).item() == 5.0
    optimizer.step()
    assert parameter.tolist() == [-1.5, -2.0]
    optimizer.step()
    assert parameter.tolist() == [-4.5, -6.0]
    assert optimizer.clip_grad_norm_(2.5).item() == 5.0
    optimizer.zero_grad()
    programs.step_with(optimizer, parameter, 1.0)
    assert parameter.tolist() == [-5.5, -7.0]


def test_shards_are_clipped_by_the_norm_of_them_all(worlds: WorldPool) -> None:
    outcomes = worlds.world(2).run(programs.clip_shards).values
    assert outcomes == [(5.0, pytest.approx(0.6, rel=2**-11)), (5.0, pytest.approx(0.8, rel=2**-11))]


def test_under_zero_3_every_rank_has_the_masters_of_its_shard(worlds: WorldPool) -> None:
    small = 2.0**-12  # updates that vanish in bfloat16, one by one
    outcomes = worlds.world(3).run(programs.fully_sharded, 8, small).values
    # The mean gradient is 2 in all steps, so with a momentum of 1/2 step k moves by small * 4 * (1 - 2**-k).
    expected = 1.0 - small * 4 * sum(1 - 2.0**-k for k in range(1, 9))
    for before, after, held in outcomes:
        assert torch.equal(after, torch.full_like(before, expected))
        assert not torch.equal(after, before)
        assert held == programs.FEATURES // 3 * 8  # master and momentum


# -- loss scale --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize("world_size", [2, 3])
def test_an_overflow_on_one_rank_keeps_all_ranks_from_stepping(worlds: WorldPool, world_size: int, bad: float) -> None:
    for rank, seen in enumerate(worlds.world(world_size).run(programs.overflow_on_rank_1, bad).values):
        # Adam moves by about lr when all gradients are 1; 0.125 is exact in half precision.
        assert seen == [(8.0, 1, rank - 0.125, 1), (4.0, 0, rank - 0.125, 1), (4.0, 1, rank - 0.25, 2)]


@pytest.mark.parametrize(("dtype", "kinds"), [(FP16, [("all_reduce", 4)]), (BF16, [])])
def test_only_float16_asks_the_other_ranks(worlds: WorldPool, dtype: torch.dtype, kinds: list[tuple[str, int]]) -> None:
    for outcome in worlds.world(2).run(programs.train_as_shards, dtype):
        assert outcome.value == 0.5
        assert [(op.kind, op.num_bytes) for op in outcome.operations] == kinds


def test_the_scale_doubles_after_good_steps_in_a_row_only() -> None:
    parameter = programs.one([0.0])
    optimizer = MixedPrecision([parameter], torch.optim.SGD, lr=0.0, init_scale=8.0, growth_interval=2)
    scales = []
    for gradient in (1.0, float("nan"), 1.0, 1.0, 1.0, 1.0, 1.0):
        programs.step_with(optimizer, parameter, gradient)
        scales.append(optimizer.loss_scale)
    assert scales == [8.0, 4.0, 4.0, 8.0, 8.0, 16.0, 16.0]


def test_bfloat16_is_not_scaled_and_float16_is() -> None:
    loss = torch.tensor(3.0)
    for dtype, scaled in ((BF16, 3.0), (FP16, 24.0)):
        optimizer = MixedPrecision([programs.one([0.0], dtype)], torch.optim.SGD, lr=1.0, init_scale=8.0)
        assert optimizer.scale(loss).item() == scaled
        assert optimizer.loss_scale * 3 == scaled


def test_a_scale_that_only_falls_is_told() -> None:
    parameter = programs.one([0.0])
    optimizer = MixedPrecision([parameter], torch.optim.SGD, lr=1.0, init_scale=2.0**-23)
    programs.step_with(optimizer, parameter, float("inf"))
    with pytest.raises(FloatingPointError, match="look for the first loss that is not finite"):
        programs.step_with(optimizer, parameter, float("inf"))


# -- used like a torch optimizer ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("master", [True, False])
@pytest.mark.parametrize("dtype", [BF16, FP16])
def test_a_resumed_training_goes_on_as_if_never_stopped(dtype: torch.dtype, master: bool) -> None:
    def make(module: nn.Module) -> MixedPrecision:
        return MixedPrecision(
            programs.groups_of(module),
            torch.optim.Adam,
            master=master,
            init_scale=SCALE,
            growth_interval=2,
            lr=2.0**-5,
        )

    straight = programs.net(dtype)
    whole = programs.train(straight, make(straight), range(5))

    stopped, resumed = programs.net(dtype), programs.net(dtype)
    saved = programs.train(stopped, make(stopped), range(2)).state_dict()
    resumed.load_state_dict(stopped.state_dict())
    optimizer = make(resumed)
    optimizer.load_state_dict(saved)
    untouched = [master.clone() for master in saved["master"].values()]
    programs.train(resumed, optimizer, range(2, 5))

    assert _same(programs.values(resumed), programs.values(straight))
    assert not _same(programs.values(resumed), programs.values(stopped))
    assert _same(list(optimizer.state_dict()["master"].values()), list(whole.state_dict()["master"].values()))
    assert len(whole.state_dict()["master"]) == (4 if master else 0)
    assert optimizer.loss_scale == whole.loss_scale == (4 * SCALE if dtype == FP16 else 1.0)
    assert optimizer.good_steps == whole.good_steps == (1 if dtype == FP16 else 0)
    assert _same(list(saved["master"].values()), untouched)


def test_parameters_follow_their_masters_when_a_state_is_loaded() -> None:
    old, new = programs.one([1.0], BF16), programs.one([7.0], BF16)
    saved = MixedPrecision([old], torch.optim.SGD, lr=2.0**-10)
    programs.step_with(saved, old, 1.0)
    without = MixedPrecision([new], torch.optim.SGD, master=False, lr=1.0)
    without.load_state_dict(saved.state_dict())
    assert new.item() == old.item() == 1.0
    assert without.param_groups[0]["lr"] == 2.0**-10


def test_a_state_of_other_groups_is_refused() -> None:
    one, two = programs.one([1.0]), programs.one([1.0])
    saved = MixedPrecision([one], torch.optim.SGD, lr=1.0).state_dict()
    with pytest.raises(ValueError, match=r"groups of \[1\] parameters, this optimizer has \[2\]"):
        MixedPrecision([one, two], torch.optim.SGD, lr=1.0).load_state_dict(saved)


def test_schedulers_and_added_groups_are_seen() -> None:
    first, second = programs.one([0.0], BF16), programs.one([0.0], BF16)
    optimizer = MixedPrecision([first], torch.optim.SGD, lr=1.0)
    optimizer.add_param_group({"params": [second], "lr": 4.0})
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    for _ in range(2):
        first.grad, second.grad = torch.ones_like(first), torch.ones_like(second)
        optimizer.step()
        scheduler.step()
    assert (first.item(), second.item()) == (-1.5, -6.0)


@pytest.mark.parametrize(
    ("dtypes", "wanted", "message"),
    [
        ([torch.float32], None, "these are torch.float32. Cast the module first"),
        ([torch.float32], BF16, "wants parameters of torch.bfloat16"),
        ([FP16], BF16, "these are torch.float16. Cast the module first: module.to(torch.bfloat16)"),
        ([FP16, BF16], None, "these are torch.bfloat16, torch.float16"),
        ([FP16], torch.float32, "wants parameters of torch.float32"),
    ],
)
def test_parameters_of_another_dtype_are_refused(
    dtypes: list[torch.dtype], wanted: torch.dtype | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(").replace(")", r"\)")):
        MixedPrecision([programs.one([1.0], dtype) for dtype in dtypes], torch.optim.SGD, dtype=wanted, lr=1.0)


# -- memory ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("master", "optimizer_bytes"), [(True, 12), (False, 8)])
def test_between_steps_16_bytes_per_parameter_are_held_or_12(
    worlds: WorldPool, master: bool, optimizer_bytes: int
) -> None:
    numel, layers = 1000, 8
    [outcome] = worlds.world(1).run(programs.weigh, numel, layers, master)
    counters = 4 * layers  # Adam's step, a float for each tensor
    params = numel * layers
    held = {"parameters": 2 * params, "gradients": 2 * params, "optimizer": optimizer_bytes * params + counters}
    walked, told = outcome.memory
    assert walked.categories == {**held, "buffers": 0}
    assert told.categories == held
    # FP32 value, gradient, and Adam's intermediate results of one layer; all layers at once would be 8 times that.
    assert 0 < outcome.value < 8 * 4 * numel


@pytest.mark.parametrize(("master", "optimizer_bytes"), [(True, 12), (False, 8)])
def test_it_weighs_the_same_on_fake_tensors(master: bool, optimizer_bytes: int) -> None:
    with FakeTensorMode(allow_fallback_kernels=False):
        module = nn.Linear(1000, 1000, bias=False, dtype=BF16)
        optimizer = MixedPrecision(module.parameters(), torch.optim.AdamW, master=master, lr=1.0)
        optimizer.backward(module(torch.ones(2, 1000, dtype=BF16)).float().sum())
        optimizer.clip_grad_norm_(1.0)
        optimizer.step()
    held = sum(tensor.untyped_storage().nbytes() for tensor in optimizer.state_held()["optimizer"])
    assert held == optimizer_bytes * 1_000_000 + 4
