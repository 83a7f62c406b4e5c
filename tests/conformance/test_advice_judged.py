"""What no devices can do is no advice on where to put tensor parallelism and pipelines."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.choose.judging import impossible

GIVEN: dict[str, Any] = {"world_size": 64, "num_layers": 8, "num_parameters": 40e9, "device_bytes": 80e9}


@pytest.mark.parametrize(
    ("advice", "why"),
    [
        ({"stage": "ddp", "dp": 1, "tp": 8, "pp": 1}, ""),  # 80 GB of states
        ({"stage": "ddp", "dp": 1, "tp": 4, "pp": 1}, "the states alone take 2.00 devices' memory"),
        ({"stage": "3", "dp": 16, "tp": 4, "pp": 1}, ""),
        ({"stage": "ddp", "dp": 1, "tp": 8, "pp": 16}, "there are 64 devices"),
        ({"stage": "ddp", "dp": 2, "tp": 8, "pp": 8}, "there are 64 devices"),
        ({"stage": "ddp", "dp": 1, "tp": 4, "pp": 16}, "there are 8 layers, less than stages"),
        ({"stage": "ddp", "dp": 64, "tp": 1, "pp": 1}, ""),  # judged by what is about replicas
        ({"stage": "ddp", "dp": 0, "tp": None, "pp": 1}, ""),
        (None, ""),
    ],
)
def test_a_layout_that_cannot_be_is_told(advice: dict[str, Any] | None, why: str) -> None:
    assert impossible(GIVEN, advice) == why
