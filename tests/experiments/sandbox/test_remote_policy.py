"""A policy that decides elsewhere gives the run that it gives here, and what it does wrong is one line."""

import shutil

import numpy as np
import pytest

from entries import FIRST_FIT, InThread, deciding, python_submission
from gpusched_agents.files.storage import SHIPPED
from gpusched_agents.policy import load_policy
from gpusched_baselines import make_policy
from gpusched_env import load_scenario, make_instance
from gpusched_env.simulator import simulate
from gpusched_experiments.sandbox.process import ANOTHER_SEED, RemotePolicy, misfit, policy_seed, workload_of
from gpusched_experiments.sandbox.submitted import SandboxLimits, Submission, SubmissionError, read_submission
from refusals import refused

SCENARIO = load_scenario("tiny").replace({"jobs.count": 8})


def run(process, scenario=SCENARIO, seed=3):
    return simulate(make_instance(scenario, seed), RemotePolicy(process, scenario, seed), seed=policy_seed(seed))


def same(one, other):
    assert (one.energy_eur, one.tardiness_eur, one.rounds) == (other.energy_eur, other.tardiness_eur, other.rounds)
    np.testing.assert_array_equal(one.log, other.log)


DRAWS = """
class Samples:
    name, preemption = "draws", True

    def memory_columns(self, instance):
        return 3 * len(instance.configurations)

    def decide(self, view, rng):
        view.memory[0, -1] += 1
        for job in rng.permutation(view.active):
            config = int(rng.integers(len(view.configurations)))
            if view.tau[job, config] < float("inf"):
                view.place(int(job), config)
        view.set_timer(int(view.active[0]), view.now_s + 600.0 * view.memory[0, -1])
"""


def test_a_policy_that_draws_and_remembers_gives_the_same_run_to_the_last_bit():
    here = {}
    exec(DRAWS, here)  # noqa: S102 - it stands above
    with InThread(python_submission(DRAWS, "Samples")) as process:
        for seed in (3, 4):
            instance = make_instance(SCENARIO, seed)
            same(run(process, seed=seed), simulate(instance, here["Samples"](), seed=policy_seed(seed)))


def test_seeds_of_entries_are_seeds_and_tell_nothing_of_their_workloads():
    """The hash was worked out by another program (sha256sum)."""
    assert policy_seed(3) == 0xAC78F00157D5F005 >> 1
    seeds = [policy_seed(seed) for seed in (*range(1000), 2**63 - 1)]
    assert len(set(seeds)) == 1001
    assert all(2**32 < seed < 2**63 for seed in seeds)


@pytest.mark.parametrize("name", ["edf", "sts-x"])
def test_a_shipped_policy_in_a_file_gives_the_same_run_to_the_last_bit(name):
    source = f"from gpusched_baselines import make_policy\ndef make():\n    return make_policy({name!r})\n"
    with InThread(python_submission(source, "make")) as process:
        for _ in range(2):
            same(run(process), simulate(make_instance(SCENARIO, 3), make_policy(name), seed=3))


def test_a_shipped_agent_gives_the_same_run_to_the_last_bit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(SHIPPED / "default", "agent")
    submission = read_submission("agent", "mine")
    with InThread(submission) as process:
        assert misfit(process, SCENARIO) is None
        same(run(process), simulate(make_instance(SCENARIO, 3), load_policy("agent:default"), seed=3))


def test_it_is_told_of_another_workload_and_not_of_the_one_that_it_runs_on():
    assert workload_of(SCENARIO, 7)["another_seed"] == ANOTHER_SEED
    assert workload_of(SCENARIO, ANOTHER_SEED)["another_seed"] != ANOTHER_SEED


def test_a_policy_says_itself_where_it_cannot_decide():
    check = "    def check(self, instance):\n        raise ValueError(f'{len(instance.nodes)} nodes')\nPOLICY"
    with InThread(python_submission(FIRST_FIT.replace("POLICY", check))) as process:
        assert misfit(process, SCENARIO) == f"{len(make_instance(SCENARIO, 0).nodes)} nodes"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x = 1", "mine.py: has no POLICY: give the policy that name, or submit mine.py:NAME"),
        ("POLICY = 3", "mine.py: POLICY is no policy"),
        ("def POLICY():\n    return 3", "mine.py: POLICY makes no policy"),
        ("a = (", "mine.py: line 1: SyntaxError"),
        ("\nimport nowhere", "mine.py: line 2: ModuleNotFoundError: No module named 'nowhere'"),
        ("raise SystemExit(3)", "mine.py: line 1: SystemExit: 3"),
        ("POLICY = type('P', (), {'name': 'p', 'preemption': 1, 'decide': print})()", "preemption is neither True nor"),
        ("POLICY = type('P', (), {'name': 3, 'preemption': True, 'decide': print})()", "its policy has no name"),
    ],
)
def test_a_file_without_a_policy_is_refused(source, words):
    with pytest.raises(SubmissionError) as refused:
        InThread(python_submission(source))
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("1 / 0", "mine.py: line 5: ZeroDivisionError: division by zero"),
        ("view.place(0, 99)", "mine.py: line 5: InputError: configuration = 99"),
        ("view.jobs[0, 0] = 1.0", "mine.py: line 5: ValueError: assignment destination is read-only"),
        ("view.board.jobs[0, 7:9] = float('nan')", "mine.py: job 0 was given what is no number of anything"),
        ("view.board.jobs[0, 7:9] = 99", "mine.py: job 0 was given a configuration that is not there"),
        ("view.board.jobs[0, 19] = float('nan')", "mine.py: job 0 was given a timer that is no time"),
    ],
)
def test_what_goes_wrong_in_a_round_is_one_line_that_says_where(body, words):
    with InThread(python_submission(deciding(body))) as process, pytest.raises(SubmissionError) as wrong:
        run(process)
    assert words in str(wrong.value)


def test_what_it_does_to_its_copy_of_the_board_beside_that_is_undone():
    cheat = "view.board.jobs[0, 3:18:14] = 0.001\nview.board.clock[:] = 0.0\nview.board.count[1] = 0\n"
    honest = FIRST_FIT.split("decide(self, view, rng):\n")[1].split("\nPOLICY")[0].replace("        for", "for", 1)
    honest = "\n".join(line.removeprefix("        ") for line in honest.splitlines())
    one, other = (python_submission(deciding(body)) for body in (honest + "\n" + cheat, honest))
    with InThread(one) as first, InThread(other) as second:
        same(run(first), run(second))


def test_a_run_has_its_time():
    with (
        InThread(python_submission(FIRST_FIT), SandboxLimits(run_s=1e-9)) as process,
        pytest.raises(SubmissionError, match="longer than 1e-09 s"),
    ):
        run(process)


def test_workloads_with_cells_are_not_for_entries():
    scenario = load_scenario("tiny").replace({"jobs.count": 3})
    with InThread(python_submission(FIRST_FIT)) as process:
        policy = RemotePolicy(process, scenario, 0)

        class WithHosts:
            hosts = (1,)

        with refused("tenancy", "cells"):
            policy._begin(WithHosts(), None)


@pytest.mark.parametrize(
    ("path", "name", "error"),
    [
        ("nothing", None, ("--submit", "nothing")),
        ("text.txt", None, ("--submit", "text.txt")),
        ("mine.py:2x", None, ("--submit", "mine.py:2x", "after the colon")),
        ("mine.py", "../x", ("--name", "../x")),
        ("mine.py", "edf", ("--name", "edf")),
        ("large.py", None, ("--submit", "large.py: 1,048,577 bytes", "at most 1,048,576 bytes")),
        ("link.py", None, ("--submit", "link.py", "no link")),
        ("empty", None, ("--submit", "empty/agent.json")),
    ],
)
def test_what_is_no_entry_is_refused_before_anything_of_it_runs(tmp_path, monkeypatch, path, name, error):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("x")
    (tmp_path / "mine.py").write_text(FIRST_FIT)
    (tmp_path / "large.py").write_text("#" * (2**20 + 1))
    (tmp_path / "link.py").symlink_to("mine.py")
    (tmp_path / "empty").mkdir()
    with refused(*error):
        read_submission(path, name)


def test_an_entry_is_known_by_its_content_and_not_by_its_files_name(tmp_path):
    (tmp_path / "a.py").write_text(FIRST_FIT)
    (tmp_path / "b.py").write_text(FIRST_FIT)
    one, other = read_submission(f"{tmp_path}/a.py"), read_submission(f"{tmp_path}/b.py:make")
    assert (one.name, one.made_by, other.made_by) == ("a", "POLICY", "make")
    assert one.sha256 == read_submission(f"{tmp_path}/b.py").sha256 != other.sha256
    assert isinstance(one, Submission)
