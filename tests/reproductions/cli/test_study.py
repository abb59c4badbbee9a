"""`gpusched study`, with trainings as short as they get."""

import pytest
from typer.testing import CliRunner

from adapted import InThisProcess
from gpusched_agents.files.storage import load_agent, load_description
from gpusched_experiments.cli.app import app
from gpusched_reproductions.cli import study as module

SHORT = (
    "-s", "tiny", "--jobs", 5, "--steps", 100, "--set", "validation_seeds=500", "--set", "evaluate_every=50",
)  # fmt: skip


def gpusched(*arguments: object):
    return CliRunner().invoke(app, ["study", *map(str, arguments)])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr("gpusched_env.child_processes.ProcessPoolExecutor", InThisProcess)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_study_trains_every_variant_with_every_seed_and_leaves_a_finished_one_as_it_is(folder):
    done = gpusched("--variants", "controls-es", *SHORT, "--seeds", "0-1", "--out", "out")
    assert done.exit_code == 0, done.output
    assert done.stdout == "wrote out\n"
    shown = [line.split()[0] for line in done.stderr.splitlines() if "of sts-x's cost" in line]
    assert shown == ["controls-es-0", "controls-es-1"]
    for seed in (0, 1):
        described = load_description(folder / f"out/controls-es-{seed}/agent")
        assert (described.name, described.config["seed"]) == (f"controls-es-{seed}", seed)
        assert described.config["scenario_settings"] == {"jobs.count": 5}
    before = load_agent(folder / "out/controls-es-0/agent")[0]
    assert gpusched("--variants", "controls-es", *SHORT, "--seeds", "0-1", "--out", "out").exit_code == 0
    assert load_agent(folder / "out/controls-es-0/agent")[0] == before
    other = gpusched("--variants", "controls-es", *SHORT, "--seeds", "0", "--set", "patience=3", "--out", "out")
    assert (other.exit_code, "patience" in other.stderr) == (2, True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--variants", "controls-es,magic"], ["--variants", "controls-es,magic", "best-constants"]),
        (["--variants", "controls-es,controls-es"], ["--variants", "each once"]),
        (["--steps", "0"], ["--steps", "0"]),
        (["--seeds", "2-1"], ["--seeds", "2-1"]),
        (["--scenario", "nowhere"], ["nowhere"]),
        (["--set", "network.kind=controls"], ["--set", "network.kind=controls"]),
        (["--set", "steps=5"], ["--set", "steps=5"]),
        (["--set", "magic=5"], ["--set", "magic=5"]),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(folder, options, words):
    done = gpusched(*options)
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    for word in words:
        assert word in done.stderr
    assert not list(folder.iterdir())


@pytest.mark.usefixtures("folder")
def test_a_stopped_study_names_how_to_go_on(monkeypatch):
    configs = []

    def stop(config, *_, **__):
        configs.append(config)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "make_training", stop)
    done = gpusched("--variants", "controls-es", "--steps", 1000, "--nodes", 3, "--scenario-set", "prices.pue=2")
    assert done.exit_code == 130
    assert "the same command goes on from the last checkpoints" in done.stderr
    assert configs[0].evaluate_every == 50
    assert configs[0].scenario_settings == {"cluster.nodes": 3, "prices.pue": 2}
