"""Which pipeline schedule: what decides is the all-to-all to be hidden and the memory of a second copy.

Asked where a pipeline is the quickest by far, and judged for the degrees that the advice itself has.
"""

from __future__ import annotations

import functools

from conformance.checks import Judge, Subject, claim
from conformance.choose.configurations import Configuration, draw, shared, slow_between_nodes
from conformance.choose.judging import Advice, impossible, is_piped, judge_each
from conformance.choose.test_placement import ADVISE

FEW = 12
HEAVY, LIGHT = 1.0, 0.2  # of the computation
ROOM = 2.5  # copies of the states that have room, where one copy too many is no question


def _piped(advice: Advice | None) -> bool:
    return advice is not None and is_piped(advice) and advice["schedule"] != ""


def _even(given: Configuration, advice: Advice) -> bool:
    """Whether DualPipe is legal: N and M even, M >= 2N."""
    pp, microbatches = advice["pp"], given["num_microbatches"]
    return bool(pp % 2 == 0 and microbatches % 2 == 0 and microbatches >= 2 * pp)


def _has_room(given: Configuration, advice: Advice) -> bool:
    """Whether two copies fit under the advice, with a tenth of a device left beside them."""
    sharing = given["world_size"] / advice["tp"] / advice["pp"]
    copy = shared(advice["stage"], sharing) * given["num_parameters"] / advice["tp"] / advice["pp"]
    return bool(2 * copy + 2 * given["activation_bytes"] <= 0.9 * given["device_bytes"])


def _crowded(given: Configuration) -> Configuration:
    """Devices of which 1/N of all states are two thirds: no room for a second copy, whatever is sharded."""
    return {
        **given,
        "device_bytes": 1.5 * 16 * given["num_parameters"] / given["world_size"],
        "activation_bytes": 0.02 * given["device_bytes"],
    }


def _judged(given: Configuration, advice: Advice | None) -> bool:
    """Whether DualPipe is the answer: with the degrees advised it is legal and has room. Of no degree it may be."""
    if advice is None or not _piped(advice):
        return False
    if advice["pp"] is None or advice["tp"] is None:
        return bool(advice["schedule"] == "dualpipe")
    return _even(given, advice) and _has_room(given, advice)


def _has_enough(given: Configuration, advice: Advice) -> bool:
    """Whether DualPipeV is legal: M >= 2N. Not known of a pipeline without a degree."""
    return advice["pp"] is not None and bool(given["num_microbatches"] >= 2 * advice["pp"])


def _without_pipelines(judge: Judge, given: list[Configuration], answers: list[Advice | None]) -> None:
    """Who advises no pipeline, or none that can be, has said nothing of its schedule, right or wrong."""
    if not any(_piped(advice) and not impossible(found, advice) for found, advice in zip(given, answers, strict=True)):
        judge.not_provided("it advises no pipeline that this is about, or names no schedule, where all else is slow")


@claim("choose.dualpipe", provides=ADVISE)
def test_a_heavy_all_to_all_is_hidden_where_two_copies_fit(subject: Subject, judge: Judge) -> None:
    def fault(given: Configuration, advice: Advice | None) -> str:
        if not _judged(given, advice) or (advice and advice["schedule"] == "dualpipe"):
            return ""
        return "as long an all-to-all as the computation stays in the open"

    given = draw(functools.partial(slow_between_nodes, copies=ROOM, share=HEAVY), judge.seed, FEW)
    given = [{**found, "device_bytes": ROOM * found["device_bytes"]} for found in given]
    answers = judge_each(
        subject,
        judge,
        given,
        fault,
        condition="experts' all-to-all takes as long as the computation, two copies fit, and N and M allow it, on 128 "
        "and on 256 devices",
        expected="DualPipe",
        decided_by="all_to_all_share",
    )
    judged = [found if _judged(*found) else (found[0], None) for found in zip(given, answers, strict=True)]
    _without_pipelines(judge, given, [advice for _, advice in judged])


@claim("choose.dualpipe", provides=ADVISE)
def test_a_dense_model_has_nothing_to_hide(subject: Subject, judge: Judge) -> None:
    def fault(given: Configuration, advice: Advice | None) -> str:
        if advice is not None and advice["schedule"] == "dualpipe":
            return "two copies of the parameters, and no all-to-all to hide"
        return ""

    given = [
        {**found, "world_size": found["world_size"] * nodes, "num_parameters": found["num_parameters"] * nodes}
        for found in draw(functools.partial(slow_between_nodes, copies=ROOM), judge.seed, FEW // 2)
        for nodes in (1, 8)  # up to thousands of devices: their number is no reason
    ]
    answers = judge_each(
        subject,
        judge,
        given,
        fault,
        condition="there is no all-to-all, on 128 to 2048 devices",
        expected="no DualPipe",
    )
    _without_pipelines(judge, given, answers)


@claim("choose.dualpipe", provides=ADVISE)
def test_no_second_copy_where_there_is_no_room(subject: Subject, judge: Judge) -> None:
    def fault(given: Configuration, advice: Advice | None) -> str:
        return "a second copy does not fit" if advice is not None and advice["schedule"] == "dualpipe" else ""

    given = [_crowded(found) for found in draw(functools.partial(slow_between_nodes, share=HEAVY), judge.seed, FEW)]
    answers = judge_each(
        subject,
        judge,
        given,
        fault,
        condition="1/N of all states are two thirds of a device",
        expected="no DualPipe",
    )
    _without_pipelines(judge, given, answers)


@claim("choose.dualpipev", provides=ADVISE)
def test_one_copy_hides_an_all_to_all_where_two_do_not_fit(subject: Subject, judge: Judge) -> None:
    def fault(given: Configuration, advice: Advice | None) -> str:
        if advice is None or not _piped(advice):
            return ""
        if advice["schedule"] == "dualpipe":
            return "a second copy does not fit, of whatever degree the pipeline is, and one copy hides as much"
        if advice["schedule"] == "dualpipev" or not _has_enough(given, advice):
            return ""
        return "an all-to-all stays in the open that one copy can hide"

    given = [
        _crowded(found)
        for share in (HEAVY, LIGHT)
        for found in draw(functools.partial(slow_between_nodes, share=share), judge.seed, FEW)
    ]
    answers = judge_each(
        subject,
        judge,
        given,
        fault,
        condition="there is an all-to-all to hide, two copies do not fit and M >= 2N",
        expected="DualPipeV",
        decided_by="all_to_all_share",
    )
    _without_pipelines(judge, given, answers)


@claim("choose.dualpipev", provides=ADVISE)
def test_zero_bubble_schedules_suit_dense_models_better(subject: Subject, judge: Judge) -> None:
    def fault(given: Configuration, advice: Advice | None) -> str:
        if advice is not None and advice["schedule"] == "dualpipev":
            return "without all-to-all ZBV has the smaller bubble, with as much memory"
        return ""

    given = draw(slow_between_nodes, judge.seed, FEW)
    answers = judge_each(
        subject,
        judge,
        given,
        fault,
        condition="there is no all-to-all",
        expected="another schedule than DualPipeV",
    )
    _without_pipelines(judge, given, answers)
