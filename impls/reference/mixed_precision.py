"""Mixed precision: the module computes in 16 bits, the optimizer in 32.

bfloat16 has 8 significant bits, float16 has 11. An update smaller than 2**-9 (2**-12) of its parameter is lost when it
is added in 16 bits; so the optimizer works on an FP32 *master* copy, of which the module's parameter is the rounded
image. And float16 has no number below 2**-24: small gradients would vanish, so the loss is multiplied by a scale that
is divided out again in FP32. Source: Micikevicius et al., "Mixed Precision Training" (ICLR 2018), sections 3.1 and 3.2.

Bytes per parameter, with Adam: 2 parameter + 2 gradient + 4 master + 8 moments = 16. Without the master: 12.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

HALVES = (torch.float16, torch.bfloat16)
SMALLEST_SCALE = 2.0**-24  # float16's smallest number: below it not even a gradient of 1 would get through


class MixedPrecision(torch.optim.Optimizer):
    """`optimizer_cls` in FP32, for the parameters of a module that the caller has cast to `dtype` already.

    `params`: tensors or parameter groups; `kwargs`: the options of `optimizer_cls`. Wider parameters among them, norm
    layers in FP32 say, are updated as they are, without a second copy. `dtype` need not be given: it is theirs.

    The gradients that ``step()`` finds are the mean over ranks already, or each rank's shard of it: nothing is
    averaged here. Every rank runs ``backward(loss)`` and ``step()``; for float16, ``step()`` has one tiny all-reduce.

    - *Loss scaling* (float16 only). If a gradient is not finite on **any** rank, **all** leave the step out and halve
      the scale: a rank that went on alone would never agree with the others again. After `growth_interval` good steps
      in a row the scale is doubled. Compute the loss in FP32, e.g. from ``output.float()``: a float16 loss has a
      float16 gradient, and the first scale, 65536, is none.
    - *One parameter at a time* is brought to FP32, gradient included, so that a step needs no more memory than the
      largest of them. It also means that `optimizer_cls` may not mix parameters: LBFGS does not fit in here.
    - With `master` False no FP32 copy outlives the step. That saves 4 bytes, and loses the updates that are too small.
    - A master is made in the first step that has a gradient for its parameter; from then on it is what counts, and a
      value written into the parameter from outside is lost. To go on from a checkpoint, use `load_state_dict`.
    """

    def __init__(
        self,
        params: Any,
        optimizer_cls: type[torch.optim.Optimizer],
        dtype: torch.dtype | None = None,
        master: bool = True,
        group: dist.ProcessGroup | None = None,
        init_scale: float = 2.0**16,
        growth_interval: int = 2000,
        **kwargs: Any,
    ) -> None:
        inner = optimizer_cls(params, **kwargs)
        super().__init__(inner.param_groups, inner.defaults)
        self.dtype = _half_dtype_of(self._parameters(), dtype)
        self.loss_scale = init_scale if self.dtype == torch.float16 else 1.0
        self.good_steps = 0  # since the scale changed last
        self._inner = inner
        self._has_master = master
        self._group = group
        self._growth_interval = growth_interval
        self._twins: dict[Tensor, Tensor] = {}  # 16-bit parameter -> what the inner optimizer knows it by, in FP32
        self._clip: Tensor | None = None  # this step's gradients are multiplied by it

    # -- a training step ---------------------------------------------------------------------------------------------

    def scale(self, loss: Tensor) -> Tensor:
        """What to call ``backward()`` on."""
        return loss.float() * self.loss_scale if self.dtype == torch.float16 else loss

    def backward(self, loss: Tensor) -> None:
        """The backward pass of the scaled loss: ``.grad`` is in the parameters' own dtype, and scaled."""
        self.scale(loss).backward()  # type: ignore[no-untyped-call]

    @torch.no_grad()
    def clip_grad_norm_(self, max_norm: float, sharded: bool = False) -> Tensor:
        """Scale this step's gradient down to the norm `max_norm`, over all parameters; returns the norm it had. []

        The norm is that of the true gradient, not of the scaled one. It is ``step()`` that shrinks: in FP32, while
        ``.grad`` stays as it is. With `sharded`, ``.grad`` are shards (ZeRO-3), and all ranks call this together.
        """
        norms = [torch.linalg.vector_norm(grad, dtype=_wide(grad.dtype)).float() for grad in self._gradients()]
        norm: Tensor = torch.linalg.vector_norm(torch.stack(norms) if norms else torch.zeros(1)) / self.loss_scale
        if sharded:
            square = norm.square()
            dist.all_reduce(square, op=dist.ReduceOp.SUM, group=self._group)
            norm = square.sqrt()
        self._clip = (max_norm / (norm + 1e-6)).clamp(max=1.0)  # as torch.nn.utils.clip_grad_norm_
        return norm

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]  # no closure: a step may be left out
        """Update masters and parameters, or leave the step out on all ranks; afterwards parameter == rounded master."""
        if self.dtype == torch.float16 and self._overflows_anywhere():
            self._lower_scale()
        else:
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        self._update(parameter, group)
            self._count_good_step()
        self._clip = None

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, and a clipping that was not used."""
        super().zero_grad(set_to_none)
        self._clip = None

    def _update(self, parameter: Tensor, group: dict[str, Any]) -> None:
        value, held = self._in_fp32(parameter), parameter.grad
        assert held is not None
        value.grad = self._true_gradient(held)
        self._inner.param_groups = [{**group, "params": [value]}]  # today's options: a scheduler may have changed them
        self._inner.step()
        value.grad = None  # 4 bytes per parameter that nobody needs between steps
        if value is parameter:
            parameter.grad = held
        else:
            parameter.copy_(value)
            self._release(value)

    def _true_gradient(self, grad: Tensor) -> Tensor:
        """Unscaled and clipped, in FP32: in float16 the small ones would vanish here after all."""
        true = grad.to(_wide(grad.dtype))
        if self.loss_scale != 1.0:
            true = true / self.loss_scale
        return true if self._clip is None else true * self._clip

    def _in_fp32(self, parameter: Tensor) -> Tensor:
        """What the inner optimizer updates in the place of `parameter`: its FP32 twin, or a wide parameter itself."""
        if parameter.dtype not in HALVES:
            return parameter
        twin = self._twins.get(parameter)
        if twin is None:
            twin = self._twins[parameter] = parameter.detach().float()
        elif not self._has_master:  # the inner optimizer knows its state by the twin, of which only the shell was kept
            twin.untyped_storage().resize_(twin.nbytes)
            twin.copy_(parameter)
        return twin

    def _release(self, twin: Tensor) -> None:
        if not self._has_master:
            twin.untyped_storage().resize_(0)

    # -- loss scale --------------------------------------------------------------------------------------------------

    def _overflows_anywhere(self) -> bool:
        """Whether any gradient of any rank has an inf or a nan; the same answer on all ranks."""
        flag = torch.zeros(1, device=self._parameters()[0].device)
        for grad in self._gradients():
            flag.logical_or_(grad.isfinite().all().logical_not())
        if dist.is_initialized():
            dist.all_reduce(flag, op=dist.ReduceOp.MAX, group=self._group)
        return bool(flag)

    def _lower_scale(self) -> None:
        self.loss_scale /= 2
        self.good_steps = 0
        if self.loss_scale < SMALLEST_SCALE:
            raise FloatingPointError(
                f"the loss scale has fallen to {self.loss_scale}: step after step a gradient was inf or nan on some "
                "rank. No scale helps there: look for the first loss that is not finite. Likely: a nan in the data, or "
                "a learning rate under which the model diverges."
            )

    def _count_good_step(self) -> None:
        if self.dtype != torch.float16:
            return
        self.good_steps += 1
        if self.good_steps == self._growth_interval:
            self.loss_scale *= 2
            self.good_steps = 0

    # -- what is held, saved and loaded ------------------------------------------------------------------------------

    def state_held(self) -> dict[str, list[Tensor]]:
        """The tensors behind each category: parameters, gradients, and masters with moments as the optimizer's."""
        states = [value for state in self._inner.state.values() for value in state.values()]
        return {
            "parameters": self._parameters(),
            "gradients": list(self._gradients()),
            "optimizer": [*self._twins.values(), *(value for value in states if isinstance(value, Tensor))],
        }

    def state_dict(self) -> dict[str, Any]:
        """As an unsharded torch optimizer's, with ``master`` by parameter number, ``loss_scale`` and ``good_steps``."""
        number = {parameter: i for i, parameter in enumerate(self._parameters())}
        keys = {parameter: self._twins.get(parameter, parameter) for parameter in number}
        return {
            "state": {number[p]: dict(self._inner.state[key]) for p, key in keys.items() if key in self._inner.state},
            "param_groups": [{**group, "params": [number[p] for p in group["params"]]} for group in self.param_groups],
            "master": {number[p]: twin for p, twin in self._twins.items()} if self._has_master else {},
            "loss_scale": self.loss_scale,
            "good_steps": self.good_steps,
        }

    @torch.no_grad()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from there. Parameters become their rounded masters, where there are some.

        A state saved without masters can be loaded with them, and the other way round.
        """
        saved_groups = state_dict["param_groups"]
        there, here = ([len(group["params"]) for group in groups] for groups in (saved_groups, self.param_groups))
        if there != here:
            raise ValueError(
                f"the state dict is of groups of {there} parameters, this optimizer has {here}; build it from the same "
                "parameters in the same groups as the one that was saved"
            )
        for group, saved in zip(self.param_groups, saved_groups, strict=True):
            group.update({option: value for option, value in saved.items() if option != "params"})
        self._twins.clear()
        self._inner.state.clear()
        for i, parameter in enumerate(self._parameters()):
            if i in state_dict["master"] and parameter.dtype in HALVES:
                parameter.copy_(state_dict["master"][i])
                self._twins[parameter] = state_dict["master"][i].detach().clone()
            if i in state_dict["state"]:
                self._inner.state[self._in_fp32(parameter)] = copy.deepcopy(state_dict["state"][i])
        for twin in self._twins.values():
            self._release(twin)
        self.loss_scale, self.good_steps = state_dict["loss_scale"], state_dict["good_steps"]

    def _parameters(self) -> list[Tensor]:
        return [parameter for group in self.param_groups for parameter in group["params"]]

    def _gradients(self) -> Iterator[Tensor]:
        return (parameter.grad for parameter in self._parameters() if parameter.grad is not None)


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)


def _half_dtype_of(parameters: list[Tensor], wanted: torch.dtype | None) -> torch.dtype:
    found = {parameter.dtype for parameter in parameters} & set(HALVES)
    if len(found) != 1 or wanted not in (None, *found):
        names = sorted(str(parameter.dtype) for parameter in parameters)
        raise ValueError(
            f"mixed precision wants parameters of {wanted or 'either torch.float16 or torch.bfloat16'}, wider ones "
            f"among them at most; these are {', '.join(dict.fromkeys(names))}. Cast the module first: "
            f"module.to({wanted or torch.bfloat16})"
        )
    return found.pop()
