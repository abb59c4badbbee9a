"""Demands for Gavel's programs, made by hand."""

import numpy as np

from gpusched_baselines.gavel.program import GavelDemand


def demand(speed, gpus=None, capacity=(1, 1), *, kind=None, rate=None, **columns) -> GavelDemand:
    """Make a demand; by default one GPU per option, an option per type, and jobs that differ in speed alone."""
    speed = np.array(speed, dtype=float)
    jobs, options = speed.shape
    given = {name: np.array(column, dtype=float) for name, column in columns.items()}
    entity = given.pop("entity", np.zeros(jobs)).astype(np.int64)
    defaults = {
        "weight": np.ones(jobs),
        "left": np.ones(jobs),
        "age_s": np.zeros(jobs),
        "isolated_s": np.zeros(jobs),
        "due_in_s": np.full(jobs, 1e9),
        "tardiness": np.ones(jobs),
        "before": np.zeros((jobs, options)),
    }
    return GavelDemand(
        job=np.arange(jobs),
        config=np.where(speed > 0, np.arange(options), -1),
        speed=speed,
        gpus=np.where(speed > 0, 1.0 if gpus is None else np.array(gpus, dtype=float), 0.0),
        rate=np.where(speed > 0, 1.0 if rate is None else np.array(rate, dtype=float), 0.0),
        kind=np.arange(options) if kind is None else np.array(kind),
        capacity=np.array(capacity, dtype=float),
        entity=entity,
        **(defaults | given),
    )


def random_demand(seed: int, jobs: int = 2) -> GavelDemand:
    """Make a demand on two types: sizes 1 and 2, unequal weights, ages and rests."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 3, (jobs, 1))
    return demand(
        rng.uniform(0.5, 4.0, (jobs, 2)),
        np.broadcast_to(size, (jobs, 2)),
        (2, 2),
        weight=rng.uniform(0.2, 1.0, jobs),
        left=rng.uniform(1.0, 20.0, jobs),
        age_s=rng.uniform(0.0, 10.0, jobs),
    )


def feasible_grid(of: GavelDemand, steps: int = 20) -> np.ndarray:
    """List the shares of two jobs on two types that there are GPUs for, on a grid, (S, 2, 2)."""
    axis = np.linspace(0.0, 1.0, steps + 1)
    x = np.stack(np.meshgrid(axis, axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 2, 2)
    used = (x * of.gpus).sum(axis=1)
    return x[np.all(x.sum(axis=2) <= 1 + 1e-12, axis=1) & np.all(used <= of.capacity + 1e-12, axis=1)]
