"""Sections of a scenario on sharing: GPUs, the network, switching, and tenants."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, model_validator

from gpusched_env.errors import InputError
from gpusched_env.model.configuration import FILLED, LEAST_SPEED, MOST_PRIORITIES, OVERHEAD, Backend, Topology
from gpusched_env.model.mechanism import model_of
from gpusched_env.workload.scenario.settings import (
    Count,
    CountFromZero,
    Many,
    NotNegative,
    Part,
    Positive,
    Seconds,
    Settings,
    as_tuple,
    number,
    number_range,
    setting,
    whole,
)
from gpusched_env.workload.tables.applications import RDMA, builtin_max_inflation

if TYPE_CHECKING:
    from gpusched_env.model import Mechanism, Tenant

LEAST_INFLATION = 1.01
"""Least inflation that the published model draws."""

Fraction = Annotated[float, number("a number >= 0.001 and < 1", lambda x: 0.001 <= x < 1.0)]
Priority = Annotated[int, whole(0, MOST_PRIORITIES - 1)]
GapEvery = Literal[1, 5, 20, 200]
UtilisationRange = Annotated[tuple[float, float], number_range("> 0 and <= 1", lambda x: 0.0 < x <= 1.0)]
Inflation = Annotated[float, number(f"a finite number >= {LEAST_INFLATION}", lambda x: x >= LEAST_INFLATION)]


def _one_or_more(value: object) -> object:
    return as_tuple(value) if isinstance(value, list | tuple) else (value,)


_BY_UTILISATION = (
    "priorities", "utilisation", "power", "overhead", "filled", "least_speed", "idle_share", "memory", "host_gb_per_s",
    "adapt_s", "gaps", "profile_s",
)  # fmt: skip
"""Settings that only interference = "utilisation" has."""


class Sharing(Settings):
    """GPU sharing: fractions of one GPU, where a job runs with other small jobs as co-runners."""

    fractions: Many[Fraction] = setting(
        (), "Fractions of a GPU that a job is offered, such as [0.5, 0.25]. By default none."
    )
    interference: Literal["random", "measured", "utilisation"] = setting(
        "random",
        "Effect of sharing on a job's time: random (its own inflation, from a range), measured (pairs slow "
        "each other down), or utilisation (jobs divide the GPU's time).",
    )
    max_inflation: Annotated[tuple[Inflation, ...], BeforeValidator(_one_or_more)] | None = setting(
        None, "Greatest random inflation: one for all fractions, or one for each. By default the package's."
    )
    placement: Literal["fullest", "fastest"] | None = setting(
        None,
        "To which open GPU a share goes: the fullest, or where it is fastest. By default fastest with "
        "utilisation, else fullest.",
    )
    priorities: Many[Priority] = setting(
        (), "With utilisation: the priority of each fraction, 0 to 9; by default all 0."
    )
    utilisation: UtilisationRange | None = setting(
        None,
        "With utilisation: range from which each application draws the part of the time for which it keeps a GPU "
        "busy. By default the package's table.",
    )
    gpu_counts: Many[Count] = setting((1,), "Numbers of GPUs of a node of which a job is offered shares.")
    memory: Literal["parts", "moves"] = setting(
        "parts",
        "With utilisation: memory of a share: its part of the GPU's (parts), or what jobs of higher priority leave, "
        "and the rest in host memory (moves).",
    )
    host_gb_per_s: Positive = setting(12.0, "With memory = moves: bandwidth between a GPU and host memory [GB/s].")
    adapt_s: Seconds = setting(10.0, "With memory = moves: seconds until limits follow the jobs on a GPU.")
    overhead: NotNegative = setting(
        OVERHEAD, "With utilisation: loss of a job to co-runners of lower priority, part of its time; > 0."
    )
    filled: Part = setting(FILLED, "With utilisation: usable part of the time left by the highest priority.")
    gaps: Many[GapEvery] = setting(
        (),
        "With utilisation: after how many kernels an application has a gap, 1, 5, 20 or 200, of which each draws "
        "one; the usable part then comes from a table, by gap and number of opportunistic jobs. By default filled.",
    )
    least_speed: Part = setting(
        LEAST_SPEED,
        "With utilisation: least speed below the highest priority, if the utilisations there sum to 1 at most.",
    )
    profile_s: Seconds = setting(
        0.0,
        "With utilisation: seconds for which an application runs on whole GPUs before its jobs may share. By default "
        "none.",
    )
    power: Literal["busy", "utilisation"] = setting(
        "busy", "Power of a held GPU: that of a busy one (busy), or by its utilisation (utilisation)."
    )
    idle_share: Part = setting(
        0.155,
        "With power = utilisation: power of a held, idle GPU over that of a busy one, for GPU types "
        "without idle power of their own.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._check_utilisation()
        if len(set(self.offers())) != len(self.fractions):
            raise InputError("fractions", list(self.fractions), "each once")
        if self.max_inflation is None:
            least = min(fraction for _, fraction in builtin_max_inflation())
            for index, fraction in enumerate(self.fractions):
                if self.interference == "random" and fraction < least:
                    allowed = f"at least {least}, the least of the built-in table, unless max_inflation is set"
                    raise InputError(f"fractions[{index}]", fraction, allowed)
            return self
        if self.interference != "random":
            allowed = f"nothing with interference = {self.interference!r}: that sets the times"
            raise InputError("max_inflation", list(self.max_inflation), allowed)
        if len(self.max_inflation) not in {1, len(self.fractions)}:
            allowed = f"one number, or one for each of fractions ({len(self.fractions)})"
            raise InputError("max_inflation", list(self.max_inflation), allowed)
        return self

    def _check_utilisation(self) -> None:
        if self.priorities and len(self.priorities) != len(self.fractions):
            raise InputError("priorities", list(self.priorities), f"one for each of fractions ({len(self.fractions)})")
        if self.interference == "random" and self.placement == "fastest":
            raise InputError("placement", self.placement, "fullest with random inflation: all GPUs are equally fast")
        if self.interference != "utilisation":
            for name in _BY_UTILISATION:
                if getattr(self, name) != type(self).model_fields[name].default:
                    raise InputError(name, getattr(self, name), 'its default, unless interference = "utilisation"')
            return
        if self.gaps and self.filled != FILLED:
            raise InputError("filled", self.filled, "its default with gaps: a table says what is filled")
        most = self.overhead / (1.0 + self.overhead)
        if not 0.0 < self.least_speed <= most:
            raise InputError(
                "least_speed", self.least_speed, f"a number > 0 and <= overhead / (1 + overhead) = {most:g}"
            )

    def offers(self) -> tuple[tuple[float, int], ...]:
        """Return every fraction with its priority, in the order of the section."""
        return tuple(zip(self.fractions, self.priorities or (0,) * len(self.fractions), strict=True))

    @property
    def fastest(self) -> bool:
        """Whether a share goes to the open GPU on which it is fastest."""
        return self.placement == "fastest" if self.placement else self.interference == "utilisation"

    def own_max_inflation(self) -> dict[float, float]:
        """Return the greatest inflation of every fraction that the section sets itself."""
        greatest = self.max_inflation or ()
        if len(greatest) == 1:
            greatest *= len(self.fractions)
        return dict(zip(self.fractions, greatest, strict=True)) if greatest else {}


class Interconnect(Settings):
    """The network between nodes, for jobs on several of them (modelled, not measured)."""

    nic_gb_per_s: Positive | None = setting(
        None, "Modelled: network of a node in one direction [GB/s]. By default the one that was measured."
    )
    exposed: Positive = setting(
        RDMA, "Share of synchronising that no computing hides / efficiency of the link: 0.6 RDMA, 1.9 TCP."
    )
    backend: Backend = setting(
        "all-reduce", "How jobs synchronise: all-reduce, parameter-server, or byteps (spare machines help)."
    )
    cpu_machines: CountFromZero = setting(
        0, "CPU machines: parameter servers, or those that help to synchronise with byteps."
    )
    cpu_machine_w: NotNegative = setting(0.0, "Power of a CPU machine while it makes a job faster [W].")
    core_gb_per_s: Positive | None = setting(
        None, "What all jobs on several nodes can send at once between nodes [GB/s]. By default no limit."
    )
    machine: Topology | None = setting(
        None, "Links inside a node: pcie (two switches, no NVLink) or nvlink. By default as fast as the measured ones."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.cpu_machines and self.backend == "all-reduce":
            raise InputError("cpu_machines", self.cpu_machines, f"0 with backend = {self.backend!r}")
        if self.cpu_machine_w and not self.cpu_machines:
            raise InputError("cpu_machine_w", self.cpu_machine_w, "0 without cpu_machines")
        if self.exposed != RDMA and self.nic_gb_per_s is None:
            raise InputError("exposed", self.exposed, f"{RDMA} unless nic_gb_per_s is set")
        for name in ("core_gb_per_s", "machine"):
            if getattr(self, name) is not None and self.nic_gb_per_s is None:
                raise InputError(name, getattr(self, name), "nothing unless nic_gb_per_s is set")
        return self

    @property
    def measured(self) -> bool:
        """Whether jobs on several nodes take the times that were measured."""
        return self.nic_gb_per_s is None and self.backend == "all-reduce"


class SwitchingCosts(NamedTuple):
    """Seconds without progress at a start, where a job continues, and at a restart; no `resume_s`: none of its own."""

    start_s: float
    resume_s: float | None
    restart_s: float


class Switching(Settings):
    """Switching of jobs: the costs of a start, of continuing in the same place and of a restart elsewhere."""

    model: Literal["free", "stop-start", "one-process", "pipelined"] | None = setting(
        None,
        "How jobs are switched: free, stop-start, one-process or pipelined. By default every change after "
        "the first start costs restart_s.",
    )
    start_s: Seconds | None = setting(
        None, "Seconds without progress at a first start. By default that of the model, else 0."
    )
    resume_s: Seconds | None = setting(
        None, "The same where a job continues on the nodes where it ran last. By default that of the model."
    )
    bandwidth_gb_per_s: Positive = setting(12.0, "Bandwidth at which states of jobs leave and reach a GPU [GB/s].")
    start_up: Literal["constant", "layers"] = setting(
        "constant",
        "With pipelined: how much of a transfer computing hides: all but a constant for starts and nothing for states "
        "(constant), or as predicted from the layers of the model (layers).",
    )
    pool_gib: Positive | None = setting(
        None,
        "Host memory of a node for the states of paused jobs [GiB]; a state without room is dropped, and its job "
        "restarts. By default no limit.",
    )
    gpus_per_link: Count = setting(1, "GPUs of a node that share a PCIe link, on which a job's GPUs move its state.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Check that no cost of switching is set where switching is free."""
        for name in ("start_s", "resume_s"):
            if self.model == "free" and getattr(self, name):
                raise InputError(name, getattr(self, name), "nothing with model = 'free'")
        if self.start_up == "layers" and self.model != "pipelined":
            raise InputError("start_up", self.start_up, "constant, unless model = 'pipelined'")
        for name, default in (("pool_gib", None), ("gpus_per_link", 1)):
            if getattr(self, name) != default and self.model not in ("one-process", "pipelined"):
                allowed = f"{default}, unless model = 'one-process' or 'pipelined'"
                raise InputError(name, getattr(self, name), allowed)
        return self

    def given_costs(self, restart_s: float, start_s: float = 0.0, resume_s: float | None = None) -> SwitchingCosts:
        """Return costs [s] in which the start and the resumption that the section sets replace those given."""
        own_start_s, own_resume_s = self.start_s, self.resume_s
        return SwitchingCosts(
            start_s if own_start_s is None else own_start_s,
            resume_s if own_resume_s is None else own_resume_s,
            restart_s,
        )

    @property
    def host_memory(self) -> tuple[Mechanism, ...]:
        """Return what nodes have for states of jobs; nothing without a limit and with a link for every GPU."""
        if self.pool_gib is None and self.gpus_per_link == 1:
            return ()
        kind: Any = model_of("switching")
        return (kind(self.pool_gib or math.inf, self.gpus_per_link, self.bandwidth_gb_per_s),)


Sizes = Many[Count]


class OwnTenant(Settings):
    """A tenant of the cluster: its part of the jobs, and its guaranteed cells."""

    name: str = Field(description="Name.")
    share: Positive = setting(1.0, "Its part of the jobs, relative to the other tenants'.")
    cells: dict[str, Sizes] = Field(description="GPUs of each of its cells, by GPU type: { V100 = [8, 8, 4] }.")

    def tenant(self) -> Tenant:
        """Make the model's value. Raises InputError: the name is not allowed, or there are no cells."""
        from gpusched_env.model.tenant import Cells, Tenant  # noqa: PLC0415 - few need it

        counted = [(name, size, n) for name, sizes in self.cells.items() for size, n in Counter(sizes).items()]
        return Tenant(self.name, tuple(Cells(*cells) for cells in counted))
