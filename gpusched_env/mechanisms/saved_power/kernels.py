"""What GPUs that are held draw less than full busy ones: by their power limit and application, and while they idle.

`Facts.saved_kw` is that of all GPUs of a configuration while they work, `Facts.idle_saving` that of one idle GPU.
"""

from __future__ import annotations

from gpusched_env.hooks import register
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.mechanisms.saved_power.constants import SavedPowerFacts, constants
from gpusched_env.mechanisms.saved_power.features import write_group
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board, Facts


@lean_kernel
def saves_power(facts: Facts) -> bool:
    return facts.idle_saving.shape[0] > 0 or facts.saved_kw.shape[0] > 0


@kernel
def saving_rate(board: Board, job: int, config: int) -> float:
    """Return what the GPUs that a job holds with `config` cost less than full busy ones [€/s].

    While they idle: its part of them, less its work on them. While they work: by its application and power limit.
    """
    facts, configs, clock = board.facts, board.facts.configs, board.clock
    gpus, part = configs[config, at.CONFIG_GPUS] * configs[config, at.CONFIG_NODES], 1.0
    if configs[config, at.CONFIG_UNITS] > 0:
        part = _part_of_shared(board, job, config) / gpus
    kilowatts = 0.0
    if facts.idle_saving.shape[0] > 0:
        busy = work(board, job, config)
        kilowatts = facts.idle_saving[configs[config, at.CONFIG_TYPE]] * gpus * (part - busy)
        part = busy
    if facts.saved_kw.shape[0] > 0:
        kilowatts += facts.saved_kw[int(board.jobs[job, at.APPLICATION]), config] * part
    return kilowatts * clock[at.PRICE] * clock[at.PUE] / 3600.0


@kernel
def _part_of_shared(board: Board, job: int, config: int) -> float:
    """Return how many of the GPUs that a job shares are its own: its part of each, by the shares that are held."""
    jobs, nodes, configs = board.jobs, board.nodes, board.facts.configs
    part, node, slot = 0.0, int(jobs[job, at.NODE]), int(jobs[job, at.SLOT])
    for n in range(node, node + configs[config, at.CONFIG_NODES]):
        for gpu in range(slot, slot + configs[config, at.CONFIG_GPUS]):
            part += configs[config, at.CONFIG_UNITS] / nodes[n, at.NODE_COLUMNS + gpu]
    return part


@kernel
def work(board: Board, job: int, config: int) -> float:
    """Return the part of the time for which a job keeps each of its GPUs busy: utilisation · speed; 1 without a model.

    On whole GPUs it is the utilisation, whatever machines help it.
    """
    if not board.has_shares:
        return 1.0
    jobs, facts = board.jobs, board.facts
    own = int(jobs[job, at.APPLICATION])
    if facts.utilisation.shape[0] == 0:
        return 1.0
    utilisation = facts.utilisation[facts.configs[config, at.CONFIG_TYPE], own]
    if facts.configs[config, at.CONFIG_UNITS] == 0:
        return utilisation
    return utilisation / (jobs[job, at.SLOWDOWN] * facts.planned[own, config])


@lean_kernel
def planned_saving_rate(board: Board, application: int, config: int) -> float:
    """Return what whole GPUs cost less than full busy ones by application and power limit, as planned [€/s]."""
    if not board.has_saved_power:
        return 0.0
    facts, clock = board.facts, board.clock
    if facts.saved_kw.shape[0] == 0:
        return 0.0
    busy = 1.0
    if board.has_shares and facts.idle_saving.shape[0] > 0:
        busy = facts.utilisation[facts.configs[config, at.CONFIG_TYPE], application]
    return facts.saved_kw[application, config] * busy * clock[at.PRICE] * clock[at.PUE] / 3600.0


@lean_kernel
def own_charge(board: Board, job: int, config: int, rate: float) -> float:
    return rate - saving_rate(board, job, config) if saves_power(board.facts) else rate


@lean_kernel
def planned_rate(board: Board, application: int, config: int, rate: float) -> float:
    return rate - planned_saving_rate(board, application, config)


@kernel
def total_rate(board: Board, rate: float) -> float:
    if saves_power(board.facts):
        for i in range(board.count[at.ACTIVE]):
            config = int(board.jobs[board.active[i], at.CONFIG])
            if config >= 0:
                rate -= saving_rate(board, board.active[i], config)
    return rate


register(
    "saved_power",
    {
        hooks.own_charge: own_charge,
        hooks.planned_rate: planned_rate,
        hooks.total_rate: total_rate,
        hooks.write_group: write_group,
    },
    (SavedPowerFacts,),
    constants=constants,
)
