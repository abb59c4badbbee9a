import numpy as np
import pytest

from gpusched_baselines.registry import make_policy
from gpusched_env.rendering.timeline import HOUR_S, Window, moving_window, widest_s, window_of
from gpusched_env.simulator import simulate
from gpusched_env.workload import load_scenario, make_instance
from refusals import refused

TIMES = np.linspace(0.0, 100 * HOUR_S, 2001)


def test_a_window_grows_in_few_steps_and_then_moves_in_steps_of_a_quarter():
    windows = [moving_window(now_s, 8 * HOUR_S) for now_s in TIMES]
    widths = [window.width_s for window in windows]
    starts = [window.start_s for window in windows]
    assert widths == sorted(widths)
    assert starts == sorted(starts)
    assert widths[-1] == pytest.approx(8 * HOUR_S)
    assert len(set(np.round(widths, 3))) <= 17
    assert {round(step) for step in np.diff(starts)} == {0, 2 * 3600}
    assert all(start == 0.0 for start, width in zip(starts, widths, strict=True) if width < 7.99 * HOUR_S)


def test_the_present_is_in_the_window_and_most_of_it_is_the_past():
    for now_s in TIMES[1:]:
        window = moving_window(now_s, 8 * HOUR_S)
        assert 0.58 if now_s > HOUR_S else 0.0 <= (now_s - window.start_s) / window.width_s <= 0.881


def test_the_widest_window_is_a_power_of_two_hours_and_never_falls_once_ten_jobs_are_known():
    assert widest_s(np.full(20, 4 * HOUR_S)) == 8 * HOUR_S
    assert widest_s(np.full(20, 20 * HOUR_S)) == 32 * HOUR_S
    times = np.random.default_rng(0).exponential(5 * HOUR_S, 60)
    widest = [widest_s(times[:count]) for count in range(10, 61)]
    assert widest == sorted(widest)
    assert widest_s(np.zeros(0)) > 0.0


def test_the_windows_of_a_run_go_forward_and_hold_the_present():
    windows, nows = [], []

    def look(state):
        windows.append(window_of(state))
        nows.append(state.view.now_s)

    result = simulate(
        make_instance(load_scenario("default").replace({"jobs.count": 60}), 0), make_policy("edf"), on_round=look
    )
    assert all(window.start_s <= now_s < window.end_s for window, now_s in zip(windows, nows, strict=True))
    assert [window.start_s for window in windows] == sorted(window.start_s for window in windows)
    assert len(set(windows)) < len(windows) / 4
    assert window_of(result).start_s == 0.0
    assert window_of(result).end_s > result.completion_s.max()


@pytest.mark.parametrize(
    ("start_s", "end_s", "field"),
    [(-1.0, 2.0, "start_s"), (2.0, 2.0, "end_s"), (0.0, float("inf"), "end_s"), (float("nan"), 1.0, "start_s")],
)
def test_an_empty_window_is_an_error(start_s, end_s, field):
    with refused(field):
        Window(start_s, end_s)
