"""The closed forms of what a rank holds: the figures that are in print, and what they add up to."""

from __future__ import annotations

from fractions import Fraction

import pytest

from impls.reference.memory import (
    ACCOUNTINGS,
    ALL_FP32,
    MIXED_WITH_MASTER,
    MIXED_WITHOUT_MASTER,
    Accounting,
    Stage,
    bytes_per_parameter,
    bytes_per_rank,
    fits,
    saving,
    saving_limit,
    smallest_world_size,
)

GB = 10**9
B7, B70 = 7 * 10**9, 70 * 10**9


@pytest.mark.parametrize(("accounting", "total"), [(MIXED_WITH_MASTER, 16), (MIXED_WITHOUT_MASTER, 12), (ALL_FP32, 16)])
def test_bytes_per_parameter_when_nothing_is_sharded(accounting: Accounting, total: int) -> None:
    assert bytes_per_parameter("ddp", 8, accounting).total == accounting.total == total


@pytest.mark.parametrize(
    ("stage", "parameters", "gradients", "optimizer"),
    [
        (Stage.DDP, 2, 2, 12),
        (Stage.OPTIMIZER, 2, 2, Fraction(3, 2)),
        (Stage.GRADIENTS, 2, Fraction(1, 4), Fraction(3, 2)),
        (Stage.PARAMETERS, Fraction(1, 4), Fraction(1, 4), Fraction(3, 2)),
    ],
)
def test_each_stage_shards_one_kind_more(
    stage: Stage, parameters: Fraction, gradients: Fraction, optimizer: Fraction
) -> None:
    held = bytes_per_parameter(stage, 8)
    assert (held.parameters, held.gradients, held.optimizer) == (parameters, gradients, optimizer)
    assert bytes_per_parameter(str(stage), 8) == held


def test_zero_1_on_eight_ranks_holds_five_and_a_half_bytes_which_is_almost_two_thirds_less() -> None:
    held = bytes_per_parameter(Stage.OPTIMIZER, 8).total
    assert held == Fraction("5.5")
    assert 1 - held / 16 == Fraction("0.65625")


@pytest.mark.parametrize(
    ("params", "stage", "world_size", "accounting", "gigabytes"),
    [
        (B70, Stage.PARAMETERS, 8, MIXED_WITHOUT_MASTER, "105"),
        (B70, Stage.PARAMETERS, 8, MIXED_WITH_MASTER, "140"),
        (B70, Stage.PARAMETERS, 16, MIXED_WITHOUT_MASTER, "52.5"),
        (B70, Stage.PARAMETERS, 16, MIXED_WITH_MASTER, "70"),
        (B7, Stage.DDP, 1, ALL_FP32, "112"),
        (B7, Stage.DDP, 1, MIXED_WITH_MASTER, "112"),
        (B7, Stage.DDP, 1, MIXED_WITHOUT_MASTER, "84"),
    ],
)
def test_figures_in_print(params: int, stage: Stage, world_size: int, accounting: Accounting, gigabytes: str) -> None:
    assert bytes_per_rank(params, stage, world_size, accounting) == Fraction(gigabytes) * GB


@pytest.mark.parametrize(
    ("stage", "at_8", "at_64", "limit"),
    [
        (Stage.DDP, 1.0, 1.0, 1),
        (Stage.OPTIMIZER, 2.9, 3.8, 4),
        (Stage.GRADIENTS, 4.3, 7.2, 8),
        (Stage.PARAMETERS, 8.0, 64.0, None),
    ],
)
def test_savings_and_what_they_come_to(stage: Stage, at_8: float, at_64: float, limit: int | None) -> None:
    assert round(float(saving(stage, 8)), 1) == at_8
    assert round(float(saving(stage, 64)), 1) == at_64
    assert saving_limit(stage) == limit
    if limit is not None:
        assert 0 <= limit - saving(stage, 10**9) < Fraction(1, 10**6)


@pytest.mark.parametrize("accounting", ACCOUNTINGS)
@pytest.mark.parametrize("device_bytes", [16 * GB, 24 * GB, 80 * GB, 112 * GB])
@pytest.mark.parametrize("stage", Stage)
def test_the_smallest_number_of_ranks_fits_and_one_fewer_does_not(
    stage: Stage, device_bytes: int, accounting: Accounting
) -> None:
    smallest = smallest_world_size(B7, stage, device_bytes, accounting)
    if smallest is None:
        assert not fits(B7, stage, 10**9, device_bytes, accounting)
    else:
        assert fits(B7, stage, smallest, device_bytes, accounting)
        assert smallest == 1 or not fits(B7, stage, smallest - 1, device_bytes, accounting)


def test_no_number_of_ranks_shrinks_what_is_replicated() -> None:
    assert smallest_world_size(B70, Stage.DDP, 80 * GB) is None
    assert smallest_world_size(B70, Stage.OPTIMIZER, 280 * GB) is None  # exactly the 4P that stay
    assert smallest_world_size(B70, Stage.GRADIENTS, 141 * GB) == 980
    assert smallest_world_size(B70, Stage.PARAMETERS, 80 * GB) == 14
    assert smallest_world_size(B70, Stage.PARAMETERS, 80 * GB, MIXED_WITHOUT_MASTER) == 11


def test_no_optimizer_state_at_all_leaves_nothing_for_stage_1_to_shard() -> None:
    plain_sgd = Accounting(name="SGD", parameter=4, gradient=4, master=0, moments=0)
    assert saving(Stage.OPTIMIZER, 8, plain_sgd) == 1
    assert smallest_world_size(10, Stage.OPTIMIZER, 80, plain_sgd) == 1
    assert smallest_world_size(10, Stage.OPTIMIZER, 79, plain_sgd) is None


def test_impossible_requests_say_what_to_give_instead() -> None:
    with pytest.raises(ValueError, match="there is no stage '4'; choose one of ddp, 1, 2, 3"):
        bytes_per_parameter("4", 8)
    with pytest.raises(ValueError, match="world_size is 0; give a whole number of at least 1"):
        bytes_per_parameter("1", 0)
    with pytest.raises(ValueError, match="params is -1; give a whole number"):
        bytes_per_rank(-1, "1", 8)
    with pytest.raises(ValueError, match="device_bytes is 0; give a whole number"):
        fits(1, "1", 8, 0)
    with pytest.raises(ValueError, match="device_bytes is 0; give a whole number"):
        smallest_world_size(1, "1", 0)
    with pytest.raises(ValueError, match="none may be negative"):
        Accounting(name="odd", parameter=2, gradient=-2, master=0, moments=0)
