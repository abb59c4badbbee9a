"""Check the wheel: install it bare in a fresh environment, and use it there, outside the checkout.

    python scripts/check_wheel.py               # builds the wheel of the checkout
    python scripts/check_wheel.py dist/*.whl    # takes a wheel that is built

What a checkout hides shows here: data files that are not packaged, names that should not be installed, and imports of
extras that a bare installation does not have. Three uses run: a step of the environment, a comparison of policies, and
a short training with Stable-Baselines3. The last needs the extra `agents`, which brings torch: nothing is downloaded
for it, the Python that runs this script lends its packages. Without them the training does not run, and that is said.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
import zipfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("gpusched_env", "gpusched_baselines", "gpusched_agents", "gpusched_experiments", "gpusched_operations")
FOLDERS = ("gpusched_env", *(f"{name.removeprefix('gpusched_')}/{name}" for name in PACKAGES[1:]))
DATA_SUFFIXES = (".css", ".csv", ".j2", ".js", ".json", ".npz", ".toml", ".typed")
EXTRAS = ("matplotlib", "typer", "rich", "torch", "stable_baselines3", "pyomo")
SNIPPET = f"""
import importlib.util, sys
import gymnasium
import gpusched_env, gpusched_baselines, gpusched_agents, gpusched_experiments, gpusched_operations

extras = [name for name in {EXTRAS!r} if importlib.util.find_spec(name)]
assert not extras, f"extras are installed: {{extras}}"
env = gymnasium.make("gpusched_env:gpusched_env/GpuCluster-v0", scenario="tiny")
observation, info = env.reset(seed=0)
assert observation in env.observation_space
action = int(info["action_mask"].nonzero()[0][-1])
observation, reward, terminated, truncated, info = env.step(action)
assert observation in env.observation_space
assert info["invalid_actions"] == 0
assert not (terminated or truncated)
assert gpusched_env.simulate(env.unwrapped.instance, gpusched_baselines.Sts()).total_eur > 0.0
for name in gpusched_env.builtin_scenarios():
    gpusched_env.load_scenario(name)
from gpusched_baselines.adaptation_env import GpuAdaptationEnv
from gpusched_agents.files.storage import find_agent, shipped_agents, track_agents
from gpusched_agents.files.storage import load_agent
for name in (*shipped_agents(), *track_agents()):
    load_agent(find_agent(name))
from gpusched_experiments import compare
table = str(compare(["sts", "edf"], "tiny", seeds=2))
assert all(name in table for name in ("sts", "edf")), table
"""
TRAINING = """
import sys
from pathlib import Path
import gymnasium
import gpusched_env
assert Path(gpusched_env.__file__).is_relative_to(sys.prefix), gpusched_env.__file__
from gpusched_experiments import compare
from stable_baselines3 import PPO
env = gymnasium.make("gpusched_env/GpuCluster-v0", scenario="tiny", flat=True)
model = PPO("MlpPolicy", env, n_steps=32, batch_size=32, seed=0, device="cpu")
model.learn(64)
assert model.num_timesteps == 64
model.save("model.zip")
assert "sb3:model.zip" in str(compare(["edf", "sb3:model.zip"], "tiny", seeds=1))
"""


class CheckError(Exception):
    """The wheel is not what it should be."""


def main(wheels: list[str]) -> int:
    """Run every check; return 0 if the wheel is good, 1 if not, 2 if there are several.

    Args:
        wheels: The path of the wheel, or nothing: then that of the checkout is built.
    """
    if len(wheels) > 1:
        print("usage: python scripts/check_wheel.py [WHEEL]", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="check-wheel-") as folder:
        try:
            wheel = Path(wheels[0]).resolve() if wheels else build(Path(folder))
            check_contents(wheel)
            check_installed(wheel, Path(folder))
        except CheckError as error:
            print(f"check_wheel: FAILED: {error}", file=sys.stderr)
            return 1
    print("check_wheel: the wheel is good")
    return 0


def build(folder: Path) -> Path:
    """Build the wheel of the checkout into `folder`."""
    must_run(
        sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT), cwd=folder
    )
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise CheckError(f"the build made {len(wheels)} wheels, not 1")
    report(f"built {wheels[0].name}, {wheels[0].stat().st_size // 1024} KiB")
    return wheels[0]


def check_contents(wheel: Path) -> None:
    """Check that the wheel holds the packages with all their files, and no other top-level name."""
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if not name.endswith("/")}
    top = {name.partition("/")[0] for name in held}
    others = sorted(name for name in top if name not in PACKAGES and not name.endswith(".dist-info"))
    if others:
        raise CheckError(f"the wheel installs other top-level names: {', '.join(others)}")
    expected = {
        file.relative_to(package.parent).as_posix()
        for package in (ROOT / folder for folder in FOLDERS)
        for file in package.rglob("*")
        if file.suffix in {*DATA_SUFFIXES, ".py"} and "__pycache__" not in file.parts
    }
    missing = sorted(expected - held)
    if missing:
        raise CheckError(f"the wheel lacks {', '.join(missing)}")
    for package in PACKAGES:
        if f"{package}/py.typed" not in held:
            raise CheckError(f"the wheel lacks {package}/py.typed")
    if not any(name.endswith(".dist-info/licenses/LICENSE") for name in held):
        raise CheckError("the wheel lacks the licence")
    data = sum(Path(name).suffix in DATA_SUFFIXES for name in expected)
    report(f"holds {', '.join(PACKAGES)} and nothing else: {len(expected)} files, {data} of them data")


def check_installed(wheel: Path, folder: Path) -> None:
    """Install the wheel without extras and use it, from a folder that is not the checkout."""
    venv.create(folder / "bare", with_pip=True)
    scripts = folder / "bare" / ("Scripts" if sys.platform == "win32" else "bin")
    suffix = ".exe" if sys.platform == "win32" else ""
    python = str(scripts / f"python{suffix}")
    must_run(
        python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
        "--constraint", str(ROOT / "constraints.txt"), str(wheel), cwd=folder,
    )  # fmt: skip
    report("installed it in a bare environment, core dependencies only")
    must_run(python, "-W", "error", "-c", SNIPPET, cwd=folder)
    report("imported it without any extra; made, reset and stepped the environment; simulated; loaded what is shipped")
    report("compared two policies on two seeds")
    check_console_script(scripts / f"gpusched{suffix}", folder)
    report("`gpusched` without its extra says in one line how to install it")
    check_training(python, folder)


def check_training(python: str, folder: Path) -> None:
    """Train a model of Stable-Baselines3 and run it as a policy, with the packages of this script's Python behind."""
    if find_spec("stable_baselines3") is None:
        report("NOT RUN: a training with Stable-Baselines3, since this Python does not have the extra `agents`")
        return
    found = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder)
    lent = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    (Path(found.stdout.strip()) / "lent.pth").write_text("\n".join(lent), encoding="utf-8")
    must_run(python, "-c", TRAINING, cwd=folder)
    report("trained PPO for 64 steps, saved it, and compared it with a policy")


def check_console_script(script: Path, folder: Path) -> None:
    """Check that the command says in one line what it lacks, and fails."""
    done = run(str(script), cwd=folder)
    lines = (done.stdout + done.stderr).strip().splitlines()
    if done.returncode == 0 or len(lines) != 1 or "gpusched-env[cli]" not in lines[0]:
        raise CheckError(f"`gpusched` without its extra exits with {done.returncode} and prints {lines}")


def must_run(*command: str, cwd: Path) -> None:
    """Run a command in `cwd`.

    Raises:
        CheckError: It fails; says what it printed.
    """
    done = run(*command, cwd=cwd)
    if done.returncode:
        raise CheckError(f"{' '.join(command[:4])} … exits with {done.returncode}:\n{done.stdout}{done.stderr}")


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in `cwd`, without what this shell adds to Python's path, and with kernels kept beside the wheel."""
    clean = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "NUMBA_CACHE_DIR"}}
    return subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True, check=False)  # noqa: S603 - ours


def report(what: str) -> None:
    """Print a check that passed."""
    print(f"check_wheel: {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
