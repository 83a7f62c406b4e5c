"""ZeRO-2: of the gradients, too, each rank keeps only the share that it needs.

A rank updates 1/N of the parameters, so after the reduction it has no use for the other gradients. They are reduced
bucket by bucket while backward is still running, and released as they come: whole gradients never lie side by side.
Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models" (2020), section 5.2.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd import Variable

from impls.reference.flat import pack
from impls.reference.zero1 import ShardedOptimizer

BUCKET_CAP_MB = 25.0  # MiB, as for data parallelism


class Zero2Optimizer(ShardedOptimizer):
    """As `ShardedOptimizer`; but when ``backward()`` returns, every ``.grad`` is None.

    What is left is this rank's shard of the mean gradient, until ``zero_grad()`` is called (on this optimizer: the
    module's own knows nothing of it). A second backward adds to it, and only its own gradients are reduced.

    - *Buckets.* A flat buffer is a bucket: parameters from last to first, as their gradients come, at most
      `bucket_cap_mb` of them. A gradient that arrives is copied into its bucket and released. A full bucket is reduced
      at once, and backward goes on when that is done; but all ranks do so in the same order, whatever order gradients
      come in, so a bucket may have to wait for those before it.
    - *Every rank takes part in every reduction*, without gradients if it has none. ``backward()`` does so by itself. In
      a loop in which some rank may have nothing to differentiate, all ranks call `sync_grads` after each backward.
    - After a backward that raised, call ``zero_grad()`` before the next.
    """

    def __init__(
        self,
        params: Any,
        optimizer_cls: type[torch.optim.Optimizer],
        group: dist.ProcessGroup | None = None,
        bucket_cap_mb: float = BUCKET_CAP_MB,
        **kwargs: Any,
    ) -> None:
        self._bucket_cap_bytes = bucket_cap_mb * 2**20
        self._num_reduced = 0  # of the buckets, in this backward
        self._is_in_backward = False
        self._is_synced = False  # a backward has ended for which sync_grads was not called, and need not be
        self._has_reduced = False  # there was a reduction since the last step
        super().__init__(params, optimizer_cls, group, **kwargs)

    @torch.no_grad()
    def sync_grads(self) -> None:
        """End the reduction of one backward; where ``backward()`` ran, it has done so, and nothing happens."""
        if not self._is_synced:
            self._end_reduction()
        self._is_synced = False

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, this rank's shard of them first of all."""
        super().zero_grad(set_to_none)
        self._num_reduced = 0
        self._is_in_backward = self._is_synced = self._has_reduced = False

    def _on_gradient(self, parameter: Tensor) -> None:
        """Autograd has just completed the gradient of `parameter`."""
        if not self._is_in_backward:
            Variable._execution_engine.queue_callback(self._on_end_of_backward)
            self._is_in_backward = True
        flat = self._flat_of[parameter]
        if flat in self._flats[: self._num_reduced]:
            raise RuntimeError(
                f"a parameter of shape {tuple(parameter.shape)} got a second gradient in one backward, after the first "
                "had been reduced. Likely: checkpoint(use_reentrant=True), pass use_reentrant=False; or the backward "
                "before this one raised, then call zero_grad() first."
            )
        flat.take(parameter)
        parameter.grad = None
        while self._num_reduced < len(self._flats) and self._flats[self._num_reduced].is_full():
            self._reduce_next()

    def _on_end_of_backward(self) -> None:
        self._end_reduction()
        self._is_synced = True

    @torch.no_grad()
    def _end_reduction(self) -> None:
        """Reduce the buckets that wait for a gradient which never came."""
        self._lay_out()  # parameters that are no longer frozen
        while self._num_reduced < len(self._flats):
            self._reduce_next()
        self._num_reduced = 0
        self._is_in_backward = False
        self._has_reduced = True

    def _reduce_next(self) -> None:
        flat = self._flats[self._num_reduced]
        for parameter in flat.parameters:
            if parameter.grad is not None:  # written by hand, or from before the parameter was laid out here
                flat.take(parameter)
                parameter.grad = None
        flat.reduce(self._mesh)
        self._num_reduced += 1

    # -- what differs from ZeRO-1 --------------------------------------------------------------------------------------

    def _reduce_gradients(self) -> None:
        """Backward has done it, on all ranks but those that ran none since the last step."""
        if not self._has_reduced:
            self._end_reduction()

    def _end_step(self) -> None:
        self._has_reduced = self._is_synced = False  # the shard of the gradient stays until zero_grad()

    def _pack(self, parameters: Iterable[Tensor]) -> list[list[Tensor]]:
        """Buckets from the last parameter to the first; each parameter is to tell when its gradient is complete."""
        this = weakref.ref(self)  # the hooks live as long as the parameters, and must not keep us alive
        buckets = pack(reversed(list(parameters)), self._bucket_cap_bytes)
        for parameter in (parameter for bucket in buckets for parameter in bucket):
            parameter.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]
                lambda parameter: _tell(this(), parameter)
            )
        return buckets


def _tell(optimizer: Zero2Optimizer | None, parameter: Tensor) -> None:
    if optimizer is not None:
        with torch.no_grad():
            optimizer._on_gradient(parameter)
