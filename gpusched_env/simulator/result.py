"""The result of a run, and a chart of its busy GPUs as text."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.simulator import layout as at
from gpusched_env.simulator.due_dates import MISSED_S

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from gpusched_env.model import Instance
    from gpusched_env.simulator.state import State

MOST_NODES = 16  # that are drawn
LABEL, WIDTH, ROW, FREE_BLOCK = 130, 560, 14, 3  # pixels
COLOUR, BAND, INK = "#4E79A7", "#88888822", "#888888"


def busy_chart(instance: Instance, log: NDArray[np.float64]) -> str:
    """Draw a row for each of the first nodes: how many of its GPUs were held, over time.

    Args:
        log: Rows of the log's form, (L, LOG_COLUMNS).

    Returns:
        An SVG element; empty if there are no intervals.
    """
    if not len(log):
        return ""
    end_s = float(log[:, at.LOG_END].max())
    shown = min(MOST_NODES, len(instance.nodes))
    rows = "".join(_row(instance, log, node, end_s) for node in range(shown))
    more = f", the first {shown} of {len(instance.nodes)} nodes" if shown < len(instance.nodes) else ""
    height = shown * (ROW + FREE_BLOCK) + 16
    words = f"busy GPUs from 0 to {end_s / 3600.0:.4g} h{more}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LABEL + WIDTH}" height="{height}" role="img" '
        f'font-family="sans-serif" font-size="10">{rows}'
        f'<text x="{LABEL}" y="{height - 4}" fill="{INK}">{words}</text></svg>'
    )


def _row(instance: Instance, log: NDArray[np.float64], number: int, end_s: float) -> str:
    node, top = instance.nodes[number], number * (ROW + FREE_BLOCK)
    times, busy = _busy(instance, log[log[:, at.LOG_NODE] == number])
    path, bottom = [f"M{LABEL} {top + ROW}"], top + ROW
    for time_s, held in zip(times, busy, strict=True):
        x, y = LABEL + WIDTH * time_s / end_s, bottom - ROW * min(1.0, held / node.gpus)
        path.append(f"H{x:.1f}V{y:.1f}")
    label = escape(f"{number}: {node.gpus} x {node.gpu_type}")
    return (
        f'<text x="{LABEL - 6}" y="{bottom - 3}" text-anchor="end" fill="{INK}">{label}</text>'
        f'<rect x="{LABEL}" y="{top}" width="{WIDTH}" height="{ROW}" fill="{BAND}"/>'
        f'<path d="{"".join(path)}V{bottom}Z" fill="{COLOUR}"/>'
    )


def gpus_on_nodes(instance: Instance, log: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many GPUs each row of a log holds on its node, a shared one as 1, (L,)."""
    if log.shape[1] > at.LOG_GPUS:
        return log[:, at.LOG_GPUS].astype(np.int64)
    gpus = np.array([configuration.gpus_per_node for configuration in instance.configurations], dtype=np.int64)
    return gpus[log[:, at.LOG_CONFIG].astype(np.int64)]


def _busy(instance: Instance, log: NDArray[np.float64]) -> tuple[list[float], list[float]]:
    """Return the times at which GPUs are held or released, and how many are held from then on; shares add up."""
    shares = np.array([configuration.share for configuration in instance.configurations])
    held = (gpus_on_nodes(instance, log) * shares[log[:, at.LOG_CONFIG].astype(np.int64)]).tolist()
    changes = sorted(
        [*zip(log[:, at.LOG_START], held, strict=True), *zip(log[:, at.LOG_END], (-h for h in held), strict=True)]
    )
    return [float(time_s) for time_s, _ in changes], np.cumsum([change for _, change in changes]).tolist()


def kwh_of_bill(instance: Instance, energy_eur: float) -> float:
    """Return the energy at the meter that costs so much at the one price [kWh]; NaN if it costs nothing."""
    price = instance.energy_price_eur_per_kwh
    return energy_eur / price if price > 0.0 else float("nan")


def metered(instance: Instance, clock: NDArray[np.float64]) -> dict[str, float]:
    """Return what the meter says at the end of a run: `energy_kwh`, `co2_kg` and `demand_eur` of its `Result`."""
    series = instance.find("prices")
    if series is None:
        energy_eur = float(clock[at.BILL] - clock[at.PENALTY_EUR] - clock[at.RENT_EUR])
        return {"energy_kwh": kwh_of_bill(instance, energy_eur)}
    return {
        "energy_kwh": float(clock[at.KWH]),
        "co2_kg": float(clock[at.CO2_KG]) if series.g_per_kwh is not None else float("nan"),
        "demand_eur": float(clock[at.DEMAND_EUR]),
    }


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """Costs, completion times and intervals of one run.

    Attributes:
        instance: The instance that was run.
        policy: Name of the policy.
        seed: Seed of the policy's randomness.
        energy_eur: The bill of the site [€]: energy of all nodes, and what held GPUs and power above a soft cap cost.
        tardiness_eur: Tardiness cost of all jobs [€].
        start_s: First start of every job [s], (J,).
        completion_s: Completion time C_j of every job [s], (J,).
        job_energy_eur: Energy cost attributed to every job [€], (J,); sums to `energy_eur`.
        job_tardiness_eur: Tardiness cost of every job [€], (J,).
        switches: Changes of GPUs or place after the first start, pauses included, power limits not, (J,).
        rounds: Number of decision rounds.
        decision_s: Seconds of wall clock that the policy took in all; NaN if not measured (run by an agent).
        cap_forced_s: Seconds for which jobs were throttled by the simulator to keep a hard cap, summed over jobs.
        over_cap_eur: The part of `energy_eur` that power above a soft cap cost in addition to its energy [€].
        gpu_eur: The part of `energy_eur` that held GPUs cost by the hour [€].
        log: One row per interval and node (columns in `layout`), (L, LOG_COLUMNS); empty if not recorded.
        energy_kwh: Energy at the meter, with the PUE [kWh]; NaN if energy costs nothing. Nodes that are paid by the
            hour have no energy: then it means nothing.
        co2_kg: What that emitted [kg CO₂]; NaN without a carbon intensity in the prices.
        demand_eur: Demand charges in `energy_eur` [€].
    """

    instance: Instance
    policy: str
    seed: int
    energy_eur: float
    tardiness_eur: float
    start_s: NDArray[np.float64]
    completion_s: NDArray[np.float64]
    job_energy_eur: NDArray[np.float64]
    job_tardiness_eur: NDArray[np.float64]
    switches: NDArray[np.int64]
    rounds: int
    decision_s: float
    log: NDArray[np.float64]
    cap_forced_s: float = 0.0
    over_cap_eur: float = 0.0
    gpu_eur: float = 0.0
    energy_kwh: float = float("nan")
    co2_kg: float = float("nan")
    demand_eur: float = 0.0

    @classmethod
    def of(cls, state: State, policy: str, seed: int, decision_s: float) -> Result:
        """Make the result of the finished run `state`."""
        board = state.board
        jobs = board.jobs
        return cls(
            instance=state.instance,
            policy=policy,
            seed=seed,
            energy_eur=float(board.clock[at.BILL]),
            tardiness_eur=float(board.clock[at.TARDINESS_COST]),
            start_s=jobs[:, at.START_S].copy(),
            completion_s=jobs[:, at.END_S].copy(),
            job_energy_eur=jobs[:, at.ENERGY].copy(),
            job_tardiness_eur=jobs[:, at.TARDINESS].copy(),
            switches=jobs[:, at.SWITCHES].astype(np.int64),
            rounds=int(board.count[at.ROUND]),
            decision_s=decision_s,
            log=state.hidden.log[: board.count[at.LOGGED]].copy(),
            cap_forced_s=float(board.clock[at.CAP_FORCED_S]),
            over_cap_eur=float(board.clock[at.PENALTY_EUR]),
            gpu_eur=float(board.clock[at.RENT_EUR]),
            **metered(state.instance, board.clock),
        )

    def __repr__(self) -> str:
        instance = self.instance
        return (
            f"Result({self.policy} on {instance.name or 'instance'}, seed {self.seed}: {self.total_eur:,.2f} € = "
            f"{self.energy_eur:,.2f} € energy + {self.tardiness_eur:,.2f} € tardiness, {self.late_jobs} of "
            f"{len(instance.jobs)} jobs late, {self.rounds} rounds)"
        )

    def _repr_html_(self) -> str:
        """Return an HTML table of the run and its costs, above the busy GPUs over time, for notebooks."""
        late, jobs = self.late_jobs, len(self.instance.jobs)
        facts = [
            ("total", f"{self.total_eur:,.2f} €"),
            ("energy", f"{self.energy_eur:,.2f} €"),
            ("tardiness", f"{self.tardiness_eur:,.2f} €, {late} of {jobs} jobs late"),
            ("mean completion", f"{self.mean_completion_s / 3600.0:,.2f} h"),
            ("switches", f"{int(self.switches.sum()):,}"),
            ("rounds", f"{self.rounds:,}"),
        ]
        title = f"{self.policy} on {self.instance.name or 'an instance'}, seed {self.seed}"
        from gpusched_env.notebook import facts_table  # noqa: PLC0415 - few need it

        return facts_table(title, facts, busy_chart(self.instance, self.log))

    @property
    def total_eur(self) -> float:
        """Return the total cost: energy + tardiness [€]."""
        return self.energy_eur + self.tardiness_eur

    @property
    def late_jobs(self) -> int:
        """Count the jobs that ended after their due date, by more than a microsecond."""
        return int(np.sum(self.completion_s > self.instance.jobs.due_s + MISSED_S))

    @property
    def mean_completion_s(self) -> float:
        """Return the mean time from submission to completion [s]."""
        return float(np.mean(self.completion_s - self.instance.jobs.submission_s))

    def intervals(self) -> pl.DataFrame:
        """Return every interval in which a job held one configuration in one place, a row for each of its nodes.

        Returns:
            Columns job, node, configuration (name), gpus (on this node), gpu (number of the shared GPU on the node, -1
            for whole GPUs), start_s, ready_s (progress from then on), end_s, epochs (done in the interval, the same
            in the rows of all its nodes); with cells also host, the host to which the node is bound; sorted by start,
            job, node.
        """
        import polars as pl  # noqa: PLC0415 - it takes a tenth of a second

        configurations = self.instance.configurations
        index = self.log[:, at.LOG_CONFIG].astype(np.int64)
        frame = pl.DataFrame(
            {
                "job": self.log[:, at.LOG_JOB].astype(np.int64),
                "node": self.log[:, at.LOG_NODE].astype(np.int64),
                "configuration": [configurations[i].name for i in index],
                "gpus": gpus_on_nodes(self.instance, self.log),
                "gpu": self.log[:, at.LOG_SLOT].astype(np.int64),
                "start_s": self.log[:, at.LOG_START],
                "ready_s": self.log[:, at.LOG_READY],
                "end_s": self.log[:, at.LOG_END],
                "epochs": self.log[:, at.LOG_EPOCHS],
            }
        )
        if self.instance.first_machine:
            frame = frame.with_columns(host=pl.Series(self.log[:, at.LOG_HOST].astype(np.int64)))
        return frame.sort("start_s", "job", "node")
