"""A site's power cap: its periods, what is refused, and the section of a scenario."""

from dataclasses import replace

import pytest

from gpusched_env import Rent, load_scenario, make_instance
from gpusched_env.errors import InputError
from gpusched_env.mechanisms.cap.model import PowerCap
from gpusched_env.mechanisms.saved_power.model import SavedPower
from gpusched_env.mechanisms.shares.model import UtilisationModel
from gpusched_env.model import Configuration, peak_kw
from run_files import loaded_again
from small_instances import hours_job, kilowatt_cluster

ONE, TWO = Configuration("V", 1), Configuration("V", 2)


def two_jobs(site=None, **values):
    """Make two jobs of 1 h on a node of two GPUs of 1 kW."""
    made = kilowatt_cluster([hours_job(1.0, {ONE: 1.0}), hours_job(9.0, {ONE: 1.0})], [2], [ONE, TWO])
    return replace(made, **values, mechanisms=() if site is None else (site,))


def test_events_lower_the_cap_for_a_time_and_are_told_before():
    cap = PowerCap.with_events(10.0, [(7200.0, 3600.0, 0.25, 1800.0), (100.0, 50.0, 0.5, 1e6)])
    assert cap.start_s == (0.0, 100.0, 150.0, 7200.0, 10_800.0)
    assert cap.cap_kw == (10.0, 5.0, 10.0, 7.5, 10.0)
    assert cap.noticed_s == (0.0, 0.0, 0.0, 5400.0, 5400.0)
    assert cap.is_hard


def test_an_event_at_the_start_is_the_first_period():
    assert PowerCap.with_events(4.0, [(0.0, 60.0, 0.5, 0.0)]).cap_kw == (2.0, 4.0)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"start_s": (1.0,), "cap_kw": (1.0,)}, "site.start_s"),
        ({"start_s": (0.0, 0.0), "cap_kw": (1.0, 1.0)}, "site.start_s"),
        ({"start_s": (0.0,), "cap_kw": (0.0,)}, "site.cap_kw"),
        ({"start_s": (0.0,), "cap_kw": (1.0, 2.0)}, "site.cap_kw"),
        ({"start_s": (0.0, 9.0), "cap_kw": (1.0, 2.0), "noticed_s": (0.0, 10.0)}, "site.noticed_s"),
        ({"start_s": (0.0,), "cap_kw": (1.0,), "soft_eur_per_kwh": 0.0}, "site.soft_eur_per_kwh"),
    ],
)
def test_a_cap_that_cannot_be_is_refused(values: dict, field: str):
    with pytest.raises(InputError, match=field):
        PowerCap(**values)


@pytest.mark.parametrize("event", [(0.0, 0.0, 0.5, 0.0), (0.0, 1.0, 1.0, 0.0), (-1.0, 1.0, 0.5, 0.0)])
def test_an_event_that_cannot_be_is_refused(event: tuple):
    with pytest.raises(InputError, match=r"site\.events"):
        PowerCap.with_events(1.0, [event])


def test_events_do_not_overlap():
    with pytest.raises(InputError, match=r"site.events\[1\].start_s"):
        PowerCap.with_events(1.0, [(0.0, 10.0, 0.5, 0.0), (10.0, 10.0, 0.5, 0.0)])


def test_every_job_can_run_alone_under_the_last_cap():
    with pytest.raises(InputError, match=r"site.cap_kw.*at least 1 kW"):
        two_jobs(site=PowerCap((0.0, 1.0), (5.0, 0.9)))
    assert two_jobs(site=PowerCap((0.0, 1.0), (0.9, 1.0))).of(PowerCap) is not None


def test_a_soft_cap_may_be_below_every_job():
    assert two_jobs(site=PowerCap((0.0,), (0.1,), soft_eur_per_kwh=1.0)).of(PowerCap) is not None


def test_power_that_does_not_follow_from_holdings_has_no_cap():
    model = UtilisationModel([[1.0]], idle_power_w=[500.0])
    with pytest.raises(InputError, match="site"):
        two_jobs(site=PowerCap((0.0,), (5.0,))).with_mechanisms(model)


def test_tables_that_a_cap_reads_are_checked_before_it():
    capped = two_jobs(site=PowerCap((0.0,), (5.0,)))
    for model, field in ((SavedPower(((0.0,),)), "saved_kw"), (UtilisationModel([[1.0], [1.0]]), "interference")):
        with pytest.raises(InputError, match=field):
            capped.with_mechanisms(model)


def test_gpu_hours_have_a_price_from_zero_on():
    with pytest.raises(InputError, match="gpu_hour_eur"):
        Rent(-1.0)


def test_the_peak_is_all_nodes_with_all_gpus_busy():
    assert peak_kw(two_jobs()) == 2.0


def test_a_scenario_has_a_cap_as_a_part_of_the_peak_and_draws_its_events():
    settings = {"site.cap_part": 0.7, "site.event_gap_s": 86_400.0, "site.gpu_hour_eur": 2.0}
    scenario = load_scenario("tiny").replace(settings)
    one, same, other = (make_instance(scenario, seed) for seed in (1, 1, 2))
    assert one.of(PowerCap) == same.of(PowerCap)
    assert one.of(PowerCap) != other.of(PowerCap)
    assert one.of(PowerCap).cap_kw[0] == pytest.approx(0.7 * peak_kw(one))
    assert min(one.of(PowerCap).cap_kw) == pytest.approx(0.75 * 0.7 * peak_kw(one))
    assert one.of(Rent) == Rent(2.0)
    plain = make_instance(load_scenario("tiny"), 1)
    assert (plain.jobs.submission_s == one.jobs.submission_s).all()  # the other draws stay as they are


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"site.cap_kw": 5.0, "site.cap_part": 0.5}, "site.cap_part"),
        ({"site.soft_eur_per_kwh": 0.5}, "site.soft_eur_per_kwh"),
        ({"site.cap_kw": 5.0, "site.events": [[1.0, 2.0]]}, r"site.events\[0\]"),
        ({"site.cap_kw": 5.0, "site.events": [[1.0, 2.0, 0.5, 0.0]], "site.event_gap_s": 5.0}, "site.event_gap_s"),
    ],
)
def test_a_section_that_contradicts_itself_is_refused(settings: dict, field: str):
    with pytest.raises(InputError, match=field):
        load_scenario("tiny").replace(settings)


@pytest.mark.parametrize("soft", [None, 0.5])
def test_an_instance_file_has_the_cap(tmp_path, soft: float | None):
    made = two_jobs(site=PowerCap((0.0, 9.0), (5.0, 2.0), (0.0, 3.0), soft)).with_mechanisms(Rent(1.5))
    assert loaded_again(made, tmp_path) == made
