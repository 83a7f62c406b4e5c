"""The advice is ZBV with 16 stages for every model."""

from __future__ import annotations

from impls.mutants import _one_answer

BREAKS = (
    "choose.ddp",
    "choose.fsdp",
    "choose.zero1",
    "choose.zero23",
    "choose.tensor",
    "choose.pipeline",
    "choose.dualpipe",
    "choose.dualpipev",
)

advise = _one_answer.scheduled_by("zbv")
