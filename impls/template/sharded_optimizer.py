"""ZeRO-1: an optimizer of which each rank keeps the state for 1/N of the parameters."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class ShardedOptimizer:
    """Used like a torch optimizer; ``step()`` leaves the new parameters on all ranks, and 1/N of the state on each.

    Whether ``step()`` finds the ranks' own gradients, to be reduce-scattered, or their mean is up to you: which of them
    you want is found out. `kwargs` are the options of `optimizer_cls`. Also ask for `module`, `world_size`, `rank`,
    `lr` or `group`, if you need them: ``ShardedOptimizer(module, world_size, rank, lr)`` is as good.
    """

    param_groups: list[dict[str, Any]]

    def __init__(self, params: Any, optimizer_cls: type[torch.optim.Optimizer], **kwargs: Any) -> None:
        raise NotImplementedError

    def step(self) -> None:
        """Update this rank's share of the parameters, and give all ranks all of them."""
        raise NotImplementedError

    def zero_grad(self) -> None:
        """Forget the gradients, of the model's parameters and whatever else has some."""
        raise NotImplementedError

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Further parameters, with options of their own; drop this method if you do not offer it."""
        raise NotImplementedError

    def clip_grad_norm_(self, max_norm: float) -> Tensor:
        """Scale the mean gradient down to the global norm `max_norm`; drop this method if you do not offer it."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` of a fresh one needs; drop both if you do not offer them."""
        raise NotImplementedError

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a `state_dict`."""
        raise NotImplementedError
