"""A rank program that asks an implementation for advice, and how its answers are read. Imports no pytest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fixtures.world.context import RankContext

STAGES = {
    "ddp": ("ddp", "dp", "data_parallel", "none", "0", "zero0", "no_shard", "replica", "", "tensor", "pipeline"),
    "1": ("1", "zero1", "zero_1", "optimizer"),
    "2": ("2", "zero2", "zero_2", "gradients", "shard_grad_op"),
    "3": ("3", "zero3", "zero_3", "parameters", "fsdp", "full_shard", "fully_shard"),
}
DEGREES = {
    "dp": ("dp", "data_parallel", "data", "dp_size", "data_parallel_size", "dp_degree"),
    "tp": ("tp", "tensor_parallel", "tensor", "tp_size", "tensor_parallel_size", "tp_degree"),
    "pp": ("pp", "pipeline_parallel", "pipeline", "pp_size", "pipeline_parallel_size", "pp_degree"),
}
SCHEDULES = ("dualpipev", "dualpipe", "zbv", "zb_h1", "zb_h2", "interleaved_1f1b", "one_f_one_b", "gpipe")


def ask(ctx: RankContext, cases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | None]:
    """The advice for each case, with stage, degrees and schedule; None where it says that nothing fits."""
    assert ctx.impl is not None
    return [read(ctx.impl.call("advise", **case)) for case in cases]


def read(answer: Any) -> dict[str, Any] | None:
    """An answer in the contract's words. ValueError where it cannot be understood."""
    if answer is None:
        return None
    if isinstance(answer, str):
        return {"stage": _stage(answer), "dp": 0, "tp": 1, "pp": 1, "schedule": ""}
    stage = next(
        (found for name in ("stage", "zero_stage", "strategy") if (found := _get(answer, name)) is not None), ""
    )
    degrees = {
        name: int(next((found for word in words if (found := _get(answer, word)) is not None), 1))
        for name, words in DEGREES.items()
    }
    return {"stage": _stage(str(stage)), **degrees, "schedule": _schedule(str(_get(answer, "schedule") or ""))}


def _get(answer: Any, name: str) -> Any:
    return answer.get(name) if isinstance(answer, Mapping) else getattr(answer, name, None)


def _stage(text: str) -> str:
    word = text.lower().replace("-", "_").replace(" ", "_")
    for stage, words in STAGES.items():
        if word in words:
            return stage
    raise ValueError(f"advise answered {text!r} for the stage: it should be ddp, 1, 2 or 3, or a name such as fsdp")


def _schedule(text: str) -> str:
    word = text.lower().replace("-", "_").replace(" ", "_")
    plain = word.replace("_", "")
    return next((name for name in SCHEDULES if name.replace("_", "") == plain), word)
