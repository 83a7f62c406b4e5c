"""Different shapes of one answer made the same: in place or returned, list or tensor, with or without a sync call."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn

from impls.contract import Entry
from impls.contract.methods import AFTER_BACKWARD, BATCH_START, BEGIN_METHODS, SYNC_METHODS, SYNC_SWITCHES
from impls.definitions import is_stub
from impls.handover import NotProvided, arguments, requires
from impls.loading import Implementation

BUCKET_CAP_MB = 25.0  # MiB: the contract's, for wrappers that have no default of their own


class UnusableResult(TypeError):
    """An implementation returned something that is not the result its contract describes."""


def one_tensor(result: Any, given: Tensor, name: str = "it") -> Tensor:
    """The tensor that a sum or a broadcast left: what was returned, or `given` when it worked in place."""
    if result is None:
        return given
    if isinstance(result, list | tuple) and len(result) == 1:
        result = result[0]
    if not isinstance(result, Tensor):
        raise UnusableResult(f"{name} returned {_described(result)}, not a tensor (or None after working in place)")
    return result.detach()


def flat_tensor(result: Any, given: Tensor | None = None, name: str = "it") -> Tensor:
    """A gathered or scattered result as one flat tensor: a list is joined, None stands for `given`. [numel]"""
    if result is None:
        result = given
    if isinstance(result, list | tuple) and result and all(isinstance(part, Tensor) for part in result):
        return torch.cat([part.detach().flatten() for part in result])
    if not isinstance(result, Tensor):
        raise UnusableResult(f"{name} returned {_described(result)}, not a tensor or a list of tensors")
    return result.detach().flatten()


def joined(parts: Sequence[Tensor], numel: int) -> Tensor:
    """The parts of all ranks in rank order, cut to `numel`: padding of the flat tensor lies at its end. [numel]"""
    whole = torch.cat([part.flatten() for part in parts])
    return whole[:numel] if whole.numel() > numel else whole


class Wrapped:
    """Any data-parallel wrapper, driven in one way: call it, ``backward()``, then `finish`."""

    def __init__(self, impl: Implementation, module: nn.Module, world_size: int, group: Any = None, **options: Any):
        self._impl = impl
        if options.get("bucket_cap_mb") is None and requires(impl.get("DataParallel"), "bucket_cap_mb"):
            options["bucket_cap_mb"] = BUCKET_CAP_MB
        made = impl.call("DataParallel", module=module, world_size=world_size, group=group, **options)
        self.wrapper: Any = module if made is None else made  # some only hang hooks into the module
        inner = getattr(self.wrapper, "module", module)
        self.module: nn.Module = inner if isinstance(inner, nn.Module) else module
        self.world_size = world_size
        self._begun = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The forward pass; the first of a step tells the wrapper that one begins, where it has a call for that."""
        if not callable(self.wrapper):
            raise UnusableResult(f"DataParallel returned {_described(self.wrapper)}, which cannot be called")
        if not self._begun:
            self._begun = True
            self._call_first(self._beginners(), None)
        return self._impl.invoke(self.wrapper, *args, **kwargs)

    def finish(self, optimizer: Any = None) -> None:
        """End the step's gradient reduction, where the wrapper has a call for that; else ``backward()`` did it all."""
        self._begun = False
        self._call_first(self._finishers(), optimizer)

    @property
    def has_no_sync(self) -> bool:
        """Whether the wrapper has a `no_sync`, or a switch of which one can be made."""
        return _is_written(getattr(self.wrapper, "no_sync", None)) or self._switch() is not None

    def no_sync(self) -> AbstractContextManager[None]:
        """The wrapper's `no_sync()`; raises `NotProvided` when it has none."""
        if not self.has_no_sync:
            raise NotProvided(f"{type(self.wrapper).__name__} has no no_sync()")
        if (switch := self._switch()) is not None and not _is_written(getattr(self.wrapper, "no_sync", None)):
            return self._switched_off(switch)
        context: AbstractContextManager[None] = self._impl.invoke(self.wrapper.no_sync)
        return context

    @contextlib.contextmanager
    def _switched_off(self, switch: Callable[..., Any]) -> Iterator[None]:
        self._impl.invoke(switch, False)
        try:
            yield
        finally:
            self._impl.invoke(switch, True)

    def _switch(self) -> Callable[..., Any] | None:
        switches = [getattr(self.wrapper, name, None) for name in SYNC_SWITCHES]
        return next((switch for switch in switches if _is_written(switch)), None)

    def _call_first(self, targets: Sequence[tuple[Callable[..., Any], dict[str, Any]]], optimizer: Any) -> None:
        for target, extra in targets[:1]:
            entry = Entry(name="sync_grads", block="data_parallel", aliases=(), orders=((*extra, "optimizer"),), doc="")
            available = {**extra, "optimizer": optimizer, "world_size": self.world_size}
            args, kwargs = arguments(target, entry, available)
            self._impl.invoke(target, *args, **kwargs)

    def _beginners(self) -> list[tuple[Callable[..., Any], dict[str, Any]]]:
        """Ways to announce a step. A method counts where the wrapper's class has it: its module's is none."""
        own = [name for name in BEGIN_METHODS if _is_written(getattr(type(self.wrapper), name, None))]
        return [(getattr(self.wrapper, name), {}) for name in own] + self._functions(BATCH_START)

    def _finishers(self) -> list[tuple[Callable[..., Any], dict[str, Any]]]:
        """Ways to finish a step with the values only they need, best first."""
        methods = [getattr(self.wrapper, name, None) for name in SYNC_METHODS]
        return [(method, {}) for method in methods if _is_written(method)] + self._functions(AFTER_BACKWARD)

    def _functions(self, ending: str) -> list[tuple[Callable[..., Any], dict[str, Any]]]:
        """Functions of the wrapper that belong to the one that made it: ``get_ddp``, ``ddp_on_after_backward``."""
        maker = getattr(self._impl.get("DataParallel"), "__name__", "").removeprefix("get_")
        names = dict.fromkeys([maker + ending, *(f"{name}{ending}" for name in _COURSE if maker not in _COURSE)])
        functions = [getattr(home, name, None) for name in names for home in self._impl.modules]
        return [(function, {"module": self.wrapper}) for function in functions if _is_written(function)]


_COURSE = ("ddp", "ddp_bucketed", "ddp_individual_parameters")  # what its functions are called after


def _is_written(value: Any) -> TypeGuard[Callable[..., Any]]:
    return callable(value) and not is_stub(value)


def _described(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
