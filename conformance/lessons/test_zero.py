"""Lesson 78: its losses agree with and without sharding, and its memory table follows 4P + 12P/N."""

from __future__ import annotations

from conformance.checks import Judge, Subject, claim
from conformance.verdict import Witness
from lessons import zero
from lessons.zero_training import curves, held

STEPS = 12
SIZES = (1, 2, 4)
UNIT = "bytes per parameter"


@claim("lessons.78", provides=["ShardedOptimizer"], despite=["zero.equivalence"])
def test_the_loss_curve_of_the_lesson_is_that_of_one_process(subject: Subject, judge: Judge) -> None:
    seen = curves(subject.run, 4, STEPS)
    assert seen.alone[-1] < seen.alone[0], "one process learns nothing, so the curve says nothing"
    printed = "\n".join(zero.told_curves(seen))
    assert printed.count("\n") > zero.SHOWN_STEPS
    for fault in zero.faults_in_curves(seen):
        judge.violated(fault, expected=f"at most {seen.bound:.1e}", observed=f"{seen.difference:.3g}")
    judge.at_most(seen.difference, seen.bound, message="the losses of all steps against one process", examples=STEPS)


@claim("lessons.78", provides=["ShardedOptimizer"], despite=["zero.equivalence"])
def test_the_memory_table_of_the_lesson_follows_its_formula(subject: Subject, judge: Judge) -> None:
    table = [row for size in SIZES for row in held(subject.run, size)]
    assert len(table) == sum(SIZES)
    share = zero.optimizer_share(table)
    by_size = {row.world_size: row.total / row.num_parameters for row in table}
    formula = {size: 4 + share / size for size in SIZES}
    expected = f"4P + {share}P/N: " + ", ".join(f"{value:.2f} (N={size})" for size, value in formula.items())
    observed = ", ".join(f"{value:.2f} (N={size})" for size, value in by_size.items())
    faults = list(zero.faults_in_memory(table))
    if share == 0:
        faults.append("Adam has no state on a single rank: there is nothing to shard")
    for fault in faults:
        judge.violated(fault, expected=expected, observed=observed, witness=Witness.MEMORY, unit=UNIT)
    master = "with an FP32 master copy" if share == 12 else "as this optimizer keeps no FP32 master copy"
    judge.holds(
        expected=expected,
        observed=observed,
        witness=Witness.MEMORY,
        unit=UNIT,
        message=f"measured after a step on a bfloat16 model, {master}",
        examples=len(table),
    )
