"""The view of a policy: what it may see, and its actions: place jobs, and set timers."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.model import Configuration, checks
from gpusched_env.named_arrays import added_fields
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.builds import empty_arrays
from gpusched_env.simulator.choice import Choice, apply_choice
from gpusched_env.simulator.placement.placement import clear_preferred_node, place, set_preferred_node
from gpusched_env.simulator.placement.speed_now import seconds_now, speed_now
from gpusched_env.simulator.placement.whole_gpus import release
from gpusched_env.simulator.run import Board
from gpusched_env.simulator.survival import DistributionTable


class View:
    """The present state of a run, without what is hidden from policies.

    `jobs`, `tau`, `nodes`, `capacity`, `node_rate`, `planning_rate`, `least_rate`, `edges`, `survival`, `tail`,
    `clock`, `count` and `memory` are those of `gpusched_env.simulator.run.Board`, and `configs` those of its `Facts`:
    the simulator's own arrays (their columns are in `gpusched_env.simulator.layout`), but read-only, except `memory`,
    which is the policy's. Rows of jobs that are not submitted yet are NaN. The arrays that mechanisms add to the board,
    such as `prices`, `quota` and `cells`, are read in the same way; in a run without the mechanism they are empty.

    Attributes:
        board: The argument of kernels: compiled policies pass it to theirs.
        configurations: The configurations, in the order of their indices.
    """

    jobs: NDArray[np.float64]
    tau: NDArray[np.float64]
    nodes: NDArray[np.int64]
    capacity: NDArray[np.int64]
    configs: NDArray[np.int64]
    node_rate: NDArray[np.float64]
    planning_rate: NDArray[np.float64]
    least_rate: NDArray[np.float64]
    edges: NDArray[np.float64]
    survival: NDArray[np.float64]
    tail: NDArray[np.float64]
    clock: NDArray[np.float64]
    count: NDArray[np.int64]
    memory: NDArray[np.float64]

    def __init__(self, board: Board, configurations: tuple[Configuration, ...]) -> None:
        self.configurations = configurations
        self.show(board)

    def show(self, board: Board) -> None:
        """Show another board from now on."""
        self.__dict__ = {"board": board, "configurations": self.configurations}

    def __getattr__(self, name: str) -> Any:
        """Return an array of the board, read-only, and keep it."""
        if "board" not in self.__dict__ or name.startswith("_"):  # a copy that has no state yet
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name in View.__annotations__ or name in added_fields(self.board):
            array = getattr(self.board.facts if name == "configs" else self.board, name).view()
        elif name in empty_arrays():
            array = empty_arrays()[name].view()
        else:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        array.flags.writeable = name == "memory"
        self.__dict__[name] = array
        return array

    def __repr__(self) -> str:
        return f"View(at {self.now_s:,.0f} s: {len(self.active)} active jobs, {len(self.nodes)} nodes)"

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy: its arrays must be those of its own board."""
        return {"board": self.board, "configurations": self.configurations}

    @cached_property
    def gpu_types(self) -> tuple[str, ...]:
        """Return the names of the GPU types by their index; an empty text for one without configurations."""
        names = [""] * len(self.board.capacity)
        for configuration, row in zip(self.configurations, self.board.facts.configs, strict=True):
            names[row[at.CONFIG_TYPE]] = configuration.gpu_type
        return tuple(names)

    @property
    def now_s(self) -> float:
        """Return the present time [s]."""
        return float(self.board.clock[at.NOW])

    @property
    def known_until_s(self) -> float:
        """Return the time until which prices of energy are known now [s]; inf if all are, or they do not change."""
        return float(hooks.known_until_s(self.board, np.inf))

    def price(self, begin_s: float, end_s: float) -> float:
        """Return the mean price of a kWh of the nodes between two times [s], PUE included [€/kWh].

        NaN where it is not published yet.

        Raises:
            InputError: A time is no finite number, or they are not in order.
        """
        checks.finite("begin_s", begin_s)
        if checks.finite("end_s", end_s) < begin_s:
            raise InputError("end_s", end_s, f"at least begin_s, {begin_s:g}")
        clock = self.board.clock
        return float(hooks.mean_price(self.board, begin_s, end_s, clock[at.PRICE] * clock[at.PUE]))

    @property
    def distributions(self) -> DistributionTable:
        """Return the distributions of epochs needed, by `jobs[:, DISTRIBUTION]`; NaN until a job with it is submitted.

        Returns:
            A table with a row of edges for each distribution: a copy.
        """
        board = self.board
        edges = np.full_like(board.tail, np.nan)
        known = board.jobs[: board.count[at.SUBMITTED]]
        edges[known[:, at.DISTRIBUTION].astype(np.int64)] = board.edges[known[:, at.EDGES].astype(np.int64)]
        return DistributionTable(np.arange(len(edges)), edges, board.survival.copy(), board.tail.copy())

    @property
    def active(self) -> NDArray[np.int64]:
        """List the jobs submitted and not completed, by index."""
        return self.board.active[: self.board.count[at.ACTIVE]].copy()

    @property
    def waiting(self) -> NDArray[np.int64]:
        """List the active jobs that hold nothing in this round, by index."""
        active = self.active
        return active[self.board.jobs[active, at.CONFIG] < 0]

    def place(self, job: int, config: int) -> bool:
        """Place `job` with the configuration of index `config`; return False, without a change, if it does not fit now.

        Raises:
            InputError: The job is not active, or there is no such configuration, or the job may not use it.
        """
        self._check_config(job, config)
        return place(self.board, job, config)

    def release(self, job: int) -> None:
        """Release what `job` holds in this round; it waits unless it is placed again.

        Raises:
            InputError: The job is not active.
        """
        self._check_active(job)
        release(self.board, job)

    def clear_preferred_node(self, job: int) -> None:
        """Clear the preferred node of `job`: in this round it is placed where it fits best.

        Raises:
            InputError: The job is not active.
        """
        self._check_active(job)
        clear_preferred_node(self.board, job)

    def set_timer(self, job: int, time_s: float) -> None:
        """Ask for a decision round at `time_s` [s] on behalf of `job`, in place of its former timer.

        Raises:
            InputError: The job is not active, or the time is out of its range.
        """
        self._check_active(job)
        self.board.jobs[job, at.TIMER_S] = _timer_of("time_s", time_s)

    def apply(self, job: int, choice: Choice) -> None:
        """Apply a policy's choice for `job` except its placement: its timer, and where it is placed first.

        Raises:
            InputError: The job is not active, it is no `Choice`, or its timer, node or GPU is out of its range.
        """
        self._check_active(job)
        if not isinstance(choice, Choice):
            raise InputError("choice", choice, "a Choice")
        timer_s = np.nan if choice.timer_s is None else _timer_of("choice.timer_s", choice.timer_s)
        node, gpu = self._place(choice)
        apply_choice(self.board, job, choice.leaves, timer_s)
        if node >= 0:
            set_preferred_node(self.board, job, node, gpu)

    def _place(self, choice: Choice) -> tuple[int, int]:
        if choice.node is None:
            if choice.gpu is not None:
                raise InputError("choice.gpu", choice.gpu, "None without a node")
            return -1, -1
        node = _index("choice.node", choice.node, len(self.board.nodes))
        gpus = int(self.board.nodes[node, at.NODE_GPUS])
        return node, -1 if choice.gpu is None else _index("choice.gpu", choice.gpu, gpus)

    def speed_now(self, job: int, config: int) -> float:
        """Return the speed of `job` if it were placed now with a configuration, 1 as alone; 0: it does not fit.

        It depends on the co-runners on the shared GPU where it would be placed, and changes with them. On several nodes
        with a model of the network it depends on what is on, 1 being no help and a network that all nodes use. Policies
        plan with the worst possible speed (`tau`): an epoch takes tau / planned / speed now, `seconds_now`.

        Raises:
            InputError: The job is not active, or may not use the configuration, or there is none with that index.
        """
        self._check_config(job, config)
        return float(speed_now(self.board, job, config))

    def seconds_now(self, job: int, config: int) -> float:
        """Return the seconds per epoch of `job` if it were placed now with a configuration; inf: it does not fit.

        Raises:
            InputError: The job is not active, or may not use the configuration, or there is none with that index.
        """
        self._check_config(job, config)
        return float(seconds_now(self.board, job, config))

    def _check_config(self, job: int, config: int) -> None:
        self._check_active(job)
        if not 0 <= config < len(self.configurations):
            raise InputError("configuration", config, f"an index from 0 to {len(self.configurations) - 1}")
        if not np.isfinite(self.board.tau[job, config]):
            raise InputError("configuration", self.configurations[config].name, f"one that job {job} may use")

    def _check_active(self, job: int) -> None:
        submitted = 0 <= job < self.board.count[at.SUBMITTED]
        if not submitted or not np.isnan(self.board.jobs[job, at.END_S]):
            raise InputError("job", job, "the index of a job that is submitted and not completed")


def _timer_of(field: str, time_s: float) -> float:
    if not (np.isinf(time_s) or 0.0 <= time_s <= checks.LONGEST_S):
        allowed = f"a number >= 0 and <= {checks.LONGEST}; inf for none, -inf for none and no plan"
        raise InputError(field, time_s, allowed)
    return time_s


def _index(field: str, index: int, size: int) -> int:
    if isinstance(index, bool) or not isinstance(index, int | np.integer) or not 0 <= index < size:
        raise InputError(field, index, f"an index from 0 to {size - 1}, or None")
    return int(index)
