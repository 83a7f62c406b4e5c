"""A class for one layer: whole inside its own forward pass, and its gradients come as shards."""

import torch
import torch.distributed as dist


class _Whole(torch.autograd.Function):
    @staticmethod
    def forward(ctx, shard, shape):
        pieces = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
        dist.all_gather(pieces, shard.detach())
        return torch.cat(pieces)[: shape.numel()].view(shape)

    @staticmethod
    def backward(ctx, grad):
        n = dist.get_world_size()
        size = -(-grad.numel() // n)
        flat = torch.zeros(n * size, dtype=grad.dtype)
        flat[: grad.numel()] = grad.reshape(-1)
        mine = torch.empty(size, dtype=grad.dtype)
        dist.reduce_scatter(mine, list(flat.split(size)))
        return mine / n, None


class FSDPLayer(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.inner = [layer]  # in a list, so that its parameters are not registered here
        self.shapes = {name: p.shape for name, p in layer.named_parameters()}
        for name, p in list(layer.named_parameters()):
            n = dist.get_world_size()
            size = -(-p.numel() // n)
            flat = torch.zeros(n * size, dtype=p.dtype)
            flat[: p.numel()] = p.detach().reshape(-1)
            shard = flat.split(size)[dist.get_rank()].clone()
            self.register_parameter(name, torch.nn.Parameter(shard, requires_grad=p.requires_grad))
            del layer._parameters[name]

    def forward(self, *inputs):
        (layer,) = self.inner
        for name, shape in self.shapes.items():
            setattr(layer, name, _Whole.apply(self._parameters[name], shape))
        try:
            return layer(*inputs)
        finally:
            for name in self.shapes:
                delattr(layer, name)
