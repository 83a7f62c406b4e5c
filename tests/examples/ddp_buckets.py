"""Buckets filled from the last parameter on, each reduced once it is full; a counter that has to be reset first."""

import torch
import torch.distributed as dist


class DDPBucketed(torch.nn.Module):
    def __init__(self, module: torch.nn.Module, bucket_size_mb: float):
        super().__init__()
        self.module = module
        for value in (*module.parameters(), *module.buffers()):
            dist.broadcast(value.data, src=0)
        limit = float("inf") if bucket_size_mb is None else bucket_size_mb * 2**20
        self.buckets, filled = [[]], 0
        for p in reversed([p for p in module.parameters() if p.requires_grad]):
            if self.buckets[-1] and (filled + p.nbytes > limit or self.buckets[-1][-1].dtype != p.dtype):
                self.buckets.append([])
                filled = 0
            self.buckets[-1].append(p)
            filled += p.nbytes
        self.missing = self.sent = None
        self.passes = 0
        for index, bucket in enumerate(self.buckets):
            for p in bucket:
                p.register_post_accumulate_grad_hook(lambda p, index=index: self._arrived(p, index))

    def on_train_batch_start(self):
        self.missing = [set(bucket) for bucket in self.buckets]
        self.sent = []
        self.passes = 0

    def forward(self, *inputs, **kwargs):
        self.passes += torch.is_grad_enabled()
        return self.module(*inputs, **kwargs)

    def _arrived(self, p, index):
        self.missing[index].discard(p)
        while len(self.sent) < len(self.buckets) and not self.missing[len(self.sent)]:
            self._send()

    def _send(self):
        bucket = self.buckets[len(self.sent)]
        flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).reshape(-1) for p in bucket])
        self.sent.append((bucket, flat, dist.all_reduce(flat, async_op=True)))

    def finish_gradient_synchronization(self):
        if self.passes > 1:  # what set out in the first backward lacks what came after it
            for _, _, work in self.sent:
                work.wait()
            self.sent.clear()
        while len(self.sent) < len(self.buckets) and self.buckets[0]:
            self._send()
        for bucket, flat, work in self.sent:
            work.wait()
            flat /= dist.get_world_size()
            for p, part in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
                p.grad = part.view_as(p).clone()
