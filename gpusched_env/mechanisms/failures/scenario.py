"""The table `[failures]` of a scenario."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.mechanisms.failures.checkpoints import Rule
from gpusched_env.mechanisms.failures.drawing import NodeClock, draw_outages
from gpusched_env.mechanisms.failures.model import HOUR, SECONDS_PER_DAY, Expected, Failures, Outage, read_outages
from gpusched_env.mechanisms.failures.slurm_events import expanded, is_slurm, read_events
from gpusched_env.workload.scenario.settings import (
    AtLeastOne,
    CountFromZero,
    Duration,
    Many,
    MechanismTable,
    NotNegative,
    Part,
    Positive,
    Seconds,
    setting,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.random import Generator

    from gpusched_env.model import Instance


class FailureTable(MechanismTable):
    """Rates of failures, repairs and checkpoints. Outages are drawn by the clock, the same for every policy.

    Defaults: the rate is that of Meta's RSC-1 (Kokolis and others, HPCA 2025, arXiv 2410.21680); the factor of lemon
    nodes and the repair are those of AIReSim (arXiv 2603.07041). The others are assumptions.
    """

    per_1000_node_days: NotNegative = setting(6.5, "Failures of 1,000 nodes on a day, those of their GPUs apart.")
    per_1000_gpu_days: NotNegative = setting(0.0, "Failures of 1,000 GPUs on a day; the node of the GPU goes down.")
    shape: Positive = setting(1.0, "Shape of the Weibull distribution of times between failures; 1: exponential.")
    lemons: Part = setting(0.0, "Part of the nodes that fail more often: lemon nodes.")
    lemon_factor: AtLeastOne = setting(5.0, "How many times as often these fail.")
    repair_h: Positive = setting(2.0, "Mean time of a repair, exponential [h].")
    spot_types: Many[str] = setting((), "GPU types whose nodes the provider takes back.")
    spot_h: Positive = setting(24.0, "Mean time until such a node is taken back, exponential [h].")
    spot_away_h: Positive = setting(2.0, "Mean time until it is there again, exponential [h].")
    spot_notice_s: Seconds = setting(120.0, "Notice before it is taken back [s].")
    spares: CountFromZero = setting(
        0, "Spare nodes of each GPU type: the last ones; each has no jobs until it takes the place of one that is down."
    )
    spare_s: Seconds = setting(600.0, "Time until a spare node takes that place [s].")
    outages_file: str = setting(
        "", "Outages in place of drawn ones: a CSV file (node, noticed_h, down_h, up_h), or events of Slurm (sacctmgr)."
    )
    outages_nodes: Many[str] = setting((), "With Slurm's events: names of the nodes, in their order; gpu[01-16] is 16.")
    outages_begin: str = setting("", "With Slurm's events: the time of 0 s, such as 2026-01-31T12:00:00.")
    horizon_days: Positive = setting(60.0, "Days for which outages are drawn; after them no node fails.")
    checkpoint_s: Seconds = setting(30.0, "Time of a checkpoint [s].")
    interval_s: Duration | None = setting(None, "Work between checkpoints [s]; by default by the rule.")
    rule: Rule = setting("daly", "Rule for the interval between checkpoints: daly or young.")
    planned: bool = setting(True, "Whether the times with which policies plan contain what failures cost on average.")

    def model(self, instance: Instance, rng: Generator) -> Failures:
        """Draw the outages of all nodes until the horizon.

        Raises:
            InputError: A spot type is no GPU type of the instance, all nodes of a type are spare, or the file can not
                be read.
        """
        names = [gpu.name for gpu in instance.gpu_types]
        unknown = next((name for name in self.spot_types if name not in names), None)
        if unknown is not None:
            raise InputError("failures.spot_types", unknown, f"GPU types of the instance: {', '.join(names)}")
        often = 1.0 + self.lemons * (self.lemon_factor - 1.0)
        gpus = [[node.gpus for node in instance.nodes if node.gpu_type == name] for name in names]
        fail = [often * self._per_day(float(np.mean(own or [0]))) for own in gpus]
        leave = [24.0 / self.spot_h if name in self.spot_types else 0.0 for name in names]
        times = self.spot_notice_s, self.spot_away_h * HOUR
        rates = zip(fail, leave, strict=True)
        expected = tuple(Expected(often, self.repair_h * HOUR, leaves, *times) for often, leaves in rates)
        per_day = tuple(each.fail_per_day + each.leave_per_day for each in expected)
        if not self.outages_file:
            self._check_no_names("without outages_file")
        drawn = self._read(instance) if self.outages_file else self._drawn(instance, rng)
        rules = self.checkpoint_s, self.interval_s, self.rule, self.planned
        return Failures(tuple(drawn), per_day, *rules, None if self.spares else expected)

    def _per_day(self, gpus: float) -> float:
        return (self.per_1000_node_days + gpus * self.per_1000_gpu_days) / 1000.0

    def _read(self, instance: Instance) -> list[Outage]:
        path, names = Path(self.outages_file), expanded(self.outages_nodes)
        if not path.is_file():
            raise InputError("failures.outages_file", self.outages_file, "a file that exists")
        if not is_slurm(path):
            self._check_no_names(f"unless {path} has events of Slurm")
            return read_outages(path)
        if len(names) != len(instance.nodes):
            allowed = f"{len(instance.nodes)} names, one for each node of the instance"
            raise InputError("failures.outages_nodes", list(self.outages_nodes), allowed)
        return read_events(path, names, self.outages_begin)

    def _check_no_names(self, where: str) -> None:
        for name, value in (("nodes", list(self.outages_nodes)), ("begin", self.outages_begin)):
            if value:
                raise InputError(f"failures.outages_{name}", value, f"nothing, {where}")

    def _drawn(self, instance: Instance, rng: Generator) -> Iterator[Outage]:
        clocks: dict[str, list[NodeClock]] = {}
        for n, (node, own) in enumerate(zip(instance.nodes, rng.spawn(len(instance.nodes)), strict=True)):
            per_day = self._per_day(node.gpus) * (self.lemon_factor if own.random() < self.lemons else 1.0)
            failure_s = SECONDS_PER_DAY / per_day if per_day > 0.0 else math.inf
            spot_s = self.spot_h * HOUR if node.gpu_type in self.spot_types else math.inf
            clock = NodeClock(n, failure_s, self.shape, self.repair_h * HOUR, spot_s, self.spot_away_h * HOUR, own)
            clocks.setdefault(node.gpu_type, []).append(clock)
        for name, own_clocks in clocks.items():
            if self.spares >= len(own_clocks):
                allowed = f"below {len(own_clocks)}, the nodes of {name}"
                raise InputError("failures.spares", self.spares, allowed)
            end_s = self.horizon_days * SECONDS_PER_DAY
            yield from draw_outages(own_clocks, self.spares, self.spare_s, self.spot_notice_s, end_s)


TABLE = FailureTable
