"""Two nodes of two GPUs, and three jobs of 10 epochs at 10 s on a share of a GPU, 5 s on one, 2 s on both nodes.

Jobs 0 and 1 come at 0, job 2 comes at 40. Job 0 takes a quarter of GPU 0 of node 0, job 1 half of it. At 40 both have
done 4 epochs: job 0 moves to a GPU of its own on node 0 and needs 30 s more, job 1 goes on with half of the shared GPU
and needs 60 s more, and job 2 waits. At 70 job 2 waits still, since it wants both nodes; it has them from 100 to 120.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from crowded import Whatever
from gpusched_env.model import Configuration, EpochDistribution, GpuType, Instance, Job, Node
from gpusched_env.rendering import gantt_figure, gantt_rgb, render_text
from gpusched_env.rendering.plotting import LineCollection
from gpusched_env.rendering.timeline import Timeline
from gpusched_env.simulator import State, simulate
from gpusched_env.simulator import layout as at
from instances import random_instance

ONE, BOTH = Configuration("A", 1), Configuration("A", 2, nodes=2)
QUARTER, HALF = Configuration("A", 1, share=0.25), Configuration("A", 1, share=0.5)
CONFIGURATIONS = (ONE, QUARTER, HALF, BOTH)


@dataclass(frozen=True)
class Script:
    name: str = "script"
    preemption: bool = True

    def decide(self, view, rng):
        now = view.now_s
        wanted = {0: QUARTER if now < 40.0 else ONE, 1: HALF, 2: BOTH}
        for job in view.active.tolist():
            view.place(job, CONFIGURATIONS.index(wanted[job]))


def instance():
    certain = EpochDistribution.from_masses([1.0])
    seconds = {ONE: 5.0, QUARTER: 10.0, HALF: 10.0, BOTH: 2.0}
    jobs = [Job(time, 1000.0, 0.01, 10.0, certain, 10.0, seconds) for time in (0.0, 0.0, 40.0)]
    return Instance.from_jobs([GpuType("A", 100.0, 100.0, 16.0)], [Node("A", 2)] * 2, jobs, CONFIGURATIONS)


def run():
    return simulate(instance(), Script())


def state_in_round(number, *, commit=False, review_s=None):
    state, rng = State(instance(), review_s=review_s), np.random.default_rng(0)
    for round_ in range(number):
        state.advance()
        state.begin_round(preemption=True)
        if round_ < number - 1 or commit:
            Script().decide(state.view, rng)
            state.commit_round()
    return state


def bars(timeline):
    return [(bar.job, bar.node, bar.runs, bar.start_s, bar.end_s) for bar in timeline.bars]


EXPECTED = [
    (0, 0, ((1.0, 0.25),), 0.0, 40.0),
    (1, 0, ((1.25, 0.5),), 0.0, 100.0),
    (0, 0, ((0, 1),), 40.0, 70.0),
    (2, 0, ((0, 2),), 100.0, 120.0),
    (2, 1, ((0, 2),), 100.0, 120.0),
]


def test_jobs_on_a_shared_gpu_have_a_part_of_its_lane_and_a_job_on_several_nodes_has_a_bar_on_each():
    assert bars(Timeline.of(run())) == EXPECTED


def test_busy_gpus_count_a_shared_one_once_and_waiting_jobs_count_once():
    times, busy, waiting = Timeline.of(run()).usage()
    assert times.tolist() == [0.0, 40.0, 70.0, 100.0, 120.0]
    assert busy.tolist() == [1, 2, 1, 4, 0]
    assert waiting.tolist() == [0, 1, 1, 0, 0]


def test_a_gpu_is_busy_without_a_break_while_those_who_share_it_come_and_go():
    """Job 0 has a quarter from 0 to 100, job 1 from 50 to 150, job 2 from 150 to 250, and from 300 on job 3."""

    @dataclass(frozen=True)
    class Quarters:
        name: str = "quarters"
        preemption: bool = False

        def decide(self, view, rng):
            for job in view.waiting.tolist():
                view.place(job, 0)

    certain = EpochDistribution.from_masses([1.0])
    jobs = [Job(time, 1000.0, 0.01, 10.0, certain, 10.0, {QUARTER: 10.0}) for time in (0.0, 50.0, 150.0, 300.0)]
    shares = Instance.from_jobs([GpuType("A", 100.0, 100.0, 16.0)], [Node("A", 2)], jobs, [QUARTER])
    times, busy, _ = Timeline.of(simulate(shares, Quarters())).usage()
    steps = dict(zip(times.tolist(), busy.tolist(), strict=True))
    assert steps == {0.0: 1, 50.0: 1, 100.0: 1, 150.0: 1, 250.0: 0, 300.0: 1, 400.0: 0}


def test_several_nodes_are_one_holding_with_one_bar_for_labels_and_changes():
    timeline = Timeline.of(run())
    assert [(bar.node, bar.nodes, bar.is_first) for bar in timeline.bars if bar.job == 2] == [
        (0, (0, 1), True),
        (1, (0, 1), False),
    ]
    assert {job: len(group) for job, group in timeline.bars_of_jobs().items()} == {0: 2, 1: 1, 2: 1}


def test_a_change_from_a_share_to_the_whole_gpu_of_the_node_is_no_move_and_one_between_shared_gpus_is():
    first, _, whole, *_ = Timeline.of(run()).bars
    assert whole.in_the_place_of(first)
    assert not replace(first, gpu=1).in_the_place_of(first)
    assert not replace(first, nodes=(1,)).in_the_place_of(first)
    assert first.in_the_place_of(first)


@pytest.mark.parametrize("ahead_s", [0.0, 4.0])
def test_a_run_that_goes_on_shows_shares_and_several_nodes_held_from_now_on(ahead_s):
    timeline = Timeline.of(state_in_round(4, commit=True), ahead_s=ahead_s)
    expected = EXPECTED[:3]
    if ahead_s:
        expected = [*expected, (2, 0, ((0, 2),), 100.0, 104.0), (2, 1, ((0, 2),), 100.0, 104.0)]
    assert bars(timeline) == expected


def test_in_an_open_round_several_nodes_that_were_held_are_shown():
    """The fifth round is a review at 110; it has begun from an empty cluster and placed no job."""
    assert bars(Timeline.of(state_in_round(5, review_s=110.0)))[3:] == [(2, n, ((0, 2),), 100.0, 110.0) for n in (0, 1)]


def test_in_an_open_round_what_was_held_ends_now_and_what_is_placed_begins():
    """At 120 there is no round; at 100, in the fourth, job 2 has been placed and the round is open."""
    state = state_in_round(4)
    state.view.place(2, 3)
    assert bars(Timeline.of(state, ahead_s=4.0))[-2:] == [(2, n, ((0, 2),), 100.0, 104.0) for n in (0, 1)]


def test_a_job_that_goes_on_with_its_share_is_one_bar_and_one_that_changes_its_shared_gpu_is_two():
    state = state_in_round(2)
    state.view.place(1, 2)
    assert bars(Timeline.of(state, ahead_s=4.0))[-1] == (1, 0, ((1.25, 0.5),), 0.0, 44.0)
    state = state_in_round(2)
    for job, config in ((0, 1), (1, 2)):
        state.view.place(job, config)
    state.board.jobs[1, at.SLOT] = 1.0
    moved = bars(Timeline.of(state, ahead_s=4.0))
    assert (1, 0, ((1.25, 0.5),), 0.0, 40.0) in moved
    assert (1, 0, ((0.0, 0.5),), 40.0, 44.0) in moved


def test_at_the_present_what_ended_now_is_not_counted_beside_what_begins():
    times, busy, waiting = Timeline.of(state_in_round(4, commit=True), ahead_s=4.0).usage()
    assert (times[-1], busy[-1], waiting[-1]) == (100.0, 4, 0)


def test_the_text_joins_those_who_share_a_gpu_and_names_several_nodes_on_each():
    lines = render_text(state_in_round(1, commit=True)).splitlines()
    assert lines[4:6] == ["node 0  A  [#.]  job 0 x0.25 + job 1 x0.5", "node 1  A  [..]  off"]
    lines = render_text(state_in_round(2, commit=True)).splitlines()
    assert lines[4:6] == ["node 0  A  [##]  job 0 x1, job 1 x0.5", "node 1  A  [..]  off"]
    assert "waiting: 1" in lines
    lines = render_text(state_in_round(4, commit=True)).splitlines()
    assert lines[4:6] == [f"node {n}  A  [##]  job 2 x2 on 2 nodes" for n in (0, 1)]


def texts(figure):
    return [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]


def test_the_legend_explains_shares_and_several_nodes_only_where_there_are_some():
    assert {"share of a GPU", "job on several nodes"} <= set(texts(gantt_figure(run())))
    early = texts(gantt_figure(state_in_round(1, commit=True)))
    assert "share of a GPU" in early
    assert "job on several nodes" not in early


def test_a_job_on_several_nodes_is_labelled_once_and_its_bars_are_tied():
    axes = gantt_figure(run(), size_inches=(30.0, 7.2)).axes[0]
    assert sorted(text.get_text() for text in axes.texts) == ["0", "0", "1", "2"]
    (tie,) = [
        segment for lines in axes.findobj(LineCollection) if lines.zorder == 1.5 for segment in lines.get_segments()
    ]
    assert tie[:, 0] * 60.0 == pytest.approx([110.0, 110.0])
    assert tie[0, 1] < 2.0 < tie[1, 1]


def test_ties_join_the_bars_of_one_holding_and_the_legend_has_no_share_where_there_is_none():
    certain = EpochDistribution.from_masses([1.0])
    jobs = [Job(0.0, 1000.0, 0.01, 10.0, certain, 10.0, {BOTH: 2.0}) for _ in range(2)]
    both = Instance.from_jobs([GpuType("A", 100.0, 100.0, 16.0)], [Node("A", 2)] * 2, jobs, [BOTH])

    @dataclass(frozen=True)
    class First:
        name: str = "first"
        preemption: bool = False

        def decide(self, view, rng):
            for job in view.waiting[:1].tolist():
                view.place(job, 0)

    figure = gantt_figure(simulate(both, First()))
    ties = [
        tie for lines in figure.axes[0].findobj(LineCollection) if lines.zorder == 1.5 for tie in lines.get_segments()
    ]
    assert [tie[:, 0].tolist() for tie in ties] == [[10.0, 10.0], [30.0, 30.0]]
    assert "share of a GPU" not in texts(figure)


def test_a_frame_has_its_size_whatever_is_shared():
    assert gantt_rgb(run()).shape == (720, 1280, 3)
    assert gantt_rgb(state_in_round(4, commit=True)).shape == (720, 1280, 3)


@pytest.mark.parametrize("seed", range(4))
def test_no_two_bars_lie_on_one_another_and_the_busy_gpus_are_those_of_the_bill(seed):
    instance = random_instance(seed, jobs=20, nodes=6, types=1 + seed % 2, span_s=300.0, kinds=True)
    result = simulate(instance, Whatever(), seed=seed, review_s=10.0)
    timeline = Timeline.of(result)
    for node in range(len(instance.nodes)):
        boxes = [
            (bar.start_s, bar.end_s, low, low + height)
            for bar in timeline.bars
            if bar.node == node
            for low, height in bar.runs
        ]
        start, end, low, high = np.array(boxes).reshape(-1, 4).T
        assert np.all((low >= 0) & (high <= instance.nodes[node].gpus))
        together = (start[:, None] < end) & (start < end[:, None]) & (low[:, None] < high) & (low < high[:, None])
        assert np.array_equal(together, np.eye(len(boxes), dtype=np.bool_))
    times, busy, waiting = timeline.usage()
    assert busy.min() == 0
    assert busy.max() <= sum(node.gpus for node in instance.nodes)
    assert waiting.min() == 0
    free_base = replace(
        instance, gpu_types=tuple(replace(v, node_base_power_w=0.0, gpu_power_w=1.0) for v in instance.gpu_types)
    )
    bill = simulate(free_base, Whatever(), seed=seed, review_s=10.0).energy_eur
    gpu_s = np.sum(busy[:-1] * np.diff(times))
    assert gpu_s / 3600.0 / 1000.0 * instance.energy_price_eur_per_kwh * instance.pue == pytest.approx(bill)
