"""Blocks `sharded_optimizer` (ZeRO-1), `zero2`, `fully_shard` (ZeRO-3, FSDP) and `mixed_precision`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # names in signatures only: pytest's controller reads the tables and never needs torch
    import torch
    from torch import Tensor, nn
    from torch.distributed import ProcessGroup


class ShardedState(Protocol):
    """What all the sharded forms may say about themselves; none of it has to be there.

    Without `state_held` the memory witness walks the module and the optimizer, and finds every other tensor that is
    alive; without `full_parameters` the parameters are read where they are used, in each layer's forward pass.
    """

    def state_held(self) -> Mapping[str, Any]:
        """Optional: the tensors behind ``parameters``, ``gradients`` and ``optimizer`` on this rank.

        It only sorts what the witness finds by itself: a tensor that is left out counts as ``other``.
        """

    def full_parameters(self) -> Mapping[str, Tensor]:
        """Optional: every parameter whole, under the name that it has in the module; called on all ranks at once."""

    def clip_grad_norm_(self, max_norm: float) -> Tensor | float:
        """Optional: scale the gradient of the step down to the global norm `max_norm`; the norm that it had.

        Called on all ranks after the last backward and before ``step()``. The norm is that of the whole mean gradient.
        """


class Sharded(ShardedState, Protocol):
    """What `ShardedOptimizer` and `Zero2Optimizer` return: used like a torch optimizer."""

    param_groups: Sequence[dict[str, Any]]

    def step(self) -> None:
        """Update: afterwards every rank has the new parameters, all of them."""

    def zero_grad(self) -> None:
        """Forget the gradients, of the model's parameters and whatever else has some."""

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Optional: further parameters with options of their own, as in torch."""

    def state_dict(self) -> dict[str, Any]:
        """Optional: what `load_state_dict` of a fresh one on the same rank needs; called on all ranks at once.

        Whole, in the layout of an unsharded torch optimizer, it can be resumed on another number of ranks.
        """

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Optional: go on from a `state_dict`."""


class ShardedOptimizerBlock(Protocol):
    """ZeRO-1: each rank keeps the optimizer's state for 1/N of the parameters. Source: Rajbhandari et al. 2020, 5.1."""

    def ShardedOptimizer(  # noqa: N802  (a class, usually)
        self,
        params: Any,
        optimizer_cls: type[torch.optim.Optimizer],
        module: nn.Module,
        world_size: int,
        rank: int,
        lr: float,
        group: ProcessGroup | None,
        **kwargs: Any,
    ) -> Sharded:
        """An optimizer whose ``step()`` leaves the new parameters on all ranks and 1/N of the state on each.

        `params`: tensors or param groups, as for torch's optimizers; `kwargs` are those of `optimizer_cls`. Also
        `(module, world_size, rank, lr)` with an optimizer of its own choice (Adam, usually), or around a built
        `optimizer`. The gradients that ``step()`` finds may be the ranks' own, to be reduce-scattered, or their mean
        already: which of them it wants is found out by trying. Parameters are equal on all ranks beforehand. Weights
        that are loaded into the module before the first step count; where shards were copied earlier,
        ``reload_model_params()`` is called for that.
        """


class Zero2Block(Protocol):
    """ZeRO-2: after backward each rank keeps 1/N of the gradients as well. Source: Rajbhandari et al. 2020, 5.2."""

    def Zero2Optimizer(  # noqa: N802
        self,
        params: Any,
        optimizer_cls: type[torch.optim.Optimizer],
        module: nn.Module,
        world_size: int,
        rank: int,
        lr: float,
        group: ProcessGroup | None,
        **kwargs: Any,
    ) -> Sharded:
        """As `ShardedOptimizer`; when ``backward()`` (or a sync method, see `SYNC_METHODS`) returns, ``.grad`` is gone.

        What is kept is this rank's share of the mean gradient; a second backward before ``step()`` adds to it.
        """


class FullyShardBlock(Protocol):
    """ZeRO-3, FSDP: parameters too are whole only while a unit computes. Source: Zhao et al. 2023, PyTorch FSDP."""

    def fully_shard(
        self, module: nn.Module, world_size: int, rank: int, group: ProcessGroup | None, reshard_after_forward: bool
    ) -> Any:
        """Shard `module` over the ranks: a wrapper, the module itself, or None when it was done in place.

        What it returns is called like the module; its ``parameters()`` are this rank's shards, on which a plain torch
        optimizer is built afterwards. When ``backward()`` (or a sync method) returns, their ``.grad`` is this rank's
        share of the mean gradient. A unit is a layer, usually: a direct child of `module` that has parameters, at the
        least. With `reshard_after_forward` False, parameters stay whole from forward to backward. The values of rank 0
        need not be taken over: they are equal beforehand. Optional: `ShardedState`, ``no_sync()``, and
        ``full_state(optimizer)``, ``load_full_state(state, optimizer)`` to go on with another number of ranks.
        """


class Scaled(Sharded, Protocol):
    """What `MixedPrecision` returns."""

    loss_scale: float  # optional: what losses are multiplied by at the moment; 1 for bfloat16

    def backward(self, loss: Tensor) -> None:
        """``backward()`` of the scaled loss; or ``scale(loss)`` to call ``backward()`` on; or neither, for bfloat16."""


class MixedPrecisionBlock(Protocol):
    """16-bit parameters and gradients, FP32 optimizer. Source: Micikevicius et al. 2018, Mixed Precision Training."""

    def MixedPrecision(  # noqa: N802
        self,
        params: Any,
        optimizer_cls: type[torch.optim.Optimizer],
        module: nn.Module,
        dtype: torch.dtype,
        master: bool,
        world_size: int,
        rank: int,
        lr: float,
        group: ProcessGroup | None,
        init_scale: float,
        growth_interval: int,
        **kwargs: Any,
    ) -> Scaled:
        """An optimizer for parameters of a 16-bit `dtype` with FP32 moments and (unless `master` is False) FP32 copies.

        For float16 the loss is scaled: halved, and the step left out on **all** ranks, when any rank's gradient is not
        finite; doubled after `growth_interval` good steps. The gradients that ``step()`` finds are the ranks' own,
        their mean, or shards of it; found out as for `ShardedOptimizer`. Weights that are loaded into the module before
        the first step count; an optimizer that made its FP32 copies earlier has ``reload_model_params()`` for that.
        What a loaded weight means after the first step is its own business.
        """
