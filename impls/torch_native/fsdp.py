"""``torch.distributed.fsdp.fully_shard`` (FSDP2), applied as its documentation says: each layer, then the root."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule
from torch.distributed.fsdp import fully_shard as _fully_shard
from torch.distributed.tensor import DTensor

_WHOLE = StateDictOptions(full_state_dict=True)


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> FullySharded:
    """Shard `module` in place and wrap it; parameters become DTensors, cut along their first dimension.

    The root unit has what is in no layer. With `reshard_after_forward` PyTorch still keeps the root whole from forward
    to backward, which needs it first. Raises ValueError for a parameter without dimensions.
    """
    mesh = _mesh_of(group)
    for unit in units(module):
        _fully_shard(unit, mesh=mesh, reshard_after_forward=reshard_after_forward)
    _fully_shard(module, mesh=mesh, reshard_after_forward=None if reshard_after_forward else False)
    return FullySharded(module)


def units(module: nn.Module) -> list[nn.Module]:
    """The layers that are sharded by themselves: those that have parameters, and share none with another layer.

    A parameter that two layers share has to be in one unit: the root's. Containers are entered: a Sequential, and what
    is never called itself (ModuleList, ModuleDict).
    """
    layers = list(_layers(module))
    owners = Counter(parameter for layer in layers for parameter in set(layer.parameters()))
    own = set(module.parameters(recurse=False))
    return [
        layer
        for layer in layers
        if (held := set(layer.parameters())) and not held & own and all(owners[parameter] == 1 for parameter in held)
    ]


class FullySharded(nn.Module):
    """A sharded module, called like it; ``parameters()`` are this rank's shards."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's forward pass."""
        return self.module(*args, **kwargs)

    def full_parameters(self) -> dict[str, Tensor]:
        """Every parameter whole, by its name in the module."""
        named = self.module.named_parameters(remove_duplicate=False)
        return {name: _whole(parameter.detach()) for name, parameter in named}

    def clip_grad_norm_(self, max_norm: float) -> Tensor:
        """`torch.nn.utils.clip_grad_norm_`, which takes DTensors; the norm that the whole gradient had."""
        return _whole(torch.nn.utils.clip_grad_norm_(self.module.parameters(), max_norm))

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Whole gradients pile up; the next backward outside reduce-scatters all of them."""
        assert isinstance(self.module, FSDPModule)
        self.module.set_requires_gradient_sync(False)
        try:
            yield
        finally:
            self.module.set_requires_gradient_sync(True)

    def full_state(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        """Parameters, buffers and optimizer state, whole and by name, on every rank."""
        model, optim = get_state_dict(self.module, optimizer, options=_WHOLE)
        return {"model": model, "optimizer": optim}

    def load_full_state(self, state: dict[str, Any], optimizer: torch.optim.Optimizer) -> None:
        """Go on from a `full_state`, which may be that of another number of ranks."""
        set_state_dict(
            self.module,
            optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
            options=_WHOLE,
        )


def _mesh_of(group: dist.ProcessGroup | None) -> DeviceMesh:
    if group is None:
        return init_device_mesh("cpu", (dist.get_world_size(),))
    return DeviceMesh.from_group(group, "cpu")


def _layers(module: nn.Module) -> Iterator[nn.Module]:
    for child in module.children():
        if isinstance(child, nn.Sequential) or type(child).forward is nn.Module.forward:
            yield from _layers(child)
        else:
            yield child


def _whole(tensor: Tensor) -> Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
