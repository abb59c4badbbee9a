"""What a policy may see, and the one thing it may do: place jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.model.rates import cost_rate_eur_per_h, least_rate_eur_per_s, planning_rate_eur_per_s
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.distributions import DistributionTable
from gpusched_env.simulator.interference import share_units, slowdown_table
from gpusched_env.simulator.placement.node_index import new_room
from gpusched_env.simulator.placement.placement import place, release
from gpusched_env.simulator.rounds import measure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.model import Configuration, Instance


FREE_COLUMNS = 4  # columns of a policy's memory, beside one for each GPU type


class View:
    """The present state of a run, without what is hidden from policies.

    The arrays are the simulator's own (their columns are in `gpusched_env.simulator.layout`): compiled policies read
    them; write only through `place`, `release`, `forget_place`, `wake_up` and `memory`. Rows of jobs that are not
    submitted yet are NaN.

    Attributes:
        jobs: State of all jobs, float64 (J, JOB_COLUMNS).
        nodes: State of the nodes, int64 (N, NODE_COLUMNS and, if GPUs can be shared, two columns for each).
        configs: The configurations, int64 (C, CONFIG_COLUMNS).
        room: What fits now on the nodes of each GPU type, int64 (V, ROOM_COLUMNS + index).
        tau: Seconds per epoch, float64 (J, C); inf where not allowed. On shared GPUs with an interference model: beside
            the worst jobs that there can be.
        slowdown: What jobs on one GPU do to one another, float64 (V, A, A), A applications; (0, 0, 0) without a model.
        node_rate: r_v(u), what a node with u busy GPUs costs [€/s], float64 (V, G + 1).
        planning_rate: What a configuration is planned to cost, alone on its node [€/s], float64 (C,).
        least_rate: The least that it can cost, in a full node [€/s], float64 (C,); inf where its type has no node.
        distributions: The distributions of epochs needed, as padded arrays.
        memory: Scratch of the policy, float64 (J, FREE_COLUMNS + V), 0 at the start; the simulator never reads it.
    """

    def __init__(self, instance: Instance, clock: NDArray[np.float64], count: NDArray[np.int64]) -> None:
        table = instance.jobs
        self.configurations: tuple[Configuration, ...] = instance.configurations
        self.tau = np.full(table.seconds_per_epoch.shape, np.nan)
        self.jobs = np.full((len(table), at.JOB_COLUMNS), np.nan)
        most = max(node.gpus for node in instance.nodes)
        shared = 2 * most if any(c.kind == "shared" for c in instance.configurations) else 0
        self.nodes = np.zeros((len(instance.nodes), at.NODE_COLUMNS + shared), dtype=np.int64)
        self.nodes[:, at.NODE_TYPE] = instance.type_of_node
        self.nodes[:, [at.NEXT, at.OLD_NEXT]] = -1
        for column in (at.NODE_GPUS, at.FREE, at.OLD_FREE):
            self.nodes[:, column] = [node.gpus for node in instance.nodes]
        self.configs = _config_table(instance)
        self.room = new_room(len(instance.gpu_types), len(instance.nodes), most)
        measure(self.nodes, self.room)
        self.slowdown = slowdown_table(instance)
        self.node_rate = cost_rate_eur_per_h(instance) / 3600.0
        self.planning_rate = planning_rate_eur_per_s(instance)
        self.least_rate = least_rate_eur_per_s(instance)
        self.distributions = DistributionTable.of(table.distributions)
        self.memory = np.zeros((len(table), FREE_COLUMNS + len(instance.gpu_types)))
        self.active_buffer = np.zeros(len(table), dtype=np.int64)
        self.keys_buffer = np.zeros(len(table))
        self.order_buffer = np.zeros(len(table), dtype=np.int64)
        self.clock, self.count = clock, count

    @property
    def now_s(self) -> float:
        """Give the present time [s]."""
        return float(self.clock[at.NOW])

    @property
    def active(self) -> NDArray[np.int64]:
        """List the jobs submitted and not completed, by index."""
        return self.active_buffer[: self.count[at.ACTIVE]].copy()

    @property
    def waiting(self) -> NDArray[np.int64]:
        """List the active jobs that hold nothing in this round, by index."""
        active = self.active_buffer[: self.count[at.ACTIVE]]
        return active[self.jobs[active, at.CONFIG] < 0]

    def place(self, job: int, config: int) -> bool:
        """Give `job` the configuration with index `config`; return False, and change nothing, if it does not fit now.

        Raises:
            InputError: The job is not active, or there is no such configuration, or the job may not use it.
        """
        self._check_active(job)
        if not 0 <= config < len(self.configs):
            raise InputError("configuration", config, f"an index from 0 to {len(self.configs) - 1}")
        if not np.isfinite(self.tau[job, config]):
            raise InputError("configuration", self.configurations[config].name, f"one that job {job} may use")
        return place(self.jobs, self.nodes, self.configs, self.room, job, config)

    def release(self, job: int) -> None:
        """Take from `job` what it holds in this round; it waits unless it is placed again.

        Raises:
            InputError: The job is not active.
        """
        self._check_active(job)
        release(self.jobs, self.nodes, self.configs, self.room, job)

    def forget_place(self, job: int) -> None:
        """Let `job` be placed in this round as if it came anew: where it fits best, and not on its previous node first.

        Raises:
            InputError: The job is not active.
        """
        self._check_active(job)
        self.jobs[job, [at.HOME, at.HOME_SLOT]] = -1.0

    def wake_up(self, job: int, time_s: float) -> None:
        """Ask for a decision round at `time_s` [s] on behalf of `job`, in place of the wake-up it had.

        Raises:
            InputError: The job is not active, or the time is out of its range.
        """
        self._check_active(job)
        if not (np.isinf(time_s) or 0.0 <= time_s <= checks.LONGEST_S):
            allowed = f"a number >= 0 and <= {checks.LONGEST}; inf for none, -inf for none and no plan"
            raise InputError("time_s", time_s, allowed)
        self.jobs[job, at.WAKE_S] = time_s

    def _check_active(self, job: int) -> None:
        submitted = 0 <= job < self.count[at.SUBMITTED]
        if not submitted or not np.isnan(self.jobs[job, at.END_S]):
            raise InputError("job", job, "the index of a job that is submitted and not completed")


def _config_table(instance: Instance) -> NDArray[np.int64]:
    """Make the array of configurations, (C, CONFIG_COLUMNS)."""
    table = np.zeros((len(instance.configurations), at.CONFIG_COLUMNS), dtype=np.int64)
    table[:, at.CONFIG_TYPE] = instance.type_of_configuration
    for row, configuration in zip(table, instance.configurations, strict=True):
        units = share_units(configuration.share)
        row[at.CONFIG_GPUS] = configuration.gpus_per_node
        row[at.CONFIG_NODES] = configuration.nodes
        row[at.CONFIG_UNITS] = units
        row[at.CONFIG_SIZE] = units or configuration.gpus_per_node * configuration.nodes * at.UNITS
    return table
