"""Buckets of 25 MB, and one all-reduce for each of them (defaults.bucket)."""

from __future__ import annotations

import pytest

from conformance.checks import Judge, Subject, claim
from conformance.strategies import programs
from conformance.strategies.ddp_traffic import steps_of
from conformance.verdict import Witness
from impls.words import number_of

MIB = 1 << 20
DEFAULT_MIB = 25
LAYER_BYTES = MIB  # of the program's 60 layers
LEAST_SHARE = 0.9  # of the cap that a full bucket holds: 25 MB are 23 layers of 1 MiB, 25 MiB are 25
SMALL_MIB = 4


def _sizes(subject: Subject, cap_mb: float | None) -> tuple[list[int], bool]:
    """Bytes of the all-reduces of the second step in order of issue, and whether the wrapper takes a cap."""
    outcomes = subject.run(programs.sixty_mebibytes, 2, bucket_cap_mb=cap_mb)
    step = steps_of(outcomes[0])[-1]
    return [op.num_bytes for op in step.gradients if op.kind == "all_reduce"], bool(outcomes[0].value["takes_cap"])


def _judge(judge: Judge, sizes: list[int], cap: int) -> None:
    """No bucket above the cap, and none between the first and the last that could have taken more."""
    told = ", ".join(f"{size / MIB:g}" for size in sizes[:12]) + (", …" if len(sizes) > 12 else "")
    full = sizes[1:-1]  # torch keeps its first small, the last takes what is left
    fault = ""
    if not sizes:
        fault = "no all-reduce moved gradients"
    elif max(sizes) > cap:
        fault = f"an all-reduce of {max(sizes) / MIB:g} MiB is above the cap"
    elif full and min(full) < LEAST_SHARE * cap - LAYER_BYTES:
        fault = f"an all-reduce of {min(full) / MIB:g} MiB, though the next gradient fitted in too"
    elif len(sizes) == 1:
        fault = "one all-reduce for everything"
    if fault:
        judge.violated(fault, expected=f"buckets of {cap / MIB:g}", observed=told, witness=Witness.TRACE, unit="MiB")
    judge.holds(
        expected=f"at most {cap / MIB:g}, filled but for the last (and torch's first)",
        observed=told,
        witness=Witness.TRACE,
        unit="MiB",
        message=f"{len(sizes)} all-reduces for 60 gradients of 1 MiB",
    )


@claim("defaults.bucket", provides=["DataParallel"])
def test_buckets_hold_25_mb_unless_told_otherwise(subject: Subject, judge: Judge) -> None:
    sizes, takes_cap = _sizes(subject, None)
    if not takes_cap and set(sizes) <= {LAYER_BYTES, sum(sizes)}:
        judge.not_provided(
            f"the wrapper has no buckets: it takes no size for them and reduces in {number_of(len(sizes), 'operation')}"
        )
    _judge(judge, sizes, DEFAULT_MIB * MIB)


@claim("defaults.bucket", tier="contract", provides=["DataParallel"])
@pytest.mark.parametrize("cap_mib", [SMALL_MIB])
def test_buckets_have_the_size_that_was_asked_for(subject: Subject, judge: Judge, cap_mib: int) -> None:
    sizes, takes_cap = _sizes(subject, float(cap_mib))
    if not takes_cap:
        judge.not_provided("the wrapper takes no size for its buckets")
    _judge(judge, sizes, cap_mib * MIB)
