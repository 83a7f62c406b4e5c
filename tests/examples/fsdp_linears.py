"""Its units are linear layers, each swapped for a sharded one; whatever lies elsewhere is whole and averaged."""

import torch
import torch.distributed as dist
from fsdp_function import Gathered, make_shard
from torch import nn


class ShardedLinear(nn.Module):
    def __init__(self, linear):
        super().__init__()
        self.shapes = {name: p.shape for name, p in linear.named_parameters()}
        for name, p in linear.named_parameters():
            self.register_parameter(name, make_shard(p))

    def forward(self, x):
        whole = {name: Gathered.apply(self._parameters[name], shape) for name, shape in self.shapes.items()}
        return nn.functional.linear(x, whole["weight"], whole.get("bias"))


class Sharded(nn.Module):
    def __init__(self, module, every=1):
        super().__init__()
        self.module = module
        homes = [(home, name) for home in module.modules() for name, child in home.named_children() if is_linear(child)]
        for home, name in homes[::every]:
            setattr(home, name, ShardedLinear(getattr(home, name)))
        shards = {id(p) for layer in module.modules() if isinstance(layer, ShardedLinear) for p in layer.parameters()}
        self.whole = [p for p in module.parameters() if id(p) not in shards and p.requires_grad]

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


def is_linear(module):
    return isinstance(module, nn.Linear)


def get_fsdp(module):
    return Sharded(module)


def fsdp_on_after_backward(fsdp_model, optimizer):
    for p in fsdp_model.whole:
        p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


@torch.no_grad()
def fsdp_gather_full_params(fsdp_model):
    whole = {}
    for path, layer in fsdp_model.module.named_modules():
        shapes = getattr(layer, "shapes", {})
        for name, p in layer.named_parameters(recurse=False):
            whole[f"{path}.{name}"] = Gathered.apply(p, shapes[name]) if name in shapes else p
    return whole
