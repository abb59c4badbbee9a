"""Demands with the answers of Gavel's own policy classes: the value of each objective, theirs and ours.

Optima are rarely unique, so that allocations may differ; their values may not. `las`, `ftf` and `cost` agree within
0.1 %. `mtd`: their search for the least total duration ends when its two ends are within 5 % of one another, so that
ours must not be longer by more than 0.1 %, nor shorter by more than 5 %. Our allocation must fit the GPUs and, for
`cost`, keep the due dates wherever theirs does.

Files: JSON or JSON.gz, a list of {"demand", "answer"}: GPUs `W` of v100, p100, k80, jobs with mini-batches per second
`T`, GPUs `s`, mini-batches `left`, `age` [s], weight `w`, and seconds to the due date `due`; by name of the policy the
shares of time. The policies were called once, so that no job has done anything yet. Prices are those of that call, in
$/h and GPU.
"""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_baselines.gavel.objectives import cost_slo, finish_time, las, makespan
from gpusched_baselines.gavel.program import GavelDemand
from gpusched_env.errors import InputError
from gpusched_reproductions.conform.answer import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

PRICE_PER_H = (2.48, 1.46, 0.45)
TOLERANCE = 1e-3
BISECTION = 0.05
KEPT = 1e-4  # by which a due date or a number of GPUs may be missed, as solvers stop within a tolerance


def answers(paths: Sequence[Path]) -> Iterator[Answer]:
    for path in (file for given in paths for file in _files(given)):
        for number, (demand, shares) in enumerate(read_demands(path)):
            for name, theirs in shares.items():
                yield _answer(f"{path.name}, demand {number}, {name}", name, demand, theirs)


def _answer(case: str, name: str, demand: GavelDemand, theirs: NDArray[np.float64]) -> Answer:
    program, value = OBJECTIVES[name]
    mine = program(demand)
    published, ours = value(demand, theirs), value(demand, mine)
    higher = 1.0 if name in {"las", "cost"} else -1.0
    gain = higher * (ours / published - 1.0)
    most = BISECTION + TOLERANCE if name == "mtd" else TOLERANCE
    fits = bool(np.all(demand.used(mine) <= demand.capacity * (1.0 + KEPT)) and mine.sum(axis=1).max() <= 1.0 + KEPT)
    if name == "cost" and _kept(demand, theirs).all():
        fits &= bool(_kept(demand, mine).all())
    agrees = fits and -TOLERANCE <= gain <= most
    return Answer(case, f"{published:.6g}", f"{ours:.6g} ({gain:+.2%} better{'' if fits else ', not allowed'})", agrees)


def _level(demand: GavelDemand, x: NDArray[np.float64]) -> float:
    """Return the least time of a job as if all types were equally fast, over its weight."""
    return float((demand.size / demand.weight * demand.thr(x) / demand.proportional).min())


def _ratio(demand: GavelDemand, x: NDArray[np.float64]) -> float:
    alone = demand.left / demand.isolated
    return float(((demand.age_s + demand.left / np.maximum(demand.thr(x), 1e-300)) / alone).max())


def _per_price(demand: GavelDemand, x: NDArray[np.float64]) -> float:
    return float((demand.speed * x / np.array(PRICE_PER_H)).sum())


def _duration(demand: GavelDemand, x: NDArray[np.float64]) -> float:
    return float((demand.left / np.maximum(demand.thr(x), 1e-300)).max())


def _kept(demand: GavelDemand, x: NDArray[np.float64]) -> NDArray[np.bool_]:
    late = demand.due_in_s <= 0.0
    return late | (demand.thr(x) >= demand.left / np.where(late, 1.0, demand.due_in_s) * (1.0 - KEPT))


OBJECTIVES: dict[
    str,
    tuple[Callable[[GavelDemand], NDArray[np.float64]], Callable[[GavelDemand, NDArray[np.float64]], float]],
] = {
    "las": (las, _level),
    "ftf": (finish_time, _ratio),
    "cost": (cost_slo, _per_price),
    "mtd": (makespan, _duration),
}
"""By the name of the published policy: our program, and the value that it optimises."""


def _files(given: Path) -> list[Path]:
    if given.is_file():
        return [given]
    found = sorted([*given.rglob("*.json"), *given.rglob("*.json.gz")])
    if not found:
        raise InputError("files", str(given), "a folder with JSON or JSON.gz files of demands")
    return found


def read_demands(path: Path) -> list[tuple[GavelDemand, dict[str, NDArray[np.float64]]]]:
    try:
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return [(_demand(case["demand"]), _shares(case["answer"])) for case in json.loads(text)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError("files", str(path), f"a list of demands and answers of {', '.join(OBJECTIVES)}") from error


def _shares(given: dict[str, Any]) -> dict[str, NDArray[np.float64]]:
    if not set(given) <= set(OBJECTIVES):
        raise KeyError(", ".join(given))
    return {name: np.array(x, dtype=float) for name, x in given.items()}


def _demand(given: dict[str, Any]) -> GavelDemand:
    jobs = given["jobs"]
    speed = np.array([job["T"] for job in jobs], dtype=float)
    gpus = np.where(speed > 0.0, np.array([[job["s"]] for job in jobs], dtype=float), 0.0)
    column = {name: np.array([job[name] for job in jobs], dtype=float) for name in ("left", "age", "w", "due")}
    return GavelDemand(
        job=np.arange(len(jobs)),
        config=np.where(speed > 0.0, np.arange(speed.shape[1]), -1),
        speed=speed,
        gpus=gpus,
        rate=gpus * np.array(PRICE_PER_H),
        kind=np.arange(speed.shape[1]),
        capacity=np.array(given["W"], dtype=float),
        weight=column["w"],
        left=column["left"],
        age_s=column["age"],
        isolated_s=np.zeros(len(jobs)),
        due_in_s=column["due"],
        tardiness=np.ones(len(jobs)),
        before=np.zeros(speed.shape),
        entity=np.zeros(len(jobs), dtype=np.int64),
    )
