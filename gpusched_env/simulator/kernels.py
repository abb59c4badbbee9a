"""What compiled policies are made of, in one import.

A compiled policy reads the `Board`, whose columns are named in `at`, and changes it through `place`, `release`,
`forget_place`, `prefer_place` and `apply_choice` alone, and through its own `memory`. Everything here is called from
kernels, except `Choice` and `ask_order`, which are for the Python around them.
"""

from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.cells.lying import is_lent, let_empty_cells_go, survey
from gpusched_env.simulator.due_dates import due_wake_s, misses
from gpusched_env.simulator.events import bill_rate, charge
from gpusched_env.simulator.ordering import ask_order
from gpusched_env.simulator.pace.now import pace_beside
from gpusched_env.simulator.pace.sharing import neighbours
from gpusched_env.simulator.placement.pace_now import pace_now, seconds_now
from gpusched_env.simulator.placement.placement import (
    fits,
    forget_place,
    keeps_config,
    may_have,
    moves_on,
    opens,
    place,
    prefer_place,
    would_restart,
)
from gpusched_env.simulator.placement.release import release
from gpusched_env.simulator.placement.room import clear, measure
from gpusched_env.simulator.policy import Choice, apply_choice
from gpusched_env.simulator.run import Board, Facts
from gpusched_env.simulator.sorting import ranked, ranked_in_groups
from gpusched_env.simulator.survival import Curve, bin_of, curve_of, expected_left, expected_rest, survival_after

__all__ = [
    "Board",
    "Choice",
    "Curve",
    "Facts",
    "apply_choice",
    "ask_order",
    "at",
    "bill_rate",
    "bin_of",
    "charge",
    "clear",
    "curve_of",
    "due_wake_s",
    "expected_left",
    "expected_rest",
    "fits",
    "forget_place",
    "is_lent",
    "keeps_config",
    "kernel",
    "lean_kernel",
    "let_empty_cells_go",
    "may_have",
    "measure",
    "misses",
    "moves_on",
    "neighbours",
    "opens",
    "pace_beside",
    "pace_now",
    "place",
    "prefer_place",
    "ranked",
    "ranked_in_groups",
    "release",
    "seconds_now",
    "survey",
    "survival_after",
    "would_restart",
]
