"""Certificates: gaps worked out by hand, and what breaks them."""

import csv
import io
import json
import math

import numpy as np
import pytest

from gpusched_baselines import Greedy, fifo, make_policy
from gpusched_env import Configuration, Instance
from gpusched_reproductions.certify import RoundCertificate
from gpusched_reproductions.certify import certified_run as module
from gpusched_reproductions.certify.certified_run import (
    BoundBrokenError,
    CertifiedRun,
    certificate_csv,
    certificate_json,
    certify,
    gap_text,
    instance_table,
    notes,
    policy_table,
    static_instance,
)
from instances import random_instance
from refusals import refused
from small_instances import CERTAIN, hours_job, kilowatt_cluster

ONE, TWO = Configuration("V", 1), Configuration("V", 2)


def one_job(_: int) -> Instance:
    """3 h on one GPU for 3 €, 2 h on two for 4 €, due after 2.5 h: half and half, for 3.50 €, is the best."""
    return kilowatt_cluster([hours_job(2.5, {ONE: 3.0, TWO: 2.0})], [2], [ONE, TWO])


@pytest.mark.usefixtures("_needs_highs")
def test_a_gap_worked_by_hand():
    """FIFO takes two GPUs throughout, for 4 € where 3.50 would do, and in the round for 4 € where one GPU takes 3."""
    runs = certify(one_job, [fifo()], [0, 1])
    assert [(run.seed, run.problem) for run in runs] == [(s, p) for s in (0, 1) for p in ("round", "known", "hidden")]
    for run in runs:
        assert (run.policy, run.jobs, run.nodes) == ("fifo", 1, 1)
        assert run.cost_eur == pytest.approx(4.0)
        if run.problem == "round":
            assert run.gap >= 0.0
        else:
            assert run.bound_eur == pytest.approx(3.5)
            assert run.gap == pytest.approx(0.5 / 3.5)
            assert not run.optimal


@pytest.mark.usefixtures("_needs_highs")
def test_sts_finds_the_optimum_of_one_job_alone():
    (run,) = certify(one_job, [make_policy("sts")], [0], problems=["known"])
    assert run.optimal
    assert run.gap == pytest.approx(0.0, abs=1e-6)


@pytest.mark.usefixtures("_needs_highs")
def test_a_bound_that_is_broken_is_an_error(monkeypatch):
    monkeypatch.setattr(module, "certify_round", lambda *_, **__: RoundCertificate(99.0, 99.0, (0,), 1, 0.0))
    with pytest.raises(BoundBrokenError, match="policy fifo costs 4"):
        certify(one_job, [fifo()], [0], problems=["round"])


def test_a_static_instance_keeps_the_time_to_the_due_date_and_a_known_one_needs_all_its_epochs():
    instance = random_instance(0, restart_s=50.0)
    static = static_instance(instance, known=False)
    assert np.all(static.jobs.submission_s == 0.0)
    assert static.jobs.due_s == pytest.approx(instance.jobs.due_s - instance.jobs.submission_s)
    assert np.all(static.jobs.restart_s == 0.0)
    assert np.array_equal(static.jobs.epochs_needed, instance.jobs.epochs_needed)
    static = static_instance(random_instance(0), known=True)
    assert np.array_equal(static.jobs.epochs_needed, static.jobs.max_epochs)
    assert static.jobs.distributions == (CERTAIN,)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"policies": []}, "policies"),
        ({"seeds": []}, "seeds"),
        ({"seeds": [-1]}, "seed"),
        ({"problems": []}, "problems"),
        ({"problems": ["all"]}, "problems"),
        ({"limit_s": 0.0}, "limit_s"),
    ],
)
def test_bad_input_is_named(change, field):
    good = {"policies": [Greedy()], "seeds": [0]}
    with refused(field):
        certify(one_job, **(good | change))


def run(
    problem: str = "known", seed: int = 0, policy: str = "p", cost: float = 1.0, bound: float = 1.0
) -> CertifiedRun:
    return CertifiedRun(problem, seed, 4, 2, policy, cost, bound, bound, 0.5)


def test_the_summary_by_policy_has_no_gap_to_a_bound_of_nothing():
    runs = [run(seed=seed, cost=cost) for seed, cost in enumerate((1.0, 1.005, 1.5, 3.0))]
    (row,) = policy_table(runs).as_dicts()
    assert (row["instances"], row["median_gap"], row["worst_gap"]) == (4, pytest.approx(0.2525), pytest.approx(2.0))
    assert (row["within_1_percent"], row["optimal"]) == (0.5, 0.25)
    runs = [run(cost=0.0, bound=0.0), run(seed=1, cost=2.0, bound=0.0)]
    (row,) = policy_table(runs).as_dicts()
    assert math.isnan(row["median_gap"])
    assert (row["within_1_percent"], row["optimal"]) == (0.5, 0.5)
    (row,) = policy_table([run(bound=0.0)]).texts()
    assert row[3:5] == ["n/a", "n/a"]
    (row,) = instance_table([run(bound=0.0)], ["p"]).texts()
    assert (row[4], row[6]) == ("n/a", "n/a")


@pytest.mark.parametrize(
    ("gap", "text"), [(0.0, "+0.00%"), (-1e-9, "+0.00%"), (0.1234, "+12.34%"), (11.0, "12 x"), (12345.0, "12,346 x")]
)
def test_gaps_are_written_as_percentages_or_multiples(gap, text):
    assert gap_text(gap) == text


def test_the_tables_hold_every_instance_and_every_policy():
    runs = [run(problem, seed, policy) for seed in (3, 1) for problem in ("known", "round") for policy in ("a", "b")]
    table = instance_table(runs, ["a", "b"])
    assert [column.title for column in table.columns][-2:] == ["a", "b"]
    assert [row[:2] for row in table.texts()] == [["round", "1"], ["round", "3"], ["known", "1"], ["known", "3"]]
    assert [row[:2] for row in policy_table(runs).texts()] == [
        ["round", "a"],
        ["round", "b"],
        ["known", "a"],
        ["known", "b"],
    ]
    assert "4 problems, of which the solver closed 4 to 0.01 % within 5 s each." in notes(runs, 5.0)


def test_the_files_hold_every_run_and_no_nan():
    runs = [run(), run(seed=1, bound=0.0)]
    rows = list(csv.DictReader(io.StringIO(certificate_csv(runs))))
    assert [(row["seed"], row["gap"]) for row in rows] == [("0", "0.0"), ("1", "")]
    document = json.loads(certificate_json(runs, {"command": "gpusched certify"}))
    assert (document["format"], document["version"]) == ("gpusched certificate", 1)
    assert document["provenance"] == {"command": "gpusched certify"}
    assert [entry["gap"] for entry in document["runs"]] == [0.0, None]
    assert document["policies"][0]["instances"] == 2
