"""Wrong as most bucketed ones are: a bucket is sent once all of it is there, so an unused parameter holds it."""

import torch
import torch.distributed as dist


class DDPBucketed(torch.nn.Module):
    def __init__(self, module, bucket_size_mb):
        super().__init__()
        self.module = module
        for value in (*module.parameters(), *module.buffers()):
            dist.broadcast(value.data, src=0)
        self.buckets, room = [], 0
        limit = 25 * 2**20 if bucket_size_mb is None else bucket_size_mb * 2**20
        for p in reversed(list(module.parameters())):
            if not p.requires_grad:
                continue
            if p.nbytes > room:
                self.buckets.append([])
                room = limit
            self.buckets[-1].append(p)
            room -= p.nbytes
        self.left = [len(bucket) for bucket in self.buckets]
        self.flying = []
        for i, bucket in enumerate(self.buckets):
            for p in bucket:
                p.register_post_accumulate_grad_hook(lambda p, i=i: self.count(i))

    def count(self, i):
        self.left[i] -= 1
        if self.left[i] == 0:
            flat = torch.cat([p.grad.flatten() for p in self.buckets[i]])
            self.flying.append((i, flat, dist.all_reduce(flat, async_op=True)))

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def finish_gradient_synchronization(self):
        for i, flat, work in self.flying:
            work.wait()
            flat /= dist.get_world_size()
            start = 0
            for p in self.buckets[i]:
                p.grad.copy_(flat[start : start + p.numel()].view_as(p.grad))
                start += p.numel()
        self.flying.clear()
        self.left = [len(bucket) for bucket in self.buckets]
