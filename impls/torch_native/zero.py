"""ZeroRedundancyOptimizer as PyTorch's documentation uses it: gradients are all-reduced, owners update and broadcast.

It deals whole parameters out to the ranks, and after its update each rank broadcasts those that it owns. On top of DDP
the gradients would be averaged in ``backward()``; here ``step()`` does it, with the same operation, so that this is an
optimizer of its own that takes the ranks' gradients.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # this import compiles scripts of torch's own
    from torch.distributed.optim import ZeroRedundancyOptimizer


class ShardedOptimizer(ZeroRedundancyOptimizer):
    """`ZeroRedundancyOptimizer` with the mean over ranks in front of ``step()``; `kwargs` go to `optimizer_cls`."""

    def __init__(
        self,
        params: Any,
        optimizer_cls: type[torch.optim.Optimizer],
        group: dist.ProcessGroup | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(params, optimizer_class=optimizer_cls, process_group=group, **kwargs)
        self._is_mean = False  # the gradients are averaged already, for the norm

    def step(self) -> None:  # type: ignore[override]  # no closure: the gradients are there, and are averaged first
        """Average the gradients, update this rank's parameters, and take the others' from their owners."""
        if not self._is_mean:
            self._average()
        self._is_mean = False
        super().step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        self._is_mean = False
        super().zero_grad(set_to_none)

    def clip_grad_norm_(self, max_norm: float) -> Tensor:
        """`torch.nn.utils.clip_grad_norm_` of the mean gradient, which every rank has whole; the norm that it had."""
        self._average()
        self._is_mean = True
        return torch.nn.utils.clip_grad_norm_(self._parameters(), max_norm)

    def state_dict(self) -> dict[str, Any]:
        """The whole state, on every rank: `consolidate_state_dict` brings it to one of them at a time."""
        whole: dict[str, Any] = {}
        for to in range(self.world_size):
            self.consolidate_state_dict(to)
            if self.rank == to:
                whole = super().state_dict()
        return whole

    def _average(self) -> None:
        """Replace each gradient by its mean over ranks, as DDP does: a rank without one counts as zero."""
        learning = [parameter for parameter in self._parameters() if parameter.requires_grad]
        used = torch.tensor([parameter.grad is not None for parameter in learning], dtype=torch.uint8)
        dist.all_reduce(used, op=dist.ReduceOp.MAX, group=self.process_group)
        for parameter, is_used in zip(learning, used.tolist(), strict=True):
            if is_used:
                grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.contiguous()
                dist.all_reduce(grad, group=self.process_group)
                parameter.grad = grad.div_(self.world_size)

    def _parameters(self) -> list[Tensor]:
        return [parameter for group in self.param_groups for parameter in group["params"]]
