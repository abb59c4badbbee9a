"""The lane of each folder and file of tests: `make test` runs the core, `make test-slow` what is real and slow.

What is not named here is in the core. A test of the core takes at most 5 s of processor time, compiles no kernel of
the packages, starts no server or daemon, and depends on no clock.
"""

from pathlib import Path

ROOT = Path(__file__).parents[1]

SLOW: dict[str, str] = {
    "tests/slurm": "Slurm's daemons and munge",
    "tests/browser": "Chromium and playwright",
    "tests/ray": "Ray",
    "tests/processes": "processes, signals, sockets, fresh interpreters",
    "tests/libraries": "Stable-Baselines3's zoo, TorchRL, MO-Gymnasium, moviepy and others",
    "tests/examples": "the extra `dev`",
    "tests/reproductions": "public data, where there is some",
    "tests/benchmarks": "nothing: minutes",
    "tests/agents/adaptation/test_shipped.py": "nothing: it runs whole tracks",
    "tests/mechanisms/failures": "nothing: it compiles a build of its own",
    "tests/simulator/test_builds.py": "nothing: it compiles every build",
    "tests/baselines/solvers/test_ipopt.py": "Ipopt",
    "tests/baselines/solvers/test_nlp.py": "Ipopt",
}
"""Folders and files of the slow lane, from the root of the repository, each with what it needs beside Python."""


FIRST: tuple[str, ...] = (
    "tests/agents/adaptation/test_adaptation_policy.py::test_through_environments_side_by_side_it_pays_what_it_pays_alone",
    "tests/baselines/gavel/test_rounds.py::test_jobs_without_a_share_get_what_is_left_unless_they_must_not",
    "tests/baselines/test_bounds.py::test_no_policy_undercuts_the_bounds_where_gpus_draw_power_by_utilisation",
    "tests/baselines/test_path_relinking.py::test_every_one_of_the_elite_can_be_restored_and_costs_what_it_says",
    "tests/baselines/test_path_relinking.py::test_the_cheapest_are_kept_and_equals_once",
    "tests/cells/test_guarantee.py",
    "tests/cells/test_tree.py",
    "tests/mechanisms/test_licences.py",
    "tests/model/test_synchronisation.py",
    "tests/rendering/test_frames.py::test_frames_that_keep_what_rests_are_those_drawn_afresh",
    "tests/simulator/test_forecasts.py",
    "tests/simulator/test_interconnect_slowdown.py",
    "tests/simulator/test_kernels_for_policies.py::test_a_kernel_looks_at_prices",
    "tests/test_recorded_runs.py::test_costs_intervals_observations_and_bounds_are_the_recorded_ones[all-kinds]",
)
"""Tests that call kernels which no command calls by itself: `make kernels` runs them once, before the workers."""


def lane_of(path: Path) -> str:
    """Return the lane of a file or folder of tests: `core`, `slow`, or `both` for a folder that has some of each."""
    place = path.resolve().relative_to(ROOT).as_posix()
    if any(place == slow or place.startswith(f"{slow}/") for slow in SLOW):
        return "slow"
    return "both" if path.is_dir() else "core"


def in_lane(path: Path, lane: str) -> bool:
    """Return whether a file or folder has tests of a lane, or of the files that run `first`."""
    if lane == "first":
        place = path.resolve().relative_to(ROOT).as_posix()
        return any(test.partition("::")[0] == place or test.startswith(f"{place}/") for test in FIRST)
    return lane_of(path) in (lane, "both")
