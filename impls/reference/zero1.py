"""ZeRO-1: every rank has all parameters and gradients, but the optimizer's state for 1/N of them only.

Data parallelism updates the same parameters with the same mean gradient N times. Here each rank updates one shard of
them and tells the others the result: the gradients are reduce-scattered instead of all-reduced, and the new parameters
all-gathered. That is the same traffic, since an all-reduce is a reduce-scatter and an all-gather.
Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models" (2020), section 5.1.

    reduce-scatter gradients   T(N-1)/N bytes sent per rank, T = bytes of the parameters
    step on the own shard      FP32 master copy (16-bit parameters only) and moments: 12P/N bytes, 8P/N in FP32 (Adam)
    all-gather parameters      T(N-1)/N
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from impls.mesh import GlooMesh
from impls.reference.flat import Flat, Piece, pack

NOT_ELEMENTWISE = (torch.optim.LBFGS, torch.optim.Adafactor, torch.optim.Muon)


class ShardedOptimizer(torch.optim.Optimizer):
    """`optimizer_cls`, with its state sharded over the ranks of `group`; `kwargs` are that optimizer's options.

    Parameters are equal on all ranks beforehand. The gradients that ``step()`` finds are each rank's own; their mean is
    formed here. Every method that moves data (``step``, ``clip_grad_norm_``, ``state_dict``) is called on all ranks.

    - *Flat buffers.* The parameters become views of one buffer for each group and dtype, see `Flat`. Frozen ones stay
      where they are, without state, and move in when a ``step()`` finds them thawed. Gradients are copied into such a
      buffer to be reduced: that copy is alive during ``step()`` only.
    - *Element by element* must be how `optimizer_cls` updates (SGD, Adam, AdamW, RMSprop, ...): it sees one-dimensional
      pieces of parameters. Those of torch that look at whole matrices are refused.
    - *Options* in ``param_groups`` may change between steps, as learning rate schedulers do.
    """

    def __init__(
        self,
        params: Any,
        optimizer_cls: type[torch.optim.Optimizer],
        group: dist.ProcessGroup | None = None,
        **kwargs: Any,
    ) -> None:
        if issubclass(optimizer_cls, NOT_ELEMENTWISE):
            raise ValueError(
                f"{optimizer_cls.__name__} looks at whole parameters, and a rank has only pieces of them; "
                "take an optimizer that works element by element, such as Adam"
            )
        self._group = group
        self._mesh = GlooMesh(group)
        self._flats: list[Flat] = []
        self._flat_of: dict[Tensor, Flat] = {}
        self._inner: dict[Flat, torch.optim.Optimizer] = {}  # what updates this rank's pieces of it
        self._param_group: dict[Flat, dict[str, Any]] = {}  # the one its parameters belong to
        self._optimizer_cls = optimizer_cls
        self._kwargs = kwargs
        super().__init__(params, optimizer_cls([{"params": []}], **kwargs).defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Further parameters, with options of their own; torch's constructor adds the first ones through here too."""
        super().add_param_group(param_group)
        self._lay_out()

    # -- a training step ---------------------------------------------------------------------------------------------

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update this rank's shard with the mean gradient, and give all ranks all new parameters."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._reduce_gradients()
        for flat in self._flats:
            self._update(flat)
            flat.publish(self._group)
        self._end_step()
        return loss

    @torch.no_grad()
    def clip_grad_norm_(self, max_norm: float) -> Tensor:
        """Scale the mean gradient down to the norm `max_norm`, over all parameters; returns the norm it had. []

        Call it last before ``step()``, which then does not reduce again: what is scaled is this rank's shard of the
        mean, while ``.grad`` stays as it is. (torch's function would see this rank's own gradients, and no mean.) A
        shard knows only its own part of the norm, so the ranks add up their squares.
        """
        self._reduce_gradients()
        gradients = [flat.gradient for flat in self._flats if flat.gradient is not None]
        norms = [torch.linalg.vector_norm(gradient, dtype=_wide(gradient.dtype)) for gradient in gradients]
        square = torch.stack([norm.double().square() for norm in norms] or [torch.zeros((), dtype=torch.double)]).sum()
        dist.all_reduce(square, op=dist.ReduceOp.SUM, group=self._group)
        norm = square.sqrt()
        for gradient in gradients:
            gradient *= (max_norm / (norm + 1e-6)).clamp(max=1.0)  # as torch.nn.utils.clip_grad_norm_
        return norm

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, also those that a `clip_grad_norm_` has reduced already."""
        super().zero_grad(set_to_none)
        for flat in self._flats:
            flat.forget()

    def _reduce_gradients(self) -> None:
        """One reduce-scatter for each buffer, unless `clip_grad_norm_` has done so for this step."""
        self._lay_out()
        for flat in self._flats:
            if flat.gradient is None:
                for parameter in flat.parameters:
                    if parameter.grad is not None:
                        flat.take(parameter)
                flat.reduce(self._mesh)

    def _update(self, flat: Flat) -> None:
        """Let the inner optimizer update this rank's pieces."""
        inner = self._inner[flat]
        inner.param_groups[0].update(self._options(self._param_group[flat]))  # a scheduler may have changed them
        flat.take_over_changes()
        flat.hand_over()
        inner.step()
        inner.zero_grad()  # of the pieces; for 16-bit parameters these are copies in FP32

    def _end_step(self) -> None:
        for flat in self._flats:
            flat.forget()

    # -- layout ------------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def _lay_out(self) -> None:
        """Move the parameters that are new here, or no longer frozen, into flat buffers."""
        for group in self.param_groups:
            new = [p for p in group["params"] if p.requires_grad and p not in self._flat_of]
            for run in self._pack(dict.fromkeys(new)):  # tied ones once
                flat = Flat(run, self._mesh.rank, self._mesh.world_size)
                pieces = {"params": [piece.master for piece in flat.pieces], **self._options(group)}
                self._flats.append(flat)
                self._flat_of.update(dict.fromkeys(run, flat))
                self._inner[flat] = self._optimizer_cls([pieces], **self._kwargs)
                self._param_group[flat] = group

    def _pack(self, parameters: Iterable[Tensor]) -> list[list[Tensor]]:
        return pack(parameters)

    def _options(self, group: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in group.items() if name in self.defaults}

    # -- what is held, saved and loaded ------------------------------------------------------------------------------

    def state_held(self) -> dict[str, list[Tensor]]:
        """The tensors behind each category; masters count as the optimizer's where they are copies."""
        parameters = [parameter for group in self.param_groups for parameter in group["params"]]
        gradients = [parameter.grad for parameter in parameters] + [flat.gradient for flat in self._flats]
        masters = [flat.master for flat in self._flats if flat.master is not flat.shard]
        states = [state for inner in self._inner.values() for state in inner.state.values()]
        return {
            "parameters": parameters,
            "gradients": [gradient for gradient in gradients if gradient is not None],
            "optimizer": masters + [value for state in states for value in state.values() if isinstance(value, Tensor)],
        }

    def state_dict(self) -> dict[str, Any]:
        """Whole on every rank, as an unsharded torch optimizer's, with ``master`` (by parameter number) besides.

        Any number of ranks can go on from it, and a plain `optimizer_cls` as well.
        """
        whole = super().state_dict()  # groups with their options; there is no state in it
        own: dict[int, dict[str, Any]] = {}
        for flat, piece, number in self._numbered_pieces(whole):
            own[number] = dict(self._inner[flat].state.get(piece.master, {}))
            if flat.master is not flat.shard:
                own[number]["master"] = piece.master.detach().clone()
        everyone: list[Any] = [None] * self._mesh.world_size
        dist.all_gather_object(everyone, own, group=self._group)
        for parameter, number in self._numbers(whole).items():
            parts = [part[number] for part in everyone if number in part]  # in rank order: from first to last element
            state = {name: _join([part[name] for part in parts], parameter) for name in (parts[0] if parts else ())}
            if "master" in state:
                whole.setdefault("master", {})[number] = state.pop("master")
            if state:
                whole["state"][number] = state
        return whole

    @torch.no_grad()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from `state_dict`, saved by any number of ranks or by a plain `optimizer_cls`.

        Parameters of which it has a master become the rounded master; the others it leaves as they are.
        """
        numbers = self._numbers(state_dict)
        for group, saved in zip(self.param_groups, state_dict["param_groups"], strict=True):
            group.update({name: value for name, value in saved.items() if name not in ("params", "param_names")})
        masters = state_dict.get("master", {})
        for parameter, number in numbers.items():
            if number in masters:
                parameter.copy_(masters[number])
        for inner in self._inner.values():
            inner.state.clear()
        for flat, piece, number in self._numbered_pieces(state_dict):
            if state := state_dict["state"].get(number):
                self._inner[flat].state[piece.master] = {
                    name: _cut(name, value, piece) for name, value in state.items()
                }
            if number in masters:
                piece.master.copy_(_cut("master", masters[number], piece))

    def _numbers(self, state_dict: dict[str, Any]) -> dict[Tensor, int]:
        """The number that each parameter has in `state_dict`: torch counts them through all groups."""
        saved = [group["params"] for group in state_dict["param_groups"]]
        there, here = [len(numbers) for numbers in saved], [len(group["params"]) for group in self.param_groups]
        if there != here:
            raise ValueError(
                f"the state dict is of groups of {there} parameters, this optimizer has {here}; build it from the same "
                "parameters in the same groups as the one that was saved"
            )
        parameters = [parameter for group in self.param_groups for parameter in group["params"]]
        return dict(zip(parameters, itertools.chain.from_iterable(saved), strict=True))

    def _numbered_pieces(self, state_dict: dict[str, Any]) -> Iterator[tuple[Flat, Piece, int]]:
        numbers = self._numbers(state_dict)
        return ((flat, piece, numbers[piece.parameter]) for flat in self._flats for piece in flat.pieces)


def _join(values: list[Any], parameter: Tensor) -> Any:
    """One entry of a parameter's state from those of its pieces: put together, or the same for all (a step count)."""
    if isinstance(values[0], Tensor) and values[0].dim() == 1:
        return torch.cat(values).view(parameter.shape)
    return values[0]


def _cut(name: str, value: Any, piece: Piece) -> Any:
    """The reverse: what a piece has of one entry of its parameter's state."""
    if not isinstance(value, Tensor) or name == "step" or value.shape != piece.parameter.shape:
        return copy.deepcopy(value)
    return value.detach().flatten()[piece.begin : piece.end].to(piece.master, copy=True)


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)
