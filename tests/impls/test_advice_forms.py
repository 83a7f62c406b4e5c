"""Advice is understood in the forms in which it is given, and what cannot be understood is not taken for a guess."""

from __future__ import annotations

import dataclasses
import enum
from types import SimpleNamespace
from typing import Any

import pytest

from impls.advice_forms import read
from impls.normalise import UnusableResult
from impls.reference.advisor import advise

WHOLE: dict[str, Any] = {"stage": "ddp", "dp": 1, "tp": 1, "pp": 1, "schedule": ""}
TEXT = WHOLE | {"dp": 0}


class Strategy(enum.Enum):
    SHARDED = "FSDP"
    ZERO_1 = 1


@pytest.mark.parametrize(
    ("answer", "meant"),
    [
        ("DDP", TEXT),
        ("FSDP (ZeRO-3)", TEXT | {"stage": "3"}),
        ("ZeRO stage 2", TEXT | {"stage": "2"}),
        ("tensor parallelism", TEXT | {"tp": None}),
        ("Pipeline", TEXT | {"pp": None}),
        ("DualPipeV", TEXT | {"pp": None, "schedule": "dualpipev"}),
        ("FSDP + TP", TEXT | {"stage": "3", "tp": None}),
        ("ZeRO-1 with tensor and pipeline parallelism", TEXT | {"stage": "1", "tp": None, "pp": None}),
        (Strategy.SHARDED, TEXT | {"stage": "3"}),
        (Strategy.ZERO_1, TEXT | {"stage": "1"}),
        ({"strategy": Strategy.SHARDED, "tp": 8}, WHOLE | {"stage": "3", "tp": 8}),
        ({"strategy": "tensor"}, WHOLE | {"tp": None}),
        ({"strategy": "tensor", "tensor_parallel": 4}, WHOLE | {"tp": 4}),
        ({"stage": 1, "pp": 4, "schedule": "1F1B"}, WHOLE | {"stage": "1", "pp": 4, "schedule": "one_f_one_b"}),
        ({"tp": 8}, WHOLE | {"tp": 8}),
        (SimpleNamespace(stage="ddp", name="my first plan"), WHOLE),
        (None, None),
    ],
)
def test_an_answer_is_read_in_every_form(answer: Any, meant: Any) -> None:
    assert read(answer) == meant


@pytest.mark.parametrize("answer", [("FSDP", {"tp": 8}), {"plan": "FSDP"}, 3.5, "whatever fits", "FSDP + magic"])
def test_what_is_not_understood_is_said(answer: Any) -> None:
    with pytest.raises(UnusableResult, match=r"advise answered .*it should"):
        read(answer)


def test_the_references_advice_is_read_as_it_is_meant() -> None:
    found = advise(num_parameters=70e9, num_layers=80, world_size=64, device_bytes=80e9)
    assert found is not None
    assert read(found) == {key: getattr(found, key) for key in WHOLE}
    assert read(dataclasses.asdict(found)) == read(found)
