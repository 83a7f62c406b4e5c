"""The wrapper puts new parameters in place of the module's: an optimizer built before it trains nothing."""

from __future__ import annotations

from typing import Any

from torch import nn

from impls.reference import data_parallel as right

BREAKS = ("loop.construct-broadcast",)


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    def __init__(self, module: nn.Module, *args: Any, **kwargs: Any) -> None:
        new: dict[nn.Parameter, nn.Parameter] = {}  # tied weights stay tied
        for inner in module.modules():
            for name, old in list(inner.named_parameters(recurse=False)):
                setattr(inner, name, new.setdefault(old, nn.Parameter(old.detach().clone(), old.requires_grad)))
        super().__init__(module, *args, **kwargs)
