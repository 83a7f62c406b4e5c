"""Different shapes of one answer made the same: in place or returned, list or tensor, with or without a sync call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn

from impls.contract import Entry
from impls.contract.spellings import SYNC_FUNCTIONS, SYNC_METHODS
from impls.definitions import is_stub
from impls.handover import NotProvided, arguments
from impls.loading import Implementation


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
        made = impl.call("DataParallel", module=module, world_size=world_size, group=group, **options)
        self.wrapper: Any = module if made is None else made  # some only hang hooks into the module
        inner = getattr(self.wrapper, "module", module)
        self.module: nn.Module = inner if isinstance(inner, nn.Module) else module
        self.world_size = world_size

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The forward pass."""
        if not callable(self.wrapper):
            raise UnusableResult(f"DataParallel returned {_described(self.wrapper)}, which cannot be called")
        return self._impl.invoke(self.wrapper, *args, **kwargs)

    def finish(self, optimizer: Any = None) -> None:
        """End the step's gradient reduction, where the wrapper has a call for that; else ``backward()`` did it all."""
        for target, extra in self._finishers():
            entry = Entry(name="sync_grads", block="data_parallel", aliases=(), orders=((*extra, "optimizer"),), doc="")
            available = {**extra, "optimizer": optimizer, "world_size": self.world_size}
            args, kwargs = arguments(target, entry, available)
            self._impl.invoke(target, *args, **kwargs)
            return

    @property
    def has_no_sync(self) -> bool:
        """Whether the wrapper has a `no_sync`."""
        return _is_written(getattr(self.wrapper, "no_sync", None))

    def no_sync(self) -> AbstractContextManager[None]:
        """The wrapper's `no_sync()`; raises `NotProvided` when it has none."""
        if not self.has_no_sync:
            raise NotProvided(f"{type(self.wrapper).__name__} has no no_sync()")
        context: AbstractContextManager[None] = self._impl.invoke(self.wrapper.no_sync)
        return context

    def _finishers(self) -> list[tuple[Callable[..., Any], dict[str, Any]]]:
        """Ways to finish a step with the values only they need, best first."""
        methods = [getattr(self.wrapper, name, None) for name in SYNC_METHODS]
        functions = [getattr(home, name, None) for home in self._impl.modules for name in SYNC_FUNCTIONS]
        return [(method, {}) for method in methods if _is_written(method)] + [
            (function, {"module": self.wrapper}) for function in functions if _is_written(function)
        ]


def _is_written(value: Any) -> TypeGuard[Callable[..., Any]]:
    return callable(value) and not is_stub(value)


def _described(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
