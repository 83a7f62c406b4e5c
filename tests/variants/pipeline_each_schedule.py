"""A function for each schedule, over pickled tuples; activations are thrown away and computed again in backward."""

import io

import torch
import torch.distributed as dist


class _Run:
    def __init__(self, stage, inputs, labels, criterion, group):
        self.stage, self.inputs, self.labels, self.criterion = stage, inputs, labels, criterion
        self.rank, self.size, self.group = dist.get_rank(group), dist.get_world_size(group), group
        self.rows = sum(len(y) for y in labels)
        self.came, self.losses, self.under_way = {}, [], []

    def send(self, values, dst):
        file = io.BytesIO()
        torch.save(values, file)
        data = torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8)
        for tensor in (torch.tensor([len(data)]), data):
            self.under_way.append((dist.isend(tensor, group=self.group, group_dst=dst), tensor))

    def recv(self, src):
        size = torch.zeros(1, dtype=torch.int64)
        dist.recv(size, group=self.group, group_src=src)
        data = torch.empty(int(size), dtype=torch.uint8)
        dist.recv(data, group=self.group, group_src=src)
        return torch.load(io.BytesIO(data.numpy().tobytes()))

    def go(self, m):
        values = self.recv(self.rank - 1) if self.rank else (self.inputs[m],)
        self.came[m] = values
        with torch.no_grad():
            out = self.stage(*values)
        outs = out if isinstance(out, tuple) else (out,)
        if self.rank + 1 < self.size:
            self.send(tuple(each.clone() for each in outs), self.rank + 1)

    def back(self, m):
        values = self.came.pop(m)
        if self.rank:
            values = tuple(v.requires_grad_(v.is_floating_point()) for v in values)
        out = self.stage(*values)
        outs = out if isinstance(out, tuple) else (out,)
        if self.rank + 1 == self.size:
            loss = self.criterion(outs[0], self.labels[m])
            self.losses.append((m, loss.detach()))
            outs, grads = (loss,), (torch.full_like(loss, len(self.labels[m]) / self.rows),)
        else:
            grads = self.recv(self.rank + 1)
        pairs = [(o, g) for o, g in zip(outs, grads, strict=True) if g is not None and o.requires_grad]
        if pairs:
            torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        if self.rank:
            self.send(tuple(v.grad for v in values), self.rank - 1)

    def result(self):
        for work, _ in self.under_way:
            work.wait()
        return {"losses": [loss for _, loss in sorted(self.losses, key=lambda pair: pair[0])]}


def train_gpipe(stage, inputs, labels, criterion, group=None):
    run = _Run(stage, inputs, labels, criterion, group)
    for m in range(len(inputs)):
        run.go(m)
    for m in reversed(range(len(inputs))):
        run.back(m)
    return run.result()


def train_1f1b(stage, inputs, labels, criterion, group=None):
    run = _Run(stage, inputs, labels, criterion, group)
    ahead = min(len(inputs), run.size - run.rank - 1)
    for m in range(len(inputs) + ahead):
        if m < len(inputs):
            run.go(m)
        if m >= ahead:
            run.back(m - ahead)
    return run.result()
