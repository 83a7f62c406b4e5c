"""One way to run tensor-parallel layers of any implementation: from a whole module, from sizes, or as functions.

    layer = parallel(impl, "ParallelMLP", mlp)          # or the name of any other layer of the contract
    layer = pair(impl, mlp)                             # an MLP of a column-parallel and a row-parallel layer
    out = layer(x); loss.backward(); layer.finish()

Whatever an implementation does not ask for it is not given, and what its layers take and give is told by shapes.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from impls.contract.methods import SEQUENCE_SYNCS
from impls.definitions import is_stub
from impls.handover import NotProvided, takes
from impls.loading import Implementation
from impls.normalise import UnusableResult
from impls.parallel_forms import PIECES, FunctionLayer, fill, held_by, sizes_of

SEQUENCE_DIM = 1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a layer is wanted."""

    group: dist.ProcessGroup | None = None
    sequence_parallel: bool = False
    gather_output: bool = False
    input_is_parallel: bool = True
    plan: Mapping[str, str] | None = None


class Parallel(nn.Module):
    """A layer of an implementation, or several; called like the whole module."""

    def __init__(self, impl: Implementation, inner: Any, options: Options, whole: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.form = "module"  # or "sizes" (the suite filled its shards) or "function" (and cut them)
        self.activation_is_known = True
        self.takes_whole_input = not options.input_is_parallel
        self.gives_whole_output = False  # of a column-parallel layer that was not asked to
        self._impl, self._options = impl, options
        self._in_features = getattr(whole, "in_features", 0)
        self._out_features = getattr(whole, "out_features", 0)

    def forward(self, x: Tensor) -> Tensor:
        """The forward pass."""
        return _one(self._impl.invoke(self.inner, x))

    def finish(self) -> None:
        """Sum the gradients of whole parameters under sequence parallelism, where there is a call for that."""
        if not self._options.sequence_parallel:
            return
        homes = [*((self.inner, ()) for _ in [0]), *((home, (self.inner,)) for home in self._impl.modules)]
        for home, extra in homes:
            for name in SEQUENCE_SYNCS:
                if callable(found := getattr(home, name, None)) and not is_stub(found):
                    self._impl.invoke(found, *extra)
                    return

    def shards(self) -> dict[str, Tensor]:
        """This rank's parameters by name, in the implementation's own layout: those that learn, and frozen ones."""
        return {name.replace("inner.", ""): p for name, p in _parameters(self).items()}


def local(tensor: Tensor | None) -> Tensor | None:
    """What this rank has of a tensor, a DTensor included, as a copy."""
    if tensor is None:
        return None
    part = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return part.detach().clone(memory_format=torch.contiguous_format)


def gradient(parameter: Tensor) -> Tensor | None:
    """What this rank has of a parameter's gradient, a DTensor's in the parameter's layout, as optimizers have it."""
    found: Any = parameter.grad
    if hasattr(found, "placements") and hasattr(parameter, "placements"):
        found = found.redistribute(placements=parameter.placements)
    return local(found)


def parallel(impl: Implementation, name: str, whole: nn.Module, options: Options | None = None) -> Parallel:
    """The layer `name` of the contract for the unsharded module `whole`; called on all ranks at once.

    Raises `NotProvided` where the implementation has none, or not with these options.
    """
    options = options or Options()
    target = impl.get(name)
    for option, value in _wanted(options).items():
        if value and not takes(target, option):
            raise NotProvided(impl.reason(name) or f"{impl.name}'s {name} has no {option}")
    if options.group is not None and not takes(target, "group") and not takes(target, "device_mesh"):
        raise NotProvided(f"{impl.name}'s {name} takes no group: it works on all ranks")
    available = _available(target, options)
    if takes(target, "tensor") and any(takes(target, piece) for piece in PIECES.get(name, ())):
        return _of_function(impl, name, whole, options, available)
    sizes = sizes_of(whole)
    if not takes(target, "module") and any(takes(target, size) for size in sizes):
        return _of_sizes(impl, name, whole, options, available | sizes)
    made = impl.call(name, module=whole, num_heads=getattr(whole, "num_heads", None), **available)
    layer = Parallel(impl, whole if made is None else made, options, whole)
    return _found_out(layer, name, target)


def _wanted(options: Options) -> dict[str, bool]:
    """Options that differ from what a layer without them can be taken to do."""
    return {
        "sequence_parallel": options.sequence_parallel,
        "gather_output": options.gather_output,
        "input_is_parallel": not options.input_is_parallel,
    }


def pair(impl: Implementation, whole: nn.Module, plan: Mapping[str, str], options: Options | None = None) -> Parallel:
    """`whole` with the linear layers that `plan` names replaced by the implementation's column and row layers."""
    options = options or Options()
    names = {"column": "ColumnParallelLinear", "row": "RowParallelLinear"}
    made = copy.deepcopy(whole)
    forms = set()
    for path, cut in plan.items():
        layer = parallel(impl, names[cut], made.get_submodule(path), options)
        if layer.gives_whole_output or (cut == "row" and layer.takes_whole_input):
            raise NotProvided(
                f"{impl.name}'s {names[cut]} has whole tensors at both ends: a pair would gather in between"
            )
        forms.add(layer.form)
        home, _, attribute = path.rpartition(".")
        setattr(made.get_submodule(home), attribute, layer)
    composed = Parallel(impl, made, options, whole)
    composed.form = "function" if "function" in forms else next(iter(forms))
    return composed


# -- the three forms ---------------------------------------------------------------------------------------------------


def _available(target: Any, options: Options) -> dict[str, Any]:
    group = options.group
    values = {
        "rank": dist.get_rank(group),
        "world_size": dist.get_world_size(group),
        "group": group,
        "gather_output": options.gather_output,
        "input_is_parallel": options.input_is_parallel,
        "sequence_parallel": options.sequence_parallel,
        "sequence_dim": SEQUENCE_DIM,
        "plan": options.plan,
    }
    return values | ({"device_mesh": _mesh(group)} if takes(target, "device_mesh") else {})


def _mesh(group: dist.ProcessGroup | None) -> Any:
    from torch.distributed.device_mesh import DeviceMesh

    return DeviceMesh.from_group(group or dist.group.WORLD, "cpu")  # type: ignore[arg-type]


def _of_sizes(
    impl: Implementation, name: str, whole: nn.Module, options: Options, available: dict[str, Any]
) -> Parallel:
    target = impl.get(name)
    if available.get("bias") is False and not takes(target, "bias"):
        raise NotProvided(f"{impl.name}'s {name} always has a bias")
    layer = Parallel(impl, impl.call(name, **available), options, whole)
    layer.form = "sizes"
    layer.activation_is_known = not hasattr(whole, "up") or takes(target, "activation")
    with torch.no_grad():
        fill(layer.shards(), whole, name, options.group)
    return _found_out(layer, name, target)


def _of_function(impl: Implementation, name: str, whole: Any, options: Options, available: dict[str, Any]) -> Parallel:
    target, pieces = impl.get(name), PIECES[name]
    if reason := _not_by_shards(target, whole, pieces, available["world_size"]):
        raise NotProvided(f"{impl.name}'s {name} is a function of shards, and {reason}")
    known = {"num_heads": getattr(whole, "num_heads", None), "activation": getattr(whole, "activation", None)}
    given = available | {key: value for key, value in known.items() if value is not None}
    call = functools.partial(impl.call, name)
    layers = [
        Parallel(impl, FunctionLayer(call, whole, pieces, given, transposed=turned), options, whole)
        for turned in (False, True)
    ]
    layer = layers[0] if isinstance(whole, nn.Embedding) else _fitting(layers, name, whole)
    layer.form = "function"
    layer.activation_is_known = not hasattr(whole, "up") or takes(target, "activation")
    return _found_out(layer, name, target)


def _not_by_shards(target: Any, whole: nn.Module, pieces: Mapping[str, tuple[str, int | None]], parts: int) -> str:
    """Why a function cannot do what `whole` does; empty when it can."""
    parameters: dict[str, Tensor] = dict(whole.named_parameters())
    for piece, (path, dim) in pieces.items():
        if path in parameters and not takes(target, piece):
            return f"takes no {piece}"
        if path in parameters and dim is not None and (size := parameters[path].shape[dim]) % parts:
            return f"{parts} ranks cannot share {size} equally"
    if (heads := getattr(whole, "num_heads", parts)) % parts:
        return f"{parts} ranks cannot share {heads} heads equally"
    if any(isinstance(layer, nn.Dropout) and layer.p for layer in whole.modules()):
        return "is told of no dropout"
    return ""


def _fitting(layers: Sequence[Parallel], name: str, whole: nn.Module) -> Parallel:
    """The layer whose shards lie as the function takes them, tried with zeros; the first where none does.

    A rank's part of an input comes before all of it: to shards that lie the wrong way it fits on no rank, before any
    of them has sent something.
    """
    if all(p.shape[0] == p.shape[1] for p in layers[0].shards().values() if p.dim() == 2):
        raise NotProvided(f"{name} takes its shards as (out, in) or as (in, out): square ones say nothing about it")
    first = next(part for part in (whole, *whole.children()) if isinstance(part, nn.Linear))
    world_size = dist.get_world_size(layers[0]._options.group)
    parts = [first.in_features // world_size] if name == "RowParallelLinear" else []
    for width in (*parts, first.in_features):
        for layer in layers:
            if _tried(layer, torch.zeros(2, 2 * world_size, width)) is not None:
                return layer
    return layers[0]


# -- what layers take and give -----------------------------------------------------------------------------------------


def _found_out(layer: Parallel, name: str, target: Any) -> Parallel:
    """What a layer without an option for it takes or gives, tried with zeros, on all ranks alike."""
    trial = torch.zeros(2, 2, layer._in_features)
    if layer._options.sequence_parallel:
        return layer
    if name == "RowParallelLinear" and not takes(target, "input_is_parallel"):
        layer.takes_whole_input = _tried(layer, trial) is not None
    if name == "ColumnParallelLinear" and not takes(target, "gather_output"):
        out = _tried(layer, trial)
        is_whole = out is not None and out.shape[-1] == layer._out_features
        layer.gives_whole_output = is_whole and dist.get_world_size(layer._options.group) > 1
    return layer


def _tried(layer: Parallel, x: Tensor) -> Tensor | None:
    """The output; None where the layer cannot take a whole input, its weight being that of a part."""
    try:
        with torch.no_grad():
            out: Tensor = layer(x)
    except (RuntimeError, ValueError, AssertionError):
        return None
    return out


def _one(out: Any) -> Tensor:
    """The output, of those that give a bias that was not added beside it, and of DTensors."""
    if isinstance(out, tuple) and out and isinstance(out[0], Tensor):
        out = out[0] if len(out) == 1 or out[1] is None else out[0] + out[1]
    if not isinstance(out, Tensor):
        raise UnusableResult(f"the layer returned {type(out).__name__}, not a tensor")
    found: Tensor = out.to_local() if hasattr(out, "to_local") else out
    return found


def _parameters(layer: nn.Module) -> dict[str, Tensor]:
    """Those of a module, and of what is called like one and is none, wherever it lies."""
    found: dict[str, Tensor] = dict(layer.named_parameters())
    for path, module in layer.named_modules():
        if isinstance(module, Parallel) and not isinstance(module.inner, nn.Module):
            prefix = f"{path}." if path else ""
            found |= {prefix + name: value for name, value in held_by(module.inner)}
    return found
