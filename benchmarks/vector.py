"""Decisions a second of many environments at once: ours, single ones, gymnasium's vectorisation, and jumanji's."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

from benchmarks import jobshop
from benchmarks.child import Contender
from benchmarks.figure import Figure, at_least, interleaved, ratios
from benchmarks.vector_parts import PARTS, PartWalk
from benchmarks.vector_walks import walk

if TYPE_CHECKING:
    from benchmarks.vector_walks import Walk

    Rates = dict[str, tuple[float, ...]]

TARGET = 1_000_000.0
SHOP_TARGET = 0.85
SIZE = "10 nodes, 100 jobs"


def measure(
    envs: int = 256,
    steps: int = 10_000,
    few: int = 8,
    few_steps: int = 2_500,
    shops: int = 1024,
    repetitions: int = 5,
    *,
    apart: bool = True,
) -> list[Figure]:
    """Measure decisions a second with random allowed actions, resets included, and ratios of interleaved repetitions.

    Args:
        envs: Environments of the native vector environment.
        steps: Its steps in each repetition; the default is longer than an episode, so the time includes resets.
        few: Environments of gymnasium's own vector environments.
        few_steps: Steps in each repetition of theirs; the single environment has as many decisions.
        shops: Environments of jumanji, an even number; they take a hundredth of `steps`.
        repetitions: Repetitions.
        apart: Whether each has a process of its own, which waits while another is measured.
    """
    sizes = {"native": (envs, steps), "sync": (few, few_steps), "async": (few, few_steps)}
    sizes["single"] = (1, few * few_steps)
    if jobshop.installed():
        sizes |= dict.fromkeys(["shop", "fast shop", *["core shop"] * apart], (shops, max(1, steps // 100)))
    with ExitStack() as opened:
        contenders: dict[str, Walk] = {}
        for name, size in sizes.items():
            ready: Walk = Contender("benchmarks.vector_walks", name, *size) if apart else walk(name, *size)
            contenders[name] = opened.enter_context(closing(ready))
        rate = interleaved(contenders, repetitions)
        parts = _parts(envs, steps, repetitions, apart=apart)
    ours = Figure(f"GpuClusterVectorEnv, {SIZE}, {envs} envs", rate["native"], "decisions/s", at_least(TARGET))
    return [ours, *parts, *_gymnasium(rate, few), *_jumanji(rate, shops)]


def _parts(envs: int, steps: int, repetitions: int, *, apart: bool) -> list[Figure]:
    with ExitStack() as opened:
        walks: dict[str, Walk] = {}
        for part in PARTS:
            ready: Walk = (
                Contender("benchmarks.vector_parts", part, envs, steps) if apart else PartWalk(part, envs, steps)
            )
            walks[part] = opened.enter_context(closing(ready))
        spent = interleaved(walks, repetitions)
    return [Figure(f"  processor's time, {PARTS[part]}", spent[part], "µs/decision") for part in PARTS]


def _gymnasium(rate: Rates, few: int) -> list[Figure]:
    return [
        *_beside(rate, "single", "one GpuClusterEnv in a loop", "one GpuClusterEnv"),
        *_beside(rate, "sync", f"gymnasium SyncVectorEnv, only {few} envs", "SyncVectorEnv"),
        *_beside(rate, "async", f"gymnasium AsyncVectorEnv, only {few} envs", "AsyncVectorEnv"),
    ]


def _jumanji(rate: Rates, shops: int) -> list[Figure]:
    name = f"jumanji {jobshop.NAME}, {shops} envs"
    plain, fast = f"{name}, jit(scan(vmap)), its AutoResetWrapper", f"{name}, only ended ones reset, 2 threads"
    if "shop" not in rate:
        note = "not installed (python -m pip install jumanji), so not measured"
        return [Figure(title, (), "steps/s", note=note) for title in (plain, fast)]
    note = f"a step sets all {jobshop.MACHINES} machines at once"
    one_core = f"{name}, only ended ones reset, one core"
    core = (
        _beside(rate, "core shop", one_core, f"{jobshop.NAME}, one core", "steps/s", note)
        if "core shop" in rate
        else []
    )
    return [
        *core,
        *_beside(rate, "shop", plain, f"{jobshop.NAME}, its AutoResetWrapper", "steps/s", note),
        *_beside(rate, "fast shop", fast, f"{jobshop.NAME}, only ended ones reset", "steps/s", note, SHOP_TARGET),
    ]


def _beside(
    rate: Rates,
    name: str,
    title: str,
    short: str,
    unit: str = "decisions/s",
    note: str = "",
    least: float | None = None,
) -> list[Figure]:
    target = None if least is None else at_least(least)
    compared = Figure(f"  GpuClusterVectorEnv / {short}", ratios(rate["native"], rate[name]), "times", target)
    return [Figure(title, rate[name], unit, note=note), compared]
