import numpy as np
import pytest

from gpusched_baselines.registry import make_policy
from gpusched_env.rendering import frames as animation
from gpusched_env.rendering.frames import form_of, rounds_to_show, write_animation
from gpusched_env.rendering.text import axis_unit, duration_text
from gpusched_env.rendering.timeline import HOUR_S, Window, moving_window, widest_s, window_of
from gpusched_env.simulator import simulate
from gpusched_env.workload import load_scenario, make_instance
from refusals import refused

PIL = pytest.importorskip("PIL.Image")


def frames(count):
    for shade in range(count):
        frame = np.full((40, 60, 3), 255, np.uint8)
        frame[: 2 * shade + 1] = (0x4E, 0x79, 0xA7)
        yield frame


def test_a_gif_has_every_frame_in_order_with_its_colours_and_the_last_one_stays(tmp_path):
    write_animation(str(tmp_path / "run.gif"), frames(5), 10.0)
    with PIL.open(tmp_path / "run.gif") as picture:
        assert picture.n_frames == 5
        for index, frame in enumerate(frames(5)):
            picture.seek(index)
            assert picture.info["duration"] == (3000 if index == 4 else 100)
            assert np.array_equal(np.asarray(picture.convert("RGB")), frame)


def test_equal_frames_make_equal_files(tmp_path):
    for name in ("a.gif", "b.gif"):
        write_animation(str(tmp_path / name), frames(3), 8.0)
    assert (tmp_path / "a.gif").read_bytes() == (tmp_path / "b.gif").read_bytes()


def test_rounds_are_thinned_evenly_with_the_first_and_the_last():
    assert rounds_to_show(5, 100) == [1, 2, 3, 4, 5]
    assert rounds_to_show(101, 5) == [1, 26, 51, 76, 101]
    assert rounds_to_show(7, 1) == [1]


@pytest.mark.parametrize("fps", [0.0, -1.0, 51.0, float("nan")])
def test_a_speed_out_of_its_range_is_an_error(tmp_path, fps):
    with refused("fps", fps):
        write_animation(str(tmp_path / "run.gif"), frames(2), fps)
    assert not list(tmp_path.iterdir())


def test_another_ending_is_an_error_that_lists_those_there_are():
    with refused("file", "run.avi", ".gif, .mp4 or .webm"):
        form_of("run.avi")


def test_without_an_encoder_a_video_says_how_to_get_it(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(animation, "import_module", missing)
    with pytest.raises(ImportError, match=r"videos .* need moviepy; install it with: pip install .*video"):
        form_of("run.mp4")
    assert form_of("run.gif") == ".gif"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (42.4, "42 s"),
        (60.0, "1 min"),
        (61.0, "1 min 1 s"),
        (3_600.0, "1 h"),
        (3_660.0, "1 h 1 min"),
        (3_659.6, "1 h 1 min"),
        (86_400.0 + 3 * 3_600.0 + 59.0, "1 d 3 h"),
    ],
)
def test_a_duration_is_written_with_its_two_largest_units(seconds, text):
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("span_s", "unit"), [(100.0, "seconds"), (7_000.0, "minutes"), (8_000.0, "hours"), (5 * 86_400.0, "days")]
)
def test_the_unit_of_an_axis_fits_its_length(span_s, unit):
    assert axis_unit(span_s)[1] == unit


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
