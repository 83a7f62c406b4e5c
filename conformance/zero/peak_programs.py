"""A rank program that follows memory through a step: what is alive while each layer computes, and at the peak.

What a rank holds at rest is weighed elsewhere; here it is what comes on top. Imports no pytest.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from conformance.asks import asks_for
from fixtures.witness.living import Living, follow
from fixtures.world.context import RankContext
from impls.stages import STAGES, Trainer, stage

STEPS = 3
EVALUATED = "evaluated"
UNSEEN = "unseen"
FORWARD = "forward"  # the moments of a layer at which it computes
BACKWARD = "backward"
Watch = Callable[[str, int, Tensor], None]  # moment, layer, its whole weight


class Watched(nn.Linear):
    """A square layer without bias that says when it computes, and with what; linear, as some shard no other."""

    def __init__(self, index: int, width: int, watch: Watch) -> None:
        super().__init__(width, width, bias=False, device="meta")
        self.weight = nn.Parameter(torch.zeros(width, width))
        self._index = index
        self._watch = watch

    def forward(self, x: Tensor) -> Tensor:
        """[rows, width] to [rows, width]."""
        out: Tensor = _Product.apply(x, self.weight, self._index, self._watch)  # type: ignore[no-untyped-call]
        return out


class _Product(torch.autograd.Function):
    """``x @ weight.t()``, which saves its factors for backward as torch's own does."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, index: int, watch: Watch) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.index, ctx.watch = index, watch
        watch(FORWARD, index, weight)
        return x @ weight.t()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (gradient,) = gradients
        x, weight = ctx.saved_tensors
        ctx.watch(BACKWARD, ctx.index, weight)
        return gradient @ weight, gradient.t() @ x, None, None


def takes_bucket_cap(ctx: RankContext) -> bool:
    """Whether ZeRO-2 can be told how large a bucket of gradients may grow."""
    return asks_for(ctx.impl, STAGES["2"], "bucket_cap_mb")


def within_a_step(
    ctx: RankContext,
    name: str,
    num_layers: int,
    width: int,
    *,
    keep: bool = False,
    bucket_cap_mb: float | None = None,
) -> dict[str, Any]:
    """What is alive above what was there at rest, at each layer's moments and at the peak: bytes.

    `UNSEEN` alone, with the reason, where nothing of this can be followed.

    The least of some steps, since a thread of the backend may hold for a moment what an implementation has released.
    `keep`: parameters shall stay whole from forward to backward; not to is asked for only where that can be chosen.
    """
    assert ctx.impl is not None
    gc.collect()
    living = Living()
    seen: dict[tuple[str, int], int] = {}

    def watch(moment: str, layer: int, weight: Tensor) -> None:
        living.note(weight)
        gc.collect()
        seen.setdefault((moment, layer), living.look())  # a checkpointed layer computes once more in backward

    before = living.look()
    module = nn.Sequential(*(Watched(index, width, watch) for index in range(num_layers)))
    whole = living.look() - before
    chooses = name == "3" and asks_for(ctx.impl, STAGES[name], "reshard_after_forward")
    extras = {} if bucket_cap_mb is None else {"bucket_cap_mb": bucket_cap_mb}
    reshard = not keep if chooses or keep else None
    trainer = stage(ctx.impl, name, module, reshard_after_forward=reshard, extras=extras, lr=0.01)
    gc.collect()
    if name == "3" and living.look() - before >= whole:
        return {UNSEEN: "it leaves these layers whole, which are linear: its units are others"}
    runs = []
    for _ in range(STEPS):
        gc.collect()
        seen.clear()
        rest = living.look()
        with follow(living) as step:
            trainer.backward(trainer(torch.zeros(1, width)).sum())
            trainer.finish()
        if any((FORWARD, layer) not in seen for layer in range(num_layers)):
            return {UNSEEN: "it has other layers compute in the place of these, so that nobody sees when they do"}
        gc.collect()
        runs.append({**seen, ("rest", 0): rest, ("after", 0): living.look(), ("peak", 0): step.peak_bytes})
        trainer.average()
        trainer.step()
        trainer.zero_grad()
    rest = min(run["rest", 0] for run in runs)
    least = {moment: min(run[moment] for run in runs) - rest for moment in runs[0]}
    return {
        FORWARD: [least[FORWARD, layer] for layer in range(num_layers)],
        BACKWARD: [least[BACKWARD, layer] for layer in reversed(range(num_layers))],
        **{moment: least[moment, 0] for moment in ("after", "peak")},
        EVALUATED: min(_evaluated(trainer, width, living) for _ in range(STEPS)) - rest,
        "chooses": chooses,
    }


def _evaluated(trainer: Trainer, width: int, living: Living) -> int:
    """Bytes alive after a forward pass that no backward follows."""
    with torch.no_grad():
        trainer(torch.zeros(1, width))
    gc.collect()
    return living.look()
