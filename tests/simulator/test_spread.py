"""Configurations spread over nodes: by hand, and what holds for every run."""

import numpy as np
import pytest

from crowded import Whatever, crowded
from first_rounds import begin_run
from gpusched_baselines import make_policy
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node, Result, View, simulate
from gpusched_env.audit import audit
from gpusched_env.formats import save_instance, write_run
from gpusched_env.formats.run_folder import read_result
from gpusched_env.model.rates import Rates
from gpusched_env.simulator import Choice
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.kernels import exchange, place
from gpusched_env.simulator.placement.held_nodes import places_of
from refusals import refused
from run_files import audited, csv_rows, loaded_again

HOUR = 3600.0
TWO, FOUR, SPREAD = Configuration("V", 2), Configuration("V", 4), Configuration("V", 1, nodes=4, spread=True)
CONFIGS = (TWO, FOUR, SPREAD)
CERTAIN = EpochDistribution.certain()
GPU = GpuType("V", gpu_power_w=1000.0, node_base_power_w=1000.0, memory_gib=16.0, max_gpus_per_node=4)
LARGE = {FOUR: 1.0, SPREAD: 2.0}
"""A job of four GPUs, that takes an hour together and two hours spread."""


def cluster(*jobs: dict[Configuration, float], nodes: int = 2, restart_s: float = 0.0, due_h: float = 99.0) -> Instance:
    """Make jobs of one epoch, submitted together, with these hours; a kW costs 1 € in an hour."""
    made = [Job(0.0, due_h * HOUR, 0.001, 1.0, CERTAIN, 1.0, {c: h * HOUR for c, h in each.items()}) for each in jobs]
    price = {"energy_price_eur_per_kwh": 1.0, "pue": 1.0, "restart_s": restart_s}
    return Instance.from_jobs([GPU], [Node("V", 4)] * nodes, made, CONFIGS, **price)


TWO_BESIDE = cluster({TWO: 1.0}, {TWO: 3.0}, LARGE)
"""Two jobs with half a node each, and the large one."""


class Scripted:
    """Place every waiting job with the configuration given, first on the node given; -1 for any node."""

    name = "scripted"
    preemption = False

    def __init__(self, *places: tuple[int, int]) -> None:
        self.places = places

    def decide(self, view: View, rng: np.random.Generator) -> None:
        for job in view.waiting.tolist():
            config, node = self.places[job]
            if node >= 0:
                view.apply(job, Choice(config, node=node))
            view.place(job, config)


def test_jobs_that_are_exchanged_exchange_the_nodes_of_all_their_gpus():
    board = begin_run(cluster(LARGE, LARGE)).board
    for job in range(2):
        assert place(board, job, CONFIGS.index(SPREAD))
    assert [places_of(board, job, old=False) for job in range(2)] == [[0] * 4, [1] * 4]
    exchange(board, 0, 1)
    assert [places_of(board, job, old=False) for job in range(2)] == [[1] * 4, [0] * 4]


def test_the_name_and_the_kind_say_that_it_is_spread():
    assert (SPREAD.name, SPREAD.kind, SPREAD.gpus) == ("V~4", "spread", 4)
    for wrong in (
        {"gpus_per_node": 2, "nodes": 4},
        {"gpus_per_node": 1, "nodes": 1},
        {"gpus_per_node": 1, "nodes": 2, "share": 0.5},
    ):
        with refused("configuration.spread", True, "one whole GPU each on 2 nodes or more"):
            Configuration("V", spread=True, **wrong)


def test_a_spread_job_runs_where_no_node_has_enough_free_gpus_and_pays_its_part_of_each():
    result = simulate(TWO_BESIDE, Scripted((0, 0), (0, 1), (2, -1)))
    rows = [row for row in result.intervals().select("job", "node", "gpus", "end_s").rows() if row[0] == 2]
    assert rows == [(2, 0, 2, 2 * HOUR), (2, 1, 2, 2 * HOUR)]
    # Hour 1: two nodes of 5 kW, half of each. Hour 2: 3 kW alone on the first, half of the second. Hour 3: 3 kW.
    assert result.job_energy_eur.tolist() == pytest.approx([2.5, 2.5 + 2.5 + 3.0, 5.0 + 3.0 + 2.5])
    assert result.energy_eur == pytest.approx(10.0 + 8.0 + 3.0)


def test_spread_gpus_that_fit_one_node_are_as_fast_as_together():
    result = simulate(cluster(LARGE), Scripted((2, -1)))
    assert result.completion_s.tolist() == [HOUR]
    assert simulate(cluster({SPREAD: 2.0}), Scripted((2, -1))).completion_s.tolist() == [2 * HOUR]  # not known together


def test_gpus_are_on_as_few_nodes_as_can_be():
    # Free are 1, 2 and 3 GPUs: all of the node with three, then one of the fullest node that still has one.
    one, three = Configuration("V", 1), Configuration("V", 3)
    jobs = [Job(0.0, 1e6, 0.001, 1.0, CERTAIN, 1.0, {c: HOUR}) for c in (three, TWO, one, SPREAD)]
    instance = Instance.from_jobs([GPU], [Node("V", 4)] * 3, jobs, (one, TWO, three, SPREAD))
    state = begin_run(instance, preemption=False)
    for job, (config, node) in enumerate([(2, 0), (1, 1), (0, 2)]):
        state.view.apply(job, Choice(config, node=node))
        assert state.view.place(job, config)
    assert state.view.place(3, 3)
    assert places_of(state.board, 3, old=False) == [0, 2, 2, 2]
    state.view.release(3)
    assert state.view.nodes[:, at.FREE].tolist() == [1, 2, 3]


class Again(Scripted):
    """Place all jobs anew in every round, on the nodes given in the first one."""

    preemption = True

    def decide(self, view: View, rng: np.random.Generator) -> None:
        for job in view.active.tolist():
            config, node = self.places[job]
            if node >= 0 and view.now_s == 0.0:
                view.apply(job, Choice(config, node=node))
            view.place(job, config)


def test_a_spread_job_keeps_its_gpus_although_it_would_fit_one_node_now():
    # After an hour the first job is complete, and its node has four GPUs for the large one.
    result = simulate(cluster({TWO: 1.0}, {TWO: 3.0}, LARGE, restart_s=60.0), Again((0, 0), (0, 1), (2, -1)))
    assert result.switches.tolist() == [0, 0, 0]
    assert result.completion_s[2] == 2 * HOUR


def test_plans_count_on_as_few_nodes_as_can_be_and_bounds_on_full_ones():
    instance = cluster(LARGE)
    assert Rates.of(instance).planning[0] * HOUR == pytest.approx([3.0, 5.0, 5.0])
    assert Rates.of(instance).least[0] * HOUR == pytest.approx([2.5, 5.0, 5.0])
    assert instance.fastest_seconds_per_epoch.tolist() == [[np.inf, HOUR, HOUR]]


@pytest.mark.parametrize("name", ["sts-x", "sts", "edf", "greedy", "path-relinking"])
def test_policies_gain_by_spreading_where_no_node_has_two_free_gpus(name):
    # Two jobs of three GPUs leave one GPU free on each node for eight hours. A job of two takes 4.5 h together: it
    # is late by 4.3 h then, or one of the large ones by 4.5 h, at 3.60 € an hour. Spread it takes five, in time.
    three, spread = Configuration("V", 3), Configuration("V", 1, nodes=2, spread=True)

    def run(own: dict[Configuration, float]) -> Result:
        kinds = [({three: 8 * HOUR}, 8.0), ({three: 8 * HOUR}, 8.0), (own, 8.2)]
        jobs = [Job(0.0, h * HOUR, 0.001, 1.0, CERTAIN, 1.0, seconds) for seconds, h in kinds]
        instance = Instance.from_jobs(
            [GPU], [Node("V", 4)] * 2, jobs, (TWO, three, spread), energy_price_eur_per_kwh=0.01
        )
        return simulate(instance, make_policy(name))

    with_it, without = run({TWO: 4.5 * HOUR, spread: 5 * HOUR}), run({TWO: 4.5 * HOUR})
    assert (with_it.completion_s / HOUR).tolist() == [8.0, 8.0, 5.0]
    assert with_it.tardiness_eur == 0.0
    assert without.tardiness_eur >= 4.3 * 3.6 - 1e-9


@pytest.mark.parametrize("preemption", [False, True])
def test_any_run_audits_clean_and_can_be_read_again(tmp_path, preemption):
    spread = 0
    for seed in range(8):
        result = simulate(crowded(seed, spread=True), Whatever(preemption), seed=seed, review_s=20.0)
        assert audited(result, tmp_path / "run") == [], seed
        assert read_result(tmp_path / "run").intervals().equals(result.intervals())
        spread += sum("~" in name for name in result.intervals()["configuration"])
    assert spread > 40


@pytest.mark.parametrize(
    ("column", "value"),
    [("gpus", "1"), ("end_s", str(HOUR)), ("node", "1"), ("epochs", "0.5"), ("configuration", "Vx4")],
)
def test_the_audit_finds_a_spread_interval_that_was_changed(tmp_path, column, value):
    write_run(simulate(TWO_BESIDE, Scripted((0, 0), (0, 1), (2, -1))), tmp_path / "run")
    with csv_rows(tmp_path / "run" / "intervals.csv") as rows:
        next(row for row in rows if row["configuration"] == "V~4" and row["node"] == "0")[column] = value
    assert audit(tmp_path / "run")


def test_an_instance_file_keeps_spread_configurations_and_others_have_no_such_column(tmp_path):
    assert loaded_again(TWO_BESIDE, tmp_path).configurations == CONFIGS
    save_instance(crowded(0), tmp_path / "i.json")
    assert "spread" not in (tmp_path / "i.json").read_text()
