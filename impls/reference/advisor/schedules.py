"""Which pipeline schedule: by the expert all-to-all that it has to hide, and by what a second copy would cost.

Not by the number of devices, which is in no formula. DualPipe and DualPipeV run a forward and a backward together, so
that the all-to-all of one hides behind the other; DualPipe keeps two copies of a stage's parameters for it. Without
all-to-all there is nothing to hide, and ZBV has the smaller bubble. Sources: DeepSeek-AI 2024, DeepSeek-V3
(2412.19437), section 3.2.1; the DualPipe repository; Qi et al. 2024, Zero Bubble (2401.10241), section 6.
"""

from __future__ import annotations

from impls.reference.advisor.layouts import Option
from impls.reference.advisor.request import Request
from impls.words import number_of

HEAVY = 0.5  # of computation time: comparable to it
LIGHT = 0.05  # below that nothing is worth hiding
HIDE = ("dualpipe", "dualpipev")


def schedule_for(wanted: Request, chosen: Option) -> tuple[str, str]:
    """The schedule's name in the contract, and why; both empty without a pipeline."""
    pp, microbatches, share = chosen.layout.pp, wanted.work.num_microbatches, wanted.all_to_all_share
    if pp == 1:
        return "", ""
    two_copies = chosen.device_bytes + chosen.states_bytes
    hides = f"an all-to-all of {share:.0%} of the computation has to be hidden"
    if share >= LIGHT and microbatches >= 2 * pp:
        if share >= HEAVY and pp % 2 == microbatches % 2 == 0 and two_copies <= wanted.device_bytes:
            return "dualpipe", f"{hides}, and two copies fit ({two_copies / 1e9:.1f} GB)"
        why = "a second copy does not fit" if share >= HEAVY else "it is not worth a second copy"
        return "dualpipev", f"{hides}; {why}"
    if microbatches >= 2 * pp - 1:
        return "zbv", "no all-to-all to hide: the smallest bubble with one copy"
    if microbatches >= pp:
        return "zb_h1", f"{number_of(microbatches, 'microbatch')} are too few for ZBV on {number_of(pp, 'rank')}"
    return "one_f_one_b", f"{number_of(microbatches, 'microbatch')} are fewer than the {number_of(pp, 'stage')}"
