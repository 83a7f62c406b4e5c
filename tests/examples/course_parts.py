"""What `course_adapters` stands on: nothing here has a name that is looked for."""

import torch
import torch.distributed as dist


class Individual(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        for value in (*module.parameters(), *module.buffers()):
            dist.broadcast(value.data, src=0)

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def wait_for_gradients(self):
        params = [p for p in self.module.parameters() if p.requires_grad]
        for p in params:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        for work in [dist.all_reduce(p.grad, async_op=True) for p in params]:
            work.wait()
        for p in params:
            p.grad /= dist.get_world_size()


class Bucketed(Individual):
    def __init__(self, module, bucket_size_mb):
        super().__init__(module)
        self.limit = float("inf") if bucket_size_mb is None else bucket_size_mb * 2**20
        self.begun = False

    def begin(self):
        self.begun = True

    def wait_for_gradients(self):
        if not self.begun:
            raise RuntimeError("the start of this batch was not announced")
        self.begun = False
        bucket = []
        for p in reversed([p for p in self.module.parameters() if p.requires_grad]):
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            if bucket and (sum(g.nbytes for g in bucket) + p.nbytes > self.limit or bucket[0].dtype != p.dtype):
                self.mean(bucket)
                bucket = []
            bucket.append(p.grad)
        if bucket:
            self.mean(bucket)

    @staticmethod
    def mean(bucket):
        flat = torch.cat([grad.flatten() for grad in bucket])
        dist.all_reduce(flat)
        flat /= dist.get_world_size()
        for grad, part in zip(bucket, flat.split([grad.numel() for grad in bucket]), strict=True):
            grad.copy_(part.view_as(grad))


class Whole(torch.autograd.Function):
    """A padded shard, gathered forward and reduce-scattered backward."""

    @staticmethod
    def forward(ctx, shard, shape):
        parts = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, shard.detach())
        return torch.cat(parts)[: shape.numel()].view(shape)

    @staticmethod
    def backward(ctx, grad):
        size = dist.get_world_size()
        part = -(-grad.numel() // size)
        flat = grad.new_zeros(size * part)
        flat[: grad.numel()] = grad.flatten()
        mine = grad.new_empty(part)
        dist.reduce_scatter(mine, list(flat.split(part)))
        return mine / size, None


class Sharded(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        self.shapes = {}
        shards = {}
        for prefix, layer in module.named_modules():
            own = {name: p for name, p in layer._parameters.items() if p is not None}
            for name, p in own.items():
                self.shapes[f"{prefix}.{name}".lstrip(".")] = p.shape
                layer._parameters[name] = shards.setdefault(p, self.shard(p))
            if own:
                shapes = {name: p.shape for name, p in own.items()}
                layer.forward = self.around(layer, layer.forward, shapes)

    @staticmethod
    def shard(p):
        size, part = dist.get_world_size(), -(-p.numel() // dist.get_world_size())
        flat = p.new_zeros(size * part)
        flat[: p.numel()] = p.detach().flatten()
        return torch.nn.Parameter(flat.split(part)[dist.get_rank()].clone(), requires_grad=p.requires_grad)

    @staticmethod
    def around(layer, forward, shapes):
        def run(*args, **kwargs):
            shards = {name: layer._parameters.pop(name) for name in shapes}
            try:
                for name, shape in shapes.items():
                    setattr(layer, name, Whole.apply(shards[name], shape))
                return forward(*args, **kwargs)
            finally:
                for name in shapes:
                    delattr(layer, name)
                layer._parameters.update(shards)

        return run

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def wait_for_gradients(self):
        """Nothing is under way: every reduce-scatter was waited for."""

    def gather(self):
        named = self.module.named_parameters(remove_duplicate=False)
        return {name: Whole.apply(shard, self.shapes[name]).detach() for name, shard in named}


class StateSharding(torch.optim.Optimizer):
    """Each parameter belongs to the rank that has least so far; owners update and broadcast."""

    def __init__(self, params, optimizer_cls, **kwargs):
        self.inner, self.cls, self.kwargs = None, optimizer_cls, kwargs
        self.owner, self.load = {}, [0] * dist.get_world_size()
        super().__init__(params, kwargs)

    def add_param_group(self, param_group):
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for p in group["params"]:
            self.owner[p] = self.load.index(min(self.load))
            self.load[self.owner[p]] += p.numel()
        mine = {**group, "params": [p for p in group["params"] if self.owner[p] == dist.get_rank()]}
        if self.inner is None:
            self.inner = self.cls([mine], **self.kwargs)
        else:
            self.inner.add_param_group(mine)

    def step(self, closure=None):
        for mine, group in zip(self.inner.param_groups, self.param_groups, strict=True):
            mine.update({key: value for key, value in group.items() if key != "params"})
        self.inner.step(closure)
        for p, owner in self.owner.items():
            dist.broadcast(p.data, src=owner)
