from dataclasses import fields, replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from gpusched_baselines.registry import make_policy
from gpusched_env.rendering import gantt_figure, gantt_rgb, render_gantt_rgb
from gpusched_env.rendering.colours import LATE, colour_of, ink_on
from gpusched_env.rendering.gantt_marks import usage_in
from gpusched_env.rendering.lanes import lanes_of
from gpusched_env.rendering.timeline import Timeline, window_of
from gpusched_env.simulator import State, simulate
from gpusched_env.simulator import layout as at
from gpusched_env.workload import load_scenario, make_instance
from refusals import refused


@pytest.fixture(scope="module")
def tiny():
    return make_instance(load_scenario("tiny").replace({"restart_s": 0.0}), 0)


@pytest.fixture(scope="module")
def result(tiny):
    return simulate(tiny, make_policy("edf"))


def running_state(instance, rounds):
    state = State(instance)
    policy, rng = make_policy("edf"), np.random.default_rng(0)
    for _ in range(rounds):
        state.advance()
        state.begin_round(policy.preemption)
        policy.decide(state.view, rng)
        state.commit_round()
    return state


def texts(figure):
    return [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]


def test_a_frame_has_the_same_size_whatever_it_shows(tiny, result):
    frames = [render_gantt_rgb(running_state(tiny, rounds)) for rounds in (1, 8)] + [gantt_rgb(result)]
    assert {(frame.shape, frame.dtype) for frame in frames} == {((720, 1280, 3), np.dtype(np.uint8))}
    assert not np.array_equal(frames[0], frames[1])


def other_futures(instance, submitted):
    """Make instances that differ in jobs which are not submitted: when they come, are due, restart, and how many."""
    jobs = instance.jobs
    later = np.arange(len(jobs)) >= submitted
    yield replace(jobs, submission_s=jobs.submission_s + 2e5 * later, due_s=jobs.due_s + 2e5 * later)
    yield replace(jobs, due_s=jobs.due_s + 3e6 * later)
    yield replace(jobs, restart_s=60.0 * later)
    columns = {
        field.name: getattr(jobs, field.name)[: submitted + 1]
        for field in fields(jobs)
        if isinstance(getattr(jobs, field.name), np.ndarray)
    }
    yield replace(jobs, **columns)


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_a_frame_shows_nothing_of_jobs_that_are_not_submitted(tiny, rounds):
    state = running_state(tiny, rounds)
    frame, submitted = render_gantt_rgb(state), int(state.board.count[at.SUBMITTED])
    assert submitted < len(tiny.jobs) - 1
    for jobs in other_futures(tiny, submitted):
        other = running_state(replace(tiny, jobs=jobs), rounds)
        assert (other.board.count[at.SUBMITTED], other.view.now_s) == (submitted, state.view.now_s)
        assert np.array_equal(render_gantt_rgb(other), frame)


def test_the_same_state_gives_the_same_frame_and_is_not_changed(tiny):
    state = running_state(tiny, 5)
    before = state.view.jobs.copy()
    assert np.array_equal(render_gantt_rgb(state), render_gantt_rgb(state))
    assert np.array_equal(state.view.jobs, before, equal_nan=True)


def test_the_chart_names_policy_nodes_jobs_and_marks(result):
    found = texts(gantt_figure(result))
    assert "edf on 3 nodes, 20 GPUs, 10 jobs" in found
    assert {"node 0\n8 x V100", "node 1\n8 x A100", "node 2\n4 x T4"} <= set(found)
    assert {"due date", "late job", "after its due date"} <= set(found)
    assert {"busy GPUs", "waiting jobs", "time [hours]"} <= set(found)
    assert any(f"{result.late_jobs} of 10 jobs late" in text for text in found)


def test_the_legend_names_what_is_drawn_and_nothing_else(tiny, result):
    def legend(run) -> set[str]:
        return {text.get_text() for box in gantt_figure(run).legends for text in box.get_texts()} - {
            "GPUs held by job (number)"
        }

    assert legend(result) == {"due date", "late job", "after its due date"}
    moving = simulate(tiny, make_policy("greedy"))
    assert legend(moving) >= {"change of GPUs or node", "move or pause"}
    early = replace(tiny, jobs=replace(tiny.jobs, due_s=tiny.jobs.due_s + 1e7))
    assert legend(simulate(early, make_policy("edf"))) == set()  # all due dates are after the end of the chart
    many = make_instance(load_scenario("tiny").replace({"jobs.count": 70}), 0)
    run = simulate(many, make_policy("edf"))
    assert 0 < run.late_jobs < 70
    assert legend(run) == {"due date that was missed", "late job", "after its due date"}


@pytest.mark.parametrize("policy", ["edf", "greedy"])
def test_jobs_that_follow_each_other_on_a_gpu_or_run_beside_each_other_differ_in_colour(policy):
    timeline = Timeline.of(
        simulate(make_instance(load_scenario("tiny").replace({"jobs.count": 40}), 0), make_policy(policy))
    )
    alike, pairs, last = 0, 0, {}
    for k, bar in enumerate(timeline.bars):
        beside = [other for other in timeline.bars[:k] if other.node == bar.node and other.end_s > bar.start_s]
        rows = set(lanes_of(bar.runs))
        near = {other.job for other in beside if rows & {n + d for n in lanes_of(other.runs) for d in (-1, 1)}}
        near |= {last[bar.node, row] for row in rows if (bar.node, row) in last}
        last |= {(bar.node, row): bar.job for row in rows}
        pairs += len(near - {bar.job})
        alike += sum(colour_of(timeline.colour(job)) == colour_of(timeline.colour(bar.job)) for job in near - {bar.job})
    assert pairs > 50
    assert alike == 0


def test_a_restart_is_explained_only_where_there_is_one(tiny):
    assert "restart, no progress" not in texts(gantt_figure(simulate(tiny, make_policy("greedy"))))
    restarting = replace(tiny, jobs=replace(tiny.jobs, restart_s=np.full(len(tiny.jobs), 60.0)))
    assert "restart, no progress" in texts(gantt_figure(simulate(restarting, make_policy("greedy"))))


def test_a_chart_of_a_window_shows_the_jobs_in_it_alone(result):
    first = float(np.sort(result.completion_s)[0])
    figure = gantt_figure(result, window_s=(0.0, 0.9 * first))
    early = {str(job) for job in np.flatnonzero(result.start_s < 0.9 * first)}
    assert {text for text in texts(figure) if text.isdigit() and int(text) >= 0} & set("0123456789") <= early | {"0"}
    unit_s = {"seconds": 1.0, "minutes": 60.0, "hours": 3600.0}
    unit = next(length for name, length in unit_s.items() if f"time [{name}]" in texts(figure))
    assert figure.axes[0].get_xlim() == pytest.approx((0.0, 0.9 * first / unit))


def test_a_chart_of_some_nodes_and_jobs_shows_no_others(result):
    found = texts(gantt_figure(result, nodes=[2, 1]))
    assert {"node 1\n8 x A100", "node 2\n4 x T4"} <= set(found)
    assert "node 0\n8 x V100" not in found
    of_job = Timeline.of(result).of_jobs({3})
    assert {bar.job for bar in of_job.bars} == {3}
    assert gantt_rgb(result).shape == (720, 1280, 3)
    assert not [text for text in texts(gantt_figure(result, jobs=[3])) if text in set("012456789") - set("0")]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"nodes": [3]}, "nodes"),
        ({"nodes": []}, "nodes"),
        ({"jobs": [-1]}, "jobs"),
        ({"window_s": (1e9, None)}, "window_s"),
    ],
)
def test_a_chart_of_what_is_not_there_is_an_error(result, wrong, field):
    with refused(field):
        gantt_figure(result, **wrong)


def test_busy_gpus_of_a_few_nodes_do_not_change_who_waits(result):
    whole, window = Timeline.of(result), window_of(result)
    (_, busy), (times, waiting) = usage_in(whole, window, {2})
    (_, all_busy), (all_times, all_waiting) = usage_in(whole, window, {0, 1, 2})
    assert np.array_equal(times, all_times)
    assert np.array_equal(waiting, all_waiting)
    assert busy.max() <= 4 < all_busy.max()


def test_the_chart_of_a_run_that_goes_on_shows_the_present(tiny, result):
    assert "now" in texts(gantt_figure(running_state(tiny, 4)))
    assert "now" not in texts(gantt_figure(result))


def test_only_a_late_job_is_drawn_in_red(tiny):
    def reds(run):
        return int(np.sum(np.all(gantt_rgb(run)[130:570] == [int(LATE[i : i + 2], 16) for i in (1, 3, 5)], axis=2)))

    on_time = replace(tiny, jobs=replace(tiny.jobs, due_s=tiny.jobs.submission_s + 1e9))
    assert reds(simulate(on_time, make_policy("edf"))) == 0
    late = replace(tiny, jobs=replace(tiny.jobs, due_s=tiny.jobs.submission_s))
    assert reds(simulate(late, make_policy("edf"))) > 1000


def test_a_chart_of_many_nodes_labels_some_of_them():
    scenario = load_scenario("tiny").replace({"cluster.nodes": 80, "jobs.count": 30})
    figure = gantt_figure(simulate(make_instance(scenario, 0), make_policy("fifo")), size_inches=(12.8, 7.2), dpi=60)
    assert 10 <= len(figure.axes[0].get_yticks()) <= 60


def test_neighbouring_jobs_differ_in_colour_and_no_label_is_hard_to_read():
    assert len({colour_of(job) for job in range(12)}) == 12
    assert LATE not in {colour_of(job) for job in range(12)}
    for colour in map(colour_of, range(12)):
        parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
        assert max(parts) - min(parts) > 40, "a grey, as of restarts"
    assert ink_on(0) != ink_on(1)


def test_changes_too_many_to_mark_are_counted_instead(tiny, monkeypatch):
    result = simulate(tiny, make_policy("greedy"))

    def legend() -> str:
        return " ".join(text.get_text() for box in gantt_figure(result).legends for text in box.get_texts())

    assert "move or pause" in legend()
    monkeypatch.setattr("gpusched_env.rendering.gantt.MOST_MARKS", -1)
    assert "not marked" in legend()
    assert "move or pause" not in legend()


@pytest.mark.parametrize(("inches", "rows"), [((12.8, 7.2), 1), ((5.3, 5.0), 2)])
def test_a_legend_that_is_too_wide_has_two_rows_between_heading_and_chart(tiny, inches, rows):
    figure = gantt_figure(simulate(tiny, make_policy("greedy")), size_inches=inches, dpi=64)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    (legend,) = figure.legends
    texts = [text.get_window_extent(renderer) for text in legend.get_texts()]
    assert len({round(text.y0) for text in texts}) == rows
    assert max(text.x1 for text in texts) <= figure.bbox.x1
    assert figure.axes[0].get_window_extent(renderer).y1 <= min(text.y0 for text in texts)
    above = min(text.get_window_extent(renderer).y0 for text in figure.texts if text.get_text())
    assert max(text.y1 for text in texts) <= above
