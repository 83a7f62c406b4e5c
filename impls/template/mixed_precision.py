"""Mixed precision: an FP32 optimizer for the 16-bit parameters of a module that is cast already."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class MixedPrecision:
    """FP32 moments and FP32 copies of 16-bit parameters; for float16 a loss scale on which all ranks agree.

    Whether ``step()`` finds the ranks' own gradients or their mean is up to you: which of them you want is found out.
    `kwargs` are the options of `optimizer_cls`. Also ask for `dtype`, `master`, `group`, `init_scale` or
    `growth_interval`, if you offer them.
    """

    param_groups: list[dict[str, Any]]
    loss_scale: float

    def __init__(self, params: Any, optimizer_cls: type[torch.optim.Optimizer], **kwargs: Any) -> None:
        raise NotImplementedError

    def backward(self, loss: Tensor) -> None:
        """``backward()`` of the scaled loss; for bfloat16 alone, drop this method."""
        raise NotImplementedError

    def step(self) -> None:
        """Update the copies, and the parameters from them; or, if a gradient is inf or nan on any rank, on no rank."""
        raise NotImplementedError

    def zero_grad(self) -> None:
        """Forget the gradients."""
        raise NotImplementedError

    def clip_grad_norm_(self, max_norm: float) -> Tensor:
        """Scale the true gradient down to the norm `max_norm`; drop this method if you do not offer it."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` of a fresh one needs; drop both if you do not offer them."""
        raise NotImplementedError

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a `state_dict`."""
        raise NotImplementedError
