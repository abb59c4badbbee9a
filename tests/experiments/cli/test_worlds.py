"""`gpusched worlds`: drawn scenarios, parts left out, seeds that confirm, and limits."""

import csv
from functools import partial

import numpy as np
import pytest

from commands import assert_one_error, gpusched, succeeds
from gpusched_env.workload import Scenario, draw_scenario, make_instance
from gpusched_experiments.cli import worlds
from gpusched_experiments.cli.world_costs import ComparedScenario, Limits, Summary, cost_ratio
from gpusched_experiments.cli.world_runs import WorldRuns, names_of
from gpusched_experiments.cli.world_studies import POLICIES, without_shares, without_types
from gpusched_experiments.report.estimate import Estimate

JOBS = ("submission_s", "due_s", "epochs_needed", "max_epochs", "tardiness_weight_eur_per_s", "application", "tenant")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(worlds, "draw_scenario", partial(draw_scenario, most_jobs=8))
    return tmp_path / "worlds"


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def cost(path, policy):
    return sum(float(row["total_eur"]) for row in rows(path / "runs.csv") if row["policy"] == policy)


def same_jobs(scenario: Scenario, variant: Scenario) -> bool:
    pairs = [(make_instance(scenario, seed).jobs, make_instance(variant, seed).jobs) for seed in (0, 91_000)]
    return all(np.array_equal(getattr(own, name), getattr(other, name)) for own, other in pairs for name in JOBS)


def test_it_draws_compares_and_goes_on(folder):
    asked = ("worlds", "--count", 2, "--seed", 3, "--seeds", "0-1", "-p", "edf,sts", "-r", "sts", "-w", 1)
    done = succeeds(*asked, "--out", folder)
    assert "note: drawn-3-1, 2 of 2" in done.stderr
    text = (folder / "worlds.csv").read_text()
    assert [row["scenario"] for row in sorted(rows(folder / "worlds.csv"), key=str)] == ["drawn-3-0", "drawn-3-1"]
    assert (folder / "drawn-3-1" / "scenario.toml").exists()
    again = succeeds(*asked, "--out", folder)
    assert again.output.count("4 of 4 runs are finished already") == 2
    assert (folder / "worlds.csv").read_text() == text


def test_the_best_other_runs_again_on_other_seeds_only_where_it_was_cheaper_and_limits_end_in_code_1(folder):
    asked = ("worlds", "-n", 2, "--seed", 6, "--seeds", "0-1", "-p", "fifo,sts,edf", "-r", "edf", "-w", 1, "-o", folder)
    asked += ("--confirm", "5-9")
    succeeds(*asked, "--max-ratio", 1e6, "--max-mean", 1e6, "--max-cheaper", 3)
    found = {row["scenario"]: row for row in rows(folder / "worlds.csv")}
    cheaper = {name for name, row in found.items() if float(row["chosen_ratio"]) > 1.0}
    assert cheaper == {"drawn-6-1"}
    assert {name: row["seeds"] for name, row in found.items()} == {n: "5" if n in cheaper else "2" for n in found}
    assert {path.name for path in folder.glob("*-confirm")} == {f"{name}-confirm" for name in cheaper}
    for name in cheaper:
        assert {row["policy"] for row in rows(folder / f"{name}-confirm" / "runs.csv")} == {"edf", found[name]["other"]}
        own, other = (cost(folder / f"{name}-confirm", policy) for policy in ("edf", found[name]["other"]))
        assert float(found[name]["ratio"]) == pytest.approx(own / other)
    ratios = [float(row["ratio"]) for row in found.values()]
    mean = float(np.exp(np.mean(np.log(ratios))))
    missed = gpusched(*asked, "--max-ratio", max(ratios) - 1e-3, "--max-mean", mean - 1e-3)
    assert missed.exit_code == 1
    assert "--max-ratio: " in missed.stderr
    assert "--max-mean: " in missed.stderr
    assert "wrote" in missed.stdout


def test_where_the_reference_is_cheapest_nothing_runs_again(folder):
    asked = ("worlds", "-n", 1, "--seed", 3, "--seeds", "0-1", "-p", "fifo", "-r", "sts", "-w", 1, "-o", folder)
    done = succeeds(*asked, "--confirm", "5-9", "--max-ratio", 1, "--max-cheaper", 0)
    assert not list(folder.glob("*-confirm"))
    assert "in 0 the best other policy is more than 2 % cheaper than sts, in 0 surely" in done.stdout


def test_each_type_is_left_out_on_scenarios_with_several(folder):
    asked = ("worlds", "--without", "types", "-n", 2, "--seed", 3, "-r", "edf", "-w", 1, "-o", folder)
    succeeds(*asked, "--seeds", "0-1", "--confirm", "5-6")
    found = rows(folder / "without-types.csv")
    types = {f"drawn-3-{i}": draw_scenario(3, i).cluster.gpu_types for i in (0, 1)}
    expected = {(name, f"without {gpu_type}") for name, own in types.items() for gpu_type in own}
    assert {(row["scenario"], row["other"]) for row in found} == expected
    cheaper = [row for row in found if float(row["chosen_ratio"]) > 1.0]
    variants = {f"{row['scenario']}-{row['other'].replace(' ', '-')}-confirm": row for row in cheaper}
    assert variants
    assert {path.name for path in folder.glob("*-without-*-confirm")} == {*variants}
    for name, row in variants.items():
        own = cost(folder / f"{row['scenario']}-confirm", "edf")
        assert float(row["ratio"]) == pytest.approx(own / cost(folder / name, "edf"))
    assert f"{len(found)} comparisons on 2 scenarios" in (folder / "without-types.md").read_text()


def test_it_draws_until_there_are_scenarios_with_shares(folder):
    asked = ("worlds", "--without", "shares", "-n", 1, "--seed", 2, "--seeds", "0-1", "-r", "edf", "-w", 1)
    succeeds(*asked, "-o", folder)
    (row,) = rows(folder / "without-shares.csv")
    assert (row["scenario"], row["other"]) == ("drawn-2-2", "without shares")
    assert {path.name for path in folder.iterdir() if path.is_dir()} == {"drawn-2-2", "drawn-2-2-without-shares"}


@pytest.mark.parametrize("index", [1, 2])
def test_without_a_type_the_jobs_are_the_same_and_nothing_is_of_that_type(index):
    scenario = draw_scenario(2, index, 20)  # one with tenants, one with shares
    variants = without_types(scenario)
    assert list(variants) == [f"without {gpu_type}" for gpu_type in scenario.cluster.gpu_types]
    for gpu_type, variant in zip(scenario.cluster.gpu_types, variants.values(), strict=True):
        instance = make_instance(variant, 0)
        assert gpu_type not in {c.gpu_type for c in instance.configurations} | {v.name for v in instance.gpu_types}
        assert {node.gpu_type for node in instance.nodes} == {*scenario.cluster.gpu_types} - {gpu_type}
        assert same_jobs(scenario, variant)


def test_a_type_without_which_an_application_fits_nowhere_is_not_left_out():
    small = {"name": "small", "max_epochs": 10, "memory_gib": 4.0, "seconds": {"A100": [100.0], "T4": [400.0]}}
    large = {"name": "large", "max_epochs": 10, "memory_gib": 30.0, "seconds": {"A100": [100.0], "T4": [400.0]}}
    pools = [{"gpu_type": "A100", "nodes": 1}, {"gpu_type": "T4", "nodes": 1}]
    scenario = Scenario(applications=[small, large], cluster={"pools": pools}, arrivals={"kind": "simultaneous"})
    assert list(without_types(scenario)) == ["without T4"]
    assert without_types(Scenario(cluster={"pools": pools[:1]})) == {}


def test_without_shares_the_jobs_are_the_same_and_have_whole_gpus():
    scenario = draw_scenario(5, 0, 20)
    (variant,) = without_shares(scenario).values()
    assert "shared" in {c.kind for c in make_instance(scenario, 0).configurations}
    assert {c.kind for c in make_instance(variant, 0).configurations} == {"single-node"}
    assert same_jobs(scenario, variant)
    assert without_shares(draw_scenario(3, 0)) == {}


def test_by_default_all_quick_policies_run_but_variants_of_the_reference():
    names = names_of(None, "sts-x")
    assert names[0] == "sts-x"
    assert {"edf", "sts", "atc", "easy", "conservative", "slurm-backfill", "multifactor"} < {*names}
    assert not {"random-greedy", "gavel:las", "as-traced", "cap:uniform", "sts-x:no-price"} & {*names}
    assert {"sts-x", "greedy"} < {*names_of(None, "edf")}
    assert "greedy:fill" not in names_of(None, "greedy")


def compared(ratio: float, low: float | None = None, confirmed: Estimate | None = None) -> ComparedScenario:
    estimate = Estimate(ratio, None if low is None else (low, 2.0 * ratio), 5)
    return ComparedScenario(Scenario(name=f"s-{ratio}"), "atc", 1.0, estimate, confirmed)


def test_a_study_comes_to_its_worst_ratio_its_mean_and_how_often_another_is_surely_cheaper():
    given = [
        compared(1.5, 1.1),
        compared(1.02, 1.01),  # less than 2 % cheaper: 0.98 · 1.02 < 1
        compared(2.0, 1.5, Estimate(1.05, (1.01, 1.1), 20)),  # not surely, on the seeds that confirm
        compared(1.0 / 1.5 / 1.02 / 1.05),
    ]
    summary = Summary.of(given, 0.02)
    assert (summary.scenarios, summary.rows, summary.cheaper, summary.surely) == (4, 4, 2, 1)
    assert summary.mean == pytest.approx(1.0)
    assert summary.worst is given[0]
    assert "in 2 the best other policy is more than 2 % cheaper than sts-x, in 1 surely" in summary.text(
        POLICIES, "sts-x"
    )
    assert Limits().missed(summary) == []
    assert Limits(max_ratio=1.5, max_mean=1.001, max_cheaper=1).missed(summary) == []
    assert Limits(max_ratio=1.05, max_mean=0.84, max_cheaper=0).missed(summary) == [
        "--max-ratio: 1.500, allowed: at most 1.05",
        "--max-mean: 1.000, allowed: at most 0.84",
        "--max-cheaper: 1, allowed: at most 0",
    ]


def test_a_ratio_is_one_of_sums_and_its_ends_are_those_of_the_saving():
    ratio = cost_ratio([2.0, 4.0, 2.0, 4.0, 2.0], [1.0, 2.0, 1.0, 2.0, 1.0])
    assert ratio.value == pytest.approx(2.0)
    assert ratio.interval == pytest.approx((2.0, 2.0))
    spread = cost_ratio([2.0, 2.0, 2.0, 2.0, 2.0], [1.0, 1.0, 1.0, 1.0, 3.0])
    assert spread.value == pytest.approx(10.0 / 7.0)
    assert spread.interval is not None
    assert 2.0 / 3.0 <= spread.interval[0] < spread.value < spread.interval[1] <= 2.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--count", 0), "--count = 0"),
        (("--policies", "sts-x"), "--policies = 'sts-x'; allowed: a policy other than the reference sts-x"),
        (("--confirm", "91004-91010"), "--confirm = '91004-91010'; allowed: seeds that are none of --seeds"),
        (("--without", "nodes"), "--without = 'nodes'; allowed: one of types, shares"),
        (("--without", "types", "-p", "edf"), "--policies = 'edf'; allowed: nothing with --without"),
        (("--max-ratio", 0), "--max-ratio = 0.0; allowed: a finite number > 0"),
        (("--max-mean", -1), "--max-mean = -1.0; allowed: a finite number > 0"),
        (("--max-cheaper", -1), "--max-cheaper = -1; allowed: a whole number >= 0"),
    ],
)
def test_wrong_options_are_one_error_and_nothing_is_written(folder, options, words):
    assert_one_error(gpusched("worlds", *options, "--out", folder), [words])
    assert not folder.exists()


def test_the_reference_comes_first_and_policies_are_made_once(tmp_path):
    runs = WorldRuns.of(["sts", "edf"], "0-1", None, 1, tmp_path)
    assert (runs.reference, list(runs.policies)) == ("sts", ["sts", "edf"])
