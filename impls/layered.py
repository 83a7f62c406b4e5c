"""Fully sharding a module by whatever an implementation has for it: for all of it, or for one layer at a time."""

from __future__ import annotations

import inspect
from typing import Any

from torch import nn

from impls.contract.parameters import LAYER_PARAMETERS
from impls.handover import NotProvided
from impls.loading import Implementation

LINEAR_ONLY = "takes a linear layer"  # so the reason begins for any other


def fully_sharded(impl: Implementation, module: nn.Module, **values: Any) -> Any:
    """What `fully_shard` makes of the module; None where it works in place."""
    if not (name := _of_one_layer(impl.get("fully_shard"))):
        return impl.call("fully_shard", module=module, **values)
    layers = [(path, layer) for path, layer in module.named_modules() if layer._parameters]
    _assert_separate(impl, name, layers)
    for path, layer in layers:
        made = impl.call("fully_shard", module=layer, **values)
        if not path:
            return made
        home, _, attribute = path.rpartition(".")
        setattr(module.get_submodule(home), attribute, layer if made is None else made)
    return None


def _of_one_layer(target: Any) -> str:
    """The parameter that says so."""
    try:
        names = inspect.signature(target).parameters
    except (TypeError, ValueError):
        return ""
    return next((name for name in LAYER_PARAMETERS if name in names), "")


def _assert_separate(impl: Implementation, name: str, layers: list[tuple[str, nn.Module]]) -> None:
    """Each layer can be sharded without the others."""
    own = [parameter for _, layer in layers for parameter in layer._parameters.values() if parameter is not None]
    if len(set(own)) < len(own):
        raise NotProvided(f"{impl.name}'s fully_shard takes one layer, and two layers of this module share a weight")
    for path, layer in layers:
        if any(True for _ in layer.children()):
            raise NotProvided(f"{impl.name}'s fully_shard takes one layer, and {path or 'the module'} is more than one")
        if name != "layer" and not isinstance(layer, nn.Linear):
            raise NotProvided(f"{impl.name}'s fully_shard {LINEAR_ONLY}, and {path} is {type(layer).__name__}")
