"""Videos, which moviepy encodes: of frames, and by Gymnasium's `RecordVideo`."""

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import RecordVideo

from gpusched_env import ENVIRONMENT_ID
from gpusched_env.rendering.frames import write_animation

pytest.importorskip("moviepy", reason='pip install "gpusched-env[video]"')
pytestmark = pytest.mark.filterwarnings("ignore")  # moviepy's own


def test_a_video_is_written(tmp_path):
    frames = (np.full((40, 60, 3), 60 * shade, np.uint8) for shade in range(4))
    write_animation(str(tmp_path / "run.mp4"), frames, 8.0)
    assert (tmp_path / "run.mp4").stat().st_size > 1000


def test_record_video_works(tmp_path):
    env = gymnasium.make(ENVIRONMENT_ID, scenario="tiny", render_mode="rgb_array", preemption=False)
    env = RecordVideo(env, str(tmp_path / "videos"), video_length=8)
    env.reset(seed=0)
    for _ in range(8):
        env.step(int(np.flatnonzero(env.unwrapped.action_masks())[-1]))
    env.close()
    (video,) = (tmp_path / "videos").glob("*.mp4")
    assert video.stat().st_size > 1000
