"""ZeRO-3, fully sharded data parallelism: parameters too are whole only where and while they are computed with.

The module is cut into units, usually its layers. A rank holds 1/N of each; this is what happens to one in a step:

    forward    all-gather its parameters, compute, free them                     T(N-1)/N bytes sent per rank
    backward   all-gather them again, compute                                    T(N-1)/N
               free them, reduce-scatter their gradients                         T(N-1)/N, T = bytes of the parameters
    step       any optimizer, on the shards

That is half as much again as data parallelism sends (2T(N-1)/N), for 1/N of its memory.
Sources: Rajbhandari et al., "ZeRO" (2020), section 5.3; Zhao et al., "PyTorch FSDP" (VLDB 2023), section 3.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Variable

from impls.reference import whole_state
from impls.reference.cut import cut_into_units
from impls.reference.unit import Gradients, Unit


def fully_shard(
    module: nn.Module,
    group: dist.ProcessGroup | None = None,
    reshard_after_forward: bool = True,
    prefetch: bool = True,
) -> FullySharded:
    """`module` sharded over the ranks of `group`; build the optimizer on ``parameters()`` of what is returned.

    With `reshard_after_forward` False a unit stays whole from forward to backward, which saves the second all-gather.
    With `prefetch` the next unit is on its way while one computes: two are whole at a time instead of one.
    """
    return FullySharded(module, group, reshard_after_forward, prefetch)


@dataclasses.dataclass(eq=False, slots=True)
class Pass:
    """One forward pass through the whole module: its calls of units in order, which backward comes back to."""

    calls: list[Call] = dataclasses.field(default_factory=list)
    waiting: list[Call] = dataclasses.field(default_factory=list)  # those that the backward under way has still to do


@dataclasses.dataclass(eq=False, slots=True)
class Call:
    """One forward pass through one unit."""

    unit: Unit
    made_in: Pass


class FullySharded(nn.Module):
    """`module`, of which this rank holds 1/N; called like it. Its parameters, by their names, are this rank's pieces.

    Parameters are equal on all ranks beforehand. When ``backward()`` returns, the mean over ranks is added to the
    ``.grad`` of each piece, so several backward passes accumulate. All ranks call the same units in the same order.
    Freeze and cast parameters beforehand.

    - *Units* are the direct children; of a Sequential, a ModuleList or anything else without a forward pass of its own,
      the modules in it. What is left over, and what several units use (tied weights), belongs to the root unit. That is
      whole during all of forward and all of backward, but, unlike torch's, freed in between as all units are.
    - *A unit's parameters* are whole inside its own forward pass; anywhere else ``layer.weight`` is a flat piece.
    - *Without gradient on a rank*, a parameter counts as zero there; on no rank, ``.grad`` stays None. So it does for a
      parameter of which this rank has no piece.
    - *A unit called twice* in a forward is gathered and reduced twice. Checkpoint with ``use_reentrant=False``.
    """

    def __init__(
        self, module: nn.Module, group: dist.ProcessGroup | None, reshard_after_forward: bool, prefetch: bool
    ) -> None:
        super().__init__()
        self.module = module
        self._group = group
        self._reshard = reshard_after_forward
        self._prefetch = prefetch
        self._units = [Unit(owner, places, group) for owner, places in cut_into_units(module).items()]
        self._root = self._units[-1]
        for unit in self._units:
            unit.module.register_forward_pre_hook(functools.partial(self._before_forward, unit), prepend=True)
            unit.module.register_forward_hook(functools.partial(self._after_forward, unit))

        self._calls: dict[Unit, Call] = {}  # under way
        self._pass: Pass | None = None  # None outside the root's forward
        self._seen: list[Unit] = []  # the order in which this pass calls units
        self._order: list[Unit] = []  # that of the pass before
        self._coming: Unit | None = None  # prefetched, and not used yet
        self._backward = -1  # the one under way
        self._open: list[Pass] = []  # those that it has come to

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's own forward pass."""
        return self.module(*args, **kwargs)

    # -- forward -------------------------------------------------------------------------------------------------------

    def _before_forward(self, unit: Unit, module: nn.Module, args: Any) -> None:
        recomputes = _current_backward() != -1  # for checkpointing: what backward comes back to is the first call
        if unit is self._root and not recomputes:
            self._start_pass()
        made_in = Pass() if recomputes or self._pass is None else self._pass
        if made_in is self._pass and self._calls.keys() - {self._root}:
            raise RuntimeError(
                f"{type(module).__name__} was called inside the forward pass of another unit, which does not contain "
                "it. Likely: a layer handed over in a list or as an argument. Make it a submodule there, too."
            )
        call = self._calls[unit] = Call(unit, made_in)
        made_in.calls.append(call)
        self._attach(call)
        if made_in is self._pass and unit is not self._root:
            self._seen.append(unit)
            place = len(self._seen)
            if self._order[place - 1 : place] == [unit]:
                self._set_out(self._order[place : place + 1])

    def _after_forward(self, unit: Unit, module: nn.Module, args: Any, output: Any) -> None:
        call = self._calls.pop(unit)
        ways_back = [tensor for tensor in tensors_in(output) if tensor.requires_grad]
        for tensor in ways_back:
            tensor.register_hook(functools.partial(self._before_backward, call))  # type: ignore[no-untyped-call]
        if not ways_back:
            call.made_in.calls.remove(call)
        if not unit.in_backward and (self._reshard or not ways_back):
            unit.release()
        if unit is self._root and call.made_in is self._pass:
            self._order, self._pass = self._seen, None

    def _start_pass(self) -> None:
        """Begin a forward of the whole. Shards may have changed, so nothing may be left of an earlier one."""
        self._release_all()
        self._pass, self._seen, self._calls = Pass(), [], {}

    def _attach(self, call: Call) -> None:
        if self._coming is not None and self._coming is not call.unit and not call.unit.is_gathered:
            self._coming.release()  # the order is another this time, on all ranks
            self._coming = None
        if self._coming is call.unit:
            self._coming = None
        call.unit.attach(functools.partial(self._finish, call))

    def _set_out(self, units: Sequence[Unit]) -> None:
        """Prefetch."""
        for unit in units:
            if self._prefetch and unit is not self._root and not unit.is_gathered:
                unit.start_gather()
                self._coming = unit

    def _release_all(self) -> None:
        self._coming = None
        for unit in self._units:
            unit.in_backward = False
            unit.release()

    # -- backward ------------------------------------------------------------------------------------------------------

    def _before_backward(self, call: Call, gradient: Tensor) -> None:
        """The gradient of an output is there: backward comes to this call."""
        waiting = self._come_to(call)
        if call in waiting and call.unit is not self._root:  # else it is over: the output was only handed through
            self._skip_to(call, waiting)
            self._enter(call)

    def _enter(self, call: Call) -> None:
        if not call.unit.in_backward:
            call.unit.in_backward = True
            with torch.enable_grad():  # checkpointing inside the unit computes with its parameters once more
                self._attach(call)
            waiting = call.made_in.waiting
            self._set_out([earlier.unit for earlier in waiting[: waiting.index(call)][-1:]])

    def _finish(self, call: Call, gradients: Gradients) -> Gradients:
        """All `gradients` of this call are there: free the parameters, and reduce to the gradients of the shards."""
        waiting = self._come_to(call)
        if call in waiting:
            self._skip_to(call, waiting)
            waiting.pop()
        call.unit.in_backward = False
        if self._reshard or all(other.unit is not call.unit for other in waiting):
            call.unit.release()
        return call.unit.reduce(gradients)

    def _come_to(self, call: Call) -> list[Call]:
        """The calls that backward has still to do in the pass of `call`."""
        if self._backward != _current_backward():
            self._backward, self._open = _current_backward(), []
            Variable._execution_engine.queue_callback(self._end_backward)
        made_in = call.made_in
        if made_in not in self._open:
            self._open.append(made_in)
            made_in.waiting = list(made_in.calls)
            for first in made_in.waiting[:1]:
                if first.unit is self._root:
                    self._enter(first)
        return made_in.waiting

    def _skip_to(self, call: Call | None, waiting: list[Call]) -> None:
        """Do for the calls after `call` what other ranks do for them, in the same order.

        Autograd goes through a forward pass strictly backwards. So when it has come to `call`, those after it are over,
        or have no part in this rank's loss: then their gradients are zeros here.
        """
        while waiting and waiting[-1] is not call:
            skipped = waiting[-1]
            self._enter(skipped)
            trainable = [piece for flat in skipped.unit.trainable for piece in flat.pieces]
            for piece, gradient in zip(trainable, self._finish(skipped, [None] * len(trainable)), strict=True):
                if gradient is not None:
                    piece.grad = gradient if piece.grad is None else piece.grad + gradient

    @torch.no_grad()
    def _end_backward(self) -> None:
        for made_in in self._open:
            self._skip_to(None, made_in.waiting)
        self._open = []
        self._release_all()

    # -- what only all ranks together have -----------------------------------------------------------------------------

    def clip_grad_norm_(self, max_norm: float) -> Tensor:
        """Scale the gradients down to the global norm `max_norm`; the norm that they had. []"""
        return whole_state.clip(self.parameters(), max_norm, self._group)

    def full_parameters(self) -> dict[str, Tensor]:
        """Every parameter whole, under each of its names in the module."""
        return whole_state.parameters(self._units)

    def full_state(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        """All that training goes on from, whole: it can be loaded on another number of ranks."""
        buffers = {name: buffer.clone() for name, buffer in self.module.named_buffers()}
        return {"buffers": buffers, **whole_state.state(self._units, optimizer, self._group)}

    def load_full_state(self, state: Mapping[str, Any], optimizer: torch.optim.Optimizer) -> None:
        """Go on from a `full_state`, with an optimizer built like the one it was made with."""
        for name, buffer in self.module.named_buffers():
            buffer.copy_(state["buffers"][name])
        whole_state.load(self._units, state, optimizer)


def tensors_in(output: Any) -> Iterator[Tensor]:
    """The tensors in what a module returned: one, or a nest of sequences, mappings and objects that hold some."""
    if isinstance(output, Tensor):
        yield output
    elif isinstance(output, Mapping):
        yield from tensors_in(list(output.values()))
    elif isinstance(output, Sequence) and not isinstance(output, str):
        for part in output:
            yield from tensors_in(part)
    elif hasattr(output, "__dict__"):
        yield from tensors_in(vars(output))


def _current_backward() -> int:
    """A number for the backward that this thread is running, -1 when there is none."""
    return torch._C._current_graph_task_id()
