"""The network of an adaptation agent: its outputs against the same in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from adapted import HIDDEN, MET, nothing, randomised, saying
from gpusched_agents.files.storage import weight_shapes
from gpusched_agents.network.adaptation import (
    CRITICAL,
    DEFERRABLE,
    GATES,
    LONGEST_DEFERRAL,
    MOST,
    MOST_OF_PRICE,
    OF_JOBS,
    QUOTAS,
    arrays_of,
    flat_of,
    forward,
    own_shapes,
    seen_weights,
    shapes,
)
from gpusched_agents.spec import AgentSpec, NetworkConfig
from gpusched_baselines.adaptation_env.features import DUE_LOAD, JOBS, OFFERED, OPTIONS, ROUND
from gpusched_baselines.sts_x.plan import CONTROLS
from gpusched_env import GpuType

ACTIVE, CONFIGS = 5, 4


def seen(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw the features of jobs, of the round and of configurations."""
    rng = np.random.default_rng(seed)
    return tuple(rng.uniform(-1, 1, shape) for shape in ((ACTIVE, len(JOBS)), len(ROUND), (CONFIGS, len(OPTIONS))))


def outputs(
    flat: np.ndarray, offered: float | None = None, due: float = 0.0, quotas: float = 0.0
) -> tuple[np.ndarray, np.ndarray, float]:
    jobs, prices = np.full((ACTIVE, CONTROLS), np.nan), np.full((2, CONFIGS), np.nan)
    features = seen()
    if offered is not None:
        features[1][[OFFERED, DUE_LOAD, QUOTAS]] = offered, due, quotas
    max_deferral = forward(*features, flat, HIDDEN, jobs, prices)
    return jobs, prices, max_deferral


def test_its_outputs_are_those_of_its_formula():
    flat = randomised(2, 0.3)
    of, (jobs, whole, options) = arrays_of(flat, HIDDEN), seen()
    with_round = [np.hstack([rows, np.tile(whole, (len(rows), 1))]) for rows in (jobs, options)]
    code = np.tanh(with_round[1] @ of["code.weight"].T + of["code.bias"])
    price = with_round[1] @ of["price.weight"].T + code @ of["price_code.weight"].T + of["price.bias"]
    expected_jobs = MOST * np.tanh(with_round[0] @ of["job.weight"].T + of["job.bias"])
    gates = np.exp(np.minimum(0.0, whole @ of["gate.weight"].T + of["gate.bias"]))
    gates[:OF_JOBS] *= np.exp(8.0 * min(0.0, max(whole[OFFERED], whole[DUE_LOAD]) - 0.45))
    gates[DEFERRABLE] *= np.exp(-30.0 * max(0.0, whole[QUOTAS]))
    assert gates.min() < 0.9
    made_jobs, made_prices, max_deferral = outputs(flat)
    np.testing.assert_allclose(made_jobs, gates[OF_JOBS] * expected_jobs, rtol=1e-12)
    np.testing.assert_allclose(made_prices, MOST_OF_PRICE * gates[:OF_JOBS, None] * np.tanh(price).T, rtol=1e-12)
    assert max_deferral == pytest.approx(
        LONGEST_DEFERRAL * np.tanh(whole @ of["round.weight"][0] + of["round.bias"][0])
    )


def test_weights_of_0_change_exactly_nothing():
    """With any hidden layer: a run begins with a random one."""
    for flat in (nothing(), saying(code__weight={(0, 0): 3.0}, code__bias={(1,): -2.0})):
        jobs, prices, max_deferral = outputs(flat)
        assert not np.any(jobs)
        assert not np.any(prices)
        assert max_deferral == 0.0


def test_outputs_are_within_their_limits_for_any_weights():
    open_gates = {"gate.weight": np.zeros((GATES, len(ROUND)), np.float32), "gate.bias": np.ones(GATES, np.float32)}
    jobs, prices, max_deferral = outputs(flat_of(arrays_of(randomised(2, 1e6), HIDDEN) | open_gates, HIDDEN))
    assert (np.abs(jobs) <= MOST).all()
    assert (np.abs(prices) <= MOST_OF_PRICE).all()
    assert abs(max_deferral) <= LONGEST_DEFERRAL
    assert np.abs(jobs).max() == MOST.max()


def test_a_bias_changes_only_its_own_control():
    jobs, prices, max_deferral = outputs(
        saying(job__bias={(2,): 0.5}, price__bias={(DEFERRABLE,): -0.25}, round__bias={(0,): 0.125}), offered=0.5
    )
    assert jobs[:, 2].tolist() == pytest.approx([MOST[2] * np.tanh(0.5)] * ACTIVE)
    assert not np.delete(jobs, 2, axis=1).any()
    assert not prices[CRITICAL].any()
    assert prices[DEFERRABLE].tolist() == pytest.approx([MOST_OF_PRICE * np.tanh(-0.25)] * CONFIGS)
    assert max_deferral == pytest.approx(LONGEST_DEFERRAL * np.tanh(0.125))


def test_prices_fade_where_the_load_is_small_and_factors_of_jobs_do_not():
    flat = saying(
        job__bias={(2,): 0.5}, price__bias={(CRITICAL,): 0.5, (DEFERRABLE,): -0.25}, round__bias={(0,): 0.125}
    )
    jobs, prices, max_deferral = outputs(flat, offered=0.45)
    for offered, factor in ((0.9, 1.0), (0.35, np.exp(-0.8)), (0.05, np.exp(-3.2))):
        now = outputs(flat, offered)
        np.testing.assert_allclose(now[1], factor * prices, rtol=1e-12)
        assert (now[0].tolist(), now[2]) == (jobs.tolist(), max_deferral)
        backlog = outputs(flat, 0.1, offered)  # a burst that is being worked off: nothing comes, much is due
        assert backlog[1].tolist() == outputs(flat, max(0.1, offered))[1].tolist()


def test_deferrable_prices_fade_where_quotas_are_in_use_and_nothing_else_does():
    flat = saying(
        job__bias={(2,): 0.5}, price__bias={(CRITICAL,): 0.5, (DEFERRABLE,): -0.25}, round__bias={(0,): 0.125}
    )
    without, few, many = (outputs(flat, 0.5, quotas=each) for each in (0.0, 0.01, 0.9))
    np.testing.assert_allclose(few[1][DEFERRABLE], np.exp(-0.3) * without[1][DEFERRABLE], rtol=1e-12)
    assert np.abs(many[1][DEFERRABLE]).max() < 1e-9
    for each in (few, many):
        assert each[1][CRITICAL].tolist() == without[1][CRITICAL].tolist()
        assert (each[0].tolist(), each[2]) == (without[0].tolist(), without[2])


def test_a_gate_closes_what_is_its_own_and_never_opens_further():
    biases = {
        "job__bias": {(2,): 0.5},
        "price__bias": {(CRITICAL,): 0.5, (DEFERRABLE,): -0.25},
        "round__bias": {(0,): 0.125},
    }
    jobs, prices, max_deferral = outputs(saying(**biases), offered=0.5)
    for gate in (CRITICAL, DEFERRABLE, OF_JOBS):
        closed = outputs(saying(**biases, gate__bias={(gate,): np.log(0.25)}), offered=0.5)
        np.testing.assert_allclose(closed[0], jobs * (0.25 if gate == OF_JOBS else 1.0), rtol=1e-6)
        for price in (CRITICAL, DEFERRABLE):
            np.testing.assert_allclose(closed[1][price], prices[price] * (0.25 if gate == price else 1.0), rtol=1e-6)
        assert closed[2] == max_deferral
        open_wide = outputs(saying(**biases, gate__bias={(gate,): 3.0}), offered=0.5)
        assert [each.tolist() for each in open_wide[:2]] == [jobs.tolist(), prices.tolist()]


def test_arrays_and_weights_end_to_end_are_the_same():
    flat = randomised(3)
    arrays = arrays_of(flat, HIDDEN)
    assert {name: array.shape for name, array in arrays.items()} == own_shapes(HIDDEN)
    assert all(array.dtype == np.float32 for array in arrays.values())
    np.testing.assert_array_equal(flat_of(dict(reversed(arrays.items())), HIDDEN), flat)
    mine = {name: array.tolist() for name, array in arrays_of(flat_of(arrays, HIDDEN), HIDDEN).items()}
    assert mine == {name: array.tolist() for name, array in arrays.items()}


def test_the_shapes_are_those_of_the_features_in_the_spec():
    spec = AgentSpec.of("adaptation", MET, [GpuType("V", 1000.0, 0.0, 16.0, 8)])
    assert weight_shapes(spec, NetworkConfig("adaptation", HIDDEN)) == own_shapes(HIDDEN)
    assert own_shapes(7) == shapes(len(JOBS), len(OPTIONS), len(ROUND), 7)
    assert shapes(2, 3, 4, 5) == {
        "job.weight": (CONTROLS, 6), "job.bias": (CONTROLS,), "code.weight": (5, 7), "code.bias": (5,),
        "price.weight": (2, 7), "price_code.weight": (2, 5), "price.bias": (2,), "round.weight": (1, 4),
        "round.bias": (1,), "gate.weight": (3, 4), "gate.bias": (3,),
    }  # fmt: skip


def test_what_hides_the_distribution_leaves_the_weights_on_it_at_zero():
    """Expected epochs and survival of a job, and their means over jobs: nothing else is hidden."""
    shown, hidden = (arrays_of(seen_weights(3, distribution=each), 3) for each in (True, False))
    assert all((array == 1.0).all() for array in shown.values())
    job = [*JOBS, *ROUND]
    for name in ("job.weight", "code.weight", "price.weight", "round.weight", "gate.weight"):
        columns = {"job.weight": job, "round.weight": list(ROUND), "gate.weight": list(ROUND)}.get(
            name, [*OPTIONS, *ROUND]
        )
        gone = {columns[k] for k in np.flatnonzero((hidden[name] == 0.0).all(axis=0))}
        assert gone == {text for text in columns if "expected epochs left" in text or "survive half" in text}, name
    assert (hidden["price_code.weight"] == 1.0).all()
