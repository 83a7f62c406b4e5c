"""The advisor: memory against figures worked out by hand, the order of preference, schedules, and bad input."""

from __future__ import annotations

from typing import Any

import pytest

from impls.reference.advisor import Advice, advise
from impls.reference.advisor.layouts import combined, other_bytes, states_bytes
from impls.reference.advisor.request import request
from impls.reference.advisor.schedules import schedule_for
from impls.reference.network.steps import Layout

SEVEN: dict[str, Any] = {"num_parameters": 7e9, "num_layers": 32, "world_size": 8, "activation_bytes": 8e9}
SLOW = {"between_bandwidth": 1.25e9, "between_latency_s": 5e-5}


def found(**figures: Any) -> Advice:
    answer = advise(**figures)
    assert answer is not None
    return answer


@pytest.mark.parametrize(
    ("layout", "states", "other"),
    [
        (Layout(dp=8), 112e9, 8e9),
        (Layout(dp=8, stage="1"), 5.5 * 7e9, 8e9),
        (Layout(dp=8, stage="2"), 3.75 * 7e9, 8e9),
        (Layout(dp=8, stage="3"), 14e9, 8e9 + 3 * 2 * 7e9 / 32),
        (Layout(tp=8), 14e9, 1e9),
        (Layout(pp=8), 14e9, 8e9),  # an eighth of the layers, eight microbatches under way
        (Layout(dp=2, tp=2, pp=2, stage="1"), (4 + 6) * 7e9 / 4, 4e9),
    ],
)
def test_memory_of_a_layout_by_hand(layout: Layout, states: float, other: float) -> None:
    wanted = request(**SEVEN, device_bytes=80e9)
    assert states_bytes(wanted, layout) == pytest.approx(states)
    assert other_bytes(wanted, layout) == pytest.approx(other)


@pytest.mark.parametrize(("gigabytes", "stage"), [(121, "ddp"), (119, "1"), (46, "2"), (33, "3")])
def test_no_more_is_sharded_than_has_to_be(gigabytes: float, stage: str) -> None:
    advice = found(**SEVEN, device_bytes=gigabytes * 1e9)
    assert (advice.stage, advice.dp, advice.tp, advice.pp) == (stage, 8, 1, 1)


def test_what_fits_is_replicated_however_slow_the_links_are() -> None:
    advice = found(**(SEVEN | {"world_size": 64}), device_bytes=192e9, **SLOW)
    assert (advice.stage, advice.dp, advice.claims) == ("ddp", 64, ("choose.ddp",))


def test_over_slow_links_a_pipeline_is_quicker_than_gathering() -> None:
    figures = {"num_parameters": 70e9, "num_layers": 80, "world_size": 64, "activation_bytes": 6e9}
    assert found(**figures, device_bytes=80e9).stage == "3"
    advice = found(**figures, device_bytes=80e9, num_microbatches=16, **SLOW)
    assert advice.pp > 1
    assert "choose.pipeline" in advice.claims
    assert any("FSDP (ZeRO-3) alone would fit" in reason for reason in advice.reasons)


def test_groups_span_nodes_only_when_nothing_else_fits() -> None:
    figures = {"num_parameters": 7e9, "num_layers": 2, "world_size": 8, "ranks_per_node": 2, "tokens": 1}
    advice = found(**figures, activation_bytes=160e9, device_bytes=36e9)
    assert advice.tp == 8
    assert any("across nodes, since nothing else fits" in reason for reason in advice.reasons)


def test_nothing_that_fits_is_no_advice() -> None:
    assert advise(**SEVEN, device_bytes=1e9) is None


@pytest.mark.parametrize(
    ("share", "device_bytes", "microbatches", "schedule"),
    [
        (1.0, 80e9, 8, "dualpipe"),
        (1.0, 80e9, 9, "dualpipev"),  # an odd number of microbatches
        (1.0, 60e9, 8, "dualpipev"),  # no room for two copies
        (0.2, 80e9, 8, "dualpipev"),
        (0.0, 80e9, 8, "zbv"),
        (0.0, 80e9, 5, "zb_h1"),
        (1.0, 80e9, 3, "one_f_one_b"),
    ],
)
def test_the_schedule_hides_what_there_is_to_hide(
    share: float, device_bytes: float, microbatches: int, schedule: str
) -> None:
    figures = SEVEN | {"world_size": 4, "num_microbatches": max(4, microbatches)}
    wanted = request(**figures, device_bytes=device_bytes, all_to_all_share=share)
    (piped,) = [option for option in combined(wanted, most_tp=1) if option.layout.pp == 4]
    wanted = request(
        **(figures | {"num_microbatches": microbatches}), device_bytes=device_bytes, all_to_all_share=share
    )
    assert schedule_for(wanted, piped)[0] == schedule


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"num_layers": 0}, "num_layers is 0"),
        ({"world_size": 12}, "do not fill nodes of 8"),
        ({"device_bytes": -1}, "device_bytes is -1"),
        ({"num_parameters": float("nan")}, "num_parameters is nan"),
        ({"bandwidth": 0}, "bandwidth is 0"),
        ({"activation_bytes": -1}, "activation_bytes is -1"),
        ({"all_to_all_share": -0.5}, "all_to_all_share is -0.5"),
    ],
)
def test_figures_that_make_no_sense_are_named(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        advise(**(SEVEN | {"device_bytes": 80e9} | wrong))
