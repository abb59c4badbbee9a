"""The audit integrates prices by its own code: it agrees with runs, and finds what is changed."""

import json
from dataclasses import replace

import numpy as np
import pytest

from gpusched_baselines import make_policy
from gpusched_env.audit import audit
from gpusched_env.formats.run_folder import SITE_FACTS, read_result, write_run
from gpusched_env.mechanisms.prices.model import DemandCharge, PriceSeries
from gpusched_env.model import Instance
from gpusched_env.simulator import simulate
from instances import random_instance
from run_files import audited, edited, loaded_again

DEMAND = DemandCharge(3.0, interval_s=600.0, months_s=(3_000.0, 9_000.0))


def priced(seed: int, **kinds: bool) -> Instance:
    """Make an instance with prices, carbon and PUE that change every 500 s, and a demand charge."""
    instance, rng = random_instance(seed, jobs=20, restart_s=60.0, **kinds), np.random.default_rng(seed)
    starts = np.arange(-3.0, 200.0) * 500.0
    series = PriceSeries(
        starts,
        rng.uniform(0.0, 0.4, len(starts)),
        rng.uniform(0.0, 600.0, len(starts)),
        rng.uniform(1.0, 1.6, len(starts)),
        starts - 700.0,
        DEMAND,
    )
    return instance.with_mechanisms(series)


@pytest.mark.parametrize("kinds", [{}, {"kinds": True}, {"interference": True}, {"spread": True}], ids=str)
@pytest.mark.parametrize("policy", ["edf:preemptive", "sts"])
def test_runs_with_prices_agree_with_the_audit(policy, kinds, tmp_path):
    result = simulate(priced(4, **kinds), make_policy(policy))
    assert audited(result, tmp_path / "run") == []
    again = read_result(tmp_path / "run")
    assert (again.energy_kwh, again.co2_kg, again.demand_eur) == (result.energy_kwh, result.co2_kg, result.demand_eur)
    assert result.demand_eur > 0.0
    assert not {*SITE_FACTS} & json.loads((tmp_path / "run" / "run.json").read_text()).keys()


def test_an_instance_with_prices_comes_back_from_its_file(tmp_path):
    instance = priced(1)
    assert loaded_again(instance, tmp_path) == instance
    told = np.concatenate(([-np.inf, -np.inf], np.arange(-1.0, 200.0) * 500.0))
    series = replace(
        instance.find("prices"), g_per_kwh=None, pue=None, published_s=told, demand=None, forecast_noise=0.2
    )
    assert loaded_again(instance.with_mechanisms(series), tmp_path).find("prices") == series


@pytest.mark.parametrize("field", ["energy_kwh", "co2_kg", "demand_eur", "energy_eur"])
def test_another_amount_is_found(field, tmp_path):
    write_run(simulate(priced(2), make_policy("edf")), tmp_path / "run")
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    facts[field] *= 1.0 + 1e-7
    (tmp_path / "run" / "run.json").write_text(json.dumps(facts))
    assert [each.what for each in audit(tmp_path / "run")] == [field]


@pytest.mark.parametrize("column", ["eur_per_kwh", "pue", "g_per_kwh"])
def test_another_series_is_found(column, tmp_path):
    write_run(simulate(priced(2), make_policy("edf")), tmp_path / "run")
    with edited(tmp_path / "run" / "instance.json") as document:
        document["prices"][column][4] += 0.01
    expected = {"eur_per_kwh": "energy_eur", "pue": "energy_kwh", "g_per_kwh": "co2_kg"}[column]
    assert expected in {each.what for each in audit(tmp_path / "run")}
