"""What a rank of lessons 48 and 77 does: train a model that takes notes with the implementation's block.

The whole worker is the implementation's where it has one; else it is put together from its wrapper or its functions.
Prints nothing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parameters_to_vector

from fixtures.world.context import RankContext
from impls.handover import NotProvided
from impls.loading import Implementation
from impls.normalise import Wrapped
from impls.reference.loop import batch_slice
from impls.stages import stage
from lessons.ddp_notes import FEATURES, HIDDEN, Notes, Noting, steps_of

LEARNING_RATE = 0.125  # a power of two: what a step moved, divided by it, is the gradient without another rounding
OWN_START = 0.01  # by how much the ranks' models differ before they are broadcast, times the rank
PROVIDERS = "train|DataParallel|broadcast_parameters"  # what can train: the worker, the wrapper, or two functions
CONSTANTS = ("DEFAULT_WORLD_SIZE", "DEFAULT_BACKEND", "DEFAULT_NUM_STEPS", "DEFAULT_BATCH_SIZE")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One training run. `batch_size` counts rows per rank and step."""

    world_size: int
    backend: str
    num_steps: int
    batch_size: int
    seed: int

    @property
    def num_rows(self) -> int:
        """Rows that all ranks read in all steps."""
        return self.num_steps * self.world_size * self.batch_size


def data(settings: Settings) -> tuple[Tensor, Tensor]:
    """The whole data set, the same on all ranks: a pattern that can be learnt. [rows, FEATURES] and [rows, 1]"""
    inputs = torch.randn(settings.num_rows, FEATURES, generator=torch.Generator().manual_seed(settings.seed))
    return inputs, (inputs[:, :1] - inputs[:, 1:2]).sin()


def constants(ctx: RankContext) -> dict[str, Any]:
    """The defaults that the implementation defines, as they are; what is no number or text as its repr."""
    assert ctx.impl is not None
    found = {name: ctx.impl.get(name) for name in CONSTANTS}
    return {
        name: value if isinstance(value, int | float | str) else repr(value)
        for name, value in found.items()
        if value is not None
    }


def work(ctx: RankContext, fields: dict[str, Any], home: str, progress: str | None = None) -> dict[str, Any]:
    """Train in the folder `home`, in a world without a process group; one that is left open is ended."""
    settings = Settings(**fields)
    with contextlib.chdir(home):
        try:
            return _work(ctx, settings, Path(progress) if progress and ctx.rank == 0 else None)
        finally:
            if dist.is_initialized():
                gc.collect()  # a wrapper that still lives when its group ends can deadlock
                dist.destroy_process_group()


def _work(ctx: RankContext, settings: Settings, progress: Path | None) -> dict[str, Any]:
    assert ctx.impl is not None
    inputs, targets = data(settings)
    device = torch.device("cpu")
    file = str(ctx.rendezvous_file())
    if settings.backend != "gloo":  # a worker joins a gloo group by itself, and takes any group that is there
        device = torch.device("cuda", ctx.rank)
        torch.cuda.set_device(device)
        dist.init_process_group(
            settings.backend, init_method=f"file://{file}", rank=ctx.rank, world_size=settings.world_size
        )
    notes, built, groups = Notes(progress), list[nn.Module](), list[tuple[int, str]]()

    def make_model() -> nn.Module:
        model = Noting(notes)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(OWN_START * ctx.rank)
        if dist.is_initialized():
            groups.append((dist.get_world_size(), dist.get_backend()))
        built.append(model.to(device))
        return model

    trained = _train(
        ctx.impl,
        rank=ctx.rank,
        world_size=ctx.world_size,
        init_file=file,
        make_model=make_model,
        inputs=inputs.to(device),
        targets=targets.to(device),
        steps=settings.num_steps,
        batch_size=settings.batch_size,
        learning_rate=LEARNING_RATE,
        seed=settings.seed,
    )
    if dist.is_initialized():
        groups.append((dist.get_world_size(), dist.get_backend()))
    model = getattr(trained, "module", trained)
    final = parameters_to_vector((model if isinstance(model, nn.Module) else built[-1]).parameters())
    points, rows = steps_of(notes, final.detach().cpu())
    return {
        "points": torch.stack(points),  # [steps + 1, parameters]
        "rows": [_numbers(seen, inputs) for seen in rows],
        "group_size": groups[0][0] if groups else 0,
        "backend": groups[0][1] if groups else "none",
    }


def _numbers(seen: Tensor, inputs: Tensor) -> list[int]:
    """Which rows of the data set these are; -1 for one that is none of them."""
    places = {tuple(row): number for number, row in enumerate(inputs.tolist())}
    return [places.get(tuple(row), -1) for row in seen.to(inputs.dtype).tolist()]


def _train(impl: Implementation, **given: Any) -> Any:
    """The implementation's worker; or one around its wrapper, or around its two functions."""
    if impl.reason("train") is None:
        return impl.call("train", **given)
    if not dist.is_initialized():
        method = f"file://{given['init_file']}"
        dist.init_process_group("gloo", init_method=method, rank=given["rank"], world_size=given["world_size"])
    torch.manual_seed(given["seed"])
    model: nn.Module = given["make_model"]()
    wrapper = _wrap(impl, model, given["world_size"])
    optimizer = torch.optim.SGD(model.parameters(), lr=given["learning_rate"])
    for step in range(given["steps"]):
        rows = batch_slice(step, given["rank"], given["world_size"], given["batch_size"])
        optimizer.zero_grad()
        functional.mse_loss(wrapper(given["inputs"][rows]), given["targets"][rows]).backward()  # type: ignore[no-untyped-call]
        wrapper.finish(optimizer)
        optimizer.step()
    return model


def _wrap(impl: Implementation, model: nn.Module, world_size: int) -> Wrapped | _ByFunctions:
    if impl.reason("DataParallel") is None:
        return Wrapped(impl, model, world_size)
    return _ByFunctions(impl, model, world_size)


class _ByFunctions:
    """Data parallelism without a wrapper: a broadcast at the start, an average after each backward."""

    def __init__(self, impl: Implementation, model: nn.Module, world_size: int) -> None:
        self._impl, self._model, self._world_size = impl, model, world_size
        impl.call("broadcast_parameters", module=model, src=0)

    def __call__(self, x: Tensor) -> Any:
        return self._model(x)

    def finish(self, optimizer: Any) -> None:
        """Average the gradients."""
        self._impl.call("average_gradients", module=self._model, world_size=self._world_size)


def round_trip(ctx: RankContext, seed: int) -> dict[str, Any]:
    """Shard a model with the implementation's FSDP and gather it again; how far the parameters are from what they were.

    ``reason`` says why nothing was sharded, where nothing was.
    """
    assert ctx.impl is not None
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 1))
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    try:
        sharded = stage(ctx.impl, "3", model, lr=LEARNING_RATE)
        after = sharded.full_parameters(torch.ones(1, FEATURES))
    except NotProvided as missing:
        return {"reason": str(missing)}
    return {"reason": "", "num_parameters": sum(p.numel() for p in before.values()), **_apart(before, after)}


def _apart(before: dict[str, Tensor], after: dict[str, Tensor]) -> dict[str, Any]:
    same_shape = {name: after[name].shape == value.shape for name, value in before.items() if name in after}
    if set(after) != set(before) or not all(same_shape.values()):
        return {"equal": False, "largest_difference": float("inf")}
    return {
        "equal": all(torch.equal(after[name], value) for name, value in before.items()),
        "largest_difference": max(float((after[name] - value).abs().max()) for name, value in before.items()),
    }
