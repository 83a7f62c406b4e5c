"""What an implementation may provide, block by block: names, parameters in order, shapes, units, errors, sources.

A block is a `typing.Protocol` whose members are the names that the suite looks for; a module that defines them
satisfies it. Any subset may be provided. A missing name, an empty one, or one that raises NotImplementedError is *not
provided*.

Parameters are handed over by name (`SYNONYMS` lists other spellings that are understood), so an implementation
takes those it wants, in any order: `ring_allreduce(mesh, rank, world_size, tensor)` over a mesh, or
`ring_allreduce(tensor)` over torch.distributed directly. Results may be new tensors, or the input overwritten and None
returned, where the docstring says *in place allowed*. The functions are called on all ranks at once.

N = ``world_size``, T = bytes of the full tensor. A sum is torch's ``+`` in the tensor's dtype: integers wrap around, a
sum of bools is logical or.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from impls.contract.advisor import AdvisorBlock
from impls.contract.collectives import Collectives
from impls.contract.cures import Cures
from impls.contract.data_parallel import DataParallelBlock
from impls.contract.names import ALIASES
from impls.contract.network import NetworkBlock
from impls.contract.parameters import FURTHER_ORDERS
from impls.contract.pipelines import BubblesBlock, PipelineBlock, SchedulesBlock
from impls.contract.sharding import FullyShardBlock, MixedPrecisionBlock, ShardedOptimizerBlock, Zero2Block
from impls.contract.tensor_parallel import TensorParallelBlock

PROTOCOLS: Mapping[str, type] = {
    "collectives": Collectives,
    "data_parallel": DataParallelBlock,
    "sharded_optimizer": ShardedOptimizerBlock,
    "zero2": Zero2Block,
    "fully_shard": FullyShardBlock,
    "mixed_precision": MixedPrecisionBlock,
    "schedules": SchedulesBlock,
    "bubbles": BubblesBlock,
    "pipeline": PipelineBlock,
    "tensor_parallel": TensorParallelBlock,
    "network": NetworkBlock,
    "advisor": AdvisorBlock,
    "cures": Cures,
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One name of the contract. `orders`: the orders in which its parameters may come, any prefix of them included."""

    name: str
    block: str
    aliases: tuple[str, ...]
    orders: tuple[tuple[str, ...], ...]
    doc: str

    @property
    def spellings(self) -> tuple[str, ...]:
        """The name and its aliases, in order of trial."""
        return (self.name, *self.aliases)


def _entries() -> dict[str, Entry]:
    found = {}
    for block, protocol in PROTOCOLS.items():
        names = [name for name in (*protocol.__annotations__, *vars(protocol)) if not name.startswith("_")]
        for name in names:
            member = vars(protocol).get(name)
            orders = (_order(member),) if callable(member) else ()
            found[name] = Entry(
                name=name,
                block=block,
                aliases=ALIASES.get(name, ()),
                orders=orders + FURTHER_ORDERS.get(name, ()),
                doc=inspect.getdoc(member) or "" if callable(member) else "",
            )
    return found


def _order(member: Callable[..., Any]) -> tuple[str, ...]:
    """The parameters of a Protocol's method but ``self`` and ``**kwargs``."""
    _, *parameters = inspect.signature(member).parameters.values()
    return tuple(found.name for found in parameters if found.kind is not found.VAR_KEYWORD)


ENTRIES: Mapping[str, Entry] = _entries()
# Parts of what is provided that may be left out; a course that wants one assigns it by this name.
OPTIONAL = (
    *("DataParallel.no_sync", "DataParallel.group", "train_step.1f1b"),
    *("all_reduce.group", "all_gather.group", "reduce_scatter.group"),
)
BLOCKS: Mapping[str, tuple[str, ...]] = {
    block: tuple(entry.name for entry in ENTRIES.values() if entry.block == block) for block in PROTOCOLS
}
