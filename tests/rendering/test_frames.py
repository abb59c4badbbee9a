import copy
import pickle

import gymnasium
import numpy as np
import pytest

from gpusched_baselines.adaptation_env import GpuAdaptationEnv
from gpusched_baselines.registry import make_policy
from gpusched_env import GpuClusterEnv
from gpusched_env.rendering import GanttFrames, render_gantt_rgb
from gpusched_env.rendering.gantt import FRAME_DPI, FRAME_INCHES, GanttDrawing, scene_of
from gpusched_env.rendering.gantt_marks import _shown
from gpusched_env.rendering.timeline import Timeline
from gpusched_env.simulator import State, simulate
from gpusched_env.simulator import layout as at
from gpusched_env.workload import load_scenario, make_instance
from refusals import refused

pytest.importorskip("matplotlib")
TINY = make_instance(load_scenario("tiny"), 0)


def test_frames_that_keep_what_rests_are_those_drawn_afresh():
    frames, kept, afresh = GanttFrames(), [], []

    def look(state):
        if state.board.count[at.ROUND] in {2, 3, 9, 10}:
            kept.append(frames.draw(state))
            afresh.append(render_gantt_rgb(state))

    simulate(TINY, make_policy("sts"), on_round=look)
    assert len(kept) == 4
    assert all(np.array_equal(one, other) for one, other in zip(kept, afresh, strict=True))
    assert len({frame.tobytes() for frame in kept}) == 4


def test_the_environment_draws_one_frame_for_each_round(monkeypatch):
    drawn = []

    def draw(_, state):
        drawn.append(state.view.now_s)
        return np.full((2, 2, 3), len(drawn), np.uint8)

    monkeypatch.setattr(GanttFrames, "draw", draw)
    env = GpuClusterEnv("tiny", render_mode="rgb_array")
    env.reset(seed=0)
    shown, over = [], False
    while not over:
        shown.append((env.view.now_s, int(env.render()[0, 0, 0])))
        _, _, over, _, _ = env.step(int(np.flatnonzero(env.action_masks())[-1]))
    assert len(shown) > len(drawn) == len({now_s for now_s, _ in shown})
    assert [drawn[number - 1] for _, number in shown] == [now_s for now_s, _ in shown]


def test_a_frame_is_the_callers_own():
    env = GpuClusterEnv("tiny", render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    first[:] = 0
    assert env.render().any()


def test_an_environment_that_has_drawn_can_be_copied_and_sent():
    env = GpuClusterEnv("tiny", render_mode="rgb_array")
    env.reset(seed=0)
    drawn = env.render()
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):  # noqa: S301
        assert np.array_equal(other.render(), drawn)


def test_due_dates_after_the_window_stand_at_its_edge():
    state = State(TINY)
    policy, rng = make_policy("edf"), np.random.default_rng(0)
    state.advance()
    state.begin_round(policy.preemption)
    policy.decide(state.view, rng)
    state.commit_round()
    scene = scene_of(state, FRAME_INCHES, FRAME_DPI)
    dates = list(_shown(GanttDrawing(scene)._chart(scene)))
    assert dates
    for due in dates:
        assert TINY.jobs.due_s[due.job] > scene.window.end_s
        assert due.beyond
        assert due.place[0] == pytest.approx(GanttDrawing(scene)._axes.get_xlim()[1])


@pytest.mark.parametrize("policy", ["edf", "cells-fifo"])
def test_a_run_with_cells_is_drawn_while_it_goes_on(policy):
    """Every bar that has ended is one of the finished run; such runs log the host of a node beside the others."""
    tenants = [{"name": "a", "cells": {"V100": [8, 4]}}, {"name": "b", "cells": {"V100": [4, 8]}}]
    cluster = {"cluster.gpu_types": ["V100"], "cluster.gpus_per_node": 8, "cluster.nodes": 4, "jobs.gpu_counts": [2, 4]}
    scenario = load_scenario("tiny").replace({**cluster, "jobs.count": 8, "tenancy": "cells", "tenants": tenants})
    seen = []

    def look(state):
        seen.extend(bar for bar in Timeline.of(state).bars if bar.end_s < state.view.now_s)
        assert render_gantt_rgb(state).shape == (720, 1280, 3)

    result = simulate(make_instance(scenario, 0), make_policy(policy), on_round=look)
    ended = {(bar.job, bar.node, bar.start_s, bar.end_s) for bar in Timeline.of(result).bars}
    assert seen
    assert {(bar.job, bar.node, bar.start_s, bar.end_s) for bar in seen} <= ended


def test_a_frame_names_the_policy_and_one_of_an_adaptation_environment_its_largest_controls():
    env = GpuAdaptationEnv("tiny", render_mode="rgb_array")
    env.reset(seed=0)
    assert env._controls_text() == f"controls: all {len(env.controls)} are 0"
    action = np.zeros(len(env.controls))
    action[[0, 2, 5, 8]] = 0.1, -2.0, 0.3, 0.2
    env.step(action)
    first = env.render()
    names = [f"{env.controls[k]} {text}" for k, text in ((2, "-1.00"), (5, "+0.30"), (8, "+0.20"))]
    assert env._frames.note == f"controls: {'; '.join(names)}; 1 smaller"
    assert env._frames.policy == "STS-X with controls"
    other = GanttFrames("STS-X with controls").draw(env._run.state)
    changed = np.argwhere((other != first).any(axis=2))
    assert changed[:, 0].max() < 40  # the line beside the title
    assert changed[:, 1].min() > 500
    plain = GanttFrames().draw(env._run.state)
    assert np.argwhere((other != plain).any(axis=2))[:, 0].max() < 40
    env.render_mode = "ansi"
    assert env.render().endswith("; 1 smaller")


@pytest.mark.filterwarnings("ignore:.*natively support")  # Gymnasium's wrapper makes the window of the pictures
@pytest.mark.parametrize("name", ["gpusched_env/Slack-v0", "gpusched_env/SlackAdaptation-v0"])
def test_gymnasium_opens_a_window_for_the_frames(name, monkeypatch):
    pygame = pytest.importorskip("pygame", reason="needs the extra `human`")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = gymnasium.make(name, render_mode="human", settings={"jobs.count": 3})
    env.reset(seed=0)
    env.step(env.action_space.sample() * 0)
    window = pygame.display.get_surface()
    assert window.get_size() == (1280, 720)
    shown = pygame.surfarray.array3d(window).transpose(1, 0, 2)
    np.testing.assert_array_equal(shown, env.unwrapped.render())
    env.close()


@pytest.mark.parametrize("make", [GpuClusterEnv, GpuAdaptationEnv])
def test_a_window_without_gymnasiums_wrapper_is_one_error_that_names_the_extra(make):
    with refused("render_mode", "human", "human: by gymnasium.make, with the extra human"):
        make("tiny", render_mode="human")
