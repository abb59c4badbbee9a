"""Drawn outages: the nodes of a GPU type fail or are taken back, and spare nodes take their places."""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_env.mechanisms.failures.model import Outage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.random import Generator


@dataclass(frozen=True, slots=True)
class NodeClock:
    """The times between the outages of a node.

    Args:
        node: Its number.
        failure_s: Mean time in use until it fails [s]; inf: it does not.
        shape: Shape of the Weibull distribution of that time.
        repair_s: Mean time of a repair, exponential [s].
        spot_s: Mean time in use until the provider takes it back, exponential [s]; inf: never.
        away_s: Mean time until it is there again, exponential [s].
        rng: Draws its times alone.
    """

    node: int
    failure_s: float
    shape: float
    repair_s: float
    spot_s: float
    away_s: float
    rng: Generator

    def down(self, since_s: float, notice_s: float) -> tuple[float, float, float]:
        """Draw its next outage, if it is in use since a time [s]; it is not taken back within the notice.

        Returns:
            When it goes down, the notice before that, and the mean length of the outage [s].
        """
        scale = self.failure_s / math.gamma(1.0 + 1.0 / self.shape)
        fails = since_s + scale * self.rng.weibull(self.shape) if self.failure_s < math.inf else math.inf
        leaves = since_s + notice_s + self.rng.exponential(self.spot_s) if self.spot_s < math.inf else math.inf
        return (leaves, notice_s, self.away_s) if leaves < fails else (fails, 0.0, self.repair_s)


def draw_outages(
    clocks: Sequence[NodeClock], spares: int, spare_s: float, notice_s: float, end_s: float
) -> Iterator[Outage]:
    """Draw the outages of the nodes of a GPU type until a time; a node in the pool of spare ones is down, too.

    The last nodes are the first of the pool. When a node goes down, the one that has been in the pool longest takes its
    place `spare_s` later, and begins its own time in use. A node that is up again takes the place of one that is
    missing, or else joins the pool.

    Args:
        clocks: Those of the nodes.
        spares: Nodes of the pool at 0 s, fewer than there are.
        spare_s: Time until a spare node takes a place [s].
        notice_s: Notice before a spot node is taken back [s].
        end_s: After it no node goes down [s].
    """
    first = len(clocks) - spares
    pool, missing = deque(clocks[first:]), 0
    since = {clock.node: (0.0, 0.0) for clock in pool}  # its outage was announced, and began [s]
    events: list[tuple[float, int, bool, float, float, NodeClock]] = []

    def use(clock: NodeClock, from_s: float) -> None:
        down_s, notice, mean_s = clock.down(from_s, notice_s)
        if down_s <= end_s:
            heapq.heappush(events, (down_s, clock.node, True, notice, mean_s, clock))

    for clock in clocks[:first]:
        use(clock, 0.0)
    while events:
        now, node, is_down, notice, mean_s, clock = heapq.heappop(events)
        if is_down:
            since[node] = (now - notice, now)
            heapq.heappush(events, (now + clock.rng.exponential(mean_s), node, False, 0.0, 0.0, clock))
            if pool:
                other = pool.popleft()
                yield Outage(other.node, *since.pop(other.node), now + spare_s)
                use(other, now + spare_s)
            else:
                missing += 1
        elif missing:
            missing -= 1
            yield Outage(node, *since.pop(node), now)
            use(clock, now)
        else:
            pool.append(clock)
    for clock in pool:
        yield Outage(clock.node, *since[clock.node], math.inf)
