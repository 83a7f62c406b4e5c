"""Layers that are not built from a whole module: shards that the suite fills by their shapes, and functions of tensors.

Knows shapes and nothing of implementations: what `impls.parallel` needs for its two other forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from impls.definitions import is_library
from impls.normalise import UnusableResult

_SECOND = re.compile(r"down|fc2|w2|lin(ear)?_?2|second|row|to_h\b|out|proj")  # what people call an MLP's second layer


def sizes_of(whole: Any) -> dict[str, Any]:
    """What a layer like `whole` is built from, by the contract's names; empty where that is not known."""
    if isinstance(whole, nn.Linear):
        bias = whole.bias is not None
        return {"in_features": whole.in_features, "out_features": whole.out_features, "bias": bias}
    if isinstance(whole, nn.Embedding):
        return {"num_embeddings": whole.num_embeddings, "embedding_dim": whole.embedding_dim}
    if hasattr(whole, "up"):
        sizes = {"hidden_size": whole.up.in_features, "ffn_size": whole.up.out_features}
        return sizes | {"activation": whole.activation, "bias": whole.up.bias is not None}
    return {}


def fill(shards: Mapping[str, Tensor], whole: Any, name: str, group: dist.ProcessGroup | None) -> None:
    """Give the shards of a layer that was built from sizes the values of the whole, by their shapes."""
    matrices = {key: p for key, p in shards.items() if p.dim() == 2}
    vectors = [p for p in shards.values() if p.dim() == 1]
    if name == "ParallelMLP":
        first, second = sorted(matrices, key=lambda key: bool(_SECOND.search(key)))[:2]
        _fill_linear(whole.up, 0, matrices[first], vectors, group)
        _fill_linear(whole.down, 1, matrices[second], vectors, group)
    else:
        if len(matrices) != 1:
            raise UnusableResult(f"{name} has {len(matrices)} matrices, where a layer built from sizes has one weight")
        (matrix,) = matrices.values()
        by_columns = name == "RowParallelLinear" or _is_cut_by_width(name, matrix, whole)
        _fill_linear(whole, 1 if by_columns else 0, matrix, vectors, group)


def _is_cut_by_width(name: str, matrix: Tensor, whole: Any) -> bool:
    """Some embeddings have all rows, and a part of the width: their output is gathered."""
    return (
        name == "VocabParallelEmbedding" and matrix.shape[0] == len(whole.weight) and matrix.shape != whole.weight.shape
    )


def _fill_linear(whole: Any, dim: int, matrix: Tensor, vectors: list[Tensor], group: dist.ProcessGroup | None) -> None:
    source = whole.weight.detach()
    shard = matrix if matrix.shape[1 - dim] == source.shape[1 - dim] else matrix.T  # (in, out), as some keep it
    if shard.shape[1 - dim] != source.shape[1 - dim]:
        raise UnusableResult(f"a shard of shape {list(matrix.shape)} is no part of a weight {list(source.shape)}")
    start = starts(shard.shape[dim], group)
    _put(shard, source, dim, start)
    bias: Any = getattr(whole, "bias", None)
    for vector in vectors if bias is not None else []:
        if dim == 0 and len(vector) == shard.shape[0]:
            _put(vector, bias.detach(), 0, start)
        elif dim == 1 and len(vector) == len(bias):
            vector.copy_(bias.detach())


def _put(shard: Tensor, whole: Tensor, dim: int, start: int) -> None:
    """Copy the slice of `whole` that begins at `start`; what a shard has beyond the end of it is padding."""
    count = max(0, min(shard.shape[dim], whole.shape[dim] - start))
    shard.zero_()
    shard.narrow(dim, 0, count).copy_(whole.narrow(dim, min(start, whole.shape[dim]), count))


def starts(size: int, group: dist.ProcessGroup | None) -> int:
    """Where this rank's part begins, if the parts of the ranks, of these sizes, lie side by side."""
    sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size(group))]
    dist.all_gather(sizes, torch.tensor([size]), group=group)
    return sum(int(other) for other in sizes[: dist.get_rank(group)])


def held_by(thing: Any, name: str = "", seen: set[int] | None = None) -> Iterator[tuple[str, Tensor]]:
    """The tensors of numbers that an object which is no module keeps, in its attributes and theirs, each once."""
    seen = set() if seen is None else seen
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, Tensor):
        if thing.is_leaf and thing.is_floating_point():
            yield name, thing
        return
    if isinstance(thing, nn.Module):
        inside: Mapping[Any, Any] = dict(thing.named_parameters())
    elif isinstance(thing, list | tuple):
        inside = dict(enumerate(thing))
    elif isinstance(thing, dict):
        inside = thing
    else:
        inside = {} if is_library(type(thing)) else getattr(thing, "__dict__", {})
    for key, value in inside.items():
        yield from held_by(value, f"{name}.{key}" if name else str(key), seen)


# What a function of tensors may ask for: the contract's parameter, the whole's, and along which dimension that is cut.
PIECES: Mapping[str, Mapping[str, tuple[str, int | None]]] = {
    "ColumnParallelLinear": {"weight": ("weight", 0), "bias": ("bias", 0)},
    "RowParallelLinear": {"weight": ("weight", 1), "bias": ("bias", None)},
    "VocabParallelEmbedding": {"weight": ("weight", 0)},
    "ParallelMLP": {
        **{"up_weight": ("up.weight", 0), "up_bias": ("up.bias", 0)},
        **{"down_weight": ("down.weight", 1), "down_bias": ("down.bias", None)},
    },
    "ParallelAttention": {
        **{f"{layer}_{kind}": (f"{layer}.{kind}", 0) for layer in "qkv" for kind in ("weight", "bias")},
        **{"out_weight": ("out.weight", 1), "out_bias": ("out.bias", None)},
    },
}


class FunctionLayer(nn.Module):
    """A function of tensors as a layer: the suite keeps the shards, as torch's linear layers do or `transposed`."""

    def __init__(
        self,
        call: Callable[..., Any],
        whole: nn.Module,
        pieces: Mapping[str, tuple[str, int | None]],
        available: Mapping[str, Any],
        *,
        transposed: bool = False,
    ) -> None:
        super().__init__()
        values = dict(whole.named_parameters())
        for name, (path, dim) in pieces.items():
            value = values.get(path)
            self.register_parameter(name, None if value is None else _piece(value, dim, available, transposed))
        self._names = tuple(pieces)
        self._call, self._available = call, available

    def forward(self, x: Tensor) -> Any:
        """What the function gives for `x` and this rank's shards."""
        return self._call(tensor=x, **{name: getattr(self, name) for name in self._names}, **self._available)


def _piece(parameter: Tensor, dim: int | None, available: Mapping[str, Any], transposed: bool) -> nn.Parameter:
    value = parameter.detach()
    value = value if dim is None else value.chunk(available["world_size"], dim)[available["rank"]]
    value = value.T if transposed and value.dim() == 2 else value
    return nn.Parameter(value.clone(memory_format=torch.contiguous_format), requires_grad=parameter.requires_grad)
