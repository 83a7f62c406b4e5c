"""The wrapper keeps a copy of the parameters, as buffers of its own, beside the module and its buckets."""

from __future__ import annotations

from typing import Any

from torch import nn

from impls.reference import data_parallel as right

BREAKS = ("zero.memory.ddp",)


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    def __init__(self, module: nn.Module, *args: Any, **kwargs: Any) -> None:
        super().__init__(module, *args, **kwargs)
        for position, parameter in enumerate(module.parameters()):
            self.register_buffer(f"at_first_{position}", parameter.detach().clone())
