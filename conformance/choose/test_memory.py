"""What memory decides: replicas while they fit, then the optimizer's state sharded, gradients, parameters."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conformance.checks import Judge, Subject, claim
from conformance.choose.configurations import (
    Configuration,
    activations_do_not_fit,
    draw,
    fits_on_one,
    needs,
    parameters_alone_do_not_fit,
    shared,
    states_do_not_fit,
)
from conformance.choose.judging import Advice, impossible, is_piped, is_replicated, judge_each

ADVISE = ["advise"]


@claim("choose.ddp", provides=ADVISE)
def test_what_fits_on_a_device_is_replicated(subject: Subject, judge: Judge) -> None:
    def fault(given: Configuration, advice: Advice | None) -> str:
        if advice is None:
            return "it is said not to fit"
        if not is_replicated(advice) or advice["stage"] == "3":
            return "a replica fits on a device, and yet the model is cut up"
        return ""

    judge_each(
        subject,
        judge,
        draw(fits_on_one, judge.seed),
        fault,
        condition="16 bytes per parameter and the activations are less than 4/5 of a device, over any links",
        expected="plain data parallelism, the optimizer's state sharded or not",
    )


@claim("choose.ddp", provides=ADVISE)
def test_activations_count_as_well(subject: Subject, judge: Judge) -> None:
    def fault(given: Configuration, advice: Advice | None) -> str:
        if advice is not None and is_replicated(advice):
            return "one microbatch's activations are more than a device has, and sharding states does not divide them"
        return ""

    judge_each(
        subject,
        judge,
        draw(activations_do_not_fit, judge.seed),
        fault,
        condition="the states of a replica fit on a device and its activations do not",
        expected="something else than data parallelism alone",
    )


@claim("choose.ddp", provides=ADVISE)
def test_the_optimizers_states_count_as_well(subject: Subject, judge: Judge) -> None:
    def fault(given: Configuration, advice: Advice | None) -> str:
        if advice is not None and is_replicated(advice) and advice["stage"] == "ddp":
            return "parameters and gradients fit, but with the optimizer's 12 bytes per parameter they do not"
        return ""

    judge_each(
        subject,
        judge,
        draw(states_do_not_fit, judge.seed),
        fault,
        condition="4P fit on a device and 16P do not",
        expected="something else than plain data parallelism",
    )


@claim("choose.zero1", provides=ADVISE)
def test_the_optimizers_state_is_sharded_where_that_is_enough(subject: Subject, judge: Judge) -> None:
    def fault(given: Configuration, advice: Advice | None) -> str:
        if advice is None or not is_replicated(advice) or advice["stage"] == "3":
            return "4P + 12P/N would do, with the traffic of data parallelism"
        return "16P do not fit" if advice["stage"] == "ddp" else ""

    judge_each(
        subject,
        judge,
        draw(needs("1", "ddp", (4, 8, 16, 64)), judge.seed),
        fault,
        condition="16P exceed a device and 4P + 12P/N fit",
        expected="ZeRO-1",
    )


@claim("choose.zero1", provides=ADVISE)
def test_four_bytes_of_sixteen_are_not_divided(subject: Subject, judge: Judge) -> None:
    def fault(given: Configuration, advice: Advice | None) -> str:
        if advice is None or not is_replicated(advice):
            return ""
        held = shared(advice["stage"], given["world_size"]) * given["num_parameters"] / given["device_bytes"]
        return f"it takes {held:.2f} devices' memory" if held > 1 else ""

    judge_each(
        subject,
        judge,
        draw(needs("3", "1", (8, 16, 64)), judge.seed),
        fault,
        condition="16P/N fit on a device and 4P + 12P/N do not",
        expected="more than ZeRO-1",
    )


@claim("choose.zero23", provides=ADVISE)
def test_sharded_gradients_help_where_gradients_are_too_much(subject: Subject, judge: Judge) -> None:
    def fault(given: Configuration, advice: Advice | None) -> str:
        if advice is None:
            return "2P + 14P/N would do"
        return "4P + 12P/N do not fit" if is_replicated(advice) and advice["stage"] in ("ddp", "1") else ""

    judge_each(
        subject,
        judge,
        draw(needs("2", "1", (64, 256)), judge.seed),
        fault,
        condition="4P + 12P/N exceed a device and 2P + 14P/N fit",
        expected="ZeRO-2 or more",
    )


@claim("choose.zero23", provides=ADVISE)
def test_stage_2_is_no_help_against_parameters(subject: Subject, judge: Judge) -> None:
    def fault(given: Configuration, advice: Advice | None) -> str:
        if advice is not None and is_replicated(advice) and advice["stage"] != "3":
            return "every rank would hold all parameters, which alone exceed a device"
        return impossible(given, advice)

    judge_each(
        subject,
        judge,
        draw(parameters_alone_do_not_fit, judge.seed),
        fault,
        condition="2P alone exceed a device",
        expected="ZeRO-3, or a model cut up otherwise",
    )


@claim("choose.fsdp", provides=ADVISE)
def test_what_fits_only_in_shards_is_fully_sharded(subject: Subject, judge: Judge) -> None:
    def fault(given: Configuration, advice: Advice | None) -> str:
        if advice is None:
            return "16P/N and the gathered layers would fit"
        return "" if advice["stage"] == "3" else "it is not fully sharded"

    judge_each(
        subject,
        judge,
        draw(needs("3", "2", (16, 32, 64)), judge.seed),
        fault,
        condition="16P exceed a device, 2P + 14P/N as well, 16P/N with the gathered layers fit, and quick links hide "
        "the gathering behind 8192 tokens",
        expected="FSDP",
    )


NEEDLESS: list[tuple[str, str, Callable[[Advice], bool]]] = [
    ("choose.fsdp", "parameters are sharded", lambda advice: bool(advice["stage"] == "3")),
    (
        "choose.zero23",
        "parameters are sharded or the model is cut up",
        lambda advice: bool(advice["stage"] == "3" or not is_replicated(advice)),
    ),
    ("choose.tensor", "matrices are cut up", lambda advice: bool(advice["tp"] != 1)),
    ("choose.pipeline", "layers are put into stages", is_piped),
]


@pytest.mark.parametrize(
    ("what", "is_advised"),
    [
        pytest.param(what, is_advised, id=name, marks=claim(name, provides=ADVISE))
        for name, what, is_advised in NEEDLESS
    ],
)
def test_what_a_device_has_room_for_wants_none_of_it(
    subject: Subject, judge: Judge, what: str, is_advised: Callable[[Advice], bool]
) -> None:
    def fault(given: Configuration, advice: Advice | None) -> str:
        if advice is None:
            return "it is said not to fit"
        return f"a replica fits on a device, and yet {what}" if is_advised(advice) else ""

    judge_each(
        subject,
        judge,
        draw(fits_on_one, judge.seed),
        fault,
        condition="16 bytes per parameter and the activations are less than 4/5 of a device, over any links",
        expected="plain data parallelism, the optimizer's state sharded or not",
    )
