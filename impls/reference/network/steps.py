"""Training steps of a model that is described by a few numbers: what one rank computes, starts and waits for.

A *layout* spreads it over dp x tp x pp ranks. Tensor-parallel ranks are neighbours, then come the data-parallel ones,
then the pipeline's stages: what talks most sits closest. 2 floating-point operations per parameter and token forward,
4 backward. Gradients and parameters travel in `WIDTH` bytes.

    ddp, 1, 2   each layer's gradient is reduced while the layers before it are still at their backward
    3           each layer is gathered while the one before computes, in both passes, and its gradient scattered
    2, 3        gradients are scattered after every microbatch, those of ddp and 1 after the last one
    tensor      two all-reduces of the activations per layer and pass, which the layer waits for
    pipeline    boundary activations as messages; the idle time is that of the simulated 1F1B schedule

Sources: Li et al. 2020 (DDP); Zhao et al. 2023 (FSDP), section 3.3; Shoeybi et al. 2019 (1909.08053), section 3;
Narayanan et al. 2021 (2104.04473), sections 2 and 3.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence

from impls.reference.network.formulas import log2_ceil, ring_half_time
from impls.reference.network.links import Cluster, Link
from impls.reference.network.timeline import Compute, Event, Start, StepTime, Wait, simulate
from impls.reference.pipeline.costs import Costs
from impls.reference.pipeline.schedules import one_f_one_b
from impls.reference.pipeline.simulate import simulate as simulate_schedule

SETTLED = 4  # times as many microbatches as stages: then a pipeline repeats itself
WIDTH = 2  # bytes of a parameter, a gradient, an activation


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What one replica of a model computes per step, and how quickly a device does."""

    num_parameters: float
    num_layers: int
    hidden: int  # width of the activations between layers
    tokens: int  # in a microbatch of one replica
    num_microbatches: int = 1  # of one replica in a step
    flops: float = 2e14  # that a device reaches, per second


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How the ranks are used; `stage` is ZeRO's, of the data-parallel ranks: ddp, 1, 2 or 3."""

    dp: int = 1
    tp: int = 1
    pp: int = 1
    stage: str = "ddp"

    @property
    def num_ranks(self) -> int:
        """All ranks."""
        return self.dp * self.tp * self.pp


def operation_s(kind: str, num_bytes: float, ranks: Sequence[int], cluster: Cluster) -> float:
    """Seconds that an operation takes over `ranks`: rings for what moves chunks, a tree for a broadcast or a reduce."""
    link, size = cluster.ring_link(ranks), len(ranks)
    half = ring_half_time(num_bytes, size, link.latency_s, link.bandwidth)
    if kind in ("all_gather", "reduce_scatter", "all_to_all"):
        return half
    if kind in ("broadcast", "reduce"):
        return log2_ceil(size) * link.message_s(num_bytes)
    if kind in ("send", "recv"):
        return link.message_s(num_bytes)
    return 2 * half


def step_time(work: Workload, layout: Layout, cluster: Cluster) -> StepTime:
    """The time of a step: microbatches through the pipeline, and the data-parallel traffic beside the last one.

    ValueError for more stages than layers.
    """
    if layout.pp > work.num_layers:
        raise ValueError(f"pp is {layout.pp}, but there are {work.num_layers} layers: a stage needs one at least")
    one = simulate(_microbatch(work, layout, cluster, reduces=False))
    is_last_alike = layout.dp == 1 or layout.stage == "3"
    last = one if is_last_alike else simulate(_microbatch(work, layout, cluster, reduces=True))
    waiting = _pipeline_s(work, layout, cluster, one.total_s) - work.num_microbatches * one.total_s
    before = work.num_microbatches - 1
    return StepTime(
        total_s=before * one.total_s + last.total_s + waiting,
        compute_s=before * one.compute_s + last.compute_s,
        communication_s=before * one.communication_s + last.communication_s,
    )


def _pipeline_s(work: Workload, layout: Layout, cluster: Cluster, microbatch_s: float) -> float:
    """Seconds of all microbatches through all stages, the boundaries' messages included."""
    if layout.pp == 1:
        return work.num_microbatches * microbatch_s
    latency = boundary_s(work, layout, cluster) / microbatch_s
    return microbatch_s * _makespan(layout.pp, work.num_microbatches, latency)


@functools.lru_cache(maxsize=4096)
def _makespan(num_stages: int, num_microbatches: int, latency: float) -> float:
    """The time of 1F1B in microbatches' times on a stage, a third of it forward; simulated up to a steady state.

    From there on every `num_stages` microbatches take as long as those before.
    """
    simulated = min(num_microbatches, (SETTLED - 1) * num_stages + num_microbatches % num_stages)
    costs = Costs(forward=1 / 3, backward=2 / 3, latency=latency)
    whole = float(simulate_schedule(_schedule(num_stages, simulated), costs).makespan)
    if simulated == num_microbatches:
        return whole
    before = float(simulate_schedule(_schedule(num_stages, simulated - num_stages), costs).makespan)
    return whole + (whole - before) * (num_microbatches - simulated) / num_stages


_schedule = functools.lru_cache(maxsize=64)(one_f_one_b)


def boundary_s(work: Workload, layout: Layout, cluster: Cluster) -> float:
    """Seconds of one boundary activation from a stage to the next, over the slowest of the boundaries."""
    link = cluster.inside if layout.num_ranks <= cluster.ranks_per_node else cluster.between
    return link.message_s(WIDTH * work.tokens * work.hidden / layout.tp)


def compute_s(work: Workload, layout: Layout) -> float:
    """Seconds that one rank computes for one microbatch, forward and backward."""
    return 6 * work.num_parameters * work.tokens / layout.tp / layout.pp / work.flops


def _microbatch(work: Workload, layout: Layout, cluster: Cluster, *, reduces: bool) -> Iterator[Event]:
    """One microbatch on one rank; with `reduces` its gradients are reduced over the data-parallel ranks."""
    layers = range(max(1, round(work.num_layers / layout.pp)))
    forward_s = compute_s(work, layout) / 3 / len(layers)
    layer_bytes = WIDTH * work.num_parameters / layout.tp / layout.pp / len(layers)
    replicas = range(0, layout.dp * layout.tp, layout.tp)
    half_s = operation_s("all_gather", layer_bytes, replicas, cluster)
    gathers, scatters = layout.stage == "3" and layout.dp > 1, layout.dp > 1 and (reduces or layout.stage in "23")
    # Stage 2 keeps shards of gradients only, so that each microbatch is scattered, and gathers after the last one.
    halves = 1 if layout.stage == "3" or not reduces else 2

    for name, order, seconds in (("forward", layers, forward_s), ("backward", layers[::-1], 2 * forward_s)):
        inside = _layer(work, layout, cluster, seconds)
        if gathers:
            yield Start(f"{name} {order[0]}", half_s, "data")
        for position, layer in enumerate(order):
            if gathers:
                yield Wait(f"{name} {layer}")
                if position + 1 < len(order):  # the next one is on its way while this one computes
                    yield Start(f"{name} {order[position + 1]}", half_s, "data")
            yield from inside
            if name == "backward" and scatters:
                yield Start(f"reduce {layer}", halves * half_s, "data")
    if scatters:
        yield Wait("reduce 0")


def _layer(work: Workload, layout: Layout, cluster: Cluster, seconds: float) -> Sequence[Event]:
    """Any layer in one pass: attention and MLP, each with an all-reduce of its own under tensor parallelism."""
    if layout.tp == 1:
        return (Compute(seconds),)
    all_reduce_s = operation_s("all_reduce", WIDTH * work.tokens * work.hidden, range(layout.tp), cluster)
    return (Compute(seconds / 2), Start("activations", all_reduce_s, "tensor"), Wait("activations")) * 2


def tensor_parallel_time(
    num_bytes: float,
    num_layers: int,
    world_size: int,
    ranks_per_node: int,
    latency_s: float,
    bandwidth: float,
    between_latency_s: float,
    between_bandwidth: float,
) -> float:
    """Seconds that a step waits for its tensor-parallel all-reduces: 4 of `num_bytes` per layer, by ring."""
    cluster = Cluster(
        inside=Link(latency_s=latency_s, bandwidth=bandwidth),
        between=Link(latency_s=between_latency_s, bandwidth=between_bandwidth),
        ranks_per_node=ranks_per_node,
    )
    return 4 * num_layers * operation_s("all_reduce", num_bytes, range(world_size), cluster)
