"""Jobs on several nodes that spare machines help to synchronise (BytePS): by hand, and what holds for every run."""

from dataclasses import replace

import numpy as np
import pytest

from fixed import Fixed
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node, Synchronisation, View, simulate
from gpusched_env.mechanisms.network.kernels import least_slowdowns
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from helpers import helped_instance

HOUR = 3600.0
ONE, FOUR = Configuration("V", 1), Configuration("V", 1, nodes=4)
CERTAIN = EpochDistribution.certain()


def cluster(singles: int, several: int = 1, cpu_machines: int = 0, nodes: int = 12) -> Instance:
    """Make jobs of 2 epochs: `several` on four nodes, 1 h an epoch without help, then `singles` on one, 3 h an epoch.

    An iteration computes 2 s on one node, and sends the model's size in 1 s: 1/2 s and 3/2 s on four without help.
    """
    gpu = GpuType("V", gpu_power_w=1000.0, node_base_power_w=0.0, memory_gib=16.0, max_gpus_per_node=1)
    large = [Job(0.0, 99 * HOUR, 0.001, 2.0, CERTAIN, 2.0, {FOUR: HOUR}) for _ in range(several)]
    small = [Job(0.0, 99 * HOUR, 0.001, 2.0, CERTAIN, 2.0, {ONE: 3 * HOUR}) for _ in range(singles)]
    return Instance.from_jobs(
        [gpu], [Node("V", 1)] * nodes, large + small, [ONE, FOUR], energy_price_eur_per_kwh=1.0, pue=1.0,
        mechanisms=(Synchronisation(np.array([[2.0]]), np.array([[1.0]]), cpu_machines),),
    )  # fmt: skip


def completions_h(instance: Instance) -> list[float]:
    configs = [int(np.argmin(row)) for row in instance.jobs.seconds_per_epoch]
    return (simulate(instance, Fixed(tuple(configs))).completion_s / HOUR).tolist()


@pytest.mark.parametrize(
    ("spare", "hours"),
    [
        (0, 2.0),
        (1, 2.0 * (0.5 + 24 / 18) / 2.0),  # V(4, 1) = 2·4·3 / (16 + 2)
        (2, 2.0 * (0.5 + 24 / 20) / 2.0),
        (4, 2.0 * (0.5 + 1.0) / 2.0),  # as many as its own: V = 1
        (6, 2.0 * (0.5 + 1.0) / 2.0),  # more help nothing
    ],
)
def test_neighbours_and_cpu_machines_help_alike(spare, hours):
    assert completions_h(cluster(spare))[0] == pytest.approx(hours, rel=1e-12)
    assert completions_h(cluster(0, cpu_machines=spare))[0] == pytest.approx(hours, rel=1e-12)


def test_jobs_on_several_nodes_share_the_spare_machines():
    """Two on four nodes each and four neighbours: k = 4 · 4/8 = 2 for each."""
    assert completions_h(cluster(4, several=2))[:2] == pytest.approx([1.7, 1.7], rel=1e-12)


def test_help_ends_with_the_job_of_the_neighbour():
    """One neighbour for 6 h; of 8 epochs by 0.9167 h each, 6 h are worth 6.545, and the others take 1 h each."""
    instance = cluster(1)
    jobs = replace(instance.jobs, max_epochs=np.array([8.0, 2.0]), epochs_needed=np.array([8.0, 2.0]))
    slowdown = (0.5 + 24 / 18) / 2.0
    assert completions_h(replace(instance, jobs=jobs))[0] == pytest.approx(6.0 + 8.0 - 6.0 / slowdown, rel=1e-12)


def test_help_changes_no_bill_rate_and_begins_no_interval():
    result = simulate(cluster(4), Fixed((1, 0, 0, 0, 0)))
    # 1 € an hour for each of four nodes for 1.5 h, and for four more for 6 h.
    assert result.energy_eur == pytest.approx(4 * 1.5 + 4 * 6.0)
    assert len(result.log) == 4 + 4


def test_policies_plan_without_help():
    state = State(cluster(4))
    state.advance()
    assert state.view.tau[0].tolist() == [np.inf, HOUR]
    assert state.view.jobs[0, at.MIN_TAU] == HOUR


def test_parameter_servers_run_on_cpu_machines_alone_and_what_happens_inside_a_machine_is_not_shortened():
    """Three CPU machines for four nodes: 4/3 of the model each; nodes that are on are no servers."""
    servers = replace(cluster(4, cpu_machines=3).of(Synchronisation), backend="parameter-server")
    assert completions_h(cluster(4).with_mechanisms(servers))[0] == pytest.approx(2 * (0.5 + 4 / 3) / 2)
    two = replace(servers, cpu_machines=2)
    assert completions_h(cluster(4).with_mechanisms(two))[0] == 2.0, "better on the job's own nodes"
    own = replace(cluster(4).of(Synchronisation), inside_s=np.array([[1.2]]))
    assert completions_h(cluster(4).with_mechanisms(own))[0] == pytest.approx(2 * (0.5 + 1.2) / 2)


def test_jobs_on_several_nodes_slow_each_other_on_a_narrow_core():
    """The core carries six nodes; planned is with all twelve: 1/2 + 1.5 · 12/6 = 3.5 s an iteration."""
    own = Synchronisation(np.array([[2.0]]), np.array([[1.0]]), backend="all-reduce", core_nodes=6.0)
    one, two, three = (completions_h(cluster(0, several=several).with_mechanisms(own))[0] for several in (1, 2, 3))
    assert one == pytest.approx(2 * (0.5 + 1.5) / 3.5), "four nodes of six"
    assert two == pytest.approx(2 * (0.5 + 1.5 * 8 / 6) / 3.5)
    assert three == 2.0, "as planned"


def energy_eur(instance: Instance) -> float:
    """Return the bill, after seeing that what jobs are charged sums to it."""
    configs = [int(np.argmin(row)) for row in instance.jobs.seconds_per_epoch]
    result = simulate(instance, Fixed(tuple(configs)))
    assert result.job_energy_eur.sum() == pytest.approx(result.energy_eur, rel=1e-12)
    return float(result.energy_eur)


@pytest.mark.parametrize(
    ("neighbours", "cpu_machines", "working"), [(0, 2, 2), (0, 9, 4), (1, 2, 2), (3, 2, 1), (4, 2, 0)]
)
def test_cpu_machines_draw_power_while_nodes_that_are_on_do_not_suffice(neighbours, cpu_machines, working):
    """One on four nodes can use four: neighbours first. Each draws 500 W, at 1 €/kWh, until the job ends."""
    plain = cluster(neighbours, cpu_machines=cpu_machines)
    powered = plain.with_mechanisms(replace(plain.of(Synchronisation), cpu_machine_w=500.0))
    hours = completions_h(plain)[0]
    assert completions_h(powered)[0] == hours
    assert energy_eur(powered) - energy_eur(plain) == pytest.approx(0.5 * working * hours, rel=1e-9, abs=1e-12)


def test_a_job_that_help_makes_no_faster_does_not_pay_for_it():
    own = Synchronisation(np.array([[2.0]]), np.array([[0.0]]), 9, cpu_machine_w=500.0)
    assert energy_eur(cluster(0).with_mechanisms(own)) == 8.0, "1 € for each of four nodes, for two hours"


def test_two_jobs_share_the_power_of_cpu_machines():
    plain = cluster(0, several=2, cpu_machines=4)
    powered = plain.with_mechanisms(replace(plain.of(Synchronisation), cpu_machine_w=500.0))
    charged = [simulate(each, Fixed((1, 1))).job_energy_eur for each in (plain, powered)]
    assert (charged[1] - charged[0]).tolist() == pytest.approx([2 * 0.5 * 1.7] * 2, rel=1e-9)


def test_the_speed_now_of_several_nodes_is_with_the_machines_that_are_on():
    """Planned: 2 s an iteration; with k of 4 spare machines 1/2 + 24 / (16 + 2k)."""
    seen = []

    class Looks(Fixed):
        def decide(self, view: View, rng: np.random.Generator) -> None:
            if not seen:
                seen.append(view.speed_now(0, 1))
            super().decide(view, rng)
            if len(seen) == 1:
                seen.append((view.speed_now(0, 1), view.seconds_now(0, 1)))

    simulate(cluster(2), Looks((1, 0, 0)))
    assert seen[0] == 1.0, "nothing is on yet, in a round that begins from an empty cluster"
    assert seen[1] == pytest.approx((2.0 / 1.7, HOUR * 1.7 / 2.0))


def test_the_node_that_a_job_would_leave_empty_does_not_help_it():
    """Job 0 is on one node; on four it would have the node of job 1 as a spare machine, and not its own."""
    plain, seen = cluster(2), []
    times = plain.jobs.seconds_per_epoch.copy()
    times[0] = [3 * HOUR, HOUR]
    instance = replace(plain, jobs=replace(plain.jobs, seconds_per_epoch=times))

    class Looks(Fixed):
        def decide(self, view: View, rng: np.random.Generator) -> None:
            if view.jobs[0, at.CONFIG] == 0 and not seen:
                seen.append(view.speed_now(0, 1))
            for job in view.waiting[:2].tolist():
                view.place(job, 0)

    simulate(instance, Looks((), preemption=False), review_s=HOUR)
    assert seen == [pytest.approx(2.0 / (0.5 + 24 / 18))]


class OneByOne:
    """Place at most one waiting job in a round, and look in the next one at the speeds that were told."""

    name, preemption = "one-by-one", False

    def __init__(self) -> None:
        self.told: dict[tuple[int, int], float] = {}
        self.compared = 0

    def decide(self, view: View, rng: np.random.Generator) -> None:
        for (job, config), speed in self.told.items():
            if view.jobs[job, at.CONFIG] == config:
                assert 1.0 / view.jobs[job, at.SLOWDOWN] == pytest.approx(speed, rel=1e-12)
                self.compared += speed != 1.0
        self.told = {}
        several = np.flatnonzero(view.board.facts.configs[:, at.CONFIG_NODES] > 1)
        for job in rng.permutation(view.waiting).tolist():
            able = [c for c in several if np.isfinite(view.tau[job, c]) and view.speed_now(job, int(c)) > 0.0]
            if able:
                config = int(rng.choice(able))
                self.told[job, config] = view.speed_now(job, config)
                view.place(job, config)
            elif any(view.place(job, c) for c in np.flatnonzero(np.isfinite(view.tau[job])).tolist()):
                break
            else:
                continue
            break
        for job in view.active.tolist():
            config = int(view.jobs[job, at.CONFIG])
            if config in several and (job, config) not in self.told:
                self.told[job, config] = view.speed_now(job, config)


def test_the_speed_that_is_told_is_the_speed_that_a_job_gets():
    compared = 0
    for seed in range(12):
        policy = OneByOne()
        simulate(helped_instance(seed, jobs=25, types=1, span_s=500.0, varied=True), policy, seed=seed, review_s=20.0)
        compared += policy.compared
    assert compared > 50


class Checks:
    """Place jobs as another policy, and look at all speeds of the round before."""

    preemption = True

    def __init__(self, seed: int, instance: Instance) -> None:
        self.name, self.rng, self.instance, self.seen = "checks", np.random.default_rng(seed), instance, []

    def decide(self, view: View, rng: np.random.Generator) -> None:
        least = least_slowdowns(view.board.facts)
        for job in view.active.tolist():
            config, slowdown = int(view.jobs[job, at.OLD_CONFIG]), view.jobs[job, at.SLOWDOWN]
            if config >= 0:
                assert least[int(view.jobs[job, at.APPLICATION]), config] <= slowdown * (1 + 1e-12)
                assert slowdown <= 1.0 + 1e-12
                fastest = self.instance.fastest_seconds_per_epoch[job, config]
                assert view.tau[job, config] * slowdown >= fastest * (1 - 1e-12)
                self.seen.append((self.instance.configurations[config].nodes, slowdown))
        for job in self.rng.permutation(view.active).tolist():
            any(view.place(job, c) for c in self.rng.permutation(np.flatnonzero(np.isfinite(view.tau[job]))).tolist())


def test_planned_is_never_better_than_the_truth():
    helped = 0
    for seed in range(25):
        instance = helped_instance(seed, jobs=25, types=1, span_s=500.0, varied=seed % 2 == 1)
        policy = Checks(seed, instance)
        simulate(instance, policy, review_s=20.0)
        several = 2 if instance.of(Synchronisation).core_nodes is not None else 3
        assert all(slowdown == 1.0 for nodes, slowdown in policy.seen if nodes < several)
        helped += sum(slowdown < 0.95 for _, slowdown in policy.seen)
    assert helped > 20, "jobs are helped"
