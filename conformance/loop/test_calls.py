"""The single calls on gradients: a sum over ranks (calls.all-reduce-sum), and its division by N (calls.div)."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.checks import Judge, Pool, Subject, claim
from conformance.loop import call_programs, single
from conformance.loop.judging import gradients_as, judge_all
from conformance.loop.programs import Rows, Values
from conformance.verdict import Witness
from fixtures.world.per_rank import PerRank

SEED = 1


def _batch(world_size: int, rows: int = 4) -> list[Rows]:
    return [micro[0] for micro in single.batches(21, world_size, rows=rows)[0]]


def _reduce(
    subject: Subject, judge: Judge, name: str, world_size: int, model: str, *, rows: int = 4, **options: Any
) -> None:
    """One backward pass with equal weights, `name` on the gradients, and what must come of it on every rank."""
    batch, dtype = _batch(world_size, rows), options.get("dtype")
    local = [single.of_rank(model, [pair], seed=SEED, scale=float(world_size), dtype=dtype) for pair in batch]
    total = single.total_of(local)
    expected = total if name == "sum_gradients" else single.mean(local)
    _assert_tells_faults_apart(local, total)
    reports = subject.run(
        call_programs.reduce, world_size, name, model, PerRank(batch), seed=SEED, scale=float(world_size), **options
    ).values
    for rank, report in enumerate(reports):
        assert gradients_as(report["local"], local[rank]).matches, f"rank {rank} began with other gradients"
    what = f"the {'sum' if name == 'sum_gradients' else 'mean'} of the gradients of the {model} model"
    judge_all(judge, [(f"rank {r}", gradients_as(report["after"], expected)) for r, report in enumerate(reports)], what)


def _assert_tells_faults_apart(local: list[Values], total: Values) -> None:
    """Precondition: no rank's own gradient is the sum already."""
    for name, value in total.items():
        if value is not None and value.numel() and len(local) > 1:
            assert value.any()
            assert not any(torch.equal(own, value) for values in local if (own := values[name]) is not None)


@claim("calls.all-reduce-sum", provides=["sum_gradients"])
@pytest.mark.parametrize("world_size", [2, 3, 4])
@pytest.mark.parametrize("model", ["mlp", "tied", "frozen", "unused", "uneven"])
def test_gradients_become_their_sum_over_ranks(subject: Subject, judge: Judge, model: str, world_size: int) -> None:
    _reduce(subject, judge, "sum_gradients", world_size, model)


@claim("calls.all-reduce-sum", tier="contract", provides=["sum_gradients"])
@pytest.mark.parametrize("world_size", [2, 3])
def test_strided_gradients_are_summed_though_gloo_would_corrupt_them(
    subject: Subject, judge: Judge, worlds: Pool, world_size: int
) -> None:
    _reduce(subject, judge, "sum_gradients", world_size, "mlp", strided=True)
    control = worlds.world(world_size)
    wrong = control.run(call_programs.sum_strided_view).values
    control.close()  # gloo may have written past the end of the view
    correct = [float(sum(range(1, world_size + 1)))] * call_programs.STRIDED
    assert any(values != correct for values in wrong), "the condition says nothing: gloo summed a strided view"
    judge.holds(
        expected=f"{correct} from a dense tensor",
        observed=f"{wrong[0]} from a strided view",
        witness=Witness.VALUE,
        message="handed a strided view as it is, gloo gives wrong sums without an error",
    )


@claim("calls.all-reduce-sum", tier="exotic", provides=["sum_gradients"])
@pytest.mark.parametrize(("world_size", "model"), [(1, "mlp"), (5, "uneven"), (8, "mlp"), (3, "scalar"), (3, "mixed")])
def test_gradients_are_summed_on_unusual_ranks_and_parameters(
    subject: Subject, judge: Judge, world_size: int, model: str
) -> None:
    _reduce(subject, judge, "sum_gradients", world_size, model)


@claim("calls.div", provides=["average_gradients"])
@pytest.mark.parametrize("world_size", [2, 3, 4])
@pytest.mark.parametrize("model", ["mlp", "tied", "frozen", "unused", "uneven"])
def test_every_gradient_is_divided_by_n_once(subject: Subject, judge: Judge, model: str, world_size: int) -> None:
    _reduce(subject, judge, "average_gradients", world_size, model)


@claim("calls.div", tier="exotic", provides=["average_gradients"])
@pytest.mark.parametrize(("world_size", "model"), [(1, "mlp"), (5, "uneven"), (8, "mlp"), (3, "scalar"), (3, "mixed")])
def test_gradients_are_divided_on_unusual_ranks_and_parameters(
    subject: Subject, judge: Judge, world_size: int, model: str
) -> None:
    _reduce(subject, judge, "average_gradients", world_size, model)


@claim("calls.div", tier="exotic", provides=["average_gradients"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=["float64", "bfloat16"])
def test_gradients_of_other_dtypes_are_divided(subject: Subject, judge: Judge, dtype: torch.dtype) -> None:
    _reduce(subject, judge, "average_gradients", 2, "mlp", rows=1, dtype=dtype)
