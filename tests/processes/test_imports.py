"""What a fresh interpreter has imported: commands of operators and light uses load no more than they need."""

import json
import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest

from gpusched_agents import make_any_policy
from gpusched_env import load_scenario, make_instance, simulate
from gpusched_operations.live import progress
from gpusched_operations.live.drive_state import DriveState

RUN = "import sys\nfrom gpusched_experiments.cli.main import run\ntry:\n    run()\n"
RUN += "except SystemExit as end:\n    assert not end.code, end.code\n"
NODE = "NodeName=n Gres=gpu:2 State=IDLE Partitions=gpu ActiveFeatures=v100"


def printed(text: str, *words: str) -> str:
    """Run a program in a process of its own; give what it prints."""
    done = subprocess.run([sys.executable, "-c", text, *words], check=True, capture_output=True, text=True)
    return done.stdout


def loaded(*names: str) -> str:
    return f"\nprint([name for name in {names} if name in sys.modules])"


COMPILED = loaded("numba", "gpusched_env.kernel")


def test_what_undoes_a_drive_imports_no_compiled_function():
    """Where nobody can write Numba's cache, a module of them cannot be imported."""
    modules = ", ".join(
        f"gpusched_operations.live.{name}" for name in ("lease", "slurm_state", "slurm_requests", "progress_reports")
    )
    job = {"job_id": 7, "job_state": "PENDING", "partition": "gpu", "features": "A100&ib", "comment": "gpusched x"}
    text = f"import sys, {modules}\nfrom gpusched_operations.live.slurm_state import cluster_of\n"
    text += "print(cluster_of(sys.argv[1], sys.argv[2], 0.0).jobs[0].gpu_type)"
    assert printed(text + COMPILED, json.dumps({"jobs": [job]}), NODE) == "A100\n[]\n"


def test_nor_does_the_command(tmp_path):
    DriveState("gpu").save(tmp_path)
    told = printed(RUN + COMPILED, "slurm", "release", "--partition", "gpu", "--state", str(tmp_path))
    assert told == f"state: {tmp_path}\nreleased 0 jobs\n[]\n"


def test_a_report_of_progress_imports_little(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_SUBMIT_DIR", str(tmp_path))
    monkeypatch.delenv(progress.VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    assert printed(RUN + loaded("numba", "numpy", "typer", "pydantic", "urllib.request"), "progress", "12") == "[]\n"
    assert (tmp_path / progress.FOLDER / "7.json").exists()


def test_commands_do_not_import_what_pages_need():
    text = "import sys, gpusched_experiments.cli.app\n"
    assert printed(text + "print([name for name in sys.modules if 'plotly' in name])") == "[]\n"


def test_the_package_imports_nothing_before_a_name_is_asked_for():
    text = (
        "import sys, gpusched_experiments\nprint([m for m in sys.modules if m.startswith('gpusched_env')])\n"
        "from gpusched_experiments import compare; from gpusched_experiments.report import compare as own\n"
        "print(compare is own)"
    )
    assert printed(text) == "[]\nTrue\n"


def test_the_module_before_the_colon_registers_every_id_and_imports_no_package_above():
    text = "import sys, gymnasium\nenv = gymnasium.make('gpusched_env:gpusched_env/SlackFlat-v0')\n"
    text += "print(env.observation_space.shape, 'gpusched_env/LiveSlurm-v0' in gymnasium.registry)"
    text += loaded("gpusched_operations", "gpusched_experiments", "gpusched_agents")
    shape = (len(gymnasium.make("gpusched_env/SlackFlat-v0").unwrapped.feature_names),)
    assert printed(text) == f"{shape} False\n[]\n"
    text = "import sys, gymnasium, gpusched_operations\nprint('gpusched_env/LiveSlurm-v0' in gymnasium.registry)"
    assert printed(text + COMPILED) == "True\n[]\n"


def test_charts_do_not_use_pyplot_with_its_global_state():
    text = "import sys\nfrom gpusched_env.rendering import gantt_figure"
    assert printed(text + loaded("matplotlib.pyplot")) == "[]\n"


def test_without_matplotlib_text_works_and_charts_say_how_to_install_it():
    text = """
import sys
sys.modules["matplotlib"] = None
from gpusched_env import rendering
rendering.render_text
try:
    rendering.render_gantt_rgb
except rendering.MissingExtraError as error:
    print(error)
"""
    assert printed(text) == 'charts need matplotlib; install it with: pip install "gpusched-env[plot]"\n'


@pytest.mark.parametrize(
    "modules",
    ["gpusched_agents", "gpusched_agents.policy, gpusched_agents.files.storage", "gpusched_experiments.cli.app"],
)
def test_agents_and_commands_are_imported_without_torch(modules):
    assert printed(f"import sys, {modules}" + loaded("torch", "stable_baselines3", "sb3_contrib")) == "[]\n"


WITHOUT_TORCH = """
import sys
sys.modules |= dict.fromkeys(["torch", "stable_baselines3", "sb3_contrib"])  # so that to import one fails
sys.path.append(sys.argv[1])
from gpusched_agents import AdaptationConfig, EsConfig, TrainingConfig, make_any_policy, make_training
from gpusched_env import child_processes, load_scenario, make_instance, simulate
from gpusched_env.errors import MissingExtraError
from adapted import InThisProcess
child_processes.ProcessPoolExecutor = InThisProcess
small = {"scenarios": ("tiny",), "scenario_settings": {"jobs.count": 4}, "steps": 10, "validation_seeds": (500,)}
make_training(TrainingConfig(agent=EsConfig(pairs=1, most_jobs=4), **small), sys.argv[2]).run()
policy = make_any_policy(f"agent:{sys.argv[2]}/agent")
print(simulate(make_instance(load_scenario("tiny"), 500), policy).total_eur)
try:
    make_training(TrainingConfig(agent=AdaptationConfig(), **small), sys.argv[3])
except MissingExtraError as error:
    print(error)
"""


def test_agents_are_trained_and_decide_without_torch_and_other_algorithms_name_the_missing_package(tmp_path):
    support = Path(__file__).parents[1] / "support"
    cost, error = printed(WITHOUT_TORCH, str(support), str(tmp_path / "es"), str(tmp_path / "ppo")).splitlines()
    policy = make_any_policy(f"agent:{tmp_path / 'es' / 'agent'}")
    assert float(cost) == simulate(make_instance(load_scenario("tiny"), 500), policy).total_eur
    assert "gpusched-env[agents]" in error
    assert not (tmp_path / "ppo").exists()
