"""Which part of which whole parameter a rank's parameter is, told by its values alone. Imports no pytest.

Whoever cuts by columns or by rows, transposed, fused or shuffled: a shard consists of rows and columns of the whole,
and `fixtures.blocks` makes no two of these equal.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

Lines = dict[tuple[float, ...], tuple[str, int, int]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row (dim 0) or column (dim 1) of a whole matrix, or one element (dim 0) of a vector."""

    name: str
    dim: int
    index: int

    def of(self, wholes: Mapping[str, Tensor]) -> Tensor:
        """The values at this place."""
        return wholes[self.name].select(self.dim, self.index)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """The parameter `key` of one rank as lines of whole parameters; None stands for a line of zeros, padding."""

    key: str
    dim: int  # of the rank's own tensor, along which the lines lie side by side
    lines: tuple[Line | None, ...]

    def expected(self, wholes: Mapping[str, Tensor], observed: Tensor) -> Tensor:
        """What stands at the lines' places in `wholes`, in the layout of the shard; padding as it was observed."""
        values = [
            observed.select(self.dim, i) if line is None else line.of(wholes).to(torch.float64)
            for i, line in enumerate(self.lines)
        ]
        return torch.stack(values, self.dim)

    @property
    def names(self) -> tuple[str, ...]:
        """The whole parameters of which it has something."""
        return tuple(dict.fromkeys(line.name for line in self.lines if line is not None))


def locate(key: str, value: Tensor, wholes: Mapping[str, Tensor]) -> Shard | None:
    """Find the lines of a rank's parameter among those of the whole ones; None where it has others.

    A matrix of zeros is padding alone, as the last ranks have it of a vocabulary that is padded to large parts.
    """
    known = _lines(wholes)
    found = {dim: _found(value, dim, known) for dim in range(value.dim())}
    read = [Shard(key=key, dim=dim, lines=tuple(lines)) for dim, lines in found.items() if lines]
    return next((shard for shard in read if shard.names), next(iter(read), None))


def held(shards: Sequence[Shard]) -> dict[str, dict[int, list[int]]]:
    """By name and dimension, the lines of each whole parameter that some shards have."""
    found: dict[str, dict[int, list[int]]] = {}
    for shard in shards:
        for line in shard.lines:
            if line is not None:
                found.setdefault(line.name, {}).setdefault(line.dim, []).append(line.index)
    return found


def _found(value: Tensor, dim: int, known: Lines) -> list[Line | None] | None:
    lines: list[Line | None] = []
    for index in range(value.shape[dim]):
        key = _key(value.select(dim, index))
        if key in known:
            name, along, place = known[key]
            lines.append(Line(name=name, dim=along, index=place))
        elif value.dim() > 1 and not any(key[1:]):
            lines.append(None)
        else:
            return None
    return lines


def _lines(wholes: Mapping[str, Tensor]) -> Lines:
    """Values to place. Rows come before columns: a square matrix that is whole counts as its rows."""
    known: Lines = {}
    for name, whole in wholes.items():
        for dim in reversed(range(whole.dim())):
            known |= {_key(whole.select(dim, index)): (name, dim, index) for index in range(whole.shape[dim])}
    return known


def _key(line: Tensor) -> tuple[float, ...]:
    values = line.detach().reshape(-1).tolist()
    return (float(line.dim()), *values)
