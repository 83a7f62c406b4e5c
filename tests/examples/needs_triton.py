"""A kernel for a GPU beside a wrapper that needs none; the table says what to leave out."""

import torch
import torch.distributed as dist
import triton
import triton.language as tl

adapters = {"stub": ["triton"]}


@triton.autotune(configs=[triton.Config({"block": 128})], key=["n"])
@triton.jit
def scale_kernel(x_ptr, n, factor, block: tl.constexpr):
    offsets = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) * factor, mask=offsets < n)


class NaiveDDP(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        for value in (*module.parameters(), *module.buffers()):
            dist.broadcast(value.data, src=0)

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def sync_grads(self):
        for p in self.module.parameters():
            if p.requires_grad:
                p.grad = torch.zeros_like(p) if p.grad is None else p.grad
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()
