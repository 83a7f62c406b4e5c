"""Records as large as wanted, with the ledger's own claims: what reports are measured with."""

from __future__ import annotations

from conformance.ledger import Ledger
from conformance.verdict import ImplInfo, RankReport, Record, Result, Text, Tier, Verdict, Witness

_IMPLS = ("reference", "torch", "mine", "theirs")
_BROKEN = 20  # every so many results is broken, with ranks and a hint
_HINT = Text(
    en="Compare the slices that each rank updates. " * 4, fa="برش‌هایی را که هر رتبه به‌روز می‌کند مقایسه کنید. " * 4
)


def record(num_results: int, *, run: str = "benchmark", impls: tuple[str, ...] = _IMPLS) -> Record:
    """Return the record of a run with so many results, spread over all claims, the implementations and three tiers."""
    claims = tuple(Ledger.load().claims.values())
    results = tuple(_result(number, claims[number % len(claims)].id, impls) for number in range(num_results))
    return Record(
        suite={"name": "lockstep", "version": "0.1", "git": "benchmark"},
        run={"id": run, "started": "", "duration_s": 1.0, "exit_status": 1, "command": "pytest", "seed": 0},
        environment={"python": "", "torch": "", "backend": "gloo", "os": "", "cpus": 2, "world_sizes": [2, 3, 4]},
        impls=tuple(ImplInfo(name=name, path=run, sha256="", blocks=()) for name in impls),
        claims=claims,
        results=results,
        collected=len(results),
    )


def _result(number: int, claim: str, impls: tuple[str, ...]) -> Result:
    is_broken = number % _BROKEN == 0
    case = f"test_a_ring_sends_its_chunks[{number}-ring_allreduce]"
    return Result(
        claim=claim,
        case=case,
        tier=list(Tier)[number % 3],
        impl=impls[number // 7 % len(impls)],
        verdict=Verdict.VIOLATED if is_broken else Verdict.HOLDS,
        duration_s=0.1,
        message="rank 1 sent 5,592,405 bytes too many" if is_broken else "sums that depend on the order of addition",
        expected="25,165,824",
        observed="33,554,432" if is_broken else "25,165,824",
        unit="bytes",
        witness=Witness.WIRE.value,
        examples=4,
        hint=_HINT if is_broken else Text(en="", fa=""),
        ranks=tuple(RankReport(rank=rank, ending="returned", output="said\n" * 20) for rank in range(4 * is_broken)),
        rerun=f"pytest 'conformance/collectives/test_bytes.py::{case}' --report=reports/rerun",
    )
