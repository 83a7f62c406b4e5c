"""Names that no list can hold: which parts a name has to have, and must not have, to stand for one of the contract.

Tried after the lists of `spellings`, on names without underscores and in lower case: ``DDPOverlapBucketed`` is
``ddpoverlapbucketed``. A name with an underscore in front is somebody's private business.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from impls.contract.names import ALIASES

_HELPERS = r"config|options|args|test|error|mixin|sampler|logger|stats|result|context|trainer|model|check|bench|demo"
_OF_MODELS = r"grad|param|model|module|weight|buffer|object|optim|time|cost|bytes|bandwidth"


@dataclasses.dataclass(frozen=True, slots=True)
class Pattern:
    """Names with `has` and without `lacks` stand for `entry`; `is_class` says of which kind the definition is."""

    entry: str
    has: str
    lacks: str
    is_class: bool

    def matches(self, name: str, is_class: bool | None) -> bool:
        """Whether a name stands for the entry; None as `is_class` where nobody knows."""
        if name.startswith("_") or (is_class is not None and is_class is not self.is_class):
            return False
        plain = name.replace("_", "").lower()
        return bool(re.search(self.has, plain)) and not re.search(self.lacks, plain)


def _class(entry: str, has: str, lacks: str = "") -> Pattern:
    return Pattern(entry, has, f"{_HELPERS}|{lacks}" if lacks else _HELPERS, True)


def _function(entry: str, has: str, lacks: str) -> Pattern:
    return Pattern(entry, has, f"{_HELPERS}|{lacks}", False)


PATTERNS: Sequence[Pattern] = (
    _class("DataParallel", r"ddp|dataparallel", r"fsdp|fully|shard|zero|bucketinfo|reducer"),
    _class("fully_shard", r"fsdp|fullyshard|zero3|zerostage3", r"optim|param$|handle|state|fsdp2?unitspec"),
    _class("Zero2Optimizer", r"(zero|stage)2|zerostage2|shardedgrad", r"zero3"),
    _class(
        "ShardedOptimizer",
        r"(shard|zero).*(optim|adam|adagrad|sgd)|optim.*shard|zero(stage)?1",
        r"zero(stage)?[23]|shardedgrad|gradshard",
    ),
    _class("MixedPrecision", r"(mixedprecision|fp16|bf16|master).*optim", r"shard|zero"),
    _class("ColumnParallelLinear", r"col(umn)?(wise|parallel|tp|shard).*linear|linear.*col", r"row"),
    _class("RowParallelLinear", r"row(wise|parallel|tp|shard).*linear|linear.*row", r"col"),
    _class("VocabParallelEmbedding", r"(vocab|parallel|shard|tp).*embedding", r"$^"),
    _class(
        "train_step", r"pipeline|gpipe|1f1b|onefoneb", r"parallel.*linear|schedule|stage|spec|action|simulat|bubble"
    ),
    _function("ring_allreduce", r"ring.*allreduce|allreduce.*ring", _OF_MODELS),
    _function("tree_allreduce", r"(tree|binomial).*allreduce|allreduce.*(tree|binomial)", _OF_MODELS),
    _function("all_reduce", r"allreduce", f"{_OF_MODELS}|ring|tree|binomial|broadcast"),
    _function("ring_allgather", r"ring.*allgather|allgather.*ring", _OF_MODELS),
    _function("all_gather", r"allgather", f"{_OF_MODELS}|ring|tree|reducescatter"),
    _function("ring_reduce_scatter", r"ring.*reducescatter|reducescatter.*ring", _OF_MODELS),
    _function("reduce_scatter", r"reducescatter", f"{_OF_MODELS}|ring|tree|allgather"),
    _function("tree_broadcast", r"(tree|binomial).*(broadcast|bcast)|(broadcast|bcast).*(tree|binomial)", _OF_MODELS),
    _function("broadcast", r"broadcast|bcast", f"{_OF_MODELS}|tree|binomial|ring|ddp|fsdp|shape"),
    _function(
        "average_gradients", r"^(average|avg|mean|sync|synchronize|allreduce|reduce)+.*grad", r"^ddp|^fsdp|bucket"
    ),
    _function("broadcast_parameters", r"(broadcast|sync).*(param|model|module|weight)", r"grad|fsdp|tree|ring"),
    _function("gpipe", r"gpipe.*schedule|clockcycles", r"bubble|train|step|plot|run"),
    _function("one_f_one_b", r"(1f1b|onefoneb).*schedule|schedule.*(1f1b|onefoneb)", r"inter|bubble|train|plot|run"),
)
_LISTED = frozenset(spelling for entry, names in ALIASES.items() for spelling in (entry, *names))


def entries_of(name: str, is_class: bool | None = None) -> list[str]:
    """The names of the contract that `name` stands for by its parts; none for what a list has already."""
    if name in _LISTED:
        return []
    return [pattern.entry for pattern in PATTERNS if pattern.matches(name, is_class)]
