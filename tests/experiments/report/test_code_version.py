"""Which code made a run."""

import importlib
import json
import os
import re
import subprocess
import sys
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest

from agent_folders import description, weights
from gpusched_agents.any_policy import maker_of
from gpusched_agents.files.storage import save_agent
from gpusched_env.child_processes import usable_cores
from gpusched_env.mechanisms.failures.model import Failures
from gpusched_env.simulator.builds import FORCED
from gpusched_experiments.leaderboard.plan import hindsight_of
from gpusched_experiments.report import cell
from gpusched_experiments.report.cell import WHOLE_RUN, Measure, origin
from gpusched_experiments.report.code_version import (
    agent_version,
    code_version,
    commit,
    machine,
    mechanisms_of,
    reproductions_version,
    run_version,
    version_beside,
)
from gpusched_experiments.report.import_graph import ImportGraph
from gpusched_reproductions.published.changes import SpeedUp
from gpusched_reproductions.published.workloads import ONE_ROUND
from instances import random_instance

module = sys.modules[code_version.__wrapped__.__module__]
RUN = """
import json, sys
from gpusched_env.workload import load_scenario
from gpusched_experiments.report.cell import Cell
tiny = load_scenario("tiny").replace({"jobs.count": 3})
for policy in ("sts-x", "gavel:las", "random-greedy"):
    Cell((), tiny, policy, 0).run()
print(json.dumps([name for name in sys.modules if name.startswith("gpusched_")]))
"""
ALONE = """
import json, sys
from gpusched_baselines import make_policy
from gpusched_env import simulate
from gpusched_env.workload import load_scenario, make_instance
simulate(make_instance(load_scenario("tiny").replace({"jobs.count": 3}), 0), make_policy(sys.argv[1]))
print(json.dumps([name for name in sys.modules if name.startswith("gpusched_")]))
"""
NAMES_AT_RUN_TIME = {
    "gpusched_agents.any_policy",
    "gpusched_agents.files.own_code",
    "gpusched_baselines.registry",
    "gpusched_baselines.solvers.errors",
    "gpusched_env.hooks",
    "gpusched_env.lazy",
    "gpusched_env.linking",
    "gpusched_env.parts",
}
"""Modules that import by names that no source spells out: of policies, agents, extras, mechanisms, lazy packages.

`linking` imports modules of kernels that the modules of their callers import.
"""


class Changed(ImportGraph):
    """The installed packages, with one byte more in the file of one module or table."""

    changed: Path | None = None

    def digest(self, path: Path) -> str:
        return sha256(path.read_bytes() + b"#").hexdigest() if path == self.changed else super().digest(path)


@pytest.fixture
def graph(monkeypatch) -> Changed:
    made = Changed.installed()
    modules = made.modules_of(module._run_modules())
    monkeypatch.setattr(module, "_graph", lambda: made)
    monkeypatch.setattr(module, "_run_modules", lambda: modules)
    return made


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    plain = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", RUN], env=plain, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_one_byte_more_in_any_module_that_a_run_loads_is_another_version(loaded, graph):
    assert {"gpusched_env.cells.tree", "gpusched_env.arrays", "gpusched_env.errors"} <= loaded
    assert loaded <= module._run_modules()
    versions = {code_version.__wrapped__()}
    assert versions == {code_version()}
    for name in loaded:
        graph.changed = graph._file(name)
        versions.add(code_version.__wrapped__())
    assert len(versions) == 1 + len(loaded)


@pytest.mark.parametrize(
    "name",
    [
        "gpusched_experiments.cli.main",
        "gpusched_operations.html_report.document",
        "gpusched_experiments.report.table",
        "gpusched_experiments.report.comparison",
        "gpusched_env.rendering.gantt",
        "gpusched_env.audit",
        "gpusched_agents.policy",
    ],
)
def test_reports_commands_and_pictures_do_not_decide(graph, name):
    before = code_version()
    assert name not in module._run_modules()
    graph.changed = graph._file(name)
    assert graph.changed is not None
    assert code_version.__wrapped__() == before


@pytest.mark.parametrize("table", ["tables/data/hourly_prices.csv.xz", "scenarios/tiny.toml", "tracks/slack.toml"])
def test_tables_decide(graph, table):
    before = code_version()
    graph.changed = graph._file("gpusched_env.workload").parent / table
    assert graph.changed.is_file()
    assert code_version.__wrapped__() != before


def test_the_present_code_has_a_version_and_its_modules_import_by_names_that_a_source_spells_out():
    graph = module._graph()
    found = {name for name in module._run_modules() if re.search(r"import_module\((?![\"'])", graph.source(name))}
    assert found <= NAMES_AT_RUN_TIME
    assert re.fullmatch("[0-9a-f]{16}", code_version())
    assert f"{usable_cores()} cores" in machine()


def test_the_version_of_an_agent_follows_its_files_and_what_applies_them_but_not_how_agents_are_trained(
    tmp_path, graph, monkeypatch
):
    monkeypatch.setattr(module, "version_beside", version_beside.__wrapped__)
    save_agent(tmp_path / "mine", description(), weights())
    name = f"agent:{tmp_path / 'mine'}"
    versions = {agent_version(name)}
    for unused in ("training.evolution", "training.config", "study"):
        graph.changed = graph._file(f"gpusched_agents.{unused}")
        assert versions == {agent_version(name)}
    for used in ("policy", "network.control_policy"):
        graph.changed = graph._file(f"gpusched_agents.{used}")
        versions.add(agent_version(name))
    save_agent(tmp_path / "mine", description(), weights(1))
    versions.add(agent_version(name))
    save_agent(tmp_path / "mine", description(algorithm="other"), weights(1))
    versions.add(agent_version(name))
    assert len(versions) == 5


def test_the_version_of_an_archive_follows_the_parameters_beside_it(tmp_path):
    (tmp_path / "model.zip").write_bytes(b"model")
    name = f"sb3:{tmp_path / 'model'}"
    versions = {agent_version(name)}
    for text in ("{}", '{"parameters": {"rounds": 4}}'):
        (tmp_path / "model.zip.env.json").write_text(text, encoding="utf-8")
        versions.add(agent_version(name))
    assert len(versions) == 3


@pytest.mark.parametrize(
    ("changed", "old", "same"),
    [
        ("gpusched_baselines.sts_x.waits", {"sts-x", "agent:default"}, {"edf", "sts", "gavel:las"}),
        ("gpusched_baselines.dispatching.dispatch", {"edf"}, {"sts", "sts-x", "gavel:las"}),
        ("gpusched_baselines.gavel.policy", {"gavel:las"}, {"edf", "sts-x", "agent:default"}),
        ("gpusched_baselines.shared_gpus.fill", {"sts-x:tuned", "fill"}, {"edf", "sts-x", "agent:default"}),
        ("gpusched_env.simulator.view", {"edf", "sts", "sts-x", "gavel:las", "agent:default"}, set()),
    ],
)
def test_a_run_is_old_where_a_module_changed_that_its_policy_loads(graph, changed, old, same):
    before = {name: run_version.__wrapped__(name) for name in old | same}
    graph.changed = graph._file(changed)
    assert graph.changed is not None
    assert {name for name in before if run_version.__wrapped__(name) != before[name]} == old


def test_a_run_is_old_where_a_mechanism_changed_that_its_instance_uses(graph, monkeypatch):
    monkeypatch.setenv(FORCED, "")
    shared, plain = random_instance(0, interference=True), random_instance(0)
    failing = plain.with_mechanisms(Failures((), (0.0,) * len(plain.gpu_types), 0.0))
    used = {"plain": plain, "shared": shared, "failing": failing}
    mechanisms = {name: mechanisms_of(instance) for name, instance in used.items()}
    before = {name: run_version.__wrapped__("edf", mechanisms[name]) for name in used}
    old = []
    for changed in ("shares.kernels", "failures.kernels", "cells.kernels"):
        graph.changed = graph._file(f"gpusched_env.mechanisms.{changed}")
        assert graph.changed is not None
        old.append({name for name in used if run_version.__wrapped__("edf", mechanisms[name]) != before[name]})
    assert old == [{"shared"}, {"failing"}, set()]


def test_a_schedule_in_hindsight_is_old_where_one_of_its_rules_changed(graph):
    modules = tuple(sorted(cell._modules_of(hindsight_of(10).of)))
    before = run_version.__wrapped__("edf", (), modules)
    graph.changed = graph._file("gpusched_baselines.index_rules.policy")
    assert run_version.__wrapped__("edf", (), modules) != before


@pytest.mark.parametrize("policy", ["rollout", "gavel:las", "sts-x:tuned"])
def test_a_run_loads_nothing_that_its_version_leaves_out(policy):
    plain = os.environ | {"NUMBA_DISABLE_JIT": "1", FORCED: ""}
    done = subprocess.run([sys.executable, "-c", ALONE, policy], env=plain, capture_output=True, text=True, check=True)
    known = module._graph().modules_of((*module._RUN, maker_of(policy)), passing=module._PASSING)
    assert set(json.loads(done.stdout)) <= known


def test_a_run_is_old_where_a_mechanism_of_the_user_changed(tmp_path, monkeypatch):
    package = tmp_path / "site_of_ours" / "lorries"
    package.mkdir(parents=True)
    (package / "model.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("site_of_ours.lorries.model")
    before = run_version.__wrapped__("edf", ("site_of_ours.lorries",))
    assert before.startswith(f"{code_version()}-")  # it may import any of our modules
    versions = {before}
    for name in ("kernels.py", "rates.csv"):
        (package / name).write_text("RATE = 2\n", encoding="utf-8")
        versions.add(run_version.__wrapped__("edf", ("site_of_ours.lorries",)))
    assert len(versions) == 3


def test_measures_and_changes_of_other_modules_add_their_version():
    assert origin("edf") == run_version("edf") != run_version("sts") != code_version()
    assert origin("edf", Measure("partial", partial(WHOLE_RUN.of))) == run_version("edf")
    assert origin("edf", change=SpeedUp) == run_version("edf", (), ("gpusched_reproductions.published.changes",))
    assert run_version("edf") not in {origin("edf", change=SpeedUp), origin("edf", ONE_ROUND).partition(",")[0]}
    assert machine() in origin("edf", ONE_ROUND)
    beside_run = module._graph().modules_of(["gpusched_reproductions.published.forecast_check"]) - module._run_modules()
    assert {name for name in beside_run if ".report." in name} == set()


def test_where_nothing_is_reproduced_the_rest_decides(monkeypatch):
    assert reproductions_version()
    folders = {name: folder for name, folder in ImportGraph.installed()._folders.items() if "reprod" not in name}
    before = code_version()
    monkeypatch.setattr(module, "_graph", lambda: ImportGraph(folders))
    assert code_version.__wrapped__() == before
    assert reproductions_version.__wrapped__() == version_beside.__wrapped__("gpusched_reproductions.published") == ""


def test_the_commit_is_that_of_the_checkout_and_says_whether_sources_differ(tmp_path, monkeypatch):
    def git(*arguments: str) -> str:
        made = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(made, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()

    source = tmp_path / "experiments" / "code.py"
    source.parent.mkdir()
    source.write_text("1\n")
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "first")
    monkeypatch.setattr(module, "__file__", str(source))
    head = git("rev-parse", "HEAD")
    assert commit.__wrapped__() == head
    source.write_text("2\n")
    assert commit.__wrapped__() == head + "+"
    monkeypatch.setattr(module, "__file__", str(tmp_path.parent / "code.py"))
    assert commit.__wrapped__() is None
