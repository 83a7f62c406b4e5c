"""What the links decide: tensor parallelism inside a node, pipelines across nodes."""

from __future__ import annotations

import dataclasses

from conformance.checks import Judge, Subject, claim
from conformance.choose.configurations import (
    Configuration,
    activations_need_a_whole_node,
    draw,
    fills_no_pipeline,
    fits_with_tensor_in_a_node,
    slow_between_nodes,
    thin_layers,
)
from conformance.choose.judging import Advice, impossible, is_piped, judge_each
from impls.reference.network.links import Cluster, Link
from impls.reference.network.steps import Layout, Workload, boundary_s, compute_s, step_time

ADVISE = ["advise"]
CLEARLY = 2.0  # times as long: no model of a network would say otherwise
IN_NAME_ONLY = 5.0  # times as long as the quickest pipeline: half of what layouts without one take, and no less


@claim("choose.tensor", provides=ADVISE)
def test_tensor_parallel_groups_stay_in_a_node(subject: Subject, judge: Judge) -> None:
    def fault(given: Configuration, advice: Advice | None) -> str:
        if advice is None:
            return "it would fit with groups of a node at most"
        if advice["tp"] is None:
            judge.not_provided("it advises tensor parallelism and says no degree")
        if advice["tp"] > given["ranks_per_node"]:
            return f"a group of {advice['tp']} spans nodes, and smaller ones would fit"
        return impossible(given, advice)

    judge_each(
        subject,
        judge,
        draw(fits_with_tensor_in_a_node, judge.seed),
        fault,
        condition="links between nodes are the slower ones and something fits without groups across them",
        expected="tensor-parallel groups of a node at most",
        decided_by="ranks_per_node",
    )


@claim("choose.tensor", provides=ADVISE)
def test_activations_that_half_a_node_has_no_room_for_are_divided_by_all_of_it(subject: Subject, judge: Judge) -> None:
    def fault(given: Configuration, advice: Advice | None) -> str:
        if advice is None:
            return "it would fit, divided by all ranks of the node"
        if advice["tp"] is None:
            return ""
        held = given["activation_bytes"] / advice["tp"] / given["device_bytes"]
        if held > 1:
            return f"one microbatch's activations, which tensor parallelism alone divides, take {held:.2f} devices"
        return impossible(given, advice)

    judge_each(
        subject,
        judge,
        draw(activations_need_a_whole_node, judge.seed),
        fault,
        condition="an eighth of one microbatch's activations has room on a device, and a quarter has not",
        expected="a tensor-parallel group of the node's 8 ranks",
    )


@claim("choose.pipeline", provides=ADVISE)
def test_little_bandwidth_between_nodes_is_enough_for_a_pipeline(subject: Subject, judge: Judge) -> None:
    def fault(given: Configuration, advice: Advice | None) -> str:
        if advice is None or not is_piped(advice):
            return "no pipeline, over links of 10 Gb/s"
        if why := impossible(given, advice):
            return why
        slower = times_as_long(given, advice)
        return f"it takes {slower:.0f} times as long as other pipelines" if slower > IN_NAME_ONLY else ""

    given = draw(slow_between_nodes, judge.seed, 12)
    assert min(map(gain, given)) >= CLEARLY, "a pipeline is not clearly quicker in all of these configurations"
    judge_each(
        subject,
        judge,
        given,
        fault,
        condition="nothing whole fits on a device, a boundary's activation takes less time than a stage's computation, "
        f"and all else takes {CLEARLY:g} times as long per token",
        expected="a pipeline between nodes, that spares the links most of what goes over them",
        decided_by="between_bandwidth",
    )


@claim("choose.pipeline", provides=ADVISE)
def test_stages_are_not_so_thin_that_their_boundaries_decide(subject: Subject, judge: Judge) -> None:
    def fault(given: Configuration, advice: Advice | None) -> str:
        if advice is None or not is_piped(advice):
            return ""
        if advice["pp"] is None:
            judge.not_provided("it advises a pipeline and says no degree")
        layout = Layout(dp=given["world_size"] // advice["pp"] // advice["tp"], tp=advice["tp"], pp=advice["pp"])
        share = boundary_share(given, layout)
        return f"a boundary takes {share:.1f} times as long as a stage computes" if share > 1 else ""

    judge_each(
        subject,
        judge,
        draw(thin_layers, judge.seed, 10),
        fault,
        condition="layers are narrow, links between nodes slow, and gathering parameters hides behind long batches",
        expected="no pipeline whose boundaries take longer than its stages",
        decided_by="between_bandwidth",
    )


@claim("choose.pipeline", provides=ADVISE)
def test_one_microbatch_fills_no_pipeline(subject: Subject, judge: Judge) -> None:
    def fault(given: Configuration, advice: Advice | None) -> str:
        if advice is None or not is_piped(advice):
            return ""
        stages = "stages" if advice["pp"] is None else f"{advice['pp']} stages"
        return f"{stages} for one microbatch: one works at a time, and shards gathered over quick links are all at work"

    judge_each(
        subject,
        judge,
        draw(fills_no_pipeline, judge.seed, 12),
        fault,
        condition="a step has one microbatch, 16P/N fit, and quick links hide the gathering behind 65536 tokens",
        expected="no pipeline",
        decided_by="num_microbatches",
    )


def gain(given: Configuration) -> float:
    """How many times longer the quickest layout without a pipeline takes than the quickest with one, per token."""
    tensor, size = (1, 2, 4, given["ranks_per_node"]), given["world_size"]
    plain = [Layout(dp=size // tp, tp=tp, stage=stage) for tp in tensor for stage in ("2", "3")]
    return min(seconds_per_token(given, layout) for layout in plain) / _quickest_pipeline(given)


def times_as_long(given: Configuration, advice: Advice) -> float:
    """How many times longer the advised pipeline takes than the quickest, per token; 1 where no degree is said."""
    if advice["tp"] is None or advice["pp"] is None:
        return 1.0
    dp = given["world_size"] // advice["tp"] // advice["pp"]
    layout = Layout(dp=dp, tp=advice["tp"], pp=advice["pp"], stage=advice["stage"])
    return seconds_per_token(given, layout) / _quickest_pipeline(given)


def _quickest_pipeline(given: Configuration) -> float:
    node, size = given["ranks_per_node"], given["world_size"]
    most = min(given["num_microbatches"], given["num_layers"])
    degrees = [(tp, pp) for tp in (1, 2, 4, node) for pp in (4, size // node) if pp <= most and tp * pp <= size]
    layouts = [Layout(dp=size // tp // pp, tp=tp, pp=pp, stage="1") for tp, pp in degrees]
    return min(seconds_per_token(given, layout) for layout in layouts)


def seconds_per_token(given: Configuration, layout: Layout) -> float:
    """What the network model makes of a layout."""
    work = _work(given)
    return step_time(work, layout, _cluster(given)).total_s / layout.dp / work.tokens / work.num_microbatches


def _work(given: Configuration) -> Workload:
    names = {field.name for field in dataclasses.fields(Workload)}
    return Workload(**{name: value for name, value in given.items() if name in names})


def _cluster(given: Configuration) -> Cluster:
    return Cluster(
        inside=Link(latency_s=given["latency_s"], bandwidth=given["bandwidth"]),
        between=Link(latency_s=given["between_latency_s"], bandwidth=given["between_bandwidth"]),
        ranks_per_node=given["ranks_per_node"],
    )


def boundary_share(given: Configuration, layout: Layout) -> float:
    """A boundary's time as a share of a stage's computation, for one microbatch."""
    return boundary_s(_work(given), layout, _cluster(given)) / compute_s(_work(given), layout)
