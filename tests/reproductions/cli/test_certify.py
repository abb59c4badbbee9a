import csv
import io
import json
import sys

import pytest

from commands import gpusched
from gpusched_reproductions.certify.certified_run import BoundBrokenError
from gpusched_reproductions.cli import certify as command

SMALL = ("--jobs", 3, "--nodes", 2, "--set", "cluster.gpus_per_node=2")


@pytest.mark.usefixtures("_needs_highs")
def test_it_prints_the_gaps_and_writes_every_run_and_where_it_comes_from(tmp_path):
    out = tmp_path / "certificate"
    done = gpusched("certify", "--quick", "-p", "edf,sts", "--problems", "round,known", *SMALL, "--out", out)
    assert done.exit_code == 0, done.output
    for word in ("solver gap", "median gap", "edf", "sts", "4 problems", f"wrote {out / 'certificate.csv'}"):
        assert word in done.stdout
    rows = list(csv.DictReader(io.StringIO((out / "certificate.csv").read_text())))
    assert [(row["seed"], row["problem"], row["policy"]) for row in rows] == [
        (seed, problem, policy) for seed in "01" for problem in ("round", "known") for policy in ("edf", "sts")
    ]
    assert all(float(row["cost_eur"]) >= float(row["bound_eur"]) * (1 - 1e-6) for row in rows)
    record = json.loads((out / "certificate.json").read_text())
    facts = record["provenance"]["facts"]
    assert (facts["seeds"], facts["problems"], facts["policies"]) == ([0, 1], ["round", "known"], ["edf", "sts"])
    assert facts["scenario"]["jobs"]["count"] == 3
    assert facts["scenario"]["cluster"]["gpus_per_node"] == 2
    assert set(facts["solver"]) == {"pyomo", "highspy"}
    assert len(record["runs"]) == 8


@pytest.mark.usefixtures("_needs_highs")
def test_a_policy_with_more_memory_of_jobs_than_others_is_certified():
    done = gpusched("certify", "-p", "gavel:las-packed", "--seeds", "0", "--problems", "round")
    assert done.exit_code == 0, done.output


@pytest.mark.usefixtures("_needs_highs")
def test_shares_and_whole_nodes_are_certified_too():
    settings = (
        "sharing.fractions=[0.5]",
        "jobs.node_counts=[1,2]",
        'cluster.gpu_types=["T4"]',
        "cluster.gpus_per_node=4",
    )
    kinds = [word for setting in settings for word in ("--set", setting)]
    done = gpusched("certify", "-p", "sts", "--seeds", "0", *SMALL, *kinds)
    assert done.exit_code == 0, done.output
    assert "3 problems" in done.stdout


def test_policies_that_do_not_fit_beside_one_another_get_a_table_each_and_a_broken_bound_is_one_line(monkeypatch):
    names = ["edf", "random-greedy", "sts", "fifo"]
    assert command._groups(names, 190) == [names]
    assert command._groups(names, 100) == [["edf", "random-greedy"], ["sts", "fifo"]]
    assert command._groups(names, 40) == [[name] for name in names]

    def broken(*_, **__):
        raise BoundBrokenError("policy edf costs 1 €, below 2 €")

    monkeypatch.setattr(command, "certify", broken)
    done = gpusched("certify", "-p", "edf", "--seeds", "0", *SMALL)
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (1, "error: policy edf costs 1 €, below 2 €")


def test_a_missing_solver_is_one_line_that_says_how_to_get_it(monkeypatch):
    for module in ("pyomo", "pyomo.environ", "highspy"):
        monkeypatch.setitem(sys.modules, module, None)
    done = gpusched("certify", "-p", "edf", "--seeds", "0", *SMALL)
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].startswith("error: the solver HiGHS needs the package")
    assert 'pip install "gpusched-env[solvers]"' in done.stderr


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("--problems", "rounds"), "--problems"),
        (("--problems", "round,round"), "--problems"),
        (("--seeds", "3-1"), "--seeds"),
        (("--limit", 0), "--limit"),
        (("--policies", "best"), "policy"),
        (("--jobs", 0), "jobs.count"),
    ],
)
def test_bad_options_are_named(arguments, field):
    done = gpusched("certify", *arguments)
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].startswith(f"error: {field}")


@pytest.mark.usefixtures("_needs_highs")
def test_an_instance_that_is_not_small_is_refused(monkeypatch):
    monkeypatch.setattr("gpusched_reproductions.certify.patterns.MOST", 10)
    done = gpusched("certify", "-p", "edf", "--seeds", "0", "--problems", "known", *SMALL)
    assert (done.exit_code, "at most 10 patterns" in done.stderr) == (2, True)
