"""The wrapper puts broadcast copies in place of the parameters, each on its own: tied weights come apart."""

from __future__ import annotations

from typing import Any

from torch import nn

from impls.reference import data_parallel as right

BREAKS = ("loop.construct-broadcast",)


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    def __init__(self, module: nn.Module, *args: Any, **kwargs: Any) -> None:
        for inner in module.modules():
            for name, parameter in list(inner.named_parameters(recurse=False)):
                setattr(inner, name, nn.Parameter(parameter.detach().clone(), requires_grad=parameter.requires_grad))
        super().__init__(module, *args, **kwargs)
