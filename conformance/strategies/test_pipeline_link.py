"""What a pipeline sends in a step, seen in its trace, against DDP and tensor parallelism of the same model."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.checks import Judge, Subject, claim
from conformance.strategies import pipeline_programs as programs
from conformance.strategies.pipeline_link import WORKLOADS, Workload
from conformance.strategies.pipeline_traffic import NOTE_BYTES, Step
from conformance.verdict import Witness
from fixtures.witness.compare import in_window

MICRO = 8
STEPS = 2
DEEP = {"num_layers": 8, "width": 64, "rows": 64}  # of each stage; 512 tokens in a step
SHALLOW = {"num_layers": 2, "width": 16, "rows": 256}  # 2048 tokens


def _measure(subject: Subject, world_size: int, sizes: dict[str, Any], name: str) -> tuple[Workload, int, int]:
    """The shape that ran, and the most bytes that a rank sent in the last step, and in notes beside them."""
    outcomes = subject.run(programs.traffic, world_size, "gpipe", micro=MICRO, steps=STEPS, tied=False, **sizes)
    last = programs.window(STEPS - 1)
    step = Step.of([in_window(outcome.operations, outcome.marks, last) for outcome in outcomes])
    moved, small = max(step.sent_bytes(rank) for rank in range(world_size))
    shape = Workload(
        name=name,
        num_parameters=sum(outcome.value["model_bytes"] for outcome in outcomes) / 4,
        num_pairs=sizes["num_layers"] * world_size // 2,
        width=sizes["width"],
        tokens=MICRO * sizes["rows"],
        world_size=world_size,
        bytes_each=4,
    )
    return shape, moved, small


@claim("strategies.pipeline.link", provides=["train_step"])
@pytest.mark.parametrize("world_size", [3, 4])
def test_deep_stages_and_few_tokens_send_less_than_ddp_and_tensor_parallelism_and_shallow_ones_do_not(
    subject: Subject, judge: Judge, world_size: int
) -> None:
    for sizes, name in ((DEEP, "deep stages, few tokens"), (SHALLOW, "shallow stages, many tokens")):
        shape, moved, small = _measure(subject, world_size, sizes, name)
        if moved > shape.pipeline_bytes + 2 * MICRO * NOTE_BYTES or moved + small < shape.pipeline_bytes:
            judge.violated(
                f"{name} on {world_size} ranks: the busiest rank sends {moved:,} bytes in a step; {shape.told()}",
                expected=f"{shape.pipeline_bytes:,.0f}: an activation and a gradient for each of {shape.tokens} tokens",
                observed=f"{moved:,}",
                witness=Witness.TRACE,
            )
        assert shape.does_with_least is (sizes is DEEP), "one shape is for the pipeline, the other against it"
        judge.holds(
            expected=f"{shape.pipeline_bytes:,.0f}",
            observed=f"{moved:,}",
            witness=Witness.TRACE,
            unit="bytes",
            message=f"the busiest rank of {world_size} in a step of GPipe; {shape.told()}",
            examples=STEPS,
            data={f"{'deep' if sizes is DEEP else 'shallow'}_bytes": moved},
        )
    _show_shapes(judge)


def _show_shapes(judge: Judge) -> None:
    """The same at sizes that no machine here holds."""
    large, small = WORKLOADS
    assert large.does_with_least, "a large model with few tokens is what a pipeline is for"
    assert small.pipeline_bytes > small.ddp_bytes, "a small model with many tokens is not"
    judge.holds(
        expected="less than both where stages are deep and tokens few, more than DDP where they are not",
        observed="; ".join(shape.told() for shape in WORKLOADS),
        witness=Witness.MODEL,
        message="bytes of a rank and step; tensor parallelism sends more than a pipeline as soon as there is more than "
        "one pair of matrices",
    )
