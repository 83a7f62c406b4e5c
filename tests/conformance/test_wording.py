"""Cards say what they mean: no colon before nothing, no unit twice, no root of a sum."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from conformance.checks import Broken, Judge
from conformance.collectives.costs import judge_steps
from conformance.collectives.values import judge_parts, judge_sums
from conformance.lessons import test_bucket as bucket
from fixtures.draws import Case
from fixtures.world.outcome import Outcomes

NONE = Outcomes([])


def test_rank_that_sent_nothing_is_told_without_a_colon():
    counted = SimpleNamespace(sent=[SimpleNamespace(messages=[])], world_size=2, outcomes=NONE)
    with pytest.raises(Broken) as told:
        judge_steps(Judge(), counted, "2(N-1)", 2)
    assert told.value.message == "rank 0 of 2 sent 0 messages"


def test_size_of_a_bucket_has_its_unit_once():
    with pytest.raises(Broken) as told:
        bucket._judge(Judge(), [60 << 20], 25 << 20)
    assert told.value.evidence is not None
    assert f"{told.value.evidence.expected} {told.value.evidence.unit}" == "buckets of 25 MiB"


@pytest.mark.parametrize("judging", [judge_sums, judge_parts])
def test_sum_is_told_without_a_root(judging):
    case = Case(world_size=2, shape=(3,), src=1)
    with pytest.raises(Broken) as told:
        judging(Judge(), case, [torch.full((3,), 99.0)] * 2, NONE)
    assert "2 ranks, float32[3]" in told.value.message
    assert "src" not in told.value.message
