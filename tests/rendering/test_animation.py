import numpy as np
import pytest

from gpusched_env.rendering import frames as animation
from gpusched_env.rendering.frames import form_of, rounds_to_show, write_animation
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
