"""Is DualPipe excessive below 1000 GPUs? No check decides that: the curves of the idle share, for readers to judge."""

from __future__ import annotations

from conformance.checks import Judge, Subject, claim
from conformance.verdict import Witness
from impls.reference.pipeline.bubbles import bubble_1f1b, bubble_dualpipe, bubble_dualpipev, bubble_zero_bubble

CURVES = {
    "1F1B": bubble_1f1b,
    "zero bubble (ZB-H1)": bubble_zero_bubble,
    "DualPipe": bubble_dualpipe,
    "DualPipeV": bubble_dualpipev,
}
STAGES = (4, 8, 16, 32)
PER_STAGE = (2, 4, 8, 16)  # microbatches for each stage
DATA_PARALLEL = (1, 128)  # pipelines side by side: so many times the GPUs, and the same bubble


@claim("faq.dualpipe-under-1000")
def test_the_idle_share_depends_on_stages_and_microbatches(subject: Subject, judge: Judge) -> None:
    shares = {
        name: {f"{n}x{n * times}": curve(n, n * times) for n in STAGES for times in PER_STAGE}
        for name, curve in CURVES.items()
    }
    few, many = f"{STAGES[1]}x{STAGES[1] * PER_STAGE[0]}", f"{STAGES[1]}x{STAGES[1] * PER_STAGE[-1]}"
    gpus = " or ".join(f"{STAGES[1] * replicas:,}" for replicas in DATA_PARALLEL)
    judge.holds(
        expected="an opinion: the curves",
        observed="; ".join(f"{name} {found[few]:.1%} falling to {found[many]:.1%}" for name, found in shares.items()),
        witness=Witness.SIMULATION,
        examples=len(CURVES) * len(STAGES) * len(PER_STAGE),
        message=f"idle share of {STAGES[1]} stages for {STAGES[1] * PER_STAGE[0]} and {STAGES[1] * PER_STAGE[-1]} "
        f"microbatches, on {gpus} GPUs alike: more pipelines side by side change none of it",
        data={"idle_share": shares, "stages": list(STAGES), "microbatches_per_stage": list(PER_STAGE)},
    )
