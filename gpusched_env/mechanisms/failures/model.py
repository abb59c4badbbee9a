"""The outages of the nodes of an instance, and the checkpoints of its jobs."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

from gpusched_env.errors import InputError
from gpusched_env.mechanisms.failures.checkpoints import MOST, RULES, Rule, daly_interval_s, young_interval_s
from gpusched_env.model import checks
from gpusched_env.model.mechanism import Mechanism

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gpusched_env.model.instance import Instance

NAME = "gpusched_env.mechanisms.failures"
HOUR, SECONDS_PER_DAY = 3600.0, 86400.0


class Outage(NamedTuple):
    """A time in which a node is down.

    Attributes:
        node: Number of the node.
        noticed_s: When it is announced [s]: from then on no GPU that is free is used. `down_s` for a failure.
        down_s: When the node goes down, with the jobs on it [s].
        up_s: When it is up again [s]; `down_s` if the node only empties and no job is stopped; inf: never.
    """

    node: int
    noticed_s: float
    down_s: float
    up_s: float


class Expected(NamedTuple):
    """What policies expect of a node of a GPU type: times are exponential, but the notice.

    Attributes:
        fail_per_day: Failures on a day, ≥ 0.
        repair_s: Mean time of a repair [s], > 0.
        leave_per_day: How often on a day the provider takes the node back, ≥ 0.
        notice_s: Notice before that [s], ≥ 0.
        away_s: Mean time until it is there again [s], > 0.
    """

    fail_per_day: float
    repair_s: float
    leave_per_day: float = 0.0
    notice_s: float = 0.0
    away_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Failures(Mechanism):
    """Nodes that fail, leave with notice, and come back; and the checkpoints of jobs.

    After `interval_s` seconds of work a job stands for `checkpoint_s` seconds, and its work so far is saved. In a round
    in which its GPUs change, it is saved, too. When a node goes down, the jobs on it stop; they lose the epochs since
    they were last saved, wait, and restart with `JobTable.restart_s`. If the outage was announced at least
    `checkpoint_s` seconds before, they lose nothing. A node that is down has no GPUs and draws the power of an idle
    one. From its announcement on, no GPU of a node is free when a round begins; in a round jobs may be exchanged there.
    Policies see which nodes are down and what is announced, never the next failure. Requests of the service
    and checkpoints of vector environments refuse failures. In simulations of the future (`futures`) nodes go
    down as `expected`.

    The times with which policies plan contain the checkpoints and, with `planned`, what failures cost on average
    (`checkpoints.expected_factor`): the more nodes a configuration has, the more of them. No due date is certain then,
    also for policies that plan for the worst case.

    Args:
        outages: Outages, as (node, noticed_s, down_s, up_s), in any order; those of one node do not overlap.
        per_node_day: Failures of a node on a day that policies and jobs expect, ≥ 0, by GPU type, (V,).
        checkpoint_s: Time of a checkpoint [s], ≥ 0.
        interval_s: Work between checkpoints [s], > 0; None: by `rule`, for each configuration.
        rule: Rule for the interval: `daly` or `young`.
        planned: Whether the planned times contain what failures cost on average.
        expected: What policies expect of a node, by GPU type, (V,); None: not known, and no future is simulated.

    Raises:
        InputError: A value is out of its range, or two outages of a node overlap.
    """

    mechanism: ClassVar[str] = NAME
    keeps_state: ClassVar[bool] = True
    constants_from: ClassVar[Literal["nothing", "model", "jobs"]] = "jobs"  # restarts
    schema: ClassVar[Mapping[str, Any]] = {
        "node": [int], "noticed_s": [float], "down_s": [float], "up_s": [float], "per_node_day": [float],
        "checkpoint_s": float, "interval_s?": float, "rule": str, "planned": bool, "expected?": [[float]],
    }  # fmt: skip

    outages: tuple[Outage, ...]
    per_node_day: tuple[float, ...]
    checkpoint_s: float = 30.0
    interval_s: float | None = None
    rule: Rule = "daly"
    planned: bool = True
    expected: tuple[Expected, ...] | None = None

    def __post_init__(self) -> None:
        outages = _in_order(self.outages)
        rates = tuple(checks.not_negative(f"failures.per_node_day[{v}]", r) for v, r in enumerate(self.per_node_day))
        checks.seconds("failures.checkpoint_s", self.checkpoint_s)
        if self.interval_s is not None:
            checks.duration("failures.interval_s", self.interval_s)
        if self.rule not in RULES:
            raise InputError("failures.rule", self.rule, f"one of {', '.join(RULES)}")
        if not isinstance(self.planned, bool):
            raise InputError("failures.planned", self.planned, "true or false")
        if self.expected is not None:
            object.__setattr__(self, "expected", tuple(_expected(v, each) for v, each in enumerate(self.expected)))
        object.__setattr__(self, "outages", outages)
        object.__setattr__(self, "per_node_day", rates)

    def check(self, instance: Instance) -> None:
        """Check the nodes and GPU types, and that the mechanism can be used with the others.

        Raises:
            InputError: A node does not exist, a GPU type has no rate, an interval is far too long, GPUs are shared,
                spread or bound to cells, jobs keep their state on a node, or their speed depends on other nodes.
        """
        nodes, types = len(instance.nodes), len(instance.gpu_types)
        beyond = next((each.node for each in self.outages if each.node >= nodes), None)
        if beyond is not None:
            raise InputError("failures.node", beyond, f"a node of the instance, below {nodes}")
        for name in ("per_node_day", "expected"):
            value = getattr(self, name)
            if value is not None and len(value) != types:
                raise InputError(f"failures.{name}", list(value), f"{types} values, one for each GPU type")
        if instance.first_machine or instance.most_spread or any(c.share < 1.0 for c in instance.configurations):
            raise InputError("failures", "...", "None with cells, spread configurations or shares of GPUs")
        if instance.jobs.resume_s is not None or instance.find("network") is not None:
            raise InputError("failures", "...", "None with costs of switching by distance, or a model of the network")
        own = {(v, c.nodes) for c, v in zip(instance.configurations, instance.type_of_configuration, strict=True)}
        for v, count in own:
            interval_s, mean_s = self.interval_of(v, count), self.between_failures_s(v, count)
            if mean_s < math.inf and interval_s + self.checkpoint_s > MOST * mean_s:
                allowed = f"at most {MOST:g} times {mean_s:g} s, the mean time between failures on {count} nodes"
                raise InputError("failures.interval_s", interval_s, allowed)

    def alike(self, types: Sequence[int], configurations: Sequence[int]) -> Self:  # noqa: ARG002 - of others
        """Refuse other GPU types and configurations: outages are of nodes.

        Raises:
            InputError: Always.
        """
        raise InputError("failures", "...", "None where tenants have nodes of their own; make the failures after that")

    def interval_of(self, gpu_type: int, nodes: int) -> float:
        """Return the seconds of work between checkpoints on some nodes of a GPU type; inf: none are written."""
        if self.interval_s is not None:
            return self.interval_s
        rule = daly_interval_s if self.rule == "daly" else young_interval_s
        return rule(self.checkpoint_s, self.between_failures_s(gpu_type, nodes))

    def between_failures_s(self, gpu_type: int, nodes: int) -> float:
        """Return the mean time between failures of some nodes of a GPU type together [s]; inf: they never fail."""
        per_day = self.per_node_day[gpu_type] * nodes
        return SECONDS_PER_DAY / per_day if per_day > 0.0 else math.inf

    def down_times(self) -> list[tuple[int, float, float]]:
        """Return when nodes are down: the node, from and until when [s]."""
        return [(each.node, each.down_s, each.up_s) for each in self.outages if each.up_s > each.down_s]

    def fields(self) -> dict[str, Any]:
        """Return the fields in files: the outages by column, without the return of nodes that never do."""
        entry: dict[str, Any] = {
            "node": [each.node for each in self.outages],
            "noticed_s": [each.noticed_s for each in self.outages],
            "down_s": [each.down_s for each in self.outages],
            "up_s": [each.up_s if each.up_s < math.inf else NEVER for each in self.outages],
            "per_node_day": list(self.per_node_day),
            "checkpoint_s": self.checkpoint_s,
        }
        entry |= {} if self.interval_s is None else {"interval_s": self.interval_s}
        entry |= {} if self.expected is None else {"expected": list(map(list, self.expected))}
        return entry | {"rule": self.rule, "planned": self.planned}

    @classmethod
    def of_fields(cls, given: Mapping[str, Any]) -> Self:
        """Make the model from its fields in a file.

        Raises:
            InputError: The columns of the outages have different lengths, or a field has a wrong value.
        """
        columns = [given[name] for name in ("node", "noticed_s", "down_s", "up_s")]
        if len({len(column) for column in columns}) != 1:
            raise InputError("failures", [len(column) for column in columns], "columns that are equally long")
        rest = {name: value for name, value in given.items() if name not in ("node", "noticed_s", "down_s", "up_s")}
        rows = (Outage(*row) for row in zip(*columns, strict=True))
        outages = (row._replace(up_s=math.inf) if row.up_s == NEVER else row for row in rows)
        if "expected" in rest:
            rest["expected"] = tuple(map(tuple, rest["expected"]))
        return cls(tuple(outages), tuple(rest.pop("per_node_day")), **rest)

    def __repr__(self) -> str:
        return f"Failures({len(self.outages)} outages, per_node_day={self.per_node_day})"


NEVER = -1.0
"""`up_s` of a node that never comes back, in files."""


def _in_order(given: Sequence[Outage]) -> tuple[Outage, ...]:
    """Check outages, and return them by time."""
    for i, each in enumerate(given):
        if len(each) != len(Outage._fields):
            raise InputError(f"failures.outages[{i}]", each, f"the numbers {', '.join(Outage._fields)}")
    outages = sorted((_outage(i, *each) for i, each in enumerate(given)), key=lambda o: o[2:] + o[:1])
    of_node: dict[int, list[Outage]] = {}
    for outage in outages:
        of_node.setdefault(outage.node, []).append(outage)
    for node, own in of_node.items():
        for before, after in pairwise(own):
            if after.noticed_s < before.up_s:
                allowed = f"a time from {before.up_s:g} s on, when node {node} is up again"
                raise InputError("failures.noticed_s", after.noticed_s, allowed)
    return tuple(outages)


def _expected(v: int, given: Sequence[float]) -> Expected:
    where = f"failures.expected[{v}]"
    if not 2 <= len(given) <= len(Expected._fields):
        raise InputError(where, given, f"the numbers {', '.join(Expected._fields)}")
    own = Expected(*given)
    for name in ("fail_per_day", "leave_per_day", "notice_s"):
        checks.not_negative(f"{where}.{name}", getattr(own, name))
    for name in ("repair_s", "away_s"):
        checks.duration(f"{where}.{name}", getattr(own, name))
    return own


def _outage(i: int, node: int, noticed_s: float, down_s: float, up_s: float) -> Outage:
    checks.whole(f"failures.node[{i}]", node, lowest=0)
    noticed = checks.seconds(f"failures.noticed_s[{i}]", noticed_s)
    down = checks.seconds(f"failures.down_s[{i}]", down_s)
    if noticed > down:
        raise InputError(f"failures.noticed_s[{i}]", noticed, f"at most {down:g} s, when the node goes down")
    up = math.inf if up_s == math.inf else checks.seconds(f"failures.up_s[{i}]", up_s)
    if up < down:
        raise InputError(f"failures.up_s[{i}]", up, f"at least {down:g} s, when the node goes down")
    return Outage(node, noticed, down, up)


def read_outages(path: Path) -> list[Outage]:
    """Read outages from a CSV file with the columns node, noticed_h, down_h, up_h [h]; an empty up_h: never.

    Raises:
        InputError: The file can not be read, or a value has the wrong form.
    """
    columns = "node", "noticed_h", "down_h", "up_h"
    allowed = f"a CSV file with the columns {', '.join(columns)}"
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return [_outage_of(row) for row in _rows(csv.DictReader(file), columns)]
    except (OSError, ValueError, TypeError, csv.Error) as error:
        raise InputError(str(path), str(error), allowed) from error


def _rows(table: csv.DictReader[str], columns: Sequence[str]) -> csv.DictReader[str]:
    if not set(columns) <= set(table.fieldnames or ()):
        raise ValueError(f"columns {table.fieldnames}")
    return table


def _outage_of(row: Mapping[str, str | None]) -> Outage:
    node, noticed_h, down_h, up_h = (_cell(row, name) for name in ("node", "noticed_h", "down_h", "up_h"))
    times = noticed_h or down_h, down_h, up_h or "inf"
    return Outage(int(node), *(float(time) * HOUR for time in times))


def _cell(row: Mapping[str, str | None], name: str) -> str:
    cell = row[name]
    if cell is None:
        raise ValueError(f"a row without {name}: {dict(row)}")
    return cell


MODEL = Failures
