"""The state of a run, and the methods that advance it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.hooks import arrays_of, begin
from gpusched_env.model import Instance, checks
from gpusched_env.model.rates import Rates, rent_eur_per_h
from gpusched_env.named_arrays import NamedArrays
from gpusched_env.named_arrays import build as built
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.builds import build_of, facts_of, with_constants_of
from gpusched_env.simulator.events import advance, disclose
from gpusched_env.simulator.placement.free_capacity import measure
from gpusched_env.simulator.placement.node_index import new_capacity
from gpusched_env.simulator.policy import AS_A_POLICY, FREE_COLUMNS, Asking
from gpusched_env.simulator.rounds import NAMED_ORDERS, begin_round, commit_round
from gpusched_env.simulator.run import Board, Facts, Hidden
from gpusched_env.simulator.survival import DistributionTable

if TYPE_CHECKING:
    from gpusched_env.simulator.view import View

MOST_CLUSTERS = 64  # whose facts are kept


class Common:
    """The values that runs have in common, each once, so that they stay in the processor's cache.

    They must not be written.
    """

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}
        self._clusters: dict[Any, tuple[Any, tuple[Facts, Rates, dict[type[Board], Facts]]]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def once(self, array: NDArray[Any]) -> NDArray[Any]:
        return self._known.setdefault((array.dtype.str, array.shape, array.tobytes()), array)

    def facts(self, facts: Facts) -> Facts:
        arrays = [(array.shape, array.tobytes()) for array in facts.__getstate__().values()]
        return self._known.setdefault((type(facts), *arrays), facts)

    def cluster(self, instance: Instance, least: type[Board]) -> tuple[type[Board], Facts, Rates]:
        """Return the build of the runs of an instance, their constants and rates, once for instances of one cluster."""
        own, rates, builds = self._of_cluster(instance)
        build = build_of(instance, own, least)
        if build not in builds:
            builds[build] = self.facts(with_constants_of(own, build.mechanisms, instance))
        return build, builds[build], rates

    def _of_cluster(self, instance: Instance) -> tuple[Facts, Rates, dict[type[Board], Facts]]:
        """Return the constants that all builds have, the rates, and the constants of builds that are known."""
        if any(own.constants_from == "jobs" for own in instance.mechanisms):
            return facts_of(instance), self._rates(instance), {}
        models = [own for own in instance.mechanisms if own.constants_from == "model"]
        parts = (instance.gpu_types, instance.nodes, instance.configurations, *models)
        numbers = (instance.energy_price_eur_per_kwh, instance.pue, rent_eur_per_h(instance))
        key = (*map(id, parts), *numbers, instance.first_machine, len(instance.jobs.applications))
        if key not in self._clusters:
            if len(self._clusters) == MOST_CLUSTERS:
                self._clusters.clear()
            self._clusters[key] = parts, (facts_of(instance), self._rates(instance), {})  # with parts: ids stay theirs
        return self._clusters[key][1]

    def _rates(self, instance: Instance) -> Rates:
        rates = Rates.of(instance)
        if instance.find("prices") is not None:  # each has a price of its own: they would be kept for ever
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
        build: type[Board] = Board,
    ) -> None:
        self.instance, self.asking = instance, asking
        columns = FREE_COLUMNS + 3 * len(instance.gpu_types) if memory_columns is None else memory_columns
        distributions = DistributionTable.of(instance.jobs.distributions)
        build, facts, rates = (Common() if common is None else common).cluster(instance, build)
        added = {name: array for one in build.mechanisms for name, array in arrays_of(one, instance).items()}
        self.board = _new_board(instance, facts, rates, columns, distributions, build, added)
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
        rows = 4 * len(instance.jobs) + 16 if record else 0
        self.hidden = _new_hidden(instance, self.board, distributions, rows, added)
        begin(self.board.mechanisms, instance, self.board, self.hidden)

    def __repr__(self) -> str:
        count, now_s = self.board.count, self.board.clock[at.NOW]
        return f"State({self.instance!r} at {now_s:,.0f} s, {count[at.DONE]} of {len(self.instance.jobs)} jobs done)"

    @cached_property
    def view(self) -> View:
        """Return the board for policies, read-only; it is the same object for the whole run."""
        from gpusched_env.simulator.view import View  # noqa: PLC0415 - few need it

        return View(self.board, self.instance.configurations)

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
        self._show()

    def use_build(self, build: type[Board]) -> None:
        """Go on with kernels of another build, which covers the instance, on the same arrays."""
        if type(self.board) is not build:
            added: dict[str, Any] = {}
            for mechanism in set(build.mechanisms) - set(self.board.mechanisms):
                added |= arrays_of(mechanism, self.instance)
            hidden = built(Hidden, build.mechanisms)
            added["facts"] = with_constants_of(self.board.facts, build.mechanisms, self.instance)
            self.board = build(**self.board.__getstate__() | _those(build, added))
            self.hidden = hidden(**self.hidden.__getstate__() | _those(hidden, added))
            self._show()

    def _show(self) -> None:
        if "view" in vars(self):
            self.view.show(self.board)

    def restore(self) -> None:
        """Recompute what follows from the arrays of a checkpoint: disclosed values and free capacity."""
        hooks.restore(self.board, self.hidden)
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
            self.hidden = self.hidden.replaced(log=np.concatenate([log, more]))


def _new_board(
    instance: Instance,
    facts: Facts,
    rates: Rates,
    memory_columns: int,
    table: DistributionTable,
    build: type[Board],
    added: Mapping[str, Any],
) -> Board:
    """Make the board of a run that has not begun; `added` are the arrays of mechanisms."""
    jobs, shape = len(instance.jobs), instance.jobs.seconds_per_epoch.shape
    types, busy = facts.kilowatts.shape
    board = build(
        facts=facts,
        jobs=np.full((jobs, at.JOB_COLUMNS + 2 * instance.most_spread), np.nan),
        tau=np.full(shape, np.nan),
        nodes=_node_table(instance, busy - 1),
        capacity=new_capacity(types, len(instance.nodes), busy - 1),
        node_rate=rates.node,
        planning_rate=rates.planning,
        least_rate=rates.least,
        edges=np.full_like(table.edges, np.nan),
        survival=np.full_like(table.survival, np.nan),
        tail=np.full_like(table.tail, np.nan),
        clock=np.zeros(at.CLOCK_COLUMNS),
        count=np.zeros(at.COUNT_COLUMNS, dtype=np.int64),
        active=np.zeros(jobs, dtype=np.int64),
        keys=np.zeros(jobs),
        order=np.zeros(jobs, dtype=np.int64),
        memory=np.zeros((jobs, memory_columns)),
        **_those(build, added),
    )
    measure(board)
    board.count[at.LINK_GPUS] = 1
    board.clock[at.PRICE], board.clock[at.PUE] = instance.energy_price_eur_per_kwh, instance.pue
    board.clock[[at.CAP_KW, at.NEXT_CAP_S, at.NEXT_CAP_KW]] = np.inf
    return board


def _those(kind: type[NamedArrays], arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of some arrays that are fields of a part of the state."""
    return {name: array for name, array in arrays.items() if name in kind._fields}


def _node_table(instance: Instance, most: int) -> NDArray[np.int64]:
    shared = 2 * most if any(c.kind == "shared" for c in instance.configurations) else 0
    nodes = np.zeros((len(instance.nodes), at.NODE_COLUMNS + shared), dtype=np.int64)
    nodes[:, at.NODE_TYPE] = instance.type_of_node
    nodes[:, [at.NEXT, at.OLD_NEXT]] = -1
    for column in (at.NODE_GPUS, at.USABLE, at.FREE, at.OLD_FREE):
        nodes[:, column] = [node.gpus for node in instance.nodes]
    return nodes


def log_columns(instance: Instance) -> int:
    if instance.most_spread:
        return at.LOG_GPUS + 1
    return at.LOG_HOST + 1 if instance.first_machine else at.LOG_COLUMNS


def _new_hidden(
    instance: Instance, board: Board, distributions: DistributionTable, log_rows: int, added: Mapping[str, Any]
) -> Hidden:
    """Make the hidden part: epochs needed, and all values of every job until it is submitted."""
    table = instance.jobs
    seconds = table.seconds_per_epoch * board.facts.planned[table.application]
    outcome = np.empty((len(table), at.OUTCOME_COLUMNS))
    outcome[:, at.NEEDED] = table.epochs_needed
    outcome[:, at.FINISH_S] = np.inf
    kind = built(Hidden, board.mechanisms)
    return kind(
        outcome=outcome,
        jobs=_first_rows(instance, seconds, distributions.bins, board.least_rate),
        tau=seconds,
        edges=distributions.edges,
        survival=distributions.survival,
        tail=distributions.tail,
        log=np.full((log_rows, log_columns(instance)), -1.0),
        **_those(kind, added),
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
