"""The queue from which threads take the environments of a step, without the interpreter's lock.

Every thread begins with a contiguous share of its own, takes a few environments at a time, and then helps the others:
a thread that is late or delayed does not delay the others.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, config, types
from numba.extending import intrinsic

from gpusched_env.arrays import Ints
from gpusched_env.kernel import lean_kernel

# queue: int64 (THREADS + T, WIDTH), rows so wide that no two of them share a line of a processor's cache.
DONE = 0  # column 0: environments that are done in this round
ROUND = 1  # column 0: number of the round
STOP = 2  # column 0: 1 asks the workers to stop looking for work
FAILED = 3  # column 0: 1 if a worker failed
PLACES = 4  # addresses of the arrays that change in every round
THREADS = 5  # a row for each thread: column 0 counts how often its share was drawn on,
ASLEEP = 1  # and column 1 is 1 while it waits for the interpreter
WIDTH = 16

CHUNK = 8  # environments that a thread takes at a time
EMPTY = 2**32  # draws after which any share is empty

build: Any = cgutils  # it has no types
X86 = {"x86_64", "AMD64", "amd64"}


def _element(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    of = signature.args[0]
    place = context.make_array(of)(context, builder, arguments[0])
    return build.get_item_pointer(context, builder, of, place, arguments[1:3], wraparound=False)


def _load(typing_context: Any, queue: Any, row: Any, column: Any) -> Any:  # noqa: ARG001 - as Numba calls it, and below
    """Read a number that other threads write; what they wrote before it is then seen too."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_element(context, builder, signature, arguments), "acquire", 8)

    return types.int64(queue, types.intp, types.intp), generate


def _store(typing_context: Any, queue: Any, row: Any, column: Any, number: Any) -> Any:  # noqa: ARG001
    """Write a number that other threads read, after all that was written before it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[3], _element(context, builder, signature, arguments), "release", 8)
        return context.get_dummy_value()

    return types.void(queue, types.intp, types.intp, types.int64), generate


def _add(typing_context: Any, queue: Any, row: Any, column: Any, number: Any) -> Any:  # noqa: ARG001
    """Add to a number that other threads add to as well; return its former value."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("add", _element(context, builder, signature, arguments), arguments[3], "acq_rel")

    return types.int64(queue, types.intp, types.intp, types.int64), generate


def _relax(typing_context: Any) -> Any:  # noqa: ARG001
    """Tell the processor that this thread only waits, where it has such an instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        if platform.machine() in X86:
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(build.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), [])
        return context.get_dummy_value()

    return types.void(), generate


def _elsewhere(typing_context: Any, array: Any, address: Any) -> Any:  # noqa: ARG001
    """Return an array like the given one whose numbers are at another address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        of = signature.args[0]
        found = context.make_array(of)(context, builder, arguments[0])
        found.data = builder.inttoptr(arguments[1], found.data.type)
        found.meminfo, found.parent = (build.get_null_value(field.type) for field in (found.meminfo, found.parent))
        return found._getvalue()  # noqa: SLF001 - Numba's own way

    return array(array, types.int64), generate


def _plain_load(queue: Ints, row: int, column: int) -> int:
    return int(queue[row, column])


def _plain_store(queue: Ints, row: int, column: int, number: int) -> None:
    queue[row, column] = number


def _plain_add(queue: Ints, row: int, column: int, number: int) -> int:
    queue[row, column] += number
    return int(queue[row, column]) - number


def _plain_elsewhere(array: Any, _address: int) -> Any:
    return array


def _nothing() -> None:
    """Take the place of `_relax`."""


PLAIN = bool(config.DISABLE_JIT)  # type: ignore[attr-defined]
"""Whether kernels run as Python: then one thread does everything."""


def _compiled(generator: Any, plain: Callable[..., Any]) -> Any:
    return plain if PLAIN else intrinsic(generator)


load, store, add = _compiled(_load, _plain_load), _compiled(_store, _plain_store), _compiled(_add, _plain_add)
relax, elsewhere = _compiled(_relax, _nothing), _compiled(_elsewhere, _plain_elsewhere)


def new_queue(threads: int) -> Ints:
    queue = np.zeros((THREADS + threads, WIDTH), dtype=np.int64)
    queue[THREADS:, 0] = EMPTY
    queue[THREADS + 1 :, ASLEEP] = 1
    return queue


@lean_kernel
def open_round(queue: Ints) -> None:
    """Begin a round, when the last one is done: every share is whole again.

    What a thread should see when it takes from one is written before. A thread that is late with a draw of the last
    round finds its share empty, or draws from the new round, as any other may.
    """
    store(queue, DONE, 0, 0)
    for row in range(THREADS, queue.shape[0]):
        store(queue, row, 0, 0)
    add(queue, ROUND, 0, 1)


@lean_kernel
def take(queue: Ints, thread: int, size: int) -> int:
    """Take the next few of `size` environments, of the thread's own share if any are left there, else of another's.

    Returns:
        The first of them, up to `chunk_end`; -1 if none are left.
    """
    threads = queue.shape[0] - THREADS
    for k in range(threads):
        share = (thread + k) % threads
        first, last = size * share // threads, size * (share + 1) // threads
        if first + load(queue, THREADS + share, 0) * CHUNK < last:
            start = first + add(queue, THREADS + share, 0, 1) * CHUNK
            if start < last:
                return start
    return -1


@lean_kernel
def chunk_end(queue: Ints, start: int, size: int) -> int:
    """Return the end of the environments that `take` returned from `start` on."""
    threads = queue.shape[0] - THREADS
    for share in range(threads):
        last = size * (share + 1) // threads
        if start < last:
            return min(start + CHUNK, last)
    return start
