"""A record such as a real run makes: three implementations, every verdict, two failure modes, one plot."""

from __future__ import annotations

import hashlib

from conformance.verdict import (
    ImplInfo,
    RankReport,
    Record,
    Result,
    ScenarioStory,
    Text,
    Tier,
    Verdict,
    Waiting,
    Witness,
)
from tests.reports.sample_claims import CLAIMS

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31mred\x1b]0;title\x07\x00 \u202egnp.exe\u202c \ud800"
)

TENSOR_BYTES = 16 * 2**20
WORLD_SIZES = (2, 3, 4, 5, 8)

IMPLS = ("reference", "torch", "mine")


def _impl(name: str, blocks: tuple[str, ...]) -> ImplInfo:
    path = f"impls/{name}" if name != "mine" else "../homework/ddp.py"
    return ImplInfo(name=name, path=path, sha256=hashlib.sha256(name.encode()).hexdigest(), blocks=blocks)


def result(
    claim_id: str,
    impl: str,
    verdict: Verdict = Verdict.HOLDS,
    *,
    case: str = "world_size=4",
    tier: Tier = Tier.CORE,
    **evidence: object,
) -> Result:
    spoken = {Verdict.HOLDS, Verdict.VIOLATED, Verdict.DEVIATES}
    defaults: dict[str, object] = {
        "message": "",
        "expected": "equal on all ranks" if verdict in spoken else "",
        "observed": "equal on all ranks" if verdict is Verdict.HOLDS else "",
        "witness": Witness.VALUE.value if verdict in spoken else "",
        "examples": 1 if verdict in spoken else 0,
        "duration_s": 0.42,
        "rerun": f"pytest --impl={impl} --claim='{claim_id}' -k '{case}'",
    }
    values: dict[str, object] = {**defaults, **evidence}
    return Result(claim=claim_id, case=case, tier=tier, impl=impl, verdict=verdict, **values)  # type: ignore[arg-type]


def ring_results(impl: str, sends: float) -> list[Result]:
    """One case for each world size; ``sends`` is how many times the formula the implementation sends."""
    found = []
    for size in WORLD_SIZES:
        formula = 2 * TENSOR_BYTES * (size - 1) // size
        observed = int(formula * sends)
        verdict = Verdict.HOLDS if observed == formula else Verdict.VIOLATED
        found.append(
            result(
                "collectives.ring.bytes",
                impl,
                verdict,
                case=f"world_size={size}",
                expected=f"{formula:,}",
                observed=f"{observed:,}",
                unit="bytes",
                witness=Witness.TRACE.value,
                message="" if verdict is Verdict.HOLDS else f"rank 1 sent {observed - formula:,} bytes too many.",
                data={"plot": "ring-bytes", "points": [{"x": size, "observed": observed, "formula": formula}]},
            )
        )
    return found


def results() -> list[Result]:
    found: list[Result] = []
    for impl in ("reference", "torch", "mine"):
        found += [result("collectives.values.allreduce", impl, case=f"world_size={n}", examples=200) for n in (2, 3)]
        found += [
            result("collectives.values.allreduce", impl, tier=Tier.EXOTIC, case=f"dtype={dtype}", examples=50)
            for dtype in ("bfloat16", "int64")
        ]
        found.append(result("loop.same-init", impl))
        found += [
            result(open_claim, impl, Verdict.NOT_CHECKED, case="", rerun="", duration_s=0.0)
            for open_claim in (
                "collectives.ring.use",
                "strategies.tensor.traffic",
                "faq.dualpipe-under-1000",
                "pipeline.gpipe.bubble",
                "memory.adam-states",
            )
        ]
    found += ring_results("reference", 1.0) + ring_results("mine", 4 / 3)
    found.append(
        result(
            "collectives.ring.bytes",
            "torch",
            Verdict.NOT_PROVIDED,
            message="The library's own all-reduce ran; values are judged, sends are not.",
        )
    )
    found += [result("collectives.agreement", impl) for impl in ("reference", "torch")]
    found.append(
        result(
            "collectives.agreement",
            "mine",
            Verdict.VIOLATED,
            tier=Tier.EXOTIC,
            case="dtype=float16",
            expected="the same bits on ranks 0, 1, 2, 3",
            observed="rank 2 differs at index 17: 0.1000 against 0.0999",
            message="Rank 2 adds in another order than the others.",
        )
    )
    found.append(result("collectives.agreement", "mine", case="world_size=3"))
    found += [
        result("collectives.ring.steps", "reference", expected="6", observed="6", unit="steps", witness="trace"),
        result("collectives.ring.steps", "torch", Verdict.NOT_PROVIDED),
        result("collectives.ring.steps", "mine", Verdict.BLOCKED, blocked_by="collectives.ring.bytes"),
        result("collectives.tree.bytes", "reference", expected="2 T", observed="2 T", witness="wire"),
        result("collectives.tree.bytes", "torch", Verdict.NOT_PROVIDED),
        result("collectives.tree.bytes", "mine", Verdict.INCONCLUSIVE, message="This machine has no /proc/PID/io."),
        result("loop.construct-broadcast", "reference"),
        result("loop.construct-broadcast", "reference", tier=Tier.CONTRACT, case="buffers"),
        result("loop.construct-broadcast", "torch"),
        result("loop.construct-broadcast", "torch", tier=Tier.CONTRACT, case="buffers"),
        result(
            "loop.construct-broadcast",
            "mine",
            Verdict.HANGS,
            expected="all ranks return",
            observed="ranks 0, 1 and 3 never came back",
            witness=Witness.HANG.value,
            message="ranks 0, 1, 3 wait in broadcast #2 (64 floats, ../homework/ddp.py:38); rank 2 finished its "
            "program without entering it.",
            timeline="loop.construct-broadcast-mine.json",
            ranks=tuple(
                RankReport(
                    rank=rank,
                    ending="returned" if rank == 2 else "hung",
                    detail=""
                    if rank == 2
                    else 'File "../homework/ddp.py", line 38, in __init__\n    dist.broadcast(p.data, 0)',
                    output="rank 2: nothing to send\n" if rank == 2 else "",
                )
                for rank in range(4)
            ),
        ),
        result("loop.mean", "reference", witness="value"),
        result("loop.mean", "reference", tier=Tier.EXOTIC, case="world_size=5"),
        result("loop.mean", "torch"),
        result(
            "loop.mean", "torch", Verdict.REFUSES, tier=Tier.EXOTIC, case="dtype=int64", message="refused on all ranks"
        ),
        result(
            "loop.mean",
            "mine",
            Verdict.CRASHES,
            message="rank 1 raised ZeroDivisionError at ../homework/ddp.py:52: division by zero",
            ranks=(
                RankReport(rank=0, ending="returned"),
                RankReport(rank=1, ending="raised ZeroDivisionError", detail="Traceback (most recent call last): …"),
            ),
        ),
        result("loop.step", "reference", expected="spread < 1e-3", observed="0", witness="value"),
        result("loop.step", "torch", Verdict.LOST, message="Worker gw2 died in this check."),
        result("loop.step", "mine", Verdict.BLOCKED, blocked_by="loop.mean"),
        result("strategies.ddp.link", "reference", expected="> 0.5", observed="0.71", witness="clock"),
        result(
            "strategies.ddp.link",
            "torch",
            Verdict.DEVIATES,
            expected="first bucket 25 MB",
            observed="first bucket 1 MiB",
            witness="trace",
            message="Declared: the first bucket is small so that communication starts early.",
        ),
        result("strategies.ddp.link", "mine", Verdict.SUITE_ERROR, message="KeyError in the check itself."),
        result("trouble.missing-broadcast", "suite", case="", witness=Witness.TRACE.value),
        result("trouble.pipeline-send-send", "suite", case="", witness=Witness.HANG.value),
    ]
    return found


SCENARIOS = (
    ScenarioStory(
        id="missing-broadcast",
        sign="drifts",
        claim="trouble.missing-broadcast",
        title=Text(en="The ranks diverge from step one", fa="رتبه‌ها از گام اول واگرا می‌شوند"),
        symptom=Text(
            en="Losses differ between ranks already in step 0, and never come together.",
            fa="زیان‌ها از همان گام 0 بین رتبه‌ها متفاوت‌اند و هرگز به هم نمی‌رسند.",
        ),
        diagnosis=Text(
            en="Each rank built its model from its own random numbers and nothing made them equal.",
            fa="هر رتبه مدلش را با اعداد تصادفی خودش ساخت و چیزی آن‌ها را یکسان نکرد.",
        ),
        cure=Text(
            en="Broadcast parameters and buffers from rank 0 at construction.",
            fa="هنگام ساختن، پارامترها و بافرها را از رتبهٔ 0 پخش کنید.",
        ),
        verdict=Verdict.HOLDS,
        evidence=(
            "fault   value   parameter spread before step 0: 1.71",
            "fault   trace   no broadcast before the first all_reduce",
            "cured   trace   broadcast #0, #1 from rank 0 (2 parameters)",
            "cured   value   parameter spread after 4 steps: 0",
        ),
        rerun="pytest --scenario=missing-broadcast --explain",
    ),
    ScenarioStory(
        id="pipeline-send-send",
        sign="hangs",
        claim="trouble.pipeline-send-send",
        title=Text(en="The pipeline locks", fa="پایپ‌لاین قفل می‌شود"),
        symptom=Text(en="Nothing moves; no error.", fa="هیچ چیز حرکت نمی‌کند؛ خطایی هم نیست."),
        diagnosis=Text(
            en="Each stage sends first and waits for its neighbour, who sends first too.",
            fa="هر مرحله نخست می‌فرستد و منتظر همسایه‌ای می‌ماند که او هم نخست می‌فرستد.",
        ),
        cure=Text(
            en="Even ranks send first, odd ranks receive first.",
            fa="رتبه‌های زوج نخست می‌فرستند و رتبه‌های فرد نخست دریافت می‌کنند.",
        ),
        verdict=Verdict.HOLDS,
        evidence=(
            "fault   hang    rank 0 waits in send to 1; rank 1 waits in send to 0: a cycle (0.16 s)",
            "cured   trace   rank 0: send, recv; rank 1: recv, send",
        ),
        waiting=Waiting(num_ranks=2, edges=((0, 1), (1, 0))),
        rerun="pytest --scenario=pipeline-send-send --explain",
    ),
    ScenarioStory(
        id="uneven-batches",
        claim="",
        title=Text(en="The last step never ends", fa="گام آخر تمام نمی‌شود"),
        symptom=Text(en="Three ranks hang at the end.", fa="سه رتبه در پایان قفل می‌شوند."),
        diagnosis=Text(en="One has a batch less.", fa="یکی یک دسته کمتر دارد."),
        cure=Text(en="Agree on the number of steps.", fa="روی تعداد گام‌ها توافق کنید."),
        verdict=Verdict.HOLDS,
        evidence=("fault: three of four ranks hang", "cure: all of them end"),
        waiting=Waiting(num_ranks=4, edges=((0, 2), (1, 2), (3, 2)), blamed=(2,)),
        rerun="pytest --scenario=uneven-batches --explain",
    ),
)


def record(extra: tuple[Result, ...] = ()) -> Record:
    """The sample record, with ``extra`` results of a test's own."""
    all_results = (*results(), *extra)
    return Record(
        suite={"name": "Lockstep", "version": "0.1.0", "git": "c2924e2"},
        run={
            "id": "2025-03-14T09-26-53-a1b2",
            "started": "2025-03-14T09:26:53+00:00",
            "duration_s": 41.7,
            "exit_status": 1,
            "command": "pytest -n 4 --impl=reference --impl=torch --impl=../homework/ddp.py",
            "seed": 20240229,
        },
        environment={
            "python": "3.11.9",
            "torch": "2.13.0+cpu",
            "backend": "gloo",
            "os": "Linux 6.1 x86_64",
            "cpus": 2,
            "world_sizes": [1, 2, 3, 4, 5, 8],
        },
        impls=(
            _impl("reference", ("collectives", "data_parallel")),
            _impl("torch", ("collectives", "data_parallel")),
            _impl("mine", ("collectives", "data_parallel")),
            ImplInfo(name="suite", path="", sha256="", blocks=()),
        ),
        claims=CLAIMS,
        results=all_results,
        scenarios=SCENARIOS,
        collected=len(all_results),
    )
