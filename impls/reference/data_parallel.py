"""Data parallelism: one replica per rank, gradients averaged while backward is still running.

N ranks hold the same parameters and see different rows. The mean of their gradients is the gradient of the global
batch, so N identical optimizer steps keep the replicas identical. Source: Li et al., "PyTorch Distributed: Experiences
on Accelerating Data Parallel Training" (VLDB 2020), sections 3.2 and 4.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Variable

from impls.reference.calls import broadcast_parameters

BUCKET_CAP_MB = 25.0  # MiB: large enough for bandwidth, small enough to set out before backward ends


class DataParallel(nn.Module):
    """`module` on this rank, in step with its replicas on the other ranks of `group`.

    At construction every parameter and buffer becomes that of rank 0. When ``backward()`` returns, every ``.grad`` is
    the mean over ranks. Construct, run forward and run backward on all ranks alike; freeze parameters beforehand.

    - *Buckets.* Gradients appear roughly in reverse order of the parameters. They are copied into flat buckets in
      that order; a full bucket sets out at once, and backward goes on computing. All ranks send their buckets in the
      same order, whatever order gradients come in, or different buckets would be added to each other.
    - *Parameters without gradient* count as zero, so that no rank waits for a bucket that never fills. What no rank
      used keeps its grad None, as it would in a single process.
    - *Accumulation.* Inside ``no_sync()`` backward only adds to ``.grad``; the first one outside reduces the total.
    """

    def __init__(
        self,
        module: nn.Module,
        world_size: int | None = None,
        group: dist.ProcessGroup | None = None,
        bucket_cap_mb: float = BUCKET_CAP_MB,
    ) -> None:
        super().__init__()
        self.module = module
        self.world_size = dist.get_world_size(group)
        if world_size not in (None, self.world_size):
            raise ValueError(f"world_size is {world_size}, but the process group has {self.world_size} ranks")
        self._group = group
        self._buckets = fill_buckets(
            [parameter for parameter in module.parameters() if parameter.requires_grad],  # tied ones come once
            int(bucket_cap_mb * 2**20),
        )
        self._bucket_of = {parameter: bucket for bucket in self._buckets for parameter in bucket.parameters}
        self._reducing = True  # False inside no_sync
        self._in_step = True  # no gradient here that the other ranks have not seen
        self._start_round()

        broadcast_parameters(module, src=0, group=group)
        this = weakref.ref(self)  # the hooks live as long as the parameters, and must not keep us alive
        for parameter in self._bucket_of:
            # After accumulation: a hook that runs before it misses what earlier microbatches left in .grad.
            parameter.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]
                lambda parameter: _tell(this(), parameter)
            )

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's own forward pass."""
        if torch.is_grad_enabled():
            self._in_step = False
            if not _backward_is_running():  # else this is a recomputation for checkpointing
                self._start_round()
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backward passes run in here stay on this rank; use it for all microbatches of a step but the last."""
        before, self._reducing = self._reducing, False
        try:
            yield
        finally:
            self._reducing = before

    def sync_grads(self) -> None:
        """Finish this step's reduction. Backward calls it at its end; calling it again does nothing.

        Call it yourself when a rank may have had nothing to differentiate, so that no backward ran there.
        """
        if self._in_step or not self._reducing:
            return
        with torch.no_grad():
            for bucket in self._buckets[self._num_launched :]:  # those that wait for a gradient which never came
                self._launch(bucket)
            for bucket in self._buckets:
                self._collect(bucket)
        self._in_step = True
        self._start_round()

    def _start_round(self) -> None:
        self._num_launched = 0
        self._end_is_known = False
        for bucket in self._buckets:
            bucket.start_round()

    def _on_gradient(self, parameter: nn.Parameter) -> None:
        """`parameter.grad` is complete for this backward: send every bucket whose turn has come."""
        self._in_step = False
        if not self._reducing:
            return
        if not self._end_is_known:
            Variable._execution_engine.queue_callback(self.sync_grads)
            self._end_is_known = True
        self._bucket_of[parameter].arrived(parameter)
        with torch.no_grad():
            while self._num_launched < len(self._buckets) and not self._buckets[self._num_launched].awaited:
                self._launch(self._buckets[self._num_launched])

    def _launch(self, bucket: Bucket) -> None:
        bucket.load()
        bucket.work = dist.all_reduce(bucket.flat, op=dist.ReduceOp.SUM, group=self._group, async_op=True)
        self._num_launched += 1

    def _collect(self, bucket: Bucket) -> None:
        assert bucket.work is not None
        bucket.work.wait()
        bucket.work = None
        bucket.unload(self.world_size)


@dataclasses.dataclass(eq=False)
class Bucket:
    """Some parameters of one dtype and device, and the flat memory in which their gradients travel together.

    *Unused everywhere, or zero?* A parameter without gradient is sent as **-0.0**, and the first element of a real
    gradient never is (x + 0.0 turns -0.0 into 0.0). A sum is -0.0 only when all its terms are, so a -0.0 that
    comes back says that no rank used the parameter, without a single extra byte.
    """

    parameters: Sequence[nn.Parameter]
    work: dist.Work | None = None  # the all-reduce under way

    def __post_init__(self) -> None:
        numels = [parameter.numel() for parameter in self.parameters]
        first = self.parameters[0]
        self.flat = torch.zeros(sum(numels), dtype=first.dtype, device=first.device)  # [sum of numel]
        parts = torch.split(self.flat, numels)
        self.views = [part.view(parameter.shape) for part, parameter in zip(parts, self.parameters, strict=True)]
        starts = torch.tensor([0, *numels[:-1]]).cumsum(0)
        self.firsts = starts[torch.tensor(numels) > 0].to(first.device)  # where each non-empty gradient begins
        self.start_round()

    def start_round(self) -> None:
        """Await the gradients of a new backward; what one that raised half way has sent must first be through."""
        if self.work is not None:
            self.work.wait()
        self.work = None
        self.awaited = set(self.parameters)

    def arrived(self, parameter: nn.Parameter) -> None:
        """Note that the gradient of `parameter` is complete."""
        if self.work is not None:
            raise RuntimeError(
                f"a parameter of shape {tuple(parameter.shape)} got a second gradient in one backward, after the first "
                "had been sent. Likely: a shared module under checkpoint(use_reentrant=True); pass use_reentrant=False."
            )
        self.awaited.discard(parameter)

    def load(self) -> None:
        """Copy the gradients in."""
        unused = []
        for parameter, view in zip(self.parameters, self.views, strict=True):
            if parameter.grad is None:
                unused.append(view)
            else:
                view.copy_(parameter.grad)
        self.flat[self.firsts] += 0.0
        for view in unused:
            view.fill_(-0.0)

    def unload(self, world_size: int) -> None:
        """Copy the mean out, now that `flat` holds the sum."""
        for parameter, view in zip(self.parameters, self.views, strict=True):
            if parameter.grad is not None:
                torch.div(view, world_size, out=parameter.grad)
            elif not _starts_with_negative_zero(view):  # unused here, used elsewhere
                parameter.grad = view / world_size


def fill_buckets(parameters: Sequence[nn.Parameter], cap_bytes: int) -> list[Bucket]:
    """Parameters from last to first in buckets of at most `cap_bytes` (or of one parameter), by dtype and device."""
    filled: list[list[nn.Parameter]] = []
    open_for: dict[tuple[torch.dtype, torch.device], list[nn.Parameter]] = {}
    for parameter in reversed(parameters):
        kind = (parameter.dtype, parameter.device)
        bucket = open_for.get(kind)
        if bucket is None or sum(other.nbytes for other in bucket) + parameter.nbytes > cap_bytes:
            bucket = open_for[kind] = []
            filled.append(bucket)
        bucket.append(parameter)
    return [Bucket(parameters) for parameters in filled]


def _starts_with_negative_zero(tensor: Tensor) -> bool:
    first = tensor.flatten()[:1].real  # nothing, for an empty gradient: there is nothing to tell apart
    return bool(((first == 0) & first.signbit()).all())


def _backward_is_running() -> bool:
    return torch._C._current_graph_task_id() != -1


def _tell(wrapper: DataParallel | None, parameter: Tensor) -> None:
    if wrapper is not None:
        assert isinstance(parameter, nn.Parameter)
        wrapper._on_gradient(parameter)
