"""Construction makes every rank hold rank 0's parameters (loop.construct-broadcast), and so does the single call."""

from __future__ import annotations

import pytest
import torch

from conformance import expect
from conformance.checks import Judge, Subject, claim
from conformance.loop import call_programs, programs
from conformance.loop.judging import judge_all
from conformance.loop.programs import Values
from conformance.loop.single import own_seeds
from fixtures import models

SEED = 11
CORE_SIZES = [2, 3, 4]
EXOTIC_SIZES = [1, 5, 8]


def _named(model: str, buffers: bool) -> list[str]:
    """The names that are compared: parameters, or buffers."""
    module = models.MODELS[model]()
    return [
        name for name, _ in (module.named_buffers() if buffers else module.named_parameters(remove_duplicate=False))
    ]


def _only(values: Values, names: list[str]) -> Values:
    return {name: values[name] for name in names}


def _judge_equal_to_root(judge: Judge, reports: list[dict[str, Values]], names: list[str], src: int, what: str) -> None:
    """Precondition: all ranks began with different values. Then: all end with those of rank `src`, bit for bit."""
    wanted = _only(reports[src]["before"], names)
    for rank, report in enumerate(reports):
        assert rank == src or not _same(_only(report["before"], names), wanted), f"rank {rank} began like rank {src}"
    found = [
        (f"rank {rank} against rank {src}'s before", expect.same(_only(report["after"], names), wanted))
        for rank, report in enumerate(reports)
    ]
    judge_all(judge, found, what)


def _same(first: Values, second: Values) -> bool:
    return all(torch.equal(value, second[name]) for name, value in first.items() if value is not None)  # type: ignore[arg-type]


def _construct(subject: Subject, judge: Judge, world_size: int, model: str, *, buffers: bool = False) -> None:
    reports = subject.run(programs.construct, world_size, model, seed=own_seeds(SEED, world_size)).values
    if model == "tied":
        judge.expect([report["tied"] for report in reports], [True] * world_size, message="tied weights are still tied")
    what = f"the {'buffers' if buffers else 'parameters'} of the {model} model after construction"
    _judge_equal_to_root(judge, reports, _named(model, buffers), 0, what)


@claim("loop.construct-broadcast", provides=["DataParallel"])
@pytest.mark.parametrize("world_size", CORE_SIZES)
@pytest.mark.parametrize("model", ["mlp", "frozen", "tied", "uneven"])
def test_construction_gives_every_rank_the_parameters_of_rank_0(
    subject: Subject, judge: Judge, model: str, world_size: int
) -> None:
    _construct(subject, judge, world_size, model)


@claim("loop.construct-broadcast", tier="contract", provides=["DataParallel"])
@pytest.mark.parametrize("world_size", [2, 3])
def test_construction_gives_every_rank_the_buffers_of_rank_0(subject: Subject, judge: Judge, world_size: int) -> None:
    _construct(subject, judge, world_size, "buffers", buffers=True)


@claim("loop.construct-broadcast", tier="contract", provides=["DataParallel"])
@pytest.mark.parametrize("model", ["frozen", "tied"])
def test_construction_keeps_the_parameters_that_an_optimizer_holds(subject: Subject, judge: Judge, model: str) -> None:
    reports = subject.run(programs.construct, 2, model, seed=own_seeds(SEED, 2)).values
    kept = [True] * len(list(models.MODELS[model]().parameters()))
    judge.expect(
        [report["kept"] for report in reports],
        [kept] * 2,
        message="by rank: each parameter from before construction is still one of the wrapped module's",
    )


@claim("loop.construct-broadcast", tier="exotic", provides=["DataParallel"])
@pytest.mark.parametrize("world_size", EXOTIC_SIZES)
def test_construction_broadcasts_on_unusual_numbers_of_ranks(subject: Subject, judge: Judge, world_size: int) -> None:
    _construct(subject, judge, world_size, "uneven")


@claim("loop.construct-broadcast", tier="exotic", provides=["DataParallel"])
@pytest.mark.parametrize("model", ["scalar", "mixed"])
def test_construction_broadcasts_unusual_parameters(subject: Subject, judge: Judge, model: str) -> None:
    _construct(subject, judge, 3, model)


@claim("loop.construct-broadcast", tier="exotic", provides=["DataParallel"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=["float64", "bfloat16"])
def test_construction_broadcasts_other_dtypes(subject: Subject, judge: Judge, dtype: torch.dtype) -> None:
    reports = subject.run(programs.construct, 3, "mlp", seed=own_seeds(SEED, 3), dtype=dtype).values
    _judge_equal_to_root(judge, reports, _named("mlp", False), 0, f"{dtype} parameters after construction")


@claim("calls.broadcast", provides=["broadcast_parameters"])
@pytest.mark.parametrize("world_size", CORE_SIZES)
@pytest.mark.parametrize("model", ["mlp", "frozen", "tied", "uneven"])
def test_broadcast_gives_every_rank_the_parameters_of_rank_0(
    subject: Subject, judge: Judge, model: str, world_size: int
) -> None:
    _broadcast(subject, judge, world_size, model, 0)


@claim("calls.broadcast", tier="contract", provides=["broadcast_parameters"])
@pytest.mark.parametrize("strided", [False, True], ids=["contiguous", "strided"])
def test_broadcast_takes_strided_parameters(subject: Subject, judge: Judge, strided: bool) -> None:
    _broadcast(subject, judge, 3, "uneven", 0, strided=strided)


@claim("calls.broadcast", tier="exotic", provides=["broadcast_parameters"])
@pytest.mark.parametrize(("world_size", "model"), [(1, "mlp"), (5, "uneven"), (8, "mlp"), (3, "scalar"), (3, "mixed")])
def test_broadcast_copes_with_unusual_ranks_and_parameters(
    subject: Subject, judge: Judge, world_size: int, model: str
) -> None:
    _broadcast(subject, judge, world_size, model, 0)


def _broadcast(subject: Subject, judge: Judge, world_size: int, model: str, src: int, *, strided: bool = False) -> None:
    seeds = own_seeds(SEED, world_size)
    reports = subject.run(call_programs.broadcast, world_size, model, seed=seeds, src=src, strided=strided).values
    _judge_equal_to_root(judge, reports, _named(model, False), src, f"the parameters of the {model} model")
    judge.expect(
        [report["in_place"] for report in reports], [True] * world_size, message="the parameters are the same objects"
    )
