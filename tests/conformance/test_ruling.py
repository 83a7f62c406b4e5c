"""What a manifest declares beforehand turns into its own verdict, with reason and source."""

from __future__ import annotations

import pytest

from conformance.checks import Broken, Description
from conformance.ruling import rule
from conformance.verdict import Verdict
from fixtures.world.outcome import Ending, Outcome, Outcomes, Raised

ENTRY = {"reason": "known", "source": "an issue"}
RAISES = Outcome(rank=0, ending=Ending.RAISED, raised=Raised(type="TypeError", text="no bool", traceback=""))
RETURNS = Outcome(rank=1, ending=Ending.RETURNED)


@pytest.mark.parametrize("verdict", [Verdict.VIOLATED, Verdict.HANGS, Verdict.CRASHES])
def test_declared_deviation_deviates_with_reason_and_source(verdict):
    description = Description(name="torch", spec="torch", deviates={"a": ENTRY})
    ruling = rule(Broken(verdict, "three is not four"), None, description, "a")
    assert ruling.verdict is Verdict.DEVIATES
    assert ruling.message == "declared: known [an issue]. Observed: three is not four"


@pytest.mark.parametrize(("outcomes", "verdict"), [([RAISES], Verdict.REFUSES), ([RAISES, RETURNS], Verdict.CRASHES)])
def test_declared_refusal_counts_when_every_rank_refuses(outcomes, verdict):
    description = Description(name="mine", spec="mine", refuses={"a": ENTRY})
    error = Broken(Verdict.CRASHES, "no bool", outcomes=Outcomes(outcomes))
    assert rule(error, None, description, "a").verdict is verdict


def test_another_claim_is_not_excused():
    description = Description(name="torch", spec="torch", deviates={"a": ENTRY}, refuses={"a": ENTRY})
    assert rule(Broken(Verdict.VIOLATED, "wrong"), None, description, "b").verdict is Verdict.VIOLATED
