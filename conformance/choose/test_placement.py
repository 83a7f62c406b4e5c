"""What the links decide: tensor parallelism inside a node, pipelines across nodes."""

from __future__ import annotations

import dataclasses

from conformance.checks import Judge, Subject, claim
from conformance.choose.configurations import (
    Configuration,
    draw,
    fits_with_tensor_in_a_node,
    slow_between_nodes,
    thin_layers,
)
from conformance.choose.judging import Advice, impossible, is_piped, judge_each
from impls.reference.network.links import Cluster, Link
from impls.reference.network.steps import Layout, Workload, boundary_s, compute_s, step_time

ADVISE = ["advise"]
CLEARLY = 2.0  # times as long: no model of a network would say otherwise


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


@claim("choose.pipeline", provides=ADVISE)
def test_little_bandwidth_between_nodes_is_enough_for_a_pipeline(subject: Subject, judge: Judge) -> None:
    def fault(given: Configuration, advice: Advice | None) -> str:
        if advice is None or not is_piped(advice):
            return "no pipeline, over links of 10 Gb/s"
        return impossible(given, advice)

    given = draw(slow_between_nodes, judge.seed, 12)
    assert min(map(gain, given)) >= CLEARLY, "a pipeline is not clearly quicker in all of these configurations"
    judge_each(
        subject,
        judge,
        given,
        fault,
        condition="nothing whole fits on a device, a boundary's activation takes less time than a stage's computation, "
        f"and all else takes {CLEARLY:g} times as long per token",
        expected="a pipeline between nodes",
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


def gain(given: Configuration) -> float:
    """How many times longer the quickest layout without a pipeline takes than the quickest with one, per token."""
    work, cluster = _work(given), _cluster(given)
    node, size = given["ranks_per_node"], given["world_size"]
    plain, piped = [], []
    for tp in (1, 2, 4, node):
        plain.append(_per_token(work, Layout(dp=size // tp, tp=tp, stage="3"), cluster))
        plain.append(_per_token(work, Layout(dp=size // tp, tp=tp, stage="2"), cluster))
        for pp in (4, size // node):
            layout = Layout(dp=size // tp // pp, tp=tp, pp=pp, stage="1")
            if pp <= min(work.num_microbatches, work.num_layers) and layout.dp >= 1:
                piped.append(_per_token(work, layout, cluster))
    return min(plain) / min(piped)


def _per_token(work: Workload, layout: Layout, cluster: Cluster) -> float:
    return step_time(work, layout, cluster).total_s / layout.dp / work.tokens / work.num_microbatches


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
