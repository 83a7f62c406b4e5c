"""What one process computes for a case: gradients of every stage, losses, and how far rounding can take them apart."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from conformance.pipeline.case import Case
from conformance.pipeline.models import WIDTH

Gradients = Mapping[int, Mapping[str, Tensor | None]]  # by stage and name


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """`gradients` after all steps and the `losses` of each microbatch; in double where there are `bounds`.

    `bounds`: how far each element may be off by rounding, in the same places as `gradients`; None for exact cases.
    """

    gradients: Gradients
    losses: list[Tensor]
    bounds: Gradients | None
    loss_bound: float


@functools.cache
def alone(case: Case, num_stages: int) -> Run:
    """The yardstick, with its preconditions: every stage that learns has a gradient, and integers are exact."""
    if case.real:
        return _real(case, num_stages)
    stages, losses = _step(case, case.build(num_stages), case.dtype)
    gradients = _gradients(case, stages)
    wide, _ = _step(case, case.build(num_stages, torch.float64), torch.float64)
    for stage, names in _gradients(case, wide).items():
        for name, found in names.items():
            own = gradients[stage][name]
            assert (own is None) == (found is None), (stage, name)
            assert own is None or torch.equal(own.double(), found.double()), f"{case.called} is not exact in {stage}"  # type: ignore[union-attr]
    _assert_alive(case, gradients)
    return Run(gradients=gradients, losses=losses, bounds=None, loss_bound=0.0)


def _real(case: Case, num_stages: int) -> Run:
    """In double; the bound takes every value for its magnitude, and one rounding of each for every operation."""
    stages, losses = _step(case, [stage.double() for stage in case.build(num_stages)], torch.float64)
    gradients = _gradients(case, stages)
    large = [stage.double() for stage in case.build(num_stages)]
    for parameter in (p for stage in large for p in stage.parameters()):
        parameter.data.abs_()
    _, large_losses = _step(case, large, torch.float64, magnitudes=True)
    unit = torch.finfo(case.dtype).eps * _num_roundings(case, num_stages)
    bounds = {
        stage: {name: None if found is None else found * unit for name, found in names.items()}
        for stage, names in _gradients(case, large).items()
    }
    _assert_alive(case, gradients)
    for stage, names in gradients.items():
        for name, found in names.items():
            limit = bounds[stage][name]
            assert found is not None
            assert limit is not None
            assert found.abs().max() > 100 * limit.max(), f"{name} of stage {stage} is small beside its bound"
    return Run(gradients=gradients, losses=losses, bounds=bounds, loss_bound=float(max(large_losses)) * unit)


def _num_roundings(case: Case, num_stages: int) -> int:
    """Of a gradient's element: down all stages, the loss, back through all, and the sums over rows and microbatches."""
    through = num_stages * (WIDTH + 2)
    return 2 * through + (WIDTH + 1) * max(case.sizes) + sum(case.sizes) + case.steps * (len(case.sizes) + 4)


def _step(
    case: Case, stages: list[nn.Module], dtype: torch.dtype, *, magnitudes: bool = False
) -> tuple[list[nn.Module], list[Tensor]]:
    """Every microbatch through all stages, weighed by its rows, for as many steps as there are."""
    if case.model == "tied":
        stages[-1].weight = stages[0].weight
    losses: list[Tensor] = []
    for _ in range(case.steps):
        losses = []
        for x, target in zip(*case.data(), strict=True):
            passed: Any = (_wide(x, dtype),)
            wanted = _wide(target, dtype)
            if magnitudes:
                passed, wanted = tuple(each.abs() for each in passed), -wanted.abs()
            for stage in stages:
                out = stage(*passed)
                passed = out if isinstance(out, tuple) else (out,)
            loss = case.loss(passed[0], wanted)
            (loss * (len(target) / sum(case.sizes))).backward()  # type: ignore[no-untyped-call]
            losses.append(loss.detach())
    return stages, losses


def _wide(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x.to(dtype) if x.is_floating_point() else x


def _gradients(case: Case, stages: list[nn.Module]) -> dict[int, dict[str, Tensor | None]]:
    """By name; a tied weight under both of its names."""
    return {
        stage: {name: p.grad for name, p in module.named_parameters(remove_duplicate=False)}
        for stage, module in enumerate(stages)
    }


def _assert_alive(case: Case, gradients: Gradients) -> None:
    """Each stage with parameters that learn has a gradient that is not zero."""
    for stage, module in enumerate(case.build(len(gradients))):
        learning = [name for name, p in module.named_parameters() if p.requires_grad]
        found = [gradients[stage][name] for name in learning]
        assert not learning or any(g is not None and bool(g.any()) for g in found), f"{case.called}: stage {stage}"
