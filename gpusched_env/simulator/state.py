"""The state of a run, and the methods that advance it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.cells import tree as tree_at
from gpusched_env.model import Instance, checks
from gpusched_env.model.host_memory import BYTES_PER_GIB
from gpusched_env.model.rates import Rates, kilowatts, saved_kilowatts
from gpusched_env.model.tenant import kinds_of_nodes, pieces, quotas
from gpusched_env.simulator import cell_binding as blocks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator import sharing_slowdown as sharing
from gpusched_env.simulator.builds import PlainBoard, build_of
from gpusched_env.simulator.events import advance, disclose
from gpusched_env.simulator.interconnect import iteration_table, network_numbers
from gpusched_env.simulator.ordering import NAMED_ORDERS
from gpusched_env.simulator.placement.free_capacity import measure
from gpusched_env.simulator.placement.node_index import new_capacity
from gpusched_env.simulator.policy import AS_A_POLICY, FREE_COLUMNS, Asking
from gpusched_env.simulator.priced_time import price_rows, publish, tariff_of, unpublished_rows
from gpusched_env.simulator.rounds import begin_round, commit_round
from gpusched_env.simulator.run import Board, Facts, Hidden
from gpusched_env.simulator.site_power import see_cap
from gpusched_env.simulator.survival import DistributionTable
from gpusched_env.simulator.view import View

MOST_CLUSTERS = 64  # whose facts are kept


class Common:
    """The values that runs have in common, each once, so that they stay in the processor's cache.

    They must not be written.
    """

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}
        self._clusters: dict[Any, tuple[Any, tuple[Facts, Rates]]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def once(self, array: NDArray[Any]) -> NDArray[Any]:
        return self._known.setdefault((array.dtype.str, array.shape, array.tobytes()), array)

    def facts(self, facts: Facts) -> Facts:
        arrays = [(array.shape, array.tobytes()) for array in facts.__getstate__().values()]
        return self._known.setdefault(tuple(arrays), facts)

    def cluster(self, instance: Instance) -> tuple[Facts, Rates]:
        """Return the facts and the rates of an instance; they are computed once for instances of the same cluster."""
        if instance.interference is not None:  # then facts follow from the jobs too
            return _facts(instance, self), self._rates(instance)
        parts = (
            instance.gpu_types, instance.nodes, instance.configurations, instance.synchronisation, instance.saved_kw,
        )  # fmt: skip
        numbers = (instance.energy_price_eur_per_kwh, instance.pue, instance.hosts, len(instance.jobs.applications))
        numbers += (instance.gpu_hour_eur, *_site_numbers(instance).tolist())
        key = (*map(id, parts), *numbers)
        if key not in self._clusters:
            if len(self._clusters) == MOST_CLUSTERS:
                self._clusters.clear()
            self._clusters[key] = parts, (_facts(instance, self), self._rates(instance))  # with parts: ids stay theirs
        return self._clusters[key][1]

    def _rates(self, instance: Instance) -> Rates:
        rates = Rates.of(instance)
        if instance.prices is not None:  # each has a price of its own: they would be kept for ever
            return rates
        return Rates(self.once(rates.node), self.once(rates.planning), self.once(rates.least))


class State:
    """Everything that changes in a run of one instance, and the methods that change it.

    Args:
        instance: The instance to run.
        asking: How rounds ask; by default as `simulate` does.
        review_s: Interval of fixed reviews [s], > 0 and ≤ `checks.LONGEST_S`; none by default.
        record: Whether the intervals of the run are kept.
        common: What the run shares with others; by default nothing.
        memory_columns: Columns of the policy's memory, ≥ 1; by default `FREE_COLUMNS` and three for each GPU type.
        build: The least build of the compiled code (`builds`); by default the smallest that covers the instance.

    Attributes:
        board: The part that policies may see.
        hidden: The part that they may not see.
        view: The read-only board for policies.
    """

    def __init__(
        self,
        instance: Instance,
        asking: Asking = AS_A_POLICY,
        *,
        review_s: float | None = None,
        record: bool = True,
        common: Common | None = None,
        memory_columns: int | None = None,
        build: type[Board] = PlainBoard,
    ) -> None:
        self.instance, self.asking = instance, asking
        columns = FREE_COLUMNS + 3 * len(instance.gpu_types) if memory_columns is None else memory_columns
        distributions = DistributionTable.of(instance.jobs.distributions)
        self.board = _new_board(instance, Common() if common is None else common, columns, distributions, build)
        clock, count = self.board.clock, self.board.count
        clock[at.REVIEW] = np.inf if review_s is None else checks.duration("review_s", review_s)
        clock[at.IDLE_REVIEW] = asking.idle_review_s
        clock[at.DECISION] = instance.decision_interval_s
        count[at.MILESTONES] = asking.milestones
        count[at.DUE_DATE_TIMERS] = int(asking.due_date_timers)
        count[at.CONSOLIDATES] = int(asking.consolidation)
        count[at.PREEMPTION] = int(asking.preemption)
        count[at.ORDER] = NAMED_ORDERS[asking.job_order]
        count[at.LOGGING] = int(record)
        self.hidden = _new_hidden(instance, self.board, distributions, 4 * len(instance.jobs) + 16 if record else 0)
        if len(self.hidden.caps):
            see_cap(self.board, self.hidden, 0.0)
        if self.board.has_prices:
            publish(self.board, self.hidden)
        self.view = View(self.board, instance.configurations)

    def __repr__(self) -> str:
        count, now_s = self.board.count, self.board.clock[at.NOW]
        return f"State({self.instance!r} at {now_s:,.0f} s, {count[at.DONE]} of {len(self.instance.jobs)} jobs done)"

    def advance(self) -> bool:
        """Run to the next event; return False when every job is done."""
        self.grow_arrays()
        return advance(self.board, self.hidden)

    def begin_round(self, preemption: bool) -> None:
        """Open a decision round; with `preemption` it begins from an empty cluster."""
        begin_round(self.board, preemption)

    def commit_round(self) -> None:
        """Close the decision round: the placements take effect."""
        commit_round(self.board, self.hidden)

    @property
    def words(self) -> int:
        """Return how many numbers `move` needs."""
        return self.board.words + self.hidden.words

    def move(self, memory: NDArray[np.int64]) -> None:
        """Move the arrays of the run to `memory`, of at least `words` numbers; its view stays the same."""
        own = self.board.words
        self.board, self.hidden = self.board.placed(memory[:own]), self.hidden.placed(memory[own:])
        self.view.show(self.board)

    def use_build(self, build: type[Board]) -> None:
        """Go on with kernels of another build, which covers the instance, on the same arrays."""
        if type(self.board) is not build:
            self.board = build(**self.board.__getstate__())
            self.view.show(self.board)

    def restore(self) -> None:
        """Recompute what follows from the arrays of a checkpoint: disclosed values and free capacity."""
        self.board.count[at.PUBLISHED] = 0
        if self.board.has_prices:
            publish(self.board, self.hidden)
        for job in range(self.board.count[at.SUBMITTED]):
            disclose(self.board, self.hidden, job)
        measure(self.board)

    def grow_arrays(self) -> None:
        """Grow the log so that the next round and event surely fit: each active job ends at most two intervals.

        An interval takes a row, those on several nodes at most one for every node, or spread GPU, of the cluster.
        """
        count, log = self.board.count, self.hidden.log
        places = self.board.nodes[:, at.NODE_GPUS].sum() if self.instance.most_spread else len(self.board.nodes)
        most = 2 * int(count[at.ACTIVE]) + 2 * int(places) + 2
        if count[at.LOGGING] and len(log) - count[at.LOGGED] < most:
            more = np.full((max(len(log), most), log.shape[1]), -1.0)
            self.hidden = Hidden(**self.hidden.__getstate__() | {"log": np.concatenate([log, more])})


def _new_board(
    instance: Instance, common: Common, memory_columns: int, table: DistributionTable, least: type[Board]
) -> Board:
    """Make the board of a run that has not begun."""
    jobs, shape = len(instance.jobs), instance.jobs.seconds_per_epoch.shape
    facts, rates = common.cluster(instance)
    types, busy = facts.kilowatts.shape
    tenants = quotas(instance) * at.UNITS
    board = build_of(instance, facts, len(tenants), least)(
        facts=facts,
        jobs=np.full((jobs, at.JOB_COLUMNS + 2 * instance.most_spread), np.nan),
        tau=np.full(shape, np.nan),
        nodes=_node_table(instance, busy - 1),
        capacity=new_capacity(types, len(instance.nodes), busy - 1),
        **_cell_arrays(instance),
        quota=np.hstack([tenants, np.zeros_like(tenants)]),
        node_rate=rates.node,
        planning_rate=rates.planning,
        least_rate=rates.least,
        edges=np.full_like(table.edges, np.nan),
        survival=np.full_like(table.survival, np.nan),
        tail=np.full_like(table.tail, np.nan),
        prices=unpublished_rows(instance),
        tariff=tariff_of(instance),
        clock=np.zeros(at.CLOCK_COLUMNS),
        count=np.zeros(at.COUNT_COLUMNS, dtype=np.int64),
        active=np.zeros(jobs, dtype=np.int64),
        keys=np.zeros(jobs),
        order=np.zeros(jobs, dtype=np.int64),
        memory=np.zeros((jobs, memory_columns)),
    )
    measure(board)
    board.count[at.DISTANCES] = int(instance.jobs.resume_s is not None)
    host = instance.host_memory
    board.count[at.LINK_GPUS] = 1 if host is None else host.gpus_per_link
    if host is not None and host.pool_gib < np.inf:
        board.count[at.LIMITED_POOL] = 1
        board.nodes[:, at.POOL_FREE] = int(host.pool_gib * BYTES_PER_GIB)
    board.clock[at.PRICE], board.clock[at.PUE] = instance.energy_price_eur_per_kwh, instance.pue
    board.clock[at.GPU_EUR_PER_S] = instance.gpu_hour_eur / 3600.0
    board.clock[[at.CAP_KW, at.NEXT_CAP_S, at.NEXT_CAP_KW]] = np.inf
    return board


def _facts(instance: Instance, common: Common) -> Facts:
    configurations = instance.configurations
    configs = np.zeros((len(configurations), at.CONFIG_COLUMNS), dtype=np.int64)
    configs[:, at.CONFIG_TYPE] = instance.type_of_configuration
    configs[:, at.CONFIG_CONSOLIDATED] = instance.consolidated
    configs[:, at.CONFIG_UNLIMITED] = instance.unlimited
    for row, configuration in zip(configs, configurations, strict=True):
        units = sharing.share_units(configuration.share)
        row[at.CONFIG_GPUS] = configuration.gpus_per_node
        row[at.CONFIG_NODES] = configuration.nodes
        row[at.CONFIG_UNITS] = units
        row[at.CONFIG_PRIORITY] = configuration.priority
        row[at.CONFIG_SPREAD] = configuration.spread
        row[at.CONFIG_SIZE] = (units or at.UNITS) * configuration.gpus_per_node * configuration.nodes
    return common.facts(
        Facts(
            configs=configs,
            shares=np.array([c.share for c in configurations]),
            kilowatts=kilowatts(instance),
            slowdown=sharing.slowdown_table(instance),
            utilisation=sharing.utilisation_table(instance),
            filled=sharing.filled_table(instance),
            sharing=sharing.sharing_numbers(instance),
            below=sharing.below_table(instance),
            memory=sharing.memory_table(instance),
            gpu_gib=np.array([v.memory_gib for v in instance.gpu_types]),
            idle_saving=sharing.idle_saving_kilowatts(instance),
            saved_kw=saved_kilowatts(instance),
            planned=sharing.planned_slowdown(instance),
            iteration=iteration_table(instance),
            network=network_numbers(instance),
            site=_site_numbers(instance),
        )
    )


def _site_numbers(instance: Instance) -> NDArray[np.float64]:
    if instance.site is None:
        return np.empty(0)
    return np.array([np.inf if instance.site.is_hard else instance.site.soft_eur_per_kwh])


def _caps(instance: Instance) -> NDArray[np.float64]:
    if instance.site is None:
        return np.empty((0, at.CAP_COLUMNS))
    return np.array([instance.site.start_s, instance.site.cap_kw, instance.site.noticed_s]).T.copy()


def _node_table(instance: Instance, most: int) -> NDArray[np.int64]:
    shared = 2 * most if any(c.kind == "shared" for c in instance.configurations) else 0
    nodes = np.zeros((len(instance.nodes), at.NODE_COLUMNS + shared), dtype=np.int64)
    nodes[:, at.NODE_TYPE] = instance.type_of_node
    nodes[:, [at.NEXT, at.OLD_NEXT]] = -1
    for column in (at.NODE_GPUS, at.USABLE, at.FREE, at.OLD_FREE):
        nodes[:, column] = [node.gpus for node in instance.nodes]
    return nodes


def _cell_arrays(instance: Instance) -> dict[str, NDArray[np.int64]]:
    """Make the arrays of cell bindings, hosts and their cells: hosts are their own hosts, and no cell is bound."""
    cells = np.full((len(instance.nodes) if instance.hosts else 0, at.CELL_COLUMNS), -1, dtype=np.int64)
    hosts = np.zeros((instance.hosts, blocks.HOST_COLUMNS), dtype=np.int64)
    if not instance.hosts:
        return {"cells": cells, "hosts": hosts, "tree": np.zeros((0, tree_at.TREE_COLUMNS), dtype=np.int64)}
    kinds, gpus = kinds_of_nodes(instance), np.array([node.gpus for node in instance.nodes], dtype=np.int64)
    first, together = len(instance.nodes) - instance.hosts, pieces(instance.nodes, instance.racks)
    for rack, nodes in enumerate(together):
        cells[nodes, at.CELL_RACK], cells[nodes, at.CELL_NODES] = rack, len(nodes)
    sizes = gpus * cells[:, at.CELL_NODES]
    levels = {int(kind): _levels(gpus[kinds == kind], sizes[kinds == kind]) for kind in set(kinds.tolist())}
    racks = [rack for rack in together if rack[0] >= first]
    tree, _ = tree_at.grow([(int(kinds[rack[0]]), int(sizes[rack[0]])) for rack in racks], levels)
    start = 0
    for host in (host for rack in racks for host in rack):
        within = (tree[:, tree_at.FIRST] >= start) & (tree[:, tree_at.FIRST] < start + gpus[host])
        inside = np.flatnonzero(within & (tree[:, tree_at.SIZE] <= gpus[host]))
        tree[inside, tree_at.NODE] = host - first
        hosts[host - first, blocks.TOP] = inside[0]
        start += int(gpus[host])
    hosts[:, blocks.GPUS] = gpus[first:]
    cells[first:, at.CELL_HOST] = cells[first:, at.CELL_OLD_HOST] = range(instance.hosts)
    cells[:, at.CELL_BLOCK] = 0
    kind_of_row = kinds[[racks[piece][0] for piece in tree[:, tree_at.PIECE]]]
    for n in range(len(instance.nodes)):
        equal = np.flatnonzero((kind_of_row == kinds[n]) & (tree[:, tree_at.SIZE] == sizes[n]))
        cells[n, at.CELL_LEVEL] = tree[equal[0], tree_at.LIST]
    return {"cells": cells, "hosts": hosts, "tree": tree}


def _levels(gpus: NDArray[np.int64], sizes: NDArray[np.int64]) -> tuple[int, ...]:
    low, high = int(gpus.min()), int(gpus.max())
    in_nodes = {low * 2**k for k in range((high // low).bit_length())}
    return tuple(sorted(in_nodes | set(sizes.tolist())))


def log_columns(instance: Instance) -> int:
    if instance.most_spread:
        return at.LOG_GPUS + 1
    return at.LOG_HOST + 1 if instance.hosts else at.LOG_COLUMNS


def _new_hidden(instance: Instance, board: Board, distributions: DistributionTable, log_rows: int) -> Hidden:
    """Make the hidden part: epochs needed, and all values of every job until it is submitted."""
    table = instance.jobs
    seconds = table.seconds_per_epoch * board.facts.planned[table.application]
    outcome = np.empty((len(table), at.OUTCOME_COLUMNS))
    outcome[:, at.NEEDED] = table.epochs_needed
    outcome[:, at.FINISH_S] = np.inf
    return Hidden(
        outcome=outcome,
        jobs=_first_rows(instance, seconds, distributions.bins, board.least_rate),
        tau=seconds,
        edges=distributions.edges,
        survival=distributions.survival,
        tail=distributions.tail,
        prices=price_rows(instance),
        log=np.full((log_rows, log_columns(instance)), -1.0),
        caps=_caps(instance),
    )


def _first_rows(
    instance: Instance, seconds: NDArray[np.float64], bins: NDArray[np.int64], least_rate: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Make every job's first row of the board; `seconds` per epoch are those with which policies plan, (J, C)."""
    table = instance.jobs
    jobs = np.zeros((len(table), at.JOB_COLUMNS + 2 * instance.most_spread))
    jobs[:, at.JOB_COLUMNS :] = -1.0
    jobs[:, at.SUBMISSION] = table.submission_s
    jobs[:, at.DUE] = table.due_s
    jobs[:, at.WEIGHT] = table.tardiness_weight_eur_per_s
    jobs[:, at.MAX_EPOCHS] = table.max_epochs
    jobs[:, at.MIN_TAU] = seconds.min(axis=1)
    jobs[:, at.MAX_TAU] = np.where(np.isfinite(seconds), seconds, 0.0).max(axis=1)
    jobs[:, at.DISTRIBUTION] = table.distribution
    jobs[:, at.EDGES] = bins[table.distribution]
    jobs[:, at.TIMER_S] = -np.inf
    jobs[:, at.MILESTONE] = 1.0
    jobs[:, at.APPLICATION] = table.application
    jobs[:, at.RESTART_S] = table.restart_s
    jobs[:, at.STARTING_S] = table.start_s
    jobs[:, at.OPPORTUNISTIC] = table.opportunistic
    jobs[:, at.RESUMING_S] = table.restart_s if table.resume_s is None else table.resume_s
    if instance.host_memory is not None:
        jobs[:, at.STATE_BYTES] = np.ceil(table.state_gib * BYTES_PER_GIB)
        jobs[:, at.MOVING_S] = instance.host_memory.moving_s(1.0) * table.state_gib
    jobs[:, at.SLOWDOWN] = 1.0
    jobs[:, at.TENANT] = table.tenant
    jobs[
        :, [at.CONFIG, at.NODE, at.SLOT, at.OLD_CONFIG, at.OLD_NODE, at.OLD_SLOT, at.PREFERRED_NODE, at.PREFERRED_SLOT]
    ] = -1.0
    jobs[:, [at.LAST_NODE, at.POOL_NODE]] = -1.0
    jobs[:, at.TRACED_CONFIG] = -1.0
    jobs[:, [at.START_S, at.END_S, at.TRACED_START_S]] = np.nan
    least = least_rate[table.application]
    jobs[:, at.CHEAPEST], jobs[:, at.CHEAPEST_TAU] = cheapest_in_full_nodes(seconds, least)
    return jobs


def cheapest_in_full_nodes(seconds: NDArray[np.float64], least_rate: NDArray[np.float64]) -> tuple[Any, Any]:
    """Return every job's configuration whose epochs cost least in full nodes, and its seconds per epoch; -1, inf: none.

    Args:
        seconds: Seconds per epoch, (J, C); inf where not allowed.
        least_rate: Cost rates in full nodes [€/s], (J, C).
    """
    price = np.where(np.isfinite(seconds), seconds, np.inf) * np.maximum(least_rate, 1e-300)
    exists = np.isfinite(price.min(axis=1))
    cheapest = np.where(exists, price.argmin(axis=1), -1)
    return cheapest, np.where(exists, seconds[np.arange(len(seconds)), cheapest], np.inf)
