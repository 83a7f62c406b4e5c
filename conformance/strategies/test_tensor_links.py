"""What tensor parallelism waits for: on links inside a node and between nodes, for small and for large activations.

The time that an implementation computes for a step's all-reduces, four in each layer; nothing hides them.
"""

from __future__ import annotations

from typing import Any

from conformance.checks import Judge, Subject, claim
from conformance.collectives.figure_programs import figures
from conformance.collectives.timing import ring_latencies
from conformance.verdict import Witness
from impls.reference.network.formulas import ring_time
from impls.reference.network.presets import PRESETS

NAME = "tensor_parallel_time"
INSIDE = ("nvlink5", "nvlink4", "pcie4")
BETWEEN = ("ib-ndr", "ib-hdr", "eth100", "eth25", "eth10")
SLOWER = 1.01  # a group that spans nodes must take longer by more than rounding
WIDTH_BYTES = 2  # of an activation
SHAPES = ((32, 4096), (80, 8192))  # layers and width, of models of 7e9 and 70e9 parameters
TOKENS = (1, 16, 256, 4096, 65536)


def _case(
    inside: str, between: str, *, world_size: int, ranks_per_node: int, layers: int = 32, num_bytes: float = 3.2e7
) -> dict[str, Any]:
    near, far = PRESETS[inside].link, PRESETS[between].link
    return {
        "num_bytes": num_bytes,
        "num_layers": layers,
        "world_size": world_size,
        "ranks_per_node": ranks_per_node,
        "latency_s": near.latency_s,
        "bandwidth": near.bandwidth,
        "between_latency_s": far.latency_s,
        "between_bandwidth": far.bandwidth,
    }


def _ask(subject: Subject, cases: list[dict[str, Any]]) -> list[float]:
    (answers,) = subject.run(figures, 1, NAME, cases, bare=True, trace=False).values
    return [float("nan") if answer is None else answer for answer in answers]


@claim("strategies.tensor.link", provides=[NAME])
def test_a_group_inside_a_node_waits_less_than_one_that_spans_two(subject: Subject, judge: Judge) -> None:
    pairs = [(near, far, size) for near in INSIDE for far in BETWEEN for size in (2, 4, 8)]
    pairs = [pair for pair in pairs if PRESETS[pair[0]].link.bandwidth > PRESETS[pair[1]].link.bandwidth]
    within = [_case(near, far, world_size=size, ranks_per_node=size) for near, far, size in pairs]
    across = [_case(near, far, world_size=size, ranks_per_node=size // 2) for near, far, size in pairs]
    answers = _ask(subject, within + across)
    found = list(zip(pairs, answers[: len(pairs)], answers[len(pairs) :], strict=True))
    for case, ((near, far, size), inside_s, spanning_s) in zip(across, found, strict=True):
        if not spanning_s > SLOWER * inside_s:
            judge.violated(
                f"{size} ranks, {near} in a node and {far} between nodes: spanning two nodes costs nothing",
                expected=f"more than the {inside_s:.3g} of one node",
                observed=f"{spanning_s:.3g}",
                witness=Witness.SIMULATION,
                unit="s",
            )
        least_s, most_s = _bounds_s(case)
        if not least_s <= spanning_s <= SLOWER * most_s:
            judge.violated(
                f"{size} ranks, {near} in a node and {far} between nodes: not what the links between nodes make of it",
                expected=f"from {least_s:.3g}, in which {far} carries each node's part of the sums to the other, to "
                f"{most_s:.3g} of a ring on each of the two links",
                observed=f"{spanning_s:.3g}",
                witness=Witness.SIMULATION,
                unit="s",
            )
    judge.holds(
        expected="a group that spans nodes waits longer, as much as the links between them say",
        observed=", ".join(
            f"{size} ranks {near}/{far}: {inside_s * 1e3:.3g} against {spanning_s * 1e3:.3g} ms"
            for (near, far, size), inside_s, spanning_s in found[2::6]
        ),
        witness=Witness.SIMULATION,
        examples=2 * len(pairs),
        message="all-reduces of 32 MB in 32 layers",
    )
    _judge_equal_links(subject, judge)


def _bounds_s(case: dict[str, Any]) -> tuple[float, float]:
    """For a group over two nodes: what no all-reduce is quicker than, and what no ring is slower than.

    Each node has to send as many bytes to the other as the tensor has, over the connections of half the ranks. A ring's
    slowest message takes no longer than one on each of the two links, one after the other.
    """
    size, num_bytes = case["world_size"], case["num_bytes"]
    least = num_bytes / (size / 2) / case["between_bandwidth"]
    most = ring_time(num_bytes, size, case["latency_s"], case["bandwidth"])
    most += ring_time(num_bytes, size, case["between_latency_s"], case["between_bandwidth"])
    return 4 * case["num_layers"] * least, 4 * case["num_layers"] * most


def _judge_equal_links(subject: Subject, judge: Judge) -> None:
    cases = [_case("ib-ndr", "ib-ndr", world_size=8, ranks_per_node=n) for n in (8, 4, 2, 1)]
    answers = _ask(subject, cases)
    if not max(answers) <= SLOWER * min(answers):
        judge.violated(
            "with the same links everywhere the placement still makes a difference",
            expected=f"{answers[0]:.6g} for 8, 4, 2 and 1 ranks in a node",
            observed=", ".join(f"{answer:.6g}" for answer in answers),
            witness=Witness.SIMULATION,
            unit="s",
        )
    judge.holds(
        expected="no difference",
        observed=", ".join(f"{answer:.6g}" for answer in answers),
        witness=Witness.SIMULATION,
        unit="s",
        examples=len(cases),
        message="where links are equal, the placement makes none",
    )


@claim("strategies.tensor.cost", provides=[NAME])
def test_small_activations_wait_for_latency_and_large_ones_for_bandwidth(subject: Subject, judge: Judge) -> None:
    found = []
    for layers, width in SHAPES:
        sizes = [0.0, *(float(tokens * width * WIDTH_BYTES) for tokens in TOKENS)]
        for size in (2, 8):
            cases = [
                _case("nvlink4", "ib-ndr", world_size=size, ranks_per_node=8, layers=layers, num_bytes=n) for n in sizes
            ]
            answers = _ask(subject, cases)
            _judge_formula(judge, cases, answers)
            shares = [answers[0] / answer for answer in answers[1:]]
            found.append(f"{layers} layers of {width}, {size} ranks: {', '.join(f'{share:.0%}' for share in shares)}")
            if not (shares[0] > 0.5 > shares[-1]):
                judge.violated(
                    f"{found[-1]} of the time is latency, for {', '.join(map(str, TOKENS))} tokens",
                    expected="more than half for 1 token, less than half for 65536",
                    observed=f"{shares[0]:.0%} and {shares[-1]:.0%}",
                    witness=Witness.SIMULATION,
                )
    judge.holds(
        expected="latency above half for one token, below half for long batches",
        observed="; ".join(found),
        witness=Witness.SIMULATION,
        examples=2 * len(SHAPES) * len(TOKENS),
        message=f"share of latency in what a step waits for, over nvlink4, for {', '.join(map(str, TOKENS))} tokens",
    )


def _judge_formula(judge: Judge, cases: list[dict[str, Any]], answers: list[float]) -> None:
    for case, answer in zip(cases, answers, strict=True):
        alpha, beta = case["latency_s"], case["bandwidth"]
        one = alpha * ring_latencies(case["world_size"], case["num_bytes"] / alpha / beta)
        expected = 4 * case["num_layers"] * one
        if not abs(answer - expected) <= 1e-6 * expected:
            judge.violated(
                f"{case['num_layers']} layers, activations of {case['num_bytes']:,.0f} bytes, "
                f"{case['world_size']} ranks of one node",
                expected=f"four rings in each layer: {expected:.6g}",
                observed=f"{answer:.6g}",
                witness=Witness.MODEL,
                unit="s",
            )
