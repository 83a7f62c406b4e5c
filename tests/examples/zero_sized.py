"""(model, world_size, rank, lr): Adam on this rank's slice of each parameter's flat memory, summed by hand."""

import torch
import torch.distributed as dist


class ZeROOptimizer:
    def __init__(self, model, world_size, rank, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.world_size, self.rank = world_size, rank
        self.lr, self.betas, self.eps, self.t = lr, betas, eps, 0
        self.params = [p for p in model.parameters() if p.requires_grad]
        self.state = []
        for p in self.params:
            size = -(-p.numel() // world_size)
            self.state.append((torch.zeros(size, dtype=p.dtype), torch.zeros(size, dtype=p.dtype)))

    def pieces(self, tensor, size):
        flat = torch.zeros(size * self.world_size, dtype=tensor.dtype)
        flat[: tensor.numel()] = tensor.reshape(-1)
        return list(flat.split(size))

    @torch.no_grad()
    def step(self):
        self.t += 1
        for p, (m, v) in zip(self.params, self.state, strict=True):
            grad = torch.zeros_like(p) if p.grad is None else p.grad
            mine = torch.empty_like(m)
            dist.reduce_scatter(mine, self.pieces(grad, len(m)))
            mine /= self.world_size
            m.mul_(self.betas[0]).add_(mine, alpha=1 - self.betas[0])
            v.mul_(self.betas[1]).addcmul_(mine, mine, value=1 - self.betas[1])
            m_hat, v_hat = m / (1 - self.betas[0] ** self.t), v / (1 - self.betas[1] ** self.t)
            new = self.pieces(p, len(m))[self.rank] - self.lr * m_hat / (v_hat.sqrt() + self.eps)
            parts = [torch.empty_like(new) for _ in range(self.world_size)]
            dist.all_gather(parts, new)
            p.copy_(torch.cat(parts)[: p.numel()].view_as(p))

    def zero_grad(self):
        for p in self.params:
            p.grad = None
