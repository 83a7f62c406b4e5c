"""Which parameters of a module belong to which unit of ZeRO-3, and where the module looks for each of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from torch import nn


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a parameter is found; in several places if it is tied or if its module is shared."""

    names: Sequence[str]
    attributes: Sequence[tuple[nn.Module, str]]


def cut_into_units(module: nn.Module) -> dict[nn.Module, dict[nn.Parameter, Place]]:
    """The modules that are units, and the parameters of each; last `module` itself, the root, with all the others."""
    units = dict.fromkeys(_layers(module))
    owner: dict[nn.Parameter, nn.Module] = {}
    inside: set[nn.Module] = set()
    for unit in units:
        inside.update(unit.modules())
        for parameter in unit.parameters():
            owner[parameter] = module if parameter in owner else unit
    for outside in set(module.modules()) - inside:
        owner.update(dict.fromkeys(outside.parameters(recurse=False), module))
    cut: dict[nn.Module, dict[nn.Parameter, Place]] = {unit: {} for unit in [*units, module]}
    for parameter, place in _places(module).items():
        cut[owner[parameter]][parameter] = place
    return {unit: places for unit, places in cut.items() if places or unit is module}


def _layers(module: nn.Module) -> Iterator[nn.Module]:
    """The direct children, or what is in them if they are mere lists of modules."""
    if not _is_list(module) and type(module).__module__.startswith("torch.nn."):
        return  # torch's own layers (attention, Transformer) look into their children, past the forward passes of these
    for child in module.children():
        if _is_list(child):
            yield from _layers(child)
        else:
            yield child


def _is_list(module: nn.Module) -> bool:
    """Whether the module is there for the modules in it: one after the other, or with no forward pass at all."""
    return type(module).forward in (nn.Module.forward, nn.Sequential.forward)


def _places(module: nn.Module) -> dict[nn.Parameter, Place]:
    names: dict[nn.Parameter, list[str]] = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        names.setdefault(parameter, []).append(name)
    return {parameter: Place(names=found, attributes=_attributes(module, found)) for parameter, found in names.items()}


def _attributes(module: nn.Module, names: Sequence[str]) -> list[tuple[nn.Module, str]]:
    """What the names of a parameter stand for; two names may stand for one attribute of a shared module."""
    paths = [name.rpartition(".") for name in names]
    return list(dict.fromkeys((module.get_submodule(path), attribute) for path, _, attribute in paths))
