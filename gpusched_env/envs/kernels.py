"""What an environment sees: the observation of the current job, in one array, with its mask, times and costs.

`places` has a row for each part of an observation, in the order of `PARTS` and `GROUPS`: where an array of numbers has
the parts of N environments.
"""
# mypy: allow-untyped-calls

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np import arrayobj

from gpusched_env.arrays import Ints, Mask, Singles
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.named_arrays import PLAIN
from gpusched_env.observation import (
    CLUSTER_FEATURES,
    GROUPS,
    JOB_FEATURES,
    JOBS_FEATURES,
    PARTS,
    QUEUE_FEATURES,
    Notes,
    features_of,
    flat_space,
    group_number,
    observe,
)
from gpusched_env.parts import short_name
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.rounds import act
from gpusched_env.simulator.run import Board

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gymnasium import spaces

LOOK = -1  # in place of an action: the environment is observed, and nothing happens in it

# places: int64 (PARTS + GROUPS + groups of other packages, 5).
JOB, OPTIONS, CLUSTER, QUEUE, JOBS = range(len(PARTS))  # then the groups
FIRST_GROUP = len(PARTS)
FIRST, STEP, ROWS, COLUMNS = range(4)  # place of the part of environment 0, distance to the next one's, and its shape
GROUP = 4  # the number of a group of another package, else 0

_WIDTHS = {
    "job": len(JOB_FEATURES), "cluster": len(CLUSTER_FEATURES), "queue": len(QUEUE_FEATURES),
    "jobs": len(JOBS_FEATURES),
}  # fmt: skip


def part_places(
    space: spaces.Dict, option_features: int, envs: int = 1, *, flat: bool = True, others: Sequence[str] = ()
) -> Ints:
    """Return the places of the parts of observations in an array of N · F numbers, (PARTS + GROUPS + others, 5).

    Args:
        space: The space of an observation, of F numbers.
        option_features: Features of a configuration.
        envs: Number of environments N.
        flat: Whether the numbers of an environment stand together; else the same parts of all environments do.
        others: The mechanisms of other packages whose groups the observation has, in their order.
    """
    rows, first, features = [], 0, int(np.prod(flat_space(space).shape))
    for name in (*PARTS, *GROUPS, *others):
        part, group = short_name(name), name in GROUPS or name in others
        size = space[part].shape[0] if part in space.spaces else 0  # type: ignore[index]
        width = len(features_of(name)) if size and group else _WIDTHS.get(name, option_features)
        number = group_number(name) if group else 0
        rows.append((first if flat else envs * first, features if flat else size, size // width, width, number))
        first += size
    return np.array(rows, dtype=np.int64)


def _table(typing_context: Any, numbers: Any, places: Any, part: Any, i: Any) -> Any:  # noqa: ARG001 - as Numba calls it
    """Return a part of environment i as a matrix: a lean kernel cannot reshape a vector."""
    matrix = types.Array(numbers.dtype, 2, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source = context.make_array(signature.args[0])(context, builder, arguments[0])
        listed = context.make_array(signature.args[1])(context, builder, arguments[1])

        def number(column: int) -> Any:
            index = [arguments[2], context.get_constant(types.intp, column)]
            return builder.load(cgutils.get_item_pointer(context, builder, signature.args[1], listed, index))

        made, size = arrayobj.make_array(matrix)(context, builder), context.get_constant(types.intp, 4)
        data = builder.gep(source.data, [builder.add(number(FIRST), builder.mul(arguments[3], number(STEP)))])
        shape = [number(ROWS), number(COLUMNS)]
        strides = [builder.mul(shape[1], size), size]
        arrayobj.populate_array(made, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
        return made._getvalue()  # noqa: SLF001 - Numba's own way

    return matrix(numbers, places, types.intp, types.intp), generate


def _plain_table(numbers: Singles, places: Ints, part: int, i: int) -> Singles:
    first, step, rows, columns, _ = places[part].tolist()
    return numbers[first + i * step : first + i * step + rows * columns].reshape(rows, columns)


table: Any = _plain_table if PLAIN else intrinsic(_table)


@lean_kernel
def look(
    board: Board, notes: Notes, pays: bool, numbers: Singles, places: Ints, i: int, mask: Mask
) -> tuple[int, float, float, float, float, float, float]:
    """Write the observation of environment i, without groups, and its mask, (1 + C,).

    Returns:
        The current job, -1 at the end; the time [s]; energy and tardiness cost of the episode [€]; those that are in no
        reward yet, and their CO2 [kg]: 0 if it does not pay them now.
    """
    job, queue = places[JOB, FIRST] + i * places[JOB, STEP], places[QUEUE, FIRST] + i * places[QUEUE, STEP]
    observe(
        board,
        notes,
        numbers[job : job + places[JOB, COLUMNS]],
        table(numbers, places, OPTIONS, i),
        table(numbers, places, CLUSTER, i),
        numbers[queue : queue + places[QUEUE, COLUMNS]],
        table(numbers, places, JOBS, i),
        mask,
    )
    count, clock, energy, tardiness, co2 = board.count, board.clock, 0.0, 0.0, 0.0
    if pays:
        energy, tardiness = clock[at.BILL] - clock[at.PAID_EUR], clock[at.TARDINESS_COST] - clock[at.PAID_TARDINESS]
        co2 = clock[at.CO2_KG] - clock[at.PAID_KG]
        clock[at.PAID_EUR], clock[at.PAID_TARDINESS] = clock[at.BILL], clock[at.TARDINESS_COST]
        clock[at.PAID_KG] = clock[at.CO2_KG]
    current = board.order[count[at.ASKED]] if count[at.ASKED] < count[at.TO_ASK] else -1
    return current, clock[at.NOW], clock[at.BILL], clock[at.TARDINESS_COST], energy, tardiness, co2


@lean_kernel
def write_groups(board: Board, numbers: Singles, places: Ints, i: int) -> None:
    """Write the groups of the observation of environment i, those that it has."""
    for part in range(FIRST_GROUP, places.shape[0]):
        if places[part, ROWS] > 0:
            hooks.write_group(board, places[part, GROUP], table(numbers, places, part, i))


@kernel
def act_and_look(
    board: Board, notes: Notes, action: int, pays: bool, numbers: Singles, places: Ints, mask: Mask
) -> tuple[bool, bool, tuple[int, float, float, float, float, float, float]]:
    """Apply `action` to the current job, unless it is `LOOK`; unless the round is over then, `look`.

    Returns:
        Whether the action was placed; whether the round is over: then nothing is written; and what `look` returns.
    """
    placed, count, now = True, board.count, board.clock[at.NOW]
    if action != LOOK:
        placed = act(board, action)
        if count[at.ASKED] == count[at.TO_ASK]:
            return placed, True, (-1, now, 0.0, 0.0, 0.0, 0.0, 0.0)
    return placed, False, look(board, notes, pays, numbers, places, 0, mask)
