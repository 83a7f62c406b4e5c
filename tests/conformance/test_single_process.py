"""The yardstick of data parallelism, measured with another one: finite differences, torch's optimizers, arithmetic."""

from __future__ import annotations

import pytest
import torch

from conformance.loop import single
from fixtures import models

EXACT_LIMIT = 2**24  # float32 carries every integer up to here
QUARTERS = 4  # rows of a batch: gradients are multiples of scale / 4, as exact as integers


@pytest.mark.parametrize("model", ["mlp", "tied", "frozen", "shared", "uneven", "scalar", "mixed"])
@pytest.mark.parametrize("world_size", [2, 3, 5, 8])
def test_gradients_of_integer_models_are_exact_in_float32(model: str, world_size: int) -> None:
    (by_rank,) = single.batches(3, world_size)
    scale = float(world_size)
    values = [single.of_rank(model, micro, seed=1, scale=scale) for micro in by_rank]
    for name, total in single.total_of(values).items():
        if total is not None:
            steps = [QUARTERS * value[name] / scale for value in values]  # type: ignore[operator]
            assert all(torch.equal(step, step.round()) for step in steps), "a division by N before the sum would round"
            assert not total.numel() or float(QUARTERS * total.abs().max()) < EXACT_LIMIT


@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_the_mean_over_equal_batches_is_the_gradient_of_the_global_batch(world_size: int) -> None:
    (by_rank,) = single.batches(4, world_size)
    scale = float(world_size)
    mean = single.mean([single.of_rank("shared", micro, seed=1, scale=scale) for micro in by_rank])
    assert single.apart(mean, single.of_global_batch("shared", by_rank, seed=1, scale=scale)) == 0


def test_a_gradient_that_one_rank_lacks_counts_as_zero() -> None:
    mean = single.mean([{"w": torch.tensor([4.0]), "v": None}, {"w": None, "v": None}])
    assert mean["v"] is None
    assert mean["w"] is not None
    assert mean["w"].tolist() == [2.0]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (single.Sgd(), lambda p: torch.optim.SGD(p, lr=0.1)),
        (single.Sgd(0.9), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)),
        (single.Adam(), lambda p: torch.optim.Adam(p, lr=0.1)),
    ],
    ids=["sgd", "momentum", "adam"],
)
def test_the_optimizers_written_out_are_those_of_torch(ours: single.Sgd | single.Adam, theirs: object) -> None:
    data = single.batches(5, 1, steps=4, real=True)
    mine = single.train("mlp", data, rates=[0.1] * 4, seed=2, optimizer=ours)
    module = models.build("mlp", 2, real=True).double()
    optimizer = theirs(module.parameters())  # type: ignore[operator]
    for ((pair,),) in data:
        optimizer.zero_grad()
        models.squared(module(pair[0].double()), pair[1], 1.0).backward()
        optimizer.step()
    for name, parameter in module.named_parameters():
        torch.testing.assert_close(mine.parameters[name], parameter.detach())


def test_the_rounding_bound_is_above_what_float32_does_and_far_below_what_faults_do() -> None:
    rates = [0.1] * 4
    data = single.batches(17, 2, steps=4, real=True)
    bound = single.rounding_bound("mlp", data, rates=rates, seed=5)
    module = models.build("mlp", 5, real=True)
    for by_rank in data:
        module.zero_grad()
        x, target = single.joined([micro[0] for micro in by_rank])
        models.squared(module(x), target, 1.0).backward()
        with torch.no_grad():
            for parameter in module.parameters():
                assert parameter.grad is not None
                parameter -= 0.1 * parameter.grad
    run = single.train("mlp", data, rates=rates, seed=5)
    error = single.apart({n: p.detach() for n, p in module.named_parameters()}, run.parameters)
    slightly_wrong = single.train("mlp", data, rates=[0.101] * 4, seed=5)
    assert error < bound < single.apart(slightly_wrong.parameters, run.parameters) / 10


@pytest.mark.parametrize("name", list(models.MODELS))
def test_other_seeds_give_every_model_other_values(name: str) -> None:
    first, second = (models.build(name, seed).state_dict() for seed in (1, 2))
    assert any(not torch.equal(value, second[key]) for key, value in first.items())


def test_tied_weights_are_one_parameter() -> None:
    tied = models.Tied()
    assert tied.decoder.weight is tied.encoder.weight
    assert len(list(tied.parameters())) == 2


def test_a_recording_model_tells_the_rows_that_reached_it() -> None:
    model = models.Recording()
    rows = torch.zeros(3, models.FEATURES)
    rows[:, 0] = torch.tensor([4.0, 5.0, 6.0])
    model(rows[:1])
    model(rows[1:])
    assert model.rows_seen() == [4, 5, 6]
