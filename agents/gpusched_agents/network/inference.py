"""The networks for decisions, compiled, for one job at a time; they need only NumPy.

The formulas are those of `gpusched_agents.network.policies`; a test compares both.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from gpusched_env.arrays import Ints, Mask, Singles
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.observation import (
    CLUSTER_FEATURES,
    JOB_FEATURES,
    JOBS_FEATURES,
    OPTION_FEATURES,
    QUEUE_FEATURES,
    Notes,
)
from gpusched_env.observation.observe import SHARE, observe
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.due_dates import due_date_timer_s
from gpusched_env.simulator.placement.placement import can_place, place, should_consolidate
from gpusched_env.simulator.policy import apply_choice
from gpusched_env.simulator.run import Board
from gpusched_env.simulator.survival import expected_left
from gpusched_env.simulator.switching import switch_s


@kernel
def guarded(board: Board, job: int, config: int) -> int:
    """Return the choice, or a replacement if it must be late.

    A configuration must be late if the job, with the epochs that it is expected to need yet, ends after its due date
    there. If other configurations that can be placed now would end in time, and their energy costs less than the energy
    and the tardiness of the choice, the cheapest of them replaces it. Waiting is not replaced: a waiting job is
    re-evaluated in time.

    Args:
        board: The board, with the current job not placed.
        job: The job's index.
        config: The choice: a configuration, or -1 to wait.
    """
    if config < 0:
        return config
    epochs = expected_left(board, job)
    tardiness, least = _ends_late(board, job, config, epochs)
    if tardiness <= 0.0:
        return config
    least += board.jobs[job, at.WEIGHT] * tardiness
    for c in range(board.facts.configs.shape[0]):
        if board.tau[job, c] < np.inf and can_place(board, job, c):
            late, energy = _ends_late(board, job, c, epochs)
            if late <= 0.0 and energy < least:
                config, least = c, energy
    return config


@lean_kernel
def _ends_late(board: Board, job: int, config: int, epochs: float) -> tuple[float, float]:
    """Return the lateness of a job in a configuration [s], and its energy cost until its end [€]."""
    seconds = switch_s(board, job, config) + epochs * board.tau[job, config]
    time_left = board.jobs[job, at.DUE] - board.clock[at.NOW]
    return max(0.0, seconds - time_left), seconds * board.planning_rate[int(board.jobs[job, at.APPLICATION]), config]


JOB_COUNT, OPTION_COUNT = len(JOB_FEATURES), len(OPTION_FEATURES)
CLUSTER_COUNT, QUEUE_COUNT, ROW_COUNT = len(CLUSTER_FEATURES), len(QUEUE_FEATURES), len(JOBS_FEATURES)
SET, MLP = 0, 1
KINDS = {"set": SET, "mlp": MLP}
SET_WEIGHTS = (
    "option.weight", "option.bias", "gpu_type.weight", "common.weight", "context.weight", "context.bias",
    "score.weight", "score.bias", "score_context.weight", "score_out.weight", "score_out.bias",
    "wait.weight", "wait.bias", "wait_out.weight", "wait_out.bias",
)  # fmt: skip
MLP_WEIGHTS = ("first.weight", "first.bias", "second.weight", "second.bias", "out.weight", "out.bias")
NAMES = {"set": SET_WEIGHTS, "mlp": MLP_WEIGHTS}
PATIENCE = 24  # events in a row without running jobs or arrivals to come, after which an agent may not let jobs wait


def flat_weights(network: str, weights: Mapping[str, NDArray[np.float32]]) -> NDArray[np.float32]:
    """Concatenate the weights of a network in the order of its kernel, matrices as (inputs, outputs)."""
    return np.concatenate([np.ascontiguousarray(weights[name].T).ravel() for name in NAMES[network]])


@kernel
def part(flat: Singles, begin: int, rows: int, columns: int) -> tuple[Singles, int]:
    """Return the matrix (rows, columns) that begins at `begin`, and the begin of the next one."""
    end = begin + rows * columns
    return flat[begin:end].reshape(rows, columns), end


@kernel
def set_scores(
    job: Singles,
    options: Singles,
    cluster: Singles,
    queue: Singles,
    types: Ints,
    flat: Singles,
    width: int,
    out: Singles,
) -> None:
    """Write the scores of waiting and of every configuration by the set network.

    Args:
        job: Features of the job, (F,).
        options: Features of the configurations, (C, F).
        cluster: Features of the GPU types, (V, F).
        queue: Features of the other jobs, (F,).
        types: GPU type of every configuration, (C,).
        flat: The weights in the form of `flat_weights`.
        width: Width of the layers.
        out: Written: the scores, (1 + C,).
    """
    known = job.shape[0] + queue.shape[0]
    w_option, n = part(flat, 0, options.shape[1], width)
    b_option, n = part(flat, n, 1, width)
    w_type, n = part(flat, n, cluster.shape[1], width)
    w_common, n = part(flat, n, known, width)
    w_context, n = part(flat, n, 2 * width + known, width)
    b_context, n = part(flat, n, 1, width)
    w_score, n = part(flat, n, width, width)
    b_score, n = part(flat, n, 1, width)
    w_scored, n = part(flat, n, width, width)
    w_out, n = part(flat, n, width, 1)
    b_out, n = part(flat, n, 1, 1)
    w_wait, n = part(flat, n, width, width)
    b_wait, n = part(flat, n, 1, width)
    w_wait_out, n = part(flat, n, width, 1)
    b_wait_out, n = part(flat, n, 1, 1)
    zero = np.float32(0.0)
    inputs = np.zeros(2 * width + known, np.float32)  # of the context: largest and mean code, job and queue
    inputs[2 * width : 2 * width + job.shape[0]] = job
    inputs[2 * width + job.shape[0] :] = queue
    base = b_option[0] + np.dot(inputs[2 * width :], w_common)
    code, of_type = np.dot(options, w_option), np.dot(cluster, w_type)
    allowed = 0
    for c in range(types.shape[0]):
        if options[c, SHARE] <= zero:  # the job may not use it
            code[c] = zero
            continue
        allowed += 1
        for h in range(width):
            value = max(zero, code[c, h] + of_type[types[c], h] + base[h])
            code[c, h] = value
            inputs[h] = max(inputs[h], value)
            inputs[width + h] += value
    for h in range(width):
        inputs[width + h] /= np.float32(max(allowed, 1))
    context = np.maximum(np.dot(inputs, w_context) + b_context[0], zero)
    scored = np.dot(code, w_score)
    shift = np.dot(context, w_scored) + b_score[0]
    for c in range(types.shape[0]):
        total = b_out[0, 0]
        for h in range(width):
            total += max(zero, scored[c, h] + shift[h]) * w_out[h, 0]
        out[1 + c] = total
    waiting = np.maximum(np.dot(context, w_wait) + b_wait[0], zero)
    out[0] = np.dot(waiting, w_wait_out)[0] + b_wait_out[0, 0]


@kernel
def mlp_scores(
    job: Singles, options: Singles, cluster: Singles, queue: Singles, flat: Singles, width: int, out: Singles
) -> None:
    """Write the scores by the perceptron; arguments as for `set_scores`."""
    features = np.concatenate((job, options.ravel(), cluster.ravel(), queue))
    w_first, n = part(flat, 0, features.shape[0], width)
    b_first, n = part(flat, n, 1, width)
    w_second, n = part(flat, n, width, width)
    b_second, n = part(flat, n, 1, width)
    w_out, n = part(flat, n, width, out.shape[0])
    b_out, n = part(flat, n, 1, out.shape[0])
    first = np.maximum(np.dot(features, w_first) + b_first[0], np.float32(0.0))
    second = np.maximum(np.dot(first, w_second) + b_second[0], np.float32(0.0))
    out[:] = np.dot(second, w_out) + b_out[0]


@kernel
def best_action(scores: Singles, mask: Mask, may_wait: bool) -> int:
    """Return the allowed action with the highest score, of equals the first; waiting only if it may or must."""
    best = 0
    for a in range(1, scores.shape[0]):
        if mask[a] == 1 and (scores[a] > scores[best] or (best == 0 and not may_wait)):
            best = a
    return best


@kernel
def choose_now(
    board: Board,
    notes: Notes,
    flat: Singles,
    width: int,
    network: int,
    guards: bool,
    consolidation: bool,
    due_date_timers: bool,
) -> tuple[int, float, bool]:
    """Choose for the current job.

    Returns:
        The configuration's index, or -1 to wait; when its timer expires [s], NaN for no change; and whether it leaves
        its place.
    """
    configs, count = board.facts.configs, board.count
    job_features, queue_features = np.empty(JOB_COUNT, np.float32), np.empty(QUEUE_COUNT, np.float32)
    options = np.empty((configs.shape[0], OPTION_COUNT), np.float32)
    cluster = np.empty((board.capacity.shape[0], CLUSTER_COUNT), np.float32)
    mask, scores = np.empty(1 + configs.shape[0], np.int8), np.empty(1 + configs.shape[0], np.float32)
    no_rows = np.empty((0, ROW_COUNT), np.float32)
    observe(board, notes, job_features, options, cluster, queue_features, no_rows, mask)
    if network == SET:
        types = configs[:, at.CONFIG_TYPE]
        set_scores(job_features, options, cluster, queue_features, types, flat, width, scores)
    else:
        mlp_scores(job_features, options, cluster, queue_features, flat, width, scores)
    config = best_action(scores, mask, count[at.IDLE] < PATIENCE) - 1
    job = board.order[count[at.ASKED]]
    config = guarded(board, job, config) if guards else config
    leaves = config >= 0 and consolidation and should_consolidate(board, job, config)[1]
    timer = np.nan
    if due_date_timers:
        held = board.jobs[job, at.CONFIG]
        board.jobs[job, at.CONFIG] = config
        timer = due_date_timer_s(board, job)
        board.jobs[job, at.CONFIG] = held
    return config, timer, leaves


@kernel
def decide_round(
    board: Board,
    notes: Notes,
    flat: Singles,
    width: int,
    network: int,
    guards: bool,
    consolidation: bool,
    due_date_timers: bool,
) -> None:
    """Choose for all jobs of the round, one after the other, and place them."""
    count = board.count
    while count[at.ASKED] < count[at.TO_ASK]:
        job = board.order[count[at.ASKED]]
        config, timer, leaves = choose_now(board, notes, flat, width, network, guards, consolidation, due_date_timers)
        apply_choice(board, job, leaves, timer)
        if config >= 0:
            place(board, job, config)
        count[at.ASKED] += 1
