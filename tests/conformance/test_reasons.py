"""Why a broken claim comes without a script: what is told on its card."""

from __future__ import annotations

import tomllib

import pytest

from conformance.scripts.opening import HOME
from conformance.scripts.reasons import why_none
from conformance.verdict import Result, Tier, Verdict

REASONS = tomllib.loads((HOME / "reasons.toml").read_text(encoding="utf-8"))["reason"]


@pytest.mark.parametrize(
    ("claim", "case", "name", "told"),
    [
        ("pipeline.order", "test_1f1b_keeps_the_order_of_the_schedule", "train_step", "trace, clock"),
        ("strategies.tensor.dropout", "test_dropout_outside_the_regions_agrees", "ParallelAttention", "yardstick"),
        ("memory.mixed-7b", "test_case", "mixed_precision_memory", "fake tensors"),
        ("lessons.48.no-write", "test_case", "train", "a command"),
        ("choose.ddp", "test_case", "advise", "configuration"),
        ("pipeline.equivalence", "test_a_tied_weight_has_the_sum[gpipe]", "train_step", "beyond them"),
        ("loop.rows", "test_case", "train", "no script"),
        ("loop.mean", "test_gradients_of_drawn_parameters_are_the_mean[2]", "DataParallel", "hand-in asks for"),
    ],
)
def test_reason_is_of_the_claim_or_of_the_hand_in(claim, case, name, told):
    result = Result(claim=claim, case=case, tier=Tier.CORE, impl="mine", verdict=Verdict.VIOLATED)
    assert told in why_none(result, [name]).en


def test_every_reason_is_told_in_both_languages():
    assert [reason for reason in REASONS if not (reason["en"] and reason["fa"])] == []
