"""Licences at the hooks: they are in the cost rate of the nodes, as rent, which does not follow the price of energy."""

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from gpusched_env.arrays import Floats, Singles
from gpusched_env.hooks import register
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.model import Instance
from gpusched_env.observation import group_number
from gpusched_env.observation.ratios import squash
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board
from toys.licences.features import ALL, OWN
from toys.licences.model import Licences

GROUP = group_number("toys.licences")


class LicenceBoard(Board):
    """Adds the price of a licence by application [€/s], (A,); (0,) without licences."""

    licence_eur_per_s: Annotated[Floats, 1]


def arrays(instance: Instance) -> dict[str, NDArray[np.float64]]:
    own = instance.of(Licences)
    return {"licence_eur_per_s": np.empty(0) if own is None else np.array(own.eur_per_h) / 3600.0}


@lean_kernel
def licence_of(board: Board, job: int) -> float:
    prices = board.licence_eur_per_s
    return prices[int(board.jobs[job, at.APPLICATION])] if prices.shape[0] > 0 else 0.0


@kernel
def add_all(board: Board, rate: float) -> float:
    for job in board.active[: board.count[at.ACTIVE]]:
        if board.jobs[job, at.CONFIG] >= 0:
            rate += licence_of(board, job)
    return rate


@lean_kernel
def add_own(board: Board, job: int, config: int, rate: float) -> float:  # noqa: ARG001 - the arguments are the hook's
    return rate + licence_of(board, job)


@lean_kernel
def write_group(board: Board, group: int, rows: Singles) -> None:
    if group != GROUP:
        return
    rows[:] = 0.0
    asked = board.count[at.ASKED]
    if asked < board.count[at.TO_ASK]:
        rows[0, OWN] = squash(licence_of(board, board.order[asked]) * 3600.0)
        rows[0, ALL] = squash(add_all(board, 0.0) * 3600.0)


register(
    "toys.licences",
    {
        hooks.total_rate: add_all,
        hooks.own_charge: add_own,
        hooks.rent_rate: add_all,
        hooks.rent_of: add_own,
        hooks.write_group: write_group,
    },
    (LicenceBoard,),
    arrays,
)
