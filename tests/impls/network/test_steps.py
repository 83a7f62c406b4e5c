"""Steps of described models: the timeline, overlap, and placement on two levels."""

from __future__ import annotations

import dataclasses

import pytest

from impls.reference.network.formulas import ring_time
from impls.reference.network.links import Cluster, Link
from impls.reference.network.presets import PRESETS, cluster
from impls.reference.network.steps import Layout, Workload, _makespan, compute_s, step_time, tensor_parallel_time
from impls.reference.network.timeline import Compute, Start, Wait, simulate
from impls.reference.pipeline.costs import Costs
from impls.reference.pipeline.schedules import one_f_one_b
from impls.reference.pipeline.simulate import simulate as simulate_schedule

WORK = Workload(num_parameters=7e9, num_layers=32, hidden=4096, tokens=4096)
NODE = cluster("nvlink4", "ib-ndr", 8)


def test_what_is_started_early_is_hidden() -> None:
    found = simulate([Start("a", 2.0), Compute(3.0), Wait("a"), Start("b", 1.0), Wait("b")])
    assert (found.total_s, found.compute_s, found.exposed_s) == (4.0, 3.0, 1.0)
    assert found.hidden == pytest.approx(2 / 3)


def test_collectives_of_a_stream_wait_for_each_other_and_those_of_another_do_not() -> None:
    assert simulate([Start("a", 2.0), Start("b", 2.0), Wait("b")]).total_s == 4.0
    assert simulate([Start("a", 2.0, "x"), Start("b", 2.0, "y"), Wait("b")]).total_s == 2.0


def test_a_wait_for_what_was_not_started_is_an_error() -> None:
    with pytest.raises(ValueError, match="waits for 'b', which was not started"):
        simulate([Start("a", 1.0), Wait("b")])


def test_one_rank_computes_and_does_nothing_else() -> None:
    found = step_time(WORK, Layout(), NODE)
    assert found.total_s == pytest.approx(6 * 7e9 * 4096 / 2e14) == pytest.approx(found.compute_s)


def test_data_parallel_traffic_hides_but_for_the_last_layer() -> None:
    found = step_time(WORK, Layout(dp=8), NODE)
    link = NODE.inside
    last = ring_time(2 * 7e9 / 32, 8, link.latency_s, link.bandwidth)
    assert found.exposed_s == pytest.approx(last)
    assert found.communication_s == pytest.approx(32 * last)


def test_over_slow_links_nothing_of_it_hides() -> None:
    found = step_time(WORK, Layout(dp=8), cluster("nvlink4", "eth10", 1))
    assert found.total_s > 10 * found.compute_s


def test_fully_sharded_gathers_twice_and_scatters_once() -> None:
    plain, sharded = (step_time(WORK, Layout(dp=8, stage=stage), NODE) for stage in ("ddp", "3"))
    assert sharded.communication_s == pytest.approx(1.5 * plain.communication_s)


def test_tensor_parallel_waits_for_four_all_reduces_per_layer() -> None:
    found = step_time(WORK, Layout(tp=8), NODE)
    one = ring_time(2 * 4096 * 4096, 8, NODE.inside.latency_s, NODE.inside.bandwidth)
    assert found.exposed_s == pytest.approx(4 * 32 * one) == pytest.approx(found.communication_s)


def test_a_group_within_a_node_is_quicker_than_one_that_spans_two() -> None:
    inside, spanning = (step_time(WORK, Layout(tp=8), dataclasses.replace(NODE, ranks_per_node=n)) for n in (8, 4))
    assert spanning.total_s > inside.total_s
    even = Cluster.flat(Link(latency_s=1e-6, bandwidth=1e11))
    same = [step_time(WORK, Layout(tp=8), dataclasses.replace(even, ranks_per_node=n)).total_s for n in (8, 4)]
    assert same[0] == same[1]


def test_the_closed_form_of_a_group_is_that_of_the_simulated_layers() -> None:
    figures = (NODE.inside.latency_s, NODE.inside.bandwidth, NODE.between.latency_s, NODE.between.bandwidth)
    simulated = step_time(WORK, Layout(tp=8), NODE).exposed_s
    assert tensor_parallel_time(2 * 4096 * 4096, 32, 8, 8, *figures) == pytest.approx(simulated)


def test_a_pipeline_idles_as_long_as_its_schedule() -> None:
    work = dataclasses.replace(WORK, num_microbatches=8)
    free = Cluster.flat(Link(latency_s=0, bandwidth=1e30))
    found = step_time(work, Layout(pp=4), free)
    assert found.total_s == pytest.approx((8 + 4 - 1) * compute_s(work, Layout(pp=4)))


def test_more_stages_than_layers_are_refused() -> None:
    with pytest.raises(ValueError, match="pp is 64, but there are 32 layers"):
        step_time(WORK, Layout(pp=64), NODE)


def test_four_thousand_ranks_are_no_more_work() -> None:
    layout = Layout(dp=64, tp=8, pp=8, stage="1")
    assert layout.num_ranks == 4096
    assert step_time(dataclasses.replace(WORK, num_microbatches=32), layout, NODE).total_s > 0


def test_every_link_says_where_it_is_from() -> None:
    assert all("latency" in preset.source for preset in PRESETS.values())
    with pytest.raises(ValueError, match="there is no link 'nvlink9'; choose one of nvlink5"):
        cluster("nvlink9")


@pytest.mark.parametrize(("num_stages", "num_microbatches"), [(4, 33), (8, 64), (3, 100), (8, 5)])
@pytest.mark.parametrize("latency", [0.0, 0.1, 0.7, 3.0])
def test_a_long_step_is_as_if_all_of_it_were_simulated(num_stages: int, num_microbatches: int, latency: float) -> None:
    costs = Costs(forward=1 / 3, backward=2 / 3, latency=latency)
    whole = simulate_schedule(one_f_one_b(num_stages, num_microbatches), costs).makespan
    assert _makespan(num_stages, num_microbatches, latency) == pytest.approx(float(whole))
