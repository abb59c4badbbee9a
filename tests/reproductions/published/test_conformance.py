"""The policies under published names against the published program's answers on 40 instances of its generator.

Of the answers `G` is Greedy and `PS` is Priority. Ties between nodes and GPU types may fall otherwise: the two types
are within 5 % of one another.
"""

import csv
import io
from pathlib import Path

import numpy as np
import pytest

from gpusched_baselines import make_policy
from gpusched_env import Result, simulate
from gpusched_experiments.report.experiment import Selection
from gpusched_experiments.report.run import Runs
from gpusched_experiments.report.table import csv_text
from gpusched_reproductions.published import EXPERIMENTS
from gpusched_reproductions.published.reference_instances import reference_answers, reference_instance, reference_names

ROOT = Path(__file__).parents[3]
PLACES = [folder / "shared" / "data" / "gpuspb" for folder in (ROOT.parent, ROOT.parent.parent)]
FOLDER = next((place for place in PLACES if place.is_dir()), PLACES[0])
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"the published inputs are not in {FOLDER}")

SAME = {"FIFO": "fifo", "EDF": "edf", "PS": "priority", "EDF-mean": "edf:mean", "G": "greedy"}


@pytest.fixture(scope="module")
def instances():
    return {name: reference_instance(FOLDER, name) for name in reference_names(FOLDER)}


def runs(instances, policy: str) -> dict[str, Result]:
    return {name: simulate(instance, make_policy(policy), record=False) for name, instance in instances.items()}


def ratios(results: dict[str, Result], method: str) -> np.ndarray:
    answers = reference_answers(FOLDER)
    return np.array([result.energy_eur / answers[name, method].energy_eur for name, result in results.items()])


def test_there_are_forty_instances_of_four_kinds_and_two_sizes(instances):
    assert {tuple(name.split("-")[:2]) for name in instances} == {
        (kind, nodes) for kind in ("high", "low", "mixed", "exponential") for nodes in ("10", "20")
    }
    assert {(len(i.nodes), len(i.jobs)) for i in instances.values()} == {(10, 100), (20, 200)}
    assert len(instances) == 40


@pytest.mark.parametrize("method", SAME)
def test_energy_is_that_of_the_published_program(instances, method):
    found = ratios(runs(instances, SAME[method]), method)
    assert found.mean() == pytest.approx(1.0, abs=0.003)
    assert found == pytest.approx(np.ones(40), abs=0.02)


def test_greedy_is_never_late_and_edf_mean_is_as_late_as_published(instances):
    answers = reference_answers(FOLDER)
    assert all(result.tardiness_eur == 0.0 for result in runs(instances, "greedy").values())
    for name, result in runs(instances, "edf:mean").items():
        assert result.tardiness_eur == pytest.approx(answers[name, "EDF-mean"].tardiness_eur, rel=0.01)


@pytest.mark.parametrize("policy", ["sts", "sts:published"])
def test_sts_costs_less_energy_than_published_and_is_hardly_late(instances, policy):
    """Two of 6,000 jobs are late, where more jobs want eight GPUs than there are: 37 €, and 37,152 € as published."""
    results = runs(instances, policy)
    assert ratios(results, "STS").mean() < 0.96
    assert {name: result.late_jobs for name, result in results.items() if result.late_jobs} == {
        "exponential-20-0": 1, "high-20-0": 1,
    }  # fmt: skip
    assert sum(result.tardiness_eur for result in results.values()) < 40.0


def test_the_experiment_prints_the_same_deviations():
    cells = EXPERIMENTS["conformance"].cells(Selection(quick=True), ("greedy",))
    assert len(cells) == 16
    experiment = EXPERIMENTS["conformance"]
    made = [(dict(c.labels), c.policy, c.seed, c.run()) for c in cells]
    row = next(csv.DictReader(io.StringIO(csv_text(experiment.summary(Runs.of(made))))))
    answers = reference_answers(FOLDER)
    names = [dict(cell.labels)["instance"] for cell in cells]
    found = [v["energy_eur"] / answers[n, "G"].energy_eur - 1.0 for n, (*_, v) in zip(names, made, strict=True)]
    assert float(row["energy_deviation"]) == pytest.approx(np.mean(found))
    assert float(row["largest_deviation"]) == pytest.approx(max(found, key=abs))


def test_the_saving_of_the_published_program_stands_beside_ours():
    cells = EXPERIMENTS["conformance"].cells(Selection(quick=True), ("edf", "sts"))
    answers = reference_answers(FOLDER)

    def energy(name: str, policy: str) -> float:
        return answers[name, "EDF"].energy_eur * (0.5 if policy == "sts" else 1.0)

    made = [
        (dict(c.labels), c.policy, c.seed, {"energy_eur": energy(dict(c.labels)["instance"], c.policy)}) for c in cells
    ]
    table = csv_text(EXPERIMENTS["conformance"].more["saving"](Runs.of(made)))
    rows = {row["arrivals"]: row for row in csv.DictReader(io.StringIO(table))}
    assert {name: row["instances"] for name, row in rows.items()} == {
        "all": "16", "exponential": "4", "high": "4", "low": "4", "mixed": "4",
    }  # fmt: skip
    assert {float(row["saving_of_sts"]) for row in rows.values()} == {0.5}
    names = [f"low-{nodes}-{seed}" for nodes in (10, 20) for seed in (0, 1)]
    sts, edf = (sum(answers[name, method].energy_eur for name in names) for method in ("STS", "EDF"))
    assert float(rows["low"]["published_saving"]) == pytest.approx(1 - sts / edf)
