"""Prices at the hooks: energy at prices by period, and GPUs that are paid for by the hour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusched_env.hooks import register
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.mechanisms.prices.arrays import PricedBoard, PricedHidden, arrays
from gpusched_env.mechanisms.prices.features import write_group
from gpusched_env.mechanisms.prices.priced_time import (
    expected_rows,
    known_until_s,
    mean_price,
    priced_length,
    publish,
)
from gpusched_env.model.rates import rent_eur_per_h
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board, Hidden

if TYPE_CHECKING:
    from gpusched_env.model import Instance


@kernel
def gpu_rate(board: Board) -> float:
    """Return what the held GPUs cost by the hour, a part of the cost rate of their nodes [€/s]."""
    nodes, held = board.nodes, 0
    if board.clock[at.GPU_EUR_PER_S] == 0.0:
        return 0.0
    for n in range(nodes.shape[0]):
        held += nodes[n, at.USABLE] - nodes[n, at.FREE]
    return held * board.clock[at.GPU_EUR_PER_S]


@kernel
def gpu_rate_of(board: Board, job: int, config: int) -> float:
    """Return a job's part of `gpu_rate` [€/s]; a shared GPU's is split by share among its jobs."""
    jobs, nodes, configs = board.jobs, board.nodes, board.facts.configs
    node, slot = int(jobs[job, at.NODE]), int(jobs[job, at.SLOT])
    if board.clock[at.GPU_EUR_PER_S] == 0.0:
        return 0.0
    gpus, many = configs[config, at.CONFIG_GPUS], configs[config, at.CONFIG_NODES]
    part = 1.0 * gpus * many
    if configs[config, at.CONFIG_UNITS] > 0:
        part = 0.0
        for n in range(node, node + many):
            for gpu in range(slot, slot + gpus):
                part += configs[config, at.CONFIG_UNITS] / nodes[n, at.NODE_COLUMNS + gpu]
    return part * board.clock[at.GPU_EUR_PER_S]


@lean_kernel
def rent_rate(board: Board, rate: float) -> float:
    return rate + gpu_rate(board)


@lean_kernel
def rent_of(board: Board, job: int, config: int, rate: float) -> float:
    return rate + gpu_rate_of(board, job, config)


@kernel
def restore(board: Board, hidden: Hidden) -> None:
    board.count[at.PUBLISHED] = 0
    publish(board, hidden)


@kernel
def billed_s(board: Board, hidden: Hidden, before: float, rate: float, length: float) -> float:
    publish(board, hidden)
    if hidden.all_prices.shape[0] == 0:
        return length
    return priced_length(board, hidden, before, board.clock[at.NOW], rate)


@kernel
def copy_arrays(board: Board, source: Board) -> None:
    board.prices[:, :] = source.prices


def begin(instance: Instance, board: PricedBoard, hidden: PricedHidden) -> None:
    """Write the price of GPU hours, and what is published of the series, at the beginning of a run."""
    board.clock[at.GPU_EUR_PER_S] = rent_eur_per_h(instance) / 3600.0
    publish(board, hidden)


@kernel
def known_until(board: Board, until: float) -> float:
    return min(until, known_until_s(board))


@kernel
def price_between(board: Board, begin: float, end: float, price: float) -> float:
    return mean_price(board, begin, end) if board.prices.shape[0] > 0 else price


def expect(board: Board, hidden: Hidden | None, until: float) -> dict[str, Any]:  # noqa: ARG001 - as others
    """Return the prices that are published, and forecasts of the others until a time [s]."""
    return {"all_prices": expected_rows(board, until)}


register(
    "prices",
    {
        hooks.restore: restore,
        hooks.rent_rate: rent_rate,
        hooks.rent_of: rent_of,
        hooks.billed_s: billed_s,
        hooks.known_until_s: known_until,
        hooks.mean_price: price_between,
        hooks.write_group: write_group,
        hooks.copy_arrays: copy_arrays,
    },
    (PricedBoard, PricedHidden),
    arrays,
    begin,
    expect,
)
