"""One way to train with any stage of any implementation: forward, backward, finish, step, whatever its form.

    trainer = stage(impl, "1", module, optimizer_cls=torch.optim.Adam, lr=0.1)
    loss = trainer(x).square().mean()
    trainer.backward(loss); trainer.finish(); trainer.average(); trainer.step(); trainer.zero_grad()

The stages are those of ZeRO, by name: "ddp", "1" (optimizer state sharded), "2" (gradients too), "3" (parameters too);
"mixed" is mixed precision, whose module is of a 16-bit dtype already.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeGuard

import torch
import torch.distributed as dist
from torch import Tensor, nn

from impls import gradient_forms, layered
from impls.contract import Entry
from impls.contract.methods import FSDP_SYNC_FUNCTIONS, GATHER_FUNCTIONS, GATHER_METHODS, GATHERS_FIRST, SYNC_METHODS
from impls.definitions import is_stub
from impls.handover import NotProvided, cannot_be_called, takes, takes_any_keyword
from impls.loading import Implementation
from impls.normalise import UnusableResult, Wrapped
from impls.reference.calls import average_gradients
from impls.whole import Listener

STAGES: Mapping[str, str] = {  # stage -> the name of the contract that provides it
    "ddp": "DataParallel",
    "1": "ShardedOptimizer",
    "2": "Zero2Optimizer",
    "3": "fully_shard",
    "mixed": "MixedPrecision",
}
_Forms = dict[tuple[str, torch.dtype], bool]
_known_forms: weakref.WeakKeyDictionary[Implementation, _Forms] = weakref.WeakKeyDictionary()  # tried once each
Groups = Callable[[nn.Module], list[dict[str, Any]]]  # the parameter groups of a module


def stage(
    impl: Implementation,
    name: str,
    module: nn.Module,
    *,
    optimizer_cls: type[torch.optim.Optimizer] = torch.optim.SGD,
    groups: Groups | None = None,
    group: dist.ProcessGroup | None = None,
    reshard_after_forward: bool | None = None,
    bucket_cap_mb: float | None = None,
    extras: Mapping[str, Any] | None = None,
    mixed: bool = False,
    wants_mean: bool | None = None,
    **options: Any,
) -> Trainer:
    """`module` and its optimizer under stage `name`; `options` are the optimizer's (lr, momentum, betas, ...).

    `groups` makes the parameter groups of the module (default: all its parameters in one); `extras` are for mixed
    precision (init_scale, growth_interval, master). With `mixed`, the optimizer on the shards of stage "3" is the
    implementation's own `MixedPrecision`. `wants_mean` says what is found out by trying otherwise, which takes real
    ranks and tensors with values. Raises `NotProvided` for what the implementation does not take.
    """
    if name not in STAGES:
        raise ValueError(f"there is no stage {name!r}; the stages are {', '.join(STAGES)}")
    if (reason := impl.reason(STAGES[name])) is not None:
        raise NotProvided(reason)
    if name == "ddp":
        wrapped = Wrapped(impl, module, dist.get_world_size(group), group=group, bucket_cap_mb=bucket_cap_mb)
        inner = optimizer_cls(_params(module, groups), **options)
        return Trainer(impl, name, module, wrapper=wrapped, optimizer=inner, group=group)
    if name == "3":
        if mixed and (reason := impl.reason(STAGES["mixed"])) is not None:
            raise NotProvided(reason)
        on_shards = _Maker(impl, STAGES["mixed"], optimizer_cls, group, extras or {}) if mixed else None
        return _fully_sharded(impl, module, on_shards or optimizer_cls, groups, group, reshard_after_forward, options)
    make = _Maker(impl, STAGES[name], optimizer_cls, group, extras or {})
    if wants_mean is None:
        wants_mean = make.takes_the_mean(next(iter(module.parameters())).dtype)
    optimizer = make(module, _params(module, groups), options)
    trainer = Trainer(impl, name, module, wrapper=module, optimizer=optimizer, group=group)
    trainer.wants_mean = wants_mean
    trainer.chooses_optimizer = make.chooses_optimizer
    return trainer


class Trainer:
    """A module in training under one stage, on this rank."""

    def __init__(
        self,
        impl: Implementation,
        name: str,
        module: nn.Module,
        *,
        wrapper: Any,
        optimizer: Any,
        group: dist.ProcessGroup | None,
        listener: Listener | None = None,
    ) -> None:
        self.name = name
        self.module = module  # as it was handed over; sharded in place, perhaps
        self.wrapper = wrapper  # what is called
        self.optimizer = optimizer
        self.wants_mean = False  # step() expects gradients that are averaged already: see `average`
        self.chooses_optimizer = False  # it takes no optimizer_cls: which rule it follows has to be found out
        self._impl = impl
        self._group = group
        self._listener = listener

    # -- a training step ---------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The forward pass, and before it the call that gathers where that is one of its own."""
        if self.name == "3" and (gather := _explicit_gather(self.wrapper)) is not None:
            self._impl.invoke(gather)
        return self._impl.invoke(self.wrapper, *args, **kwargs)

    def backward(self, loss: Tensor) -> None:
        """The backward pass of one microbatch, of the scaled loss where the implementation scales."""
        if _is_written(own := getattr(self.optimizer, "backward", None)):
            self._impl.invoke(own, loss)
        elif _is_written(scale := getattr(self.optimizer, "scale", None)):
            self._impl.invoke(scale, loss).backward()
        else:
            self._impl.invoke(loss.backward)

    def finish(self) -> None:
        """End the reduction of this backward, where there is a call for that; it may be called after each backward."""
        if isinstance(self.wrapper, Wrapped):
            self.wrapper.finish(self.optimizer)
        elif self.name in ("2", "3"):
            for target, extra in self._finishers():
                self._impl.invoke(target, *extra)
                return

    def average(self) -> None:
        """Before ``step()``: average the gradients as data parallelism does, where the optimizer wants them so.

        Its operations are not the implementation's own; put marks around it.
        """
        if self.wants_mean:
            average_gradients(self.module, dist.get_world_size(self._group), self._group)

    def step(self) -> None:
        """The optimizer's update, and that of its loss scale where that is a call of its own."""
        self._impl.invoke(self.optimizer.step)
        if self.name == "mixed" and _is_written(update := getattr(self.optimizer, "update", None)):
            self._impl.invoke(update)

    def zero_grad(self) -> None:
        """Forget the gradients."""
        self._impl.invoke(self.optimizer.zero_grad)

    def clip(self, max_norm: float) -> float:
        """Clip by the global norm, after `average`; the norm before. Raises `NotProvided` where nothing does it."""
        for owner in (self.optimizer, self.wrapper):
            if _is_written(own := getattr(owner, "clip_grad_norm_", None)):
                on_shards = {"sharded": True} if self.name == "3" and takes(own, "sharded") else {}
                return float(self._impl.invoke(own, max_norm, **on_shards))
        if self.name == "ddp" or self.wants_mean:
            return float(torch.nn.utils.clip_grad_norm_(self.module.parameters(), max_norm))
        raise NotProvided(f"neither {_called(self.optimizer)} nor {_called(self.wrapper)} has a clip_grad_norm_")

    def set_rate(self, rate: float) -> None:
        """Change the learning rate of every parameter group, as a scheduler does."""
        self.set_options({"lr": rate})

    def set_options(self, options: Mapping[str, Any]) -> None:
        """Change options of every parameter group, as schedulers of momentum or weight decay do."""
        groups = getattr(self.optimizer, "param_groups", None)
        if not groups:
            raise NotProvided(f"{_called(self.optimizer)} has no param_groups to change {', '.join(options)} in")
        for param_group in groups:
            param_group.update(options)

    # -- what it holds -----------------------------------------------------------------------------------------------

    def held(self) -> dict[str, Any]:
        """Keywords for the memory witness: how to sort what this rank holds into categories."""
        for owner in (self.optimizer, self.wrapper):
            if _is_written(own := getattr(owner, "state_held", None)):
                return {str(category): found for category, found in self._impl.invoke(own).items()}
        inner = self.wrapper.wrapper if isinstance(self.wrapper, Wrapped) else self.wrapper
        return {"module": inner if isinstance(inner, nn.Module) else self.module, "optimizer": self.optimizer}

    def full_parameters(self, *args: Any, **kwargs: Any) -> dict[str, Tensor]:
        """Copies of all parameters, whole, tied ones under each of their names; called on all ranks at once.

        The arguments are for a forward pass: a sharded module's parameters are read where its layers use them, and
        those that no layer uses are asked for. Raises `NotProvided` when neither gives all of them.
        """
        if self._listener is None:
            named = self.module.named_parameters(remove_duplicate=False)
            return {name: p.detach().clone(memory_format=torch.contiguous_format) for name, p in named}
        found = self._listener.hear(lambda: self(*args, **kwargs))
        if unheard := self._listener.names - set(found):
            told = self.told_parameters()
            found |= {name: told[name] for name in unheard & set(told)}
        if missing := sorted(self._listener.names - set(found)):
            raise NotProvided(
                f"the whole of {', '.join(missing[:3])} is seen nowhere: no layer's forward pass used it whole, and "
                f"neither full_parameters() of what fully_shard returns nor a function of that name gave it"
            )
        return found

    def told_parameters(self) -> dict[str, Tensor]:
        """The whole parameters as the implementation itself gives them out; empty where it does not."""
        methods = [getattr(self.wrapper, name, None) for name in GATHER_METHODS]
        functions = [getattr(home, name, None) for home in self._impl.modules for name in GATHER_FUNCTIONS]
        for target, extra in [*((m, ()) for m in methods), *((f, (self.wrapper,)) for f in functions)]:
            if _is_written(target):
                told = self._impl.invoke(target, *extra)
                if not isinstance(told, Mapping):
                    raise UnusableResult(f"{_called(target)} returned {type(told).__name__}, not a dict of tensors")
                return {str(name).removeprefix("module."): value.detach().clone() for name, value in told.items()}
        return {}

    def _finishers(self) -> Iterable[tuple[Callable[..., Any], tuple[Any, ...]]]:
        for owner in (self.wrapper, self.optimizer):
            for name in SYNC_METHODS:
                if _is_written(method := getattr(owner, name, None)):
                    yield method, ()
        for home in self._impl.modules:
            for name in FSDP_SYNC_FUNCTIONS if self.name == "3" else ():
                if _is_written(function := getattr(home, name, None)):
                    yield function, (self.wrapper, self.optimizer)[: 1 + takes(function, "optimizer")]


def _fully_sharded(
    impl: Implementation,
    module: nn.Module,
    optimizer_cls: type[torch.optim.Optimizer] | _Maker,
    groups: Groups | None,
    group: dist.ProcessGroup | None,
    reshard_after_forward: bool | None,
    options: Mapping[str, Any],
) -> Trainer:
    if reshard_after_forward is not None and not takes(impl.get("fully_shard"), "reshard_after_forward"):
        raise NotProvided(f"{impl.name}'s fully_shard has no reshard_after_forward")
    listener = Listener(module)
    made = layered.fully_sharded(
        impl,
        module,
        world_size=dist.get_world_size(group),
        rank=dist.get_rank(group),
        group=group,
        reshard_after_forward=reshard_after_forward,
    )
    wrapper = module if made is None else made
    if not callable(wrapper):
        raise UnusableResult(f"fully_shard returned {_called(wrapper)}, which cannot be called")
    owner = wrapper if isinstance(getattr(wrapper, "parameters", None), Callable) else module  # type: ignore[arg-type]
    params = _params(owner, groups)
    if isinstance(optimizer_cls, _Maker):
        optimizer = optimizer_cls(owner, params, options)
    else:
        optimizer = optimizer_cls(params, **options)
    return Trainer(impl, "3", module, wrapper=wrapper, optimizer=optimizer, group=group, listener=listener)


class _Maker:
    """Builds the optimizers of one stage, in whichever form the implementation has them."""

    def __init__(
        self,
        impl: Implementation,
        entry: str,
        optimizer_cls: type[torch.optim.Optimizer],
        group: dist.ProcessGroup | None,
        extras: Mapping[str, Any],
    ) -> None:
        self._impl, self._entry, self._cls, self._group, self._extras = impl, entry, optimizer_cls, group, extras
        self._target = impl.get(entry)
        self.chooses_optimizer = not takes(self._target, "optimizer_cls") and not takes(self._target, "optimizer")

    def __call__(self, module: nn.Module, params: Any, options: Mapping[str, Any]) -> Any:
        """The optimizer of `module`. Raises `NotProvided` when it takes none of the forms or an option is lost."""
        extras = {key: value for key, value in self._extras.items() if takes(self._target, key)}
        available = {
            "params": params,
            "module": module,
            "optimizer_cls": self._cls,
            "world_size": dist.get_world_size(self._group),
            "rank": dist.get_rank(self._group),
            "group": self._group,
            "dtype": next(iter(module.parameters())).dtype,
            **extras,
        }
        if takes(self._target, "optimizer"):
            available["optimizer"] = self._cls(params, **options)
            return self._impl.call(self._entry, **available)
        lost = [name for name in options if not takes(self._target, name)]
        if lost and not takes_any_keyword(self._target):
            raise NotProvided(f"{self._impl.name}'s {self._entry} takes no {', '.join(lost)}")
        return self._impl.call(self._entry, options, **available)

    def takes_the_mean(self, dtype: torch.dtype) -> bool:
        """Whether ``step()`` wants gradients that are averaged already."""
        world_size = dist.get_world_size(self._group)
        known = _known_forms.setdefault(self._impl, {})
        key = (self._entry, dtype)
        if world_size == 1:
            return False
        if key not in known:
            trial = gradient_forms.Trial(world_size, dtype)
            optimizer = self(trial, list(trial.parameters()), {"lr": 2.0**-4})
            trainer = Trainer(
                self._impl, _stage_of(self._entry), trial, wrapper=trial, optimizer=optimizer, group=self._group
            )
            trainer.backward(trainer(gradient_forms.gradient_of(dist.get_rank(self._group), world_size)))
            trainer.finish()
            trainer.step()
            known[key] = gradient_forms.follows_single_ranks(trial, self._group)
        return known[key]


def _explicit_gather(wrapper: Any) -> Callable[..., Any] | None:
    """A method that gathers before a forward pass, where the forward pass does not call it."""
    cls = type(wrapper)
    name = next((name for name in GATHERS_FIRST if _is_written(getattr(cls, name, None))), None)
    code = getattr(vars(cls).get("forward", vars(cls).get("__call__")), "__code__", None)
    if name is None or code is None or name in code.co_names:
        return None
    method: Callable[..., Any] = getattr(wrapper, name)
    return None if cannot_be_called(method, _NO_ARGUMENTS) else method


_NO_ARGUMENTS = Entry(name="gather", block="", aliases=(), orders=((),), doc="")


def _stage_of(entry: str) -> str:
    return next(name for name, provider in STAGES.items() if provider == entry)


def _params(module: Any, groups: Groups | None) -> Any:
    return list(module.parameters()) if groups is None else groups(module)


def _is_written(value: Any) -> TypeGuard[Callable[..., Any]]:
    return callable(value) and not is_stub(value)


def _called(value: Any) -> str:
    return getattr(value, "__name__", type(value).__name__)
