import tomllib
from statistics import fmean

from typer.testing import CliRunner

import gpusched_experiments
from commands import gpusched, succeeds
from gpusched_baselines.registry import policy_descriptions, usual_policy_names
from gpusched_env.workload import (
    SUITE_VERSION,
    InstanceMaker,
    builtin_scenarios,
    list_tracks,
    load_scenario,
    load_track,
    offered_load,
)
from gpusched_experiments.cli.app import app
from gpusched_experiments.cli.scenarios import load_of
from own_cluster import write_own_cluster


def test_all_policies_are_listed_with_what_they_do_and_those_that_a_comparison_runs_by_default_are_marked():
    done = gpusched("policies")
    for name, line in policy_descriptions().items():
        assert name in done.stdout
        assert line in done.stdout
    marked = [row.split()[0] for row in gpusched("policies").stdout.splitlines() if row.split()[1:2] == ["yes"]]
    assert marked == list(usual_policy_names())
    assert marked[:2] == ["fifo", "edf"]
    assert "path-relinking" not in marked


def test_all_tracks_are_listed_with_what_is_hard():
    done = CliRunner().invoke(app, ["tracks"], env={"COLUMNS": "300"})
    for name in list_tracks():
        assert f"{name} " in done.stdout
        assert load_track(name).hard in done.stdout
    assert f"Tracks, suite {SUITE_VERSION}" in done.stdout


def test_a_track_is_printed_as_a_file_that_loads_back(tmp_path):
    path = tmp_path / "flow-time.toml"
    path.write_text(gpusched("tracks", "flow-time").stdout, encoding="utf-8")
    assert load_track(path) == load_track("flow-time")
    done = gpusched("tracks", "nowhere")
    assert done.exit_code == 2
    assert "track = 'nowhere'; allowed: one of a100-h200, busy" in done.stderr


def test_all_scenarios_are_listed_with_their_load():
    done = gpusched("scenarios")
    for name, scenario in builtin_scenarios().items():
        assert name in done.stdout
        assert scenario.description[:40] in done.stdout
    rows = {row.split()[0]: row for row in gpusched("scenarios").stdout.splitlines() if row.split()}
    make = InstanceMaker(load_scenario("large")).make
    assert f" {fmean(offered_load(make(seed)) for seed in range(3)):.2f} " in rows["large"]
    assert load_of(load_scenario("burst")) is None


def test_a_scenario_is_shown_as_a_file_that_loads_back_also_one_of_ones_own(tmp_path):
    path = write_own_cluster(tmp_path)
    (tmp_path / "shown.toml").write_text(gpusched("scenarios", "--show", str(path)).stdout)
    assert load_scenario(tmp_path / "shown.toml") == load_scenario(path)
    done = succeeds("scenarios", "--show", "high")
    assert tomllib.loads(done.stdout)["name"] == "high"
    (tmp_path / "mine.toml").write_text(done.stdout)
    assert load_scenario(tmp_path / "mine.toml") == load_scenario("high")


def test_a_shown_scenario_names_what_a_comparison_can_be_told():
    shown = gpusched("scenarios", "--show", "default").stdout
    section = shown.split("[compare]\n")[1].split("\n\n")[0]
    names = [line.split()[1] for line in section.splitlines()]
    assert names == ["policies", "seeds", "reference", "gpu_demands", "workers"]
    assert '"0-39", with a trace "0-4"' in section


def test_the_version_is_printed_and_every_command_has_a_help_text():
    done = gpusched("--version")
    assert (done.exit_code, done.stdout) == (0, f"gpusched {gpusched_experiments.__version__}\n")
    for command in ("compare", "simulate", "audit", "scenarios", "policies"):
        assert command in gpusched("--help").stdout
        assert gpusched(command, "--help").exit_code == 0
    assert "gpusched compare --trace" in gpusched("compare", "-h").stdout.replace("\n", " ")
