"""The interface of the simulator for policies, compiled or not, in one import.

A compiled policy reads the `Board`, whose columns are named in `at`, and changes it through `place`, `release`,
`clear_preferred_node`, `set_preferred_node`, `exchange`, `apply_choice`, `set_timer_at`, `grow` and the
functions that plan a round on a scratch board alone, and through its own `memory`. Everything here is called from
kernels, except `Choice`, `PlannedPolicy`, `View`, `ask_order` and `check_order`, which are for the Python around them.
Hidden values and functions that advance time are not here. A function that needs the arrays of a mechanism is called
under its flag, such as `board.has_cells`, or gives an answer for runs without it.
"""

from gpusched_env.arrays import Floats, Ints, Mask
from gpusched_env.kernel import kernel, lean_kernel, threaded_kernel
from gpusched_env.mechanisms.cap.power import saved_kw
from gpusched_env.mechanisms.cells.binding import TAKEN, first_host, is_opportunistic_config, let_empty_cells_go, survey
from gpusched_env.mechanisms.prices.priced_time import (
    forecast_of,
    forecast_prices,
    known_until_s,
    mean_price,
    next_publication_s,
    period_at,
    period_end,
)
from gpusched_env.mechanisms.quotas.kernels import tenants_with_quotas, within_quota
from gpusched_env.mechanisms.saved_power.kernels import planned_saving_rate
from gpusched_env.mechanisms.shares.constants import sharing_numbers
from gpusched_env.mechanisms.shares.placement import has_room, of_several, slots
from gpusched_env.mechanisms.shares.slowdown import (
    Residents,
    filled_part,
    residents,
    speed_by_utilisation,
    write_demand,
)
from gpusched_env.mechanisms.shares.speed import speed_beside, speed_in_place
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.builds import share_units
from gpusched_env.simulator.choice import Choice, apply_choice
from gpusched_env.simulator.due_dates import MISSED_S, due_date_timer_s, misses
from gpusched_env.simulator.events import SAME_TIME, SAME_TIME_S, bill_rate, charge
from gpusched_env.simulator.hooks import copy_arrays
from gpusched_env.simulator.ordering import ActiveJobs, Order, ask_order, check_order
from gpusched_env.simulator.placement.free_capacity import clear, measure
from gpusched_env.simulator.placement.held_nodes import chain_of, gpus_on, next_node, same_gpus
from gpusched_env.simulator.placement.node_index import best_fit, count_fitting, find_node, find_ranked, fit_key
from gpusched_env.simulator.placement.placement import (
    can_place,
    can_resize,
    clear_preferred_node,
    exchange,
    fits,
    keeps_config,
    place,
    powers_on_node,
    put_back,
    set_preferred_node,
    should_consolidate,
    take,
    would_restart,
)
from gpusched_env.simulator.placement.speed_now import seconds_now, speed_now
from gpusched_env.simulator.placement.whole_gpus import release
from gpusched_env.simulator.planned import (
    GPU,
    HELD,
    NODE,
    PLANNED,
    ROUND,
    TIMER,
    PlannedPolicy,
    begin_plan,
    can_place_on,
    empty_as,
    end_plan,
    give,
    grow,
    held_columns,
    keep,
    restore,
    set_timer_at,
    show_nodes,
    write_plan,
)
from gpusched_env.simulator.policy import FREE_COLUMNS
from gpusched_env.simulator.rounds import PRESSURE, order_by
from gpusched_env.simulator.run import Board, Facts
from gpusched_env.simulator.sorting import pressure, pressures, ranked, ranked_in_groups
from gpusched_env.simulator.survival import (
    Curve,
    DistributionTable,
    bin_of,
    curve_of,
    expected_left,
    expected_rest,
    likely_bin,
    survival_after,
)
from gpusched_env.simulator.switching import pause_s, place_of_state, switch_s
from gpusched_env.simulator.view import View

__all__ = [
    "FREE_COLUMNS",
    "GPU",
    "HELD",
    "MISSED_S",
    "NODE",
    "PLANNED",
    "PRESSURE",
    "ROUND",
    "SAME_TIME",
    "SAME_TIME_S",
    "TAKEN",
    "TIMER",
    "ActiveJobs",
    "Board",
    "Choice",
    "Curve",
    "DistributionTable",
    "Facts",
    "Floats",
    "Ints",
    "Mask",
    "Order",
    "PlannedPolicy",
    "Residents",
    "View",
    "apply_choice",
    "ask_order",
    "at",
    "begin_plan",
    "best_fit",
    "bill_rate",
    "bin_of",
    "can_place",
    "can_place_on",
    "can_resize",
    "chain_of",
    "charge",
    "check_order",
    "clear",
    "clear_preferred_node",
    "copy_arrays",
    "count_fitting",
    "curve_of",
    "due_date_timer_s",
    "empty_as",
    "end_plan",
    "exchange",
    "expected_left",
    "expected_rest",
    "filled_part",
    "find_node",
    "find_ranked",
    "first_host",
    "fit_key",
    "fits",
    "forecast_of",
    "forecast_prices",
    "give",
    "gpus_on",
    "grow",
    "has_room",
    "held_columns",
    "is_opportunistic_config",
    "keep",
    "keeps_config",
    "kernel",
    "known_until_s",
    "lean_kernel",
    "let_empty_cells_go",
    "likely_bin",
    "mean_price",
    "measure",
    "misses",
    "next_node",
    "next_publication_s",
    "of_several",
    "order_by",
    "pause_s",
    "period_at",
    "period_end",
    "place",
    "place_of_state",
    "planned_saving_rate",
    "powers_on_node",
    "pressure",
    "pressures",
    "put_back",
    "ranked",
    "ranked_in_groups",
    "release",
    "residents",
    "restore",
    "same_gpus",
    "saved_kw",
    "seconds_now",
    "set_preferred_node",
    "set_timer_at",
    "share_units",
    "sharing_numbers",
    "should_consolidate",
    "show_nodes",
    "slots",
    "speed_beside",
    "speed_by_utilisation",
    "speed_in_place",
    "speed_now",
    "survey",
    "survival_after",
    "switch_s",
    "take",
    "tenants_with_quotas",
    "threaded_kernel",
    "within_quota",
    "would_restart",
    "write_demand",
    "write_plan",
]
