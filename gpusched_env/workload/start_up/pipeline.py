"""Time until a task whose model is in host memory has done its first pass: transfer and computing, overlapped or not.

The pipeline is PipeSwitch's (Bai et al., OSDI 2020): layers cross PCIe in groups, a transfer and a message each, and
a group computes once it is there and the groups before it are done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.workload.start_up.architectures import Layer

if TYPE_CHECKING:
    from numpy.typing import NDArray

Method = Literal[
    "pipelined",
    "per-layer pipeline",
    "grouped, no pipeline",
    "per layer, no pipeline",
    "no memory management",
    "no IPC optimisation",
    "no pinned memory",
    "unified memory",
    "one process",
    "two processes",
]
"""How a task starts.

- `pipelined`: layers in the best groups, each computing while the next one crosses PCIe.
- `per-layer pipeline`: the same with every layer a group of its own.
- `grouped, no pipeline`: the whole model in one transfer, then the pass.
- `per layer, no pipeline`: layer after layer, then the pass.
- `no memory management`: pipelined, but the worker first allocates GPU memory itself.
- `no IPC optimisation`: pipelined, but the process that owns the memory sends a handle for every tensor.
- `no pinned memory`: pipelined, from memory of the host that is not pinned.
- `unified memory`: pages move when the pass touches them.
- `one process`: the process stops its task and clears up, then sends the model and computes.
- `two processes`: another process is started, then sends the model and computes.
"""
METHODS: tuple[Method, ...] = get_args(Method)

SMALL, LARGE = 2**20, 10 * 2**20
SMALL_BLOCK, LARGE_BLOCK = 2 * 2**20, 20 * 2**20


@dataclass(frozen=True, slots=True)
class StartUpCosts:
    """What a start costs on a machine.

    The bandwidths of PCIe 3 x16 are measured with NVIDIA's `bandwidthTest`: 11.7 and 12.2 GB/s from pinned memory
    (microway.com and pull request 82 of mpicbg-scicomp/gearshifft, both P100), and 5.6 to 6.4 GB/s for 256 KB to 1 MB
    of pageable memory (NVIDIA's developer forum, thread 56270). For the others no public source was found; each is
    fitted to one figure of PipeSwitch's log of 2021-10-19 (V100), all of ResNet152:

    Args:
        bandwidth_gb_per_s: From pinned memory [GB/s], > 0.
        pageable_gb_per_s: From pageable memory [GB/s], > 0.
        message_s: Start of a transfer and its message on the sender's side, and waiting for it on the worker's, each
            [s], ≥ 0; fitted to "per layer, no pipeline".
        allocation_s: An allocation of GPU memory by PyTorch's allocator [s], ≥ 0; to "no memory management".
        handle_s: Sending a handle of a tensor, and opening it [s], ≥ 0; to "no IPC optimisation".
        unified_gb_per_s: At which pages move when they are touched [GB/s], > 0; to "unified memory".
        clear_s: Stopping a task and clearing up after it in its process [s], ≥ 0; to "one process".
        process_s: Stopping a process, and starting one up to an initialised GPU [s], ≥ 0; to "two processes".

    Raises:
        InputError: A value is out of its range.
    """

    bandwidth_gb_per_s: float = 12.0
    pageable_gb_per_s: float = 6.0
    message_s: float = 94e-6
    allocation_s: float = 361e-6
    handle_s: float = 123.5e-6
    unified_gb_per_s: float = 8.9
    clear_s: float = 0.167
    process_s: float = 5.624

    def __post_init__(self) -> None:
        for name in ("bandwidth_gb_per_s", "pageable_gb_per_s", "unified_gb_per_s"):
            checks.positive(f"machine.{name}", getattr(self, name))
        for name in ("message_s", "allocation_s", "handle_s", "clear_s", "process_s"):
            checks.not_negative(f"machine.{name}", getattr(self, name))


@dataclass(frozen=True, slots=True)
class Pass:
    """The layers of a pass in the order in which they compute: what each needs on the GPU, and how long it computes.

    Args:
        sizes: Bytes of each layer, ≥ 0.
        compute_s: Seconds of each, ≥ 0.
    """

    sizes: tuple[float, ...]
    compute_s: tuple[float, ...]

    @classmethod
    def forward(cls, layers: Sequence[Layer], compute_s: float) -> Pass:
        """Make the forward pass of a model that takes `compute_s` in all, divided by the layers' operations [s]."""
        operations = sum(layer.operations for layer in layers)
        seconds = tuple(compute_s * layer.operations / operations for layer in layers)
        return cls(tuple(float(layer.size) for layer in layers), seconds)

    @classmethod
    def iteration(cls, layers: Sequence[Layer], state: float, compute_s: float) -> Pass:
        """Make an iteration of training: forward, then backward, which takes twice as long and needs the other state.

        Args:
            state: Its weights, gradients and the optimiser's state [bytes].
        """
        forward = cls.forward(layers, compute_s / 3.0)
        weights = sum(forward.sizes)
        more = max(0.0, state / weights - 1.0)
        sizes = (*forward.sizes, *(more * size for size in reversed(forward.sizes)))
        return cls(sizes, (*forward.compute_s, *(2.0 * seconds for seconds in reversed(forward.compute_s))))

    @property
    def total_s(self) -> float:
        return sum(self.compute_s)


def best_groups(task: Pass, machine: StartUpCosts) -> tuple[int, ...]:
    """Return the ends of the groups of layers, first to last, with which a pipelined pass is over soonest.

    PipeSwitch searches all groupings, without those that a bound excludes, for the same optimum. Here the groups are
    counted instead: for k groups that end with layer i the last one is there after k messages and the bytes up to i,
    so that the best groups before it are those that finish first. More groups are not tried once their messages
    alone take too long.
    """
    arrives, computes = _arrivals(task, machine), np.concatenate([[0.0], np.cumsum(task.compute_s)])
    count, message = len(task.sizes), machine.message_s
    ended = np.where(np.arange(count + 1) == 0, 0.0, np.inf)
    before: list[NDArray[np.int64]] = []
    best, best_k = np.inf, 0
    for k in range(1, count + 1):
        if computes[-1] + (k + 1) * message >= best:
            break
        begins = np.maximum(ended[None, :], (k * message + arrives)[:, None]) - computes[None, :]
        begins[np.triu_indices(count + 1)] = np.inf
        before.append(begins.argmin(axis=1))
        ended = begins.min(axis=1) + message + computes
        if ended[-1] < best:
            best, best_k = float(ended[-1]), k
    ends = [count]
    for k in range(best_k - 1, 0, -1):
        ends.append(int(before[k][ends[-1]]))
    return tuple(reversed(ends))


def pipelined_s(task: Pass, ends: Sequence[int], machine: StartUpCosts) -> float:
    """Return when a pipelined pass is over whose groups end with these layers [s]."""
    arrives, computes = _arrivals(task, machine), np.concatenate([[0.0], np.cumsum(task.compute_s)])
    over = 0.0
    for k, (first, last) in enumerate(pairwise((0, *ends)), start=1):
        over = max(over, k * machine.message_s + arrives[last]) + machine.message_s + computes[last] - computes[first]
    return float(over)


def start_up_s(
    method: Method, layers: Sequence[Layer], compute_s: float, machine: StartUpCosts = StartUpCosts()
) -> float:
    """Return the time from the decision to start a task until its first forward pass is over [s].

    Args:
        compute_s: The time of the pass on a GPU where the model is ready [s], > 0.
    """
    if method not in METHODS:
        raise InputError("method", method, f"one of {', '.join(METHODS)}")
    if not layers:
        raise InputError("layers", [], "at least one layer")
    task = Pass.forward(layers, compute_s)
    sent_s = sum(task.sizes) / (machine.bandwidth_gb_per_s * 1e9)
    at_once_s = sent_s + 2.0 * machine.message_s + compute_s
    if method == "per-layer pipeline":
        return pipelined_s(task, range(1, len(layers) + 1), machine)
    if method == "grouped, no pipeline":
        return at_once_s
    if method == "per layer, no pipeline":
        return at_once_s + (len(layers) - 1) * machine.message_s
    if method == "unified memory":
        return sum(task.sizes) / (machine.unified_gb_per_s * 1e9) + compute_s
    if method in ("one process", "two processes"):
        return at_once_s + (machine.clear_s if method == "one process" else machine.process_s)
    own = (
        machine
        if method != "no pinned memory"
        else StartUpCosts(machine.pageable_gb_per_s, message_s=machine.message_s)
    )
    more = {"no memory management": allocations(layers) * machine.allocation_s}
    more["no IPC optimisation"] = sum(len(layer.tensors) for layer in layers) * machine.handle_s
    return pipelined_s(task, best_groups(task, own), own) + more.get(method, 0.0)


def allocations(layers: Sequence[Layer]) -> int:
    """Count the allocations of GPU memory for the tensors of a model, by the rules of PyTorch's allocator.

    Tensors of at most 1 MiB share blocks of 2 MiB, those below 10 MiB blocks of 20 MiB; a larger one has its own.
    """
    count, left = 0, {SMALL_BLOCK: 0, LARGE_BLOCK: 0}
    for layer in layers:
        for tensor in layer.tensors:
            size = -(-4 * tensor // 512) * 512
            if size >= LARGE:
                count += 1
                continue
            block = SMALL_BLOCK if size <= SMALL else LARGE_BLOCK
            if left[block] < size:
                count += 1
                left[block] = block
            left[block] -= size
    return count


def _arrivals(task: Pass, machine: StartUpCosts) -> NDArray[np.float64]:
    """Return the seconds for which the first i layers cross PCIe, for i from 0."""
    return np.concatenate([[0.0], np.cumsum(task.sizes)]) / (machine.bandwidth_gb_per_s * 1e9)
