"""An advisor's answer in the contract's words: a mapping, an object with attributes, an enum's member, or a text.

    read({"strategy": "FSDP", "tp": 8})   {"stage": "3", "dp": 1, "tp": 8, "pp": 1, "schedule": ""}
    read("ZeRO-1 + pipeline")             {"stage": "1", "dp": 0, "tp": 1, "pp": None, "schedule": ""}

A degree is None where the answer names the strategy and says no degree: then it is more than 1, and nobody knows what.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from typing import Any

from impls.normalise import UnusableResult

Advice = dict[str, Any]

STAGES: Mapping[str, tuple[str, ...]] = {  # all words in lower case, without hyphens and spaces
    "ddp": (
        *("ddp", "dp", "dataparallel", "distributeddataparallel", "none", "0", "zero0", "noshard", "replica"),
        *("replicas", "replicate", ""),
    ),
    "1": ("1", "zero1", "zerostage1", "stage1", "optimizer"),
    "2": ("2", "zero2", "zerostage2", "stage2", "gradients", "shardgradop"),
    "3": (
        *("3", "zero3", "zerostage3", "stage3", "parameters", "fsdp", "fsdp2", "fullshard", "fullyshard"),
        *("fullysharded", "fullyshardeddataparallel"),
    ),
}
SPLITS: Mapping[str, tuple[str, ...]] = {
    "tp": ("tp", "tensor", "tensorparallel"),
    "pp": ("pp", "pipeline", "pipelineparallel"),
}
SCHEDULES = ("dualpipev", "dualpipe", "zbv", "zb_h1", "zb_h2", "interleaved_1f1b", "one_f_one_b", "gpipe")
DEGREES: Mapping[str, tuple[str, ...]] = {
    "dp": ("dp", "data_parallel", "data", "dp_size", "data_parallel_size", "dp_degree"),
    "tp": ("tp", "tensor_parallel", "tensor", "tp_size", "tensor_parallel_size", "tp_degree"),
    "pp": ("pp", "pipeline_parallel", "pipeline", "pp_size", "pipeline_parallel_size", "pp_degree"),
}
NAMES = ("stage", "zero_stage", "strategy", "name")  # under which the strategy is named
_JOINTS = re.compile(r"[+,&/]|\bwith\b|\band\b")


def read(answer: Any) -> Advice | None:
    """Stage, degrees and schedule; None where nothing fits. `UnusableResult` for what cannot be understood."""
    if answer is None:
        return None
    if isinstance(answer, str | enum.Enum):
        return {"dp": 0, "tp": 1, "pp": 1, "schedule": "", **_named(_text(answer))}
    name = _first(answer, NAMES)
    degrees = {key: degree for key, words in DEGREES.items() if (degree := _first(answer, words)) is not None}
    if name is None and not degrees:
        raise UnusableResult(
            f"advise answered {answer!r}: it should have a stage (ddp, 1, 2 or 3) and the degrees dp, tp and pp, or be "
            "the name of a strategy"
        )
    schedule = _get(answer, "schedule")
    advice: Advice = {"stage": "ddp", "dp": 1, "tp": 1, "pp": 1, "schedule": ""}
    advice |= {} if name is None else _named(_text(name))
    advice |= {key: int(degree) for key, degree in degrees.items()}
    advice |= {} if schedule is None else {"schedule": _schedule(_text(schedule))}
    return advice


def _named(text: str) -> Advice:
    """What a text says: ``FSDP``, ``ZeRO-1 + tensor parallel``, ``DualPipeV``."""
    found: Advice = {"stage": "ddp"}
    for part in _JOINTS.split(re.sub(r"\(.*?\)", "", text.lower())):
        word = _plain(part)
        stage = next((stage for stage, words in STAGES.items() if word in words), None)
        split = next((split for split, words in SPLITS.items() if word in words), None)
        if stage is not None:
            found["stage"] = stage
        elif split is not None:
            found[split] = None
        elif _schedule(part) in SCHEDULES:
            found |= {"pp": None, "schedule": _schedule(part)}
        else:
            raise UnusableResult(
                f"advise answered {text!r} for the stage: it should be ddp, 1, 2 or 3, or a name such as fsdp"
            )
    return found


def _schedule(text: str) -> str:
    """The schedule's name as in block `schedules`; another name as it is."""
    other = {"1f1b": "one_f_one_b", "interleaved": "interleaved_1f1b", "zerobubble": "zb_h1"}
    word = _plain(text)
    return other.get(word) or next((name for name in SCHEDULES if name.replace("_", "") == word), text.strip().lower())


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower().removesuffix("ism"))


def _text(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return value.value if isinstance(value.value, str) else value.name
    return str(value)


def _first(answer: Any, names: tuple[str, ...]) -> Any:
    return next((found for name in names if (found := _get(answer, name)) is not None), None)


def _get(answer: Any, name: str) -> Any:
    return answer.get(name) if isinstance(answer, Mapping) else getattr(answer, name, None)
