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
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # names in signatures only: pytest's controller reads the tables below and never needs torch
    import torch
    from torch import Tensor, nn
    from torch.distributed import ProcessGroup

    from impls.mesh import Mesh


class Collectives(Protocol):
    """Sums, copies and shards of one tensor over all ranks, from send and recv or over torch.distributed.

    Any N, any numel (0, 1, fewer than N, not divisible by N), any strides, every dtype that gloo carries (f64 f32 f16
    bf16 i64 i32 i8 u8 bool c64 c128). All ranks end with the same bits. Sources: Patarasuk and Yuan 2009 (ring);
    Thakur, Rabenseifner and Gropp 2005 (binomial tree, ring).
    """

    RECV_TIMEOUT_S: float  # seconds that a queue mesh waits for a silent peer: 30.0

    def queue_mesh(self, world_size: int) -> Sequence[Mesh]:
        """N linked ends (`send(dst, tensor)`, `recv(src)`), one for each thread of this process."""

    def ring_allreduce(self, mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
        """Sum over ranks, shape of `tensor`. 2(N-1) steps, 2T(N-1)/N bytes sent per rank. In place allowed."""

    def tree_allreduce(self, mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
        """Sum over ranks, shape of `tensor`. 2 ceil(log2 N) steps, at most T ceil(log2 N) sent. In place allowed."""

    def ring_allgather(self, mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
        """All ranks' tensors joined flat in rank order, [sum of numel]; a list of them is fine. N-1 steps, T(N-1)/N."""

    def ring_reduce_scatter(self, mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
        """This rank's part of the flat sum. N-1 steps, T(N-1)/N bytes sent.

        Joined in rank order the parts are the flat sum; ours are cut as ``torch.tensor_split`` cuts. Padding at the end
        of the last parts is understood.
        """

    def tree_broadcast(self, mesh: Mesh, rank: int, world_size: int, tensor: Tensor, src: int) -> Tensor:
        """Rank `src`'s tensor on every rank; elsewhere `tensor` gives shape and dtype. In place allowed."""

    def all_reduce(self, tensor: Tensor, group: ProcessGroup | None) -> Tensor:
        """Sum over the ranks of `group`, by whatever algorithm. In place allowed."""

    def all_gather(self, tensor: Tensor, group: ProcessGroup | None) -> Tensor:
        """All ranks' tensors (equal shapes) joined flat in rank order; a list of them is fine."""

    def reduce_scatter(self, tensor: Tensor, group: ProcessGroup | None) -> Tensor:
        """This rank's part of the flat sum, by whatever algorithm; layout as `ring_reduce_scatter`."""

    def broadcast(self, tensor: Tensor, src: int, group: ProcessGroup | None) -> Tensor:
        """Rank `src`'s tensor on every rank, by whatever algorithm. In place allowed."""

    def shard_gradients(self, tensor: Tensor, group: ProcessGroup | None) -> Tensor:
        """ZeRO-1's gradient shard: this rank's part of the summed flat gradient, as `reduce_scatter`.

        Also in the form of the cheatsheet, `shard_gradients(local_grad, chunks)`: `chunks` are the N parts of this
        rank's gradient, and the sum of part `rank` over all ranks is written into `local_grad`.
        Source: Rajbhandari et al. 2020, ZeRO, section 5.1.
        """

    def gather_parameters(self, master_shard: Tensor, dtype: torch.dtype, group: ProcessGroup | None) -> Tensor:
        """ZeRO-1's way back: all ranks' shards (equal sizes), cast to `dtype` before they travel, joined flat."""


class Wrapper(Protocol):
    """What `DataParallel` returns: called like the module it wraps, and at the least not hiding it."""

    module: nn.Module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The module's forward pass."""

    def sync_grads(self) -> None:
        """Optional: after it returns, every ``.grad`` is the mean over ranks. Called once after each last backward.

        Other spellings: see `SYNC_METHODS`. A wrapper without one has to be ready when ``backward()`` returns.
        """

    def no_sync(self) -> AbstractContextManager[None]:
        """Optional: backward passes in it only accumulate; the next one outside reduces all that gathered."""


class DataParallelBlock(Protocol):
    """Data parallelism: full replicas, a batch slice each, gradients averaged. Source: Li et al. 2020, PyTorch DDP."""

    def DataParallel(  # noqa: N802  (a class, usually)
        self, module: nn.Module, world_size: int, group: ProcessGroup | None, bucket_cap_mb: float
    ) -> Wrapper:
        """Wrap `module`: parameters and buffers become rank 0's at once, gradients the mean over ranks in each step.

        The mean is that of the ranks' gradients, a parameter that a rank did not use counting as zero there; one
        that no rank used keeps ``grad`` None or gets zeros. `bucket_cap_mb`: the largest bucket in MiB, 25 by default.
        """

    def init_group(self, rank: int, world_size: int, init_file: str, port: int) -> None:
        """Join the default gloo group: through the fresh file `init_file`, or by MASTER_ADDR and MASTER_PORT."""

    def broadcast_parameters(self, module: nn.Module, src: int) -> None:
        """Make every parameter (and buffer) equal to rank `src`'s."""

    def sum_gradients(self, module: nn.Module) -> None:
        """Replace every ``.grad`` by its sum over ranks, strided ones too; None on all ranks stays None."""

    def average_gradients(self, module: nn.Module, world_size: int) -> None:
        """Replace every ``.grad`` by its mean over ranks."""

    def batch_slice(self, step: int, rank: int, world_size: int, batch_size: int) -> slice:
        """This rank's rows in this step: `batch_size` from ``step * world_size * batch_size + rank * batch_size``."""

    def train(
        self,
        rank: int,
        world_size: int,
        init_file: str,
        make_model: Callable[[], nn.Module],
        inputs: Tensor,
        targets: Tensor,
        steps: int,
        batch_size: int,
        learning_rate: float,
        seed: int,
    ) -> nn.Module:
        """The whole worker: join the group, seed, build, wrap, train with SGD on the mean squared error; the model.

        `inputs` [rows, ...] and `targets` [rows, ...] are the whole data set, equal on all ranks. Joins the group only
        when there is none yet, and leaves it open.
        """


class ShardedState(Protocol):
    """What all the sharded forms may say about themselves; none of it has to be there.

    Without `state_held` the memory witness walks the module and the optimizer, and finds every other tensor that is
    alive; without `full_parameters` the parameters are read where they are used, in each layer's forward pass.
    """

    def state_held(self) -> Mapping[str, Any]:
        """Optional: the tensors behind ``parameters``, ``gradients`` and ``optimizer`` on this rank.

        It only sorts what the witness finds by itself: a tensor that is left out counts as ``other``.
        """

    def full_parameters(self) -> Mapping[str, Tensor]:
        """Optional: every parameter whole, under the name that it has in the module; called on all ranks at once."""

    def clip_grad_norm_(self, max_norm: float) -> Tensor | float:
        """Optional: scale the gradient of the step down to the global norm `max_norm`; the norm that it had.

        Called on all ranks after the last backward and before ``step()``. The norm is that of the whole mean gradient.
        """


class Sharded(ShardedState, Protocol):
    """What `ShardedOptimizer` and `Zero2Optimizer` return: used like a torch optimizer."""

    param_groups: Sequence[dict[str, Any]]

    def step(self) -> None:
        """Update: afterwards every rank has the new parameters, all of them."""

    def zero_grad(self) -> None:
        """Forget the gradients, of the model's parameters and whatever else has some."""

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Optional: further parameters with options of their own, as in torch."""

    def state_dict(self) -> dict[str, Any]:
        """Optional: what `load_state_dict` of a fresh one on the same rank needs; called on all ranks at once.

        Whole, in the layout of an unsharded torch optimizer, it can be resumed on another number of ranks.
        """

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Optional: go on from a `state_dict`."""


class ShardedOptimizerBlock(Protocol):
    """ZeRO-1: each rank keeps the optimizer's state for 1/N of the parameters. Source: Rajbhandari et al. 2020, 5.1."""

    def ShardedOptimizer(  # noqa: N802  (a class, usually)
        self,
        params: Any,
        optimizer_cls: type[torch.optim.Optimizer],
        module: nn.Module,
        world_size: int,
        rank: int,
        lr: float,
        group: ProcessGroup | None,
        **kwargs: Any,
    ) -> Sharded:
        """An optimizer whose ``step()`` leaves the new parameters on all ranks and 1/N of the state on each.

        `params`: tensors or param groups, as for torch's optimizers; `kwargs` are those of `optimizer_cls`. Also
        `(module, world_size, rank, lr)` with an optimizer of its own choice (Adam, usually), or around a built
        `optimizer`. The gradients that ``step()`` finds may be the ranks' own, to be reduce-scattered, or their mean
        already: which of them it wants is found out by trying. Parameters are equal on all ranks beforehand.
        """


class Zero2Block(Protocol):
    """ZeRO-2: after backward each rank keeps 1/N of the gradients as well. Source: Rajbhandari et al. 2020, 5.2."""

    def Zero2Optimizer(  # noqa: N802
        self,
        params: Any,
        optimizer_cls: type[torch.optim.Optimizer],
        module: nn.Module,
        world_size: int,
        rank: int,
        lr: float,
        group: ProcessGroup | None,
        **kwargs: Any,
    ) -> Sharded:
        """As `ShardedOptimizer`; when ``backward()`` (or a sync method, see `SYNC_METHODS`) returns, ``.grad`` is gone.

        What is kept is this rank's share of the mean gradient; a second backward before ``step()`` adds to it.
        """


class FullyShardBlock(Protocol):
    """ZeRO-3, FSDP: parameters too are whole only while a unit computes. Source: Zhao et al. 2023, PyTorch FSDP."""

    def fully_shard(
        self, module: nn.Module, world_size: int, rank: int, group: ProcessGroup | None, reshard_after_forward: bool
    ) -> Any:
        """Shard `module` over the ranks: a wrapper, the module itself, or None when it was done in place.

        What it returns is called like the module; its ``parameters()`` are this rank's shards, on which a plain torch
        optimizer is built afterwards. When ``backward()`` (or a sync method) returns, their ``.grad`` is this rank's
        share of the mean gradient. A unit is a layer, usually: a direct child of `module` that has parameters, at the
        least. With `reshard_after_forward` False, parameters stay whole from forward to backward. The values of rank 0
        need not be taken over: they are equal beforehand. Optional: `ShardedState`, ``no_sync()``, and
        ``full_state(optimizer)``, ``load_full_state(state, optimizer)`` to go on with another number of ranks.
        """


class Scaled(Sharded, Protocol):
    """What `MixedPrecision` returns."""

    loss_scale: float  # optional: what losses are multiplied by at the moment; 1 for bfloat16

    def backward(self, loss: Tensor) -> None:
        """``backward()`` of the scaled loss; or ``scale(loss)`` to call ``backward()`` on; or neither, for bfloat16."""


class MixedPrecisionBlock(Protocol):
    """16-bit parameters and gradients, FP32 optimizer. Source: Micikevicius et al. 2018, Mixed Precision Training."""

    def MixedPrecision(  # noqa: N802
        self,
        params: Any,
        optimizer_cls: type[torch.optim.Optimizer],
        module: nn.Module,
        dtype: torch.dtype,
        master: bool,
        world_size: int,
        rank: int,
        lr: float,
        group: ProcessGroup | None,
        init_scale: float,
        growth_interval: int,
        **kwargs: Any,
    ) -> Scaled:
        """An optimizer for parameters of a 16-bit `dtype` with FP32 moments and (unless `master` is False) FP32 copies.

        For float16 the loss is scaled: halved, and the step left out on **all** ranks, when any rank's gradient is not
        finite; doubled after `growth_interval` good steps. The gradients that ``step()`` finds are the ranks' own,
        their mean, or shards of it; found out as for `ShardedOptimizer`.
        """


class SchedulesBlock(Protocol):
    """Pipeline schedules as data: for each rank the ordered list of its actions, without processes.

    `num_stages` is N, the number of ranks; `num_microbatches` is M. An action is a kind (F forward, B whole backward,
    I and W its halves: gradient of the input, gradients of the weights), a stage and a microbatch, both from 0:
    ``("F", 2, 5)`` or ``"F2.5"``; where a rank has one stage only, ``"F5"`` will do. ``"F2.5&B5.1"`` is a forward and a
    backward that overlap. One flat list of ``(cycle, stage, microbatch, phase)`` is fine as well, with one stage to a
    rank. ValueError for N and M that a schedule does not allow.
    """

    def gpipe(self, num_stages: int, num_microbatches: int) -> Sequence[Any]:
        """All forwards, then all backwards. Source: Huang et al. 2019, GPipe (1811.06965), section 2.3."""

    def one_f_one_b(self, num_stages: int, num_microbatches: int) -> Sequence[Any]:
        """1F1B: rank r has min(M, N-r-1) forwards ahead. Source: Narayanan et al. 2021 (2104.04473), section 2.2.1."""

    def interleaved_1f1b(self, num_stages: int, num_microbatches: int, num_chunks: int) -> Sequence[Any]:
        """1F1B with `num_chunks` stages on each rank, chunk * N + rank; N divides M. Source: as 1F1B, section 2.2.2."""

    def zb_h1(self, num_stages: int, num_microbatches: int) -> Sequence[Any]:
        """ZB-H1: rank r puts off r weight gradients. Source: Qi et al. 2023, Zero Bubble (2401.10241), section 2."""

    def zb_h2(self, num_stages: int, num_microbatches: int) -> Sequence[Any]:
        """ZB-H2: no idle time between a rank's first action and its last; M >= 2N-1. Source: as ZB-H1."""

    def zbv(self, num_stages: int, num_microbatches: int) -> Sequence[Any]:
        """ZBV: 2N stages in a V, rank r has r and 2N-1-r; M >= 2N-1. Source: as ZB-H1, section 6."""

    def dualpipe(self, num_stages: int, num_microbatches: int) -> Sequence[Any]:
        """DualPipe: rank r has stages r and N-1-r of N, microbatches from M/2 on enter at rank N-1.

        N and M are even, M >= 2N. Source: DeepSeek-AI 2024, DeepSeek-V3 (2412.19437), section 3.2.1.
        """

    def dualpipev(self, num_stages: int, num_microbatches: int) -> Sequence[Any]:
        """DualPipeV: 2N stages in a V, rank r has r and 2N-1-r; M >= 2N. Source: the DualPipe repository."""


class BubblesBlock(Protocol):
    """The share of the total time of a step in which ranks are idle, with a barrier at both ends.

    P = `num_stages` ranks and M = `num_microbatches`; a forward and the two halves of a backward take equally long, an
    overlapped pair as long as both of its parts, and messages no time. ValueError for P and M that are not allowed.
    """

    def bubble_fraction(self, num_stages: int, num_microbatches: int) -> float:
        """GPipe. Source: Huang et al. 2019, GPipe (1811.06965), section 2.3."""

    def bubble_1f1b(self, num_stages: int, num_microbatches: int) -> float:
        """1F1B. Source: Narayanan et al. 2021, Megatron-LM (2104.04473), section 2.2.1."""

    def bubble_zero_bubble(self, num_stages: int, num_microbatches: int) -> float:
        """ZB-H1; M >= P. Source: Qi et al. 2023, Zero Bubble (2401.10241), section 2."""

    def bubble_dualpipe(self, num_stages: int, num_microbatches: int) -> float:
        """DualPipe; P and M even, M >= 2P. Source: DeepSeek-AI 2024, DeepSeek-V3 (2412.19437), section 3.2.1."""

    def bubble_dualpipev(self, num_stages: int, num_microbatches: int) -> float:
        """DualPipeV, two of 2P stages on each rank; M >= 2P. Source: the DualPipe repository."""


class PipelineBlock(Protocol):
    """Pipelines that run: stages on ranks, microbatches through them. Source: Huang et al. 2019, GPipe (1811.06965)."""

    def train_step(
        self,
        stage: nn.Module | Sequence[nn.Module],
        microbatches: Sequence[Any],
        targets: Sequence[Any],
        loss_fn: Callable[[Any, Any], Tensor],
        schedule: str,
        rank: int,
        world_size: int,
        group: ProcessGroup | None,
        tied: Mapping[nn.Parameter, Sequence[int]] | None,
    ) -> Sequence[Tensor]:
        """Forward and backward of all microbatches: the losses on the rank of the last stage, nothing on the others.

        To the ``.grad`` of every parameter is added the gradient of the mean over all rows of all microbatches: scaled
        exactly once, a microbatch of twice as many rows counting twice. The optimizer is the caller's.

        `stage`: this rank's module, or a list of them in order of stage number where a rank has several. A stage is
        called with what the one before returned: a tensor, or the tensors of a tuple, of any dtypes.
        `microbatches`, `targets`: lists of M, the same on all ranks; inputs matter where the first stage is, targets
        where the last one is. ``loss_fn(output, target)`` is a mean over the rows of a microbatch, of one element.
        `schedule`: ``1f1b`` (the usual default), ``gpipe``, ``interleaved_1f1b`` (stage = chunk * N + rank), ``zb_h1``,
        ``zb_h2``, ``zbv`` and ``dualpipev`` (2N stages, rank r has r and 2N-1-r), ``dualpipe`` (N stages, rank r has r
        and N-1-r; microbatches from M/2 on enter at rank N-1, and losses are on both end ranks, each its own).
        NotImplementedError for those that are not offered, ValueError for an M that a schedule does not allow.
        `tied`: optional; parameters of which other ranks hold a copy, each with the ranks of all copies: their
        gradients are summed over these ranks. A weight that is tied within a rank is one parameter there.
        """

    def partition(self, costs: Sequence[float], num_stages: int) -> Sequence[Any]:
        """Cut a chain of layers that cost `costs` into N stages, so that the costliest costs as little as possible.

        For each stage a slice, a range, or a list of the numbers of its layers; none is empty. ValueError for fewer
        layers than stages, and for negative costs.
        """


class Cures(Protocol):
    """Cures of the failure modes in ``fixtures/faults``. Where none is provided, a scenario takes the reference's."""

    def cure_missing_broadcast(self, module: nn.Module) -> None:
        """Bring replicas that were initialised differently together: parameters and buffers become rank 0's."""

    def cure_pipeline_send_send(self, rank: int, world_size: int, tensor: Tensor) -> Tensor:
        """Give `tensor` to the next rank of a ring and return the previous rank's, over a transport without buffers."""

    def cure_fsdp_70b_over_80gb(
        self, num_parameters: int, bytes_per_parameter: int, device_bytes: int, ranks_per_node: int
    ) -> int:
        """The fewest ranks, in whole nodes, on which the states of a fully sharded model fit into `device_bytes` each.

        `bytes_per_parameter` are those of all states together, unsharded: 12, or 16 with an FP32 master copy.
        """


# Blocks to come. Nothing is looked for in them yet.
FUTURE_BLOCKS = ("tensor_parallel", "network", "advisor")

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
    "cures": Cures,
}

# Other spellings of a name, tried after the name itself.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "queue_mesh": ("make_queue_mesh", "make_mesh", "build_mesh"),
    "ring_allreduce": ("ring_all_reduce", "allreduce_ring", "all_reduce_ring", "RingAllreduce"),
    "tree_allreduce": ("tree_all_reduce", "allreduce_tree", "all_reduce_tree", "binomial_allreduce", "TreeAllreduce"),
    "ring_allgather": ("ring_all_gather", "allgather_ring", "all_gather_ring"),
    "ring_reduce_scatter": ("ring_reducescatter", "reduce_scatter_ring"),
    "tree_broadcast": ("broadcast_tree", "binomial_broadcast"),
    "all_reduce": ("allreduce", "my_all_reduce", "my_allreduce"),
    "all_gather": ("allgather", "my_all_gather", "my_allgather"),
    "reduce_scatter": ("reducescatter", "my_reduce_scatter"),
    "broadcast": ("bcast", "my_broadcast"),
    "shard_gradients": ("shard_grads", "reduce_scatter_gradients", "reduce_scatter_grads"),
    "gather_parameters": ("gather_params", "all_gather_parameters", "all_gather_params"),
    "DataParallel": (
        *("DistributedDataParallel", "DDP", "MyDDP", "DDPBucketed", "DDPOverlapBucketed", "BucketedDDP", "NaiveDDP"),
        *("DDPIndividualParameters", "DDPOverlapIndividualParameters", "DataParallelBucket", "DataParallelNaive"),
        *("get_ddp", "get_ddp_bucketed", "get_ddp_individual_parameters"),
    ),
    "init_group": ("init_process_group", "init_distributed", "setup", "setup_process_group"),
    "broadcast_parameters": ("broadcast_params", "sync_parameters", "sync_params", "broadcast_model"),
    "sum_gradients": ("sum_grads", "all_reduce_gradients", "allreduce_gradients", "all_reduce_grads"),
    "average_gradients": ("average_grads", "avg_gradients", "mean_gradients", "sync_gradients", "sync_grads"),
    "batch_slice": ("local_slice", "slice_for", "shard_batch", "get_batch_slice"),
    "ShardedOptimizer": (
        *("ZeroOptimizer", "ZeROOptimizer", "Zero1Optimizer", "ZeRO1", "ZeRO1Optimizer", "ZeroRedundancyOptimizer"),
        *("ShardedAdam", "ShardedAdamW", "ShardedStateOptimizer", "OptimizerStateSharding", "get_sharded_optimizer"),
    ),
    "Zero2Optimizer": ("ZeRO2Optimizer", "ZeRO2", "Zero2", "ShardedGradOptimizer", "get_zero2_optimizer"),
    "fully_shard": (
        *("FSDP", "FullyShardedDataParallel", "FullySharded", "FullyShard", "MyFSDP", "MiniFSDP", "NaiveFSDP"),
        *("ZeRO3", "Zero3", "ZeroStage3", "get_fsdp", "shard_module"),
    ),
    "MixedPrecision": (
        *("MixedPrecisionOptimizer", "Float16Optimizer", "FP16_Optimizer", "FP16Optimizer", "BF16Optimizer"),
        *("MasterWeightsOptimizer", "AmpOptimizer"),
    ),
    "gpipe": ("gpipe_schedule", "schedule_gpipe", "make_gpipe"),
    "one_f_one_b": (
        *("schedule_1f1b", "one_f_one_b_schedule", "schedule_one_f_one_b", "make_1f1b", "onefoneb"),
        *("non_interleaved_1f1b",),
    ),
    "interleaved_1f1b": (
        *("interleaved", "interleaved_schedule", "schedule_interleaved", "schedule_interleaved_1f1b"),
        *("interleaved_one_f_one_b",),
    ),
    "zb_h1": ("zbh1", "zb_h1_schedule", "schedule_zb_h1", "schedule_zbh1", "zero_bubble", "zero_bubble_h1"),
    "zb_h2": ("zbh2", "zb_h2_schedule", "schedule_zb_h2", "schedule_zbh2", "zero_bubble_h2"),
    "zbv": ("zb_v", "zbv_schedule", "schedule_zbv", "zero_bubble_v"),
    "dualpipe": ("dual_pipe", "dualpipe_schedule", "schedule_dualpipe"),
    "dualpipev": ("dual_pipe_v", "dualpipe_v", "dualpipev_schedule", "schedule_dualpipev"),
    "bubble_fraction": (
        *("bubble_gpipe", "gpipe_bubble", "gpipe_bubble_fraction", "bubble_fraction_gpipe", "pipeline_bubble"),
        *("bubble_ratio",),
    ),
    "bubble_1f1b": ("bubble_one_f_one_b", "bubble_fraction_1f1b", "one_f_one_b_bubble"),
    "bubble_zero_bubble": ("bubble_zb", "bubble_zb_h1", "bubble_zbh1", "bubble_fraction_zero_bubble"),
    "bubble_dualpipe": ("dualpipe_bubble", "bubble_dual_pipe", "bubble_fraction_dualpipe"),
    "bubble_dualpipev": ("dualpipev_bubble", "bubble_dual_pipe_v", "bubble_fraction_dualpipev"),
    "train_step": (
        *("pipeline_step", "pipeline_train_step", "train_pipeline", "run_pipeline", "pipeline_parallel_step"),
        *("run_schedule", "pipeline_forward_backward", "forward_backward"),
    ),
    "partition": ("partition_layers", "balance_layers", "balance_stages", "split_layers", "balance"),
    "train": ("worker", "ddp_worker", "train_worker", "run_worker", "training_loop"),
}

# What a wrapper may call the method that ends a step's gradient reduction, in order of trial.
SYNC_METHODS = (
    *("sync_grads", "sync_gradients", "finish_gradient_synchronization", "synchronize_gradients", "on_after_backward"),
    *("average_gradients", "all_reduce_gradients", "allreduce_gradients", "reduce_gradients", "all_reduce_grads"),
)
# The same as a function of the module's wrapper, as some courses' adapters have it.
SYNC_FUNCTIONS = (
    "ddp_on_after_backward",
    "ddp_bucketed_on_after_backward",
    "ddp_individual_parameters_on_after_backward",
)
FSDP_SYNC_FUNCTIONS = ("fsdp_on_after_backward",)
# What gives the parameters of a sharded module whole: methods of it, and a function of it, in order of trial.
GATHER_METHODS = ("full_parameters", "gather_full_params", "gather_full_parameters", "full_params")
GATHER_FUNCTIONS = ("full_parameters", "fsdp_gather_full_params", "gather_full_params")

# What a parameter may be called. A value is handed over under the first of its names that is asked for.
SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "mesh": ("comm", "endpoint", "links", "link", "transport", "network"),
    "rank": ("my_rank", "rank_id", "r", "me", "local_rank", "global_rank"),
    "world_size": ("n", "N", "size", "num_ranks", "nranks", "n_ranks", "ws", "world", "num_processes", "nprocs", "p"),
    "tensor": (
        *("x", "t", "input", "data", "inp", "input_tensor", "tensor_in", "buf", "buffer", "flat", "value", "values"),
        *(
            "vec",
            "arr",
            "array",
            "local",
            "shard",
            "chunk",
            "grad",
            "gradient",
            "local_tensor",
            "tensor_list",
            "inputs",
        ),
    ),
    "src": ("root", "source", "src_rank", "root_rank", "from_rank", "broadcaster"),
    "group": ("process_group", "pg", "proc_group", "dp_group", "data_parallel_group"),
    "module": ("model", "net", "wrapped", "nn_module", "ddp_model", "ddp"),
    "bucket_cap_mb": ("bucket_size_mb", "bucket_mb", "bucket_size", "cap_mb"),
    "init_file": ("rendezvous_file", "file", "path", "file_path", "rendezvous", "store_path"),
    "port": ("master_port", "MASTER_PORT"),
    "step": ("i", "iteration", "step_index", "it"),
    "batch_size": ("batch", "per_rank_batch", "local_batch", "local_batch_size", "batch_size_per_rank", "bs", "b"),
    "make_model": ("model_fn", "build_model", "model_factory", "make_module", "model_cls"),
    "inputs": ("x", "X", "data", "features"),
    "targets": ("y", "Y", "labels", "target", "ys", "target_chunks"),
    "steps": ("num_steps", "n_steps"),
    "learning_rate": ("lr",),
    "seed": ("SEED", "random_seed"),
    "local_grad": ("output", "out", "local_gradient", "grad_shard", "shard"),
    "chunks": ("input_list", "grad_chunks", "parts"),
    "master_shard": ("shard", "local_shard", "master", "local_master", "tensor", "x"),
    "dtype": ("param_dtype", "model_dtype", "compute_dtype", "half_dtype", "low_dtype"),
    "params": ("parameters", "model_params", "model_parameters"),
    "optimizer_cls": ("optimizer_class", "optim_cls", "optim_class", "base_optimizer", "base_cls", "inner_cls"),
    "optimizer": ("optim", "opt", "base_optim", "inner", "inner_optimizer", "init_optimizer"),
    "lr": ("learning_rate",),
    "reshard_after_forward": ("reshard", "free_after_forward"),
    "master": ("keep_master", "master_weights", "fp32_master"),
    "init_scale": ("initial_scale", "loss_scale", "scale"),
    "growth_interval": ("scale_window", "growth_steps"),
    "stage": (
        *("stages", "module", "modules", "model", "stage_module", "stage_modules", "model_chunks", "layers", "net"),
    ),
    "microbatches": ("micro_batches", "inputs", "batches", "xs", "chunks", "input_chunks", "x", "data"),
    "loss_fn": ("criterion", "loss", "loss_function", "loss_func"),
    "schedule": ("schedule_name", "pipeline_schedule", "name"),
    "tied": ("tied_weights", "tied_parameters", "shared_parameters", "shared"),
    "costs": ("layer_costs", "times", "flops", "weights", "layers", "loads"),
    "num_stages": (
        *("n_stages", "num_ranks", "n_ranks", "stages", "world_size", "pp_size", "num_devices", "num_partitions"),
        *("P", "p", "N", "n", "k", "S"),
    ),
    "num_microbatches": (
        *("num_micro_batches", "n_microbatches", "n_micro_batches", "n_micro", "num_mb", "microbatches"),
        *("micro_batches", "num_batches", "batches", "chunks", "M", "m"),
    ),
    "num_chunks": ("chunks_per_rank", "num_model_chunks", "model_chunks", "n_chunks", "chunks", "V", "v", "interleave"),
    "num_parameters": ("num_params", "n_params", "parameter_count", "P"),
    "bytes_per_parameter": ("bytes_per_param",),
    "device_bytes": ("capacity_bytes", "memory_bytes", "gpu_bytes"),
    "ranks_per_node": ("gpus_per_node", "devices_per_node", "node_size"),
}

# Further orders of parameters, for functions whose parameters have names that nobody knows; the Protocol's comes first.
_FURTHER_ORDERS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "shard_gradients": (("local_grad", "chunks"),),
    "tree_broadcast": (("tensor", "src", "group"),),
    **dict.fromkeys(
        ("ring_allreduce", "tree_allreduce", "ring_allgather", "ring_reduce_scatter"), (("tensor", "group"),)
    ),
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
                orders=orders + _FURTHER_ORDERS.get(name, ()),
                doc=inspect.getdoc(member) or "" if callable(member) else "",
            )
    return found


def _order(member: Callable[..., Any]) -> tuple[str, ...]:
    """The parameters of a Protocol's method but ``self`` and ``**kwargs``."""
    _, *parameters = inspect.signature(member).parameters.values()
    return tuple(found.name for found in parameters if found.kind is not found.VAR_KEYWORD)


ENTRIES: Mapping[str, Entry] = _entries()
BLOCKS: Mapping[str, tuple[str, ...]] = {
    block: tuple(entry.name for entry in ENTRIES.values() if entry.block == block) for block in PROTOCOLS
}
