"""The parameters of a sharded module, whole: read where they are used, in the forward pass of each layer.

A fully sharded module holds pieces in a layout of its own. But whatever the layout, a layer computes with its whole
weights, so they are read at that moment, below everything that an implementation wraps around a forward pass.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

_NAMES = "_lockstep_names"  # of a layer's own parameters: attribute -> name in the module as it was handed over


class Listener:
    """Hears the parameters of `module`'s layers; made before the module is sharded."""

    def __init__(self, module: nn.Module) -> None:
        self._shapes = {name: p.shape for name, p in module.named_parameters(remove_duplicate=False)}
        self._tied = _names_of_one(module)
        for name, layer in module.named_modules():
            if layer._parameters:
                own = [attribute for attribute, p in layer._parameters.items() if p is not None]
                setattr(layer, _NAMES, {attribute: f"{name}.{attribute}".lstrip(".") for attribute in own})
                # A bound method, so that a copy of the layer has one bound to the copy.
                layer.forward = types.MethodType(_telling(layer.forward), layer)

    @property
    def names(self) -> set[str]:
        """The names of all parameters, tied ones under each of theirs."""
        return set(self._shapes)

    @property
    def distinct(self) -> int:
        """Elements of all parameters, tied ones once."""
        return sum(self._shapes[names[0]].numel() for names in self._tied)

    def hear(self, forward: Callable[[], Any]) -> dict[str, Tensor]:
        """Copies of the whole parameters that one forward pass uses; those it does not use are not among them."""
        heard: dict[str, Tensor] = {}

        def take(name: str, value: Tensor) -> None:
            if value.shape == self._shapes.get(name):
                heard[name] = value.detach().clone(memory_format=torch.contiguous_format)

        with _listening(take), torch.no_grad():
            forward()
        for names in self._tied:
            found = next((heard[name] for name in names if name in heard), None)
            heard |= {} if found is None else {name: heard.get(name, found) for name in names}
        return heard


_take: list[Callable[[str, Tensor], None]] = []  # who listens at the moment


@contextlib.contextmanager
def _listening(take: Callable[[str, Tensor], None]) -> Iterator[None]:
    _take.append(take)
    try:
        yield
    finally:
        _take.remove(take)


def _telling(forward: Callable[..., Any]) -> Callable[..., Any]:
    inner = getattr(forward, "__func__", None)

    def told(layer: nn.Module, *args: Any, **kwargs: Any) -> Any:
        for take in _take:
            for attribute, name in getattr(layer, _NAMES, {}).items():
                value = getattr(layer, attribute, None)  # whatever stands there now, a Parameter or not
                if isinstance(value, Tensor):
                    take(name, value)
        return forward(*args, **kwargs) if inner is None else inner(layer, *args, **kwargs)

    return told


def _names_of_one(module: nn.Module) -> list[list[str]]:
    """The names of each distinct parameter."""
    names: dict[nn.Parameter, list[str]] = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        names.setdefault(parameter, []).append(name)
    return list(names.values())
