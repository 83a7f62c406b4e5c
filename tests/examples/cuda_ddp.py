"""Written for a machine with GPUs, and nothing asks whether there are any."""

import torch
import torch.distributed as dist


class DDP(torch.nn.Module):
    def __init__(self, module, world_size):
        super().__init__()
        torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
        self.module = module.cuda()
        self.scale = torch.tensor(1.0 / world_size, device="cuda")
        self.stream = torch.cuda.Stream()
        for value in (*module.parameters(), *module.buffers()):
            dist.broadcast(value.data, src=0)

    def forward(self, x):
        return self.module(x.to("cuda", non_blocking=True))

    def finish_gradient_synchronization(self):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            for p in self.module.parameters():
                if p.requires_grad:
                    p.grad = torch.zeros_like(p, device=f"cuda:{dist.get_rank()}") if p.grad is None else p.grad
                    dist.all_reduce(p.grad)
                    p.grad.mul_(self.scale)
        torch.cuda.synchronize()
