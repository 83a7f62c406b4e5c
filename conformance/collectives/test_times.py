"""The closed forms of ring and tree, where an implementation has them: times, and the size at which they cross."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from conformance.checks import Judge, Subject, claim
from conformance.collectives.figure_programs import figures
from conformance.collectives.timing import crossover, ring_latencies, tree_latencies
from conformance.verdict import Witness
from impls.reference.network.presets import PRESETS

RANKS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 31, 64, 256, 4096)
SIZES = (0, 1, 1000, 10**6, 3 * 10**8)
EXACT = 1e-6  # relative: a formula in double precision
NEAR = 1.01  # of the crossover, for one that is found by searching


def _cases() -> list[dict[str, Any]]:
    links = [preset.link for preset in PRESETS.values()]
    return [
        {"num_bytes": size, "world_size": n, "latency_s": link.latency_s, "bandwidth": link.bandwidth}
        for n in RANKS
        for size in SIZES
        for link in links
    ]


def _judge_times(
    subject: Subject, judge: Judge, name: str, latencies: Callable[[int, float], float], formula: str
) -> None:
    cases = _cases()
    (answers,) = subject.run(figures, 1, name, cases, bare=True, trace=False).values
    for case, answer in zip(cases, answers, strict=True):
        alpha, beta = case["latency_s"], case["bandwidth"]
        expected = alpha * latencies(case["world_size"], case["num_bytes"] / (alpha * beta))
        if answer is None or not abs(answer - expected) <= EXACT * expected:
            judge.violated(
                f"{name}({_told(case)})",
                expected=f"{formula} = {expected:.6g}",
                observed=answer if answer is None else f"{answer:.6g}",
                witness=Witness.MODEL,
                unit="s",
            )
    judge.holds(
        expected=formula,
        observed="the same",
        witness=Witness.MODEL,
        examples=len(cases),
        message=f"{name} is {formula}",
    )


def _told(case: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value:g}" for key, value in case.items())


@claim("collectives.ring.use", provides=["ring_time"])
def test_the_time_of_a_ring(subject: Subject, judge: Judge) -> None:
    _judge_times(subject, judge, "ring_time", ring_latencies, "2(N-1) (latency + T/N/bandwidth)")


@claim("collectives.tree.use", provides=["tree_time"])
def test_the_time_of_a_tree(subject: Subject, judge: Judge) -> None:
    _judge_times(subject, judge, "tree_time", tree_latencies, "2 ceil(log2 N) (latency + T/bandwidth)")


def _judge_crossover(subject: Subject, judge: Judge) -> None:
    links = {name: preset.link for name, preset in PRESETS.items()}
    cases = [
        {"world_size": n, "latency_s": link.latency_s, "bandwidth": link.bandwidth}
        for n in RANKS
        if n > 1
        for link in links.values()
    ]
    (answers,) = subject.run(figures, 1, "crossover_bytes", cases, bare=True, trace=False).values
    for case, answer in zip(cases, answers, strict=True):
        n, unit = int(case["world_size"]), case["latency_s"] * case["bandwidth"]
        if n <= 3:
            if answer:
                judge.violated(
                    f"crossover_bytes({_told(case)}): up to 3 ranks the ring is never slower",
                    expected="0, or None",
                    observed=f"{answer:.6g}",
                    witness=Witness.MODEL,
                    unit="bytes",
                )
            continue
        expected = crossover(n) * unit
        if answer is None or not expected / NEAR <= answer <= expected * NEAR:
            judge.violated(
                f"crossover_bytes({_told(case)}): there the ring takes "
                f"{ring_latencies(n, (answer or 0) / unit):.2f} latencies and the tree "
                f"{tree_latencies(n, (answer or 0) / unit):.2f}",
                expected=f"{expected:.6g}, where both take as long",
                observed=answer if answer is None else f"{answer:.6g}",
                witness=Witness.MODEL,
                unit="bytes",
            )
    judge.holds(
        expected="where 2(N-1) (latency + T/N/bandwidth) = 2 ceil(log2 N) (latency + T/bandwidth)",
        observed="there",
        witness=Witness.MODEL,
        examples=len(cases),
        message="the size grows with latency x bandwidth and is none up to 3 ranks",
    )


@claim("collectives.ring.message-size", provides=["crossover_bytes"])
def test_the_size_from_which_a_ring_wins(subject: Subject, judge: Judge) -> None:
    _judge_crossover(subject, judge)


@claim("collectives.tree.message-size", provides=["crossover_bytes"])
def test_the_size_up_to_which_a_tree_wins(subject: Subject, judge: Judge) -> None:
    _judge_crossover(subject, judge)
