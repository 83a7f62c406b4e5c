"""Requests for cuda moved to the CPU in this process: for code that names its device, on a machine that has none.

What torch functions are asked for goes through a mode below everything; what ``torch.cuda`` itself does has nothing to
do here. ``torch.cuda.is_available()`` stays as it is: code that asks chooses for itself. Groups of nccl are of gloo.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d
from torch.overrides import TorchFunctionMode

CPU = torch.device("cpu")


def install() -> None:
    """For the rest of this process."""
    contextlib.ExitStack().enter_context(OnTheCpu())  # which nothing ever leaves
    for name, value in _CUDA.items():
        setattr(torch.cuda, name, value)
    torch.nn.Module.to = _moving(torch.nn.Module.to)  # type: ignore[method-assign]  # it reads its arguments itself
    for name in ("init_process_group", "new_group"):
        moved = _over_gloo(getattr(distributed_c10d, name))
        setattr(dist, name, moved)
        setattr(distributed_c10d, name, moved)


class OnTheCpu(TorchFunctionMode):
    """Every function of torch with the devices among its arguments moved."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call it with what it can have here."""
        if func in (torch.Tensor.cuda, torch.Tensor.pin_memory):
            return args[0]
        positional = func is torch.Tensor.to
        found = {name: moved(value, True) if name == "device" else value for name, value in (kwargs or {}).items()}
        return func(*(moved(value, positional) for value in args), **found)


def moved(value: Any, is_device: bool = False) -> Any:
    """A device of cuda as the CPU; everything else as it is. Text, and a number, count where a device is meant."""
    if isinstance(value, torch.device):
        return CPU if value.type == "cuda" else value
    if isinstance(value, str) and value.partition(":")[0] == "cuda":
        return CPU
    return CPU if is_device and isinstance(value, int) and not isinstance(value, bool) else value


def _moving(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(module: Any, *args: Any, **kwargs: Any) -> Any:
        given = {name: moved(value, True) if name == "device" else value for name, value in kwargs.items()}
        return function(module, *(moved(value, True) for value in args), **given)

    return call


def _over_gloo(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        args = tuple("gloo" if isinstance(value, str) and "nccl" in value else value for value in args)
        if "nccl" in str(kwargs.get("backend")):
            kwargs["backend"] = "gloo"
        if kwargs.get("device_id") is not None:
            kwargs["device_id"] = None
        return function(*args, **kwargs)

    return call


class _Nothing:
    """A stream or an event of a device on which everything is done when it is asked for."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def wait_stream(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is under way, and there is nothing to note."""

    wait_event = wait = record = synchronize = wait_stream

    def record_event(self, event: Any = None) -> Any:
        """An event that has happened."""
        return event or _Nothing()

    def query(self) -> bool:
        """All is done."""
        return True

    def elapsed_time(self, other: Any) -> float:
        """Milliseconds between two events: nobody measured."""
        return 0.0

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *details: object) -> None:
        return None


def _nothing(*args: Any, **kwargs: Any) -> None:
    """What has no meaning on a CPU."""


_CUDA: Mapping[str, Any] = {
    **dict.fromkeys(("set_device", "synchronize", "empty_cache", "reset_peak_memory_stats", "ipc_collect"), _nothing),
    **dict.fromkeys(("memory_allocated", "max_memory_allocated", "memory_reserved", "current_device"), lambda *_: 0),
    **dict.fromkeys(("current_stream", "default_stream"), lambda *_: _Nothing()),
    "device_count": lambda: 1,
    "Stream": _Nothing,
    "Event": _Nothing,
    "stream": lambda stream: contextlib.nullcontext(stream),
    "device": lambda device: contextlib.nullcontext(device),
}
