"""Hardware, applications and histograms of one's own, from a scenario file and the tables beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpusched_env.errors import InputError
from gpusched_env.model.rates import cost_rate_eur_per_h
from gpusched_env.workload import Scenario, builtin_applications, load_scenario, make_instance, scenario_toml
from own_cluster import write_own_cluster
from refusals import refused

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return write_own_cluster(tmp_path)


def test_pools_own_types_own_applications_and_own_runs_make_the_instance_they_say(own: Path):
    instance = make_instance(load_scenario(own), 3)
    assert [(n.gpu_type, n.gpus) for n in instance.nodes] == [
        ("B200", 4), ("rented", 2), ("rented", 1), ("rented", 1),
    ]  # fmt: skip
    rates = cost_rate_eur_per_h(instance)
    kwh = 0.172 * 1.58
    assert rates[0, 1:] == pytest.approx([kwh * w for w in (2.2, 3.0, 3.8, 4.6)])
    assert rates[1, 1:3] == pytest.approx([0.5, 0.9])
    names = [c.name for c in instance.configurations]
    jobs = instance.jobs
    of = {name: np.flatnonzero(jobs.application == i) for i, name in enumerate(jobs.applications)}
    assert len(of["small"]) > 0 < len(of["large"])
    small, large = of["small"][0], of["large"][0]
    seconds = dict(zip(names, jobs.seconds_per_epoch[small], strict=True))
    assert (seconds["B200x1"], seconds["B200x2"], seconds["rentedx1"]) == pytest.approx((100.0, 60.0, 300.0))
    assert (seconds["B200x3"], seconds["rentedx2"]) == (np.inf, pytest.approx(170.0))
    assert jobs.seconds_per_epoch[large, names.index("B200x4")] == pytest.approx(45.0)
    assert (jobs.restart_s[small], jobs.restart_s[large]) == (40.0, 0.0)
    assert (jobs.memory_gib[small], jobs.memory_gib[large]) == (10.0, 100.0)
    shares = jobs.epochs_needed / jobs.max_epochs
    assert {float(s) for s in shares[of["large"]]} == {0.05}
    assert {round(float(s), 9) for s in shares[of["small"]]} <= {0.5, 1.0}


def test_a_scenario_with_everything_of_ones_own_prints_and_loads_back_equal(own: Path, tmp_path: Path):
    scenario = load_scenario(own)
    (tmp_path / "printed.toml").write_text(scenario_toml(scenario), encoding="utf-8")
    assert load_scenario(tmp_path / "printed.toml") == scenario.replace({"name": scenario.name})
    inline = scenario.replace(
        {
            "applications": [
                {"name": "mine", "max_epochs": 3, "seconds_per_epoch": {"B200": [9, 5], "rented": {"1": 20}}},
                {"name": "whole", "max_epochs": 3, "seconds": {"B200": {"4": 30, "2*4": 18}}, "restart_s": 7},
            ],
            "epochs": {"masses": [[1, 2]]},
            "jobs.node_counts": [1, 2],
            "cluster.pools": [{"gpu_type": "B200", "nodes": 2}, {"gpu_type": "rented", "nodes": 1}],
        }
    )
    (tmp_path / "inline.toml").write_text(scenario_toml(inline), encoding="utf-8")
    assert load_scenario(tmp_path / "inline.toml") == inline
    instance = make_instance(inline, 0)
    whole = int(np.argmax(instance.jobs.application == 1))
    names = [c.name for c in instance.configurations]
    assert instance.jobs.seconds_per_epoch[whole, names.index("2*B200x4")] == pytest.approx(6.0)
    assert instance.jobs.restart_s[whole] == 7.0


def test_a_type_like_a_built_in_one_has_its_figures_and_times_at_its_speed():
    own = {"name": "A100-80", "like": "A100", "speed": 1.25, "memory_gib": 80}
    pools = [{"gpu_type": "A100-80", "nodes": 2}, {"gpu_type": "A100", "nodes": 1, "gpus_per_node": 8}]
    scenario = Scenario(gpu_types=[own], cluster={"pools": pools}, jobs={"count": 3})
    instance = make_instance(scenario, 0)
    seconds = instance.jobs.seconds_per_epoch
    assert seconds[:, :8] * 1.25 == pytest.approx(seconds[:, 8:])
    assert instance.gpu_types[0].memory_gib == 80.0
    assert instance.gpu_types[0].power_w(3) == instance.gpu_types[1].power_w(3)


def test_a_type_may_tell_the_power_of_a_busy_gpu_beside_that_of_its_nodes():
    """Of it shared GPUs spare a part; nodes draw what the table says."""
    own = {"name": "B200", "like": "A100", "node_power_w": [1500, 2400]}
    plain, v = (Scenario(gpu_types=[own | m]).catalogue().gpu_types["B200"] for m in ({}, {"gpu_power_w": 700}))
    assert (plain.gpu_power_w, v.gpu_power_w) == (1200.0, 700.0)
    assert [v.power_w(busy) for busy in (1, 2)] == [1500.0, 2400.0]


def test_an_own_application_with_a_built_in_name_adds_to_its_times():
    name = "resnet50-imagenet-bs64"
    own = {"name": name, "max_epochs": 90, "seconds_per_epoch": {"B200": [100]}}
    b200 = {"name": "B200", "memory_gib": 180, "gpu_power_w": 900, "gpus_per_node": 1}
    pools = [{"gpu_type": "B200", "nodes": 1}, {"gpu_type": "V100", "nodes": 1}]
    instance = make_instance(
        Scenario(gpu_types=[b200], applications=[own], cluster={"pools": pools}, jobs={"count": 2}), 0
    )
    known = builtin_applications()[name]
    assert instance.jobs.applications == (name,)
    assert instance.jobs.seconds_per_epoch[0, :2].tolist() == [100.0, known.seconds_per_epoch["V100", 1]]


@pytest.mark.parametrize(
    ("restart", "expected"), [(None, (40.0, 0.0)), ("measured", (40.0, 0.0)), (600.0, (600.0, 600.0))]
)
def test_restarts_are_what_own_applications_say_unless_one_number_is_set(own: Path, restart, expected):
    scenario = load_scenario(own).replace({"restart_s": restart})
    jobs = make_instance(scenario, 0).jobs
    assert {(a, r) for a, r in zip(jobs.application.tolist(), jobs.restart_s.tolist(), strict=True)} <= set(
        enumerate(expected)
    )
    one = scenario.replace({"restart_by_application": {"large": 5.0}})
    assert 5.0 in make_instance(one, 0).jobs.restart_s


def test_built_in_applications_restart_as_measured_only_if_asked():
    plain, measured = Scenario(), Scenario(restart_s="measured")
    assert not make_instance(plain, 0).jobs.restart_s.any()
    jobs = make_instance(measured, 0).jobs
    known = builtin_applications()
    assert jobs.restart_s.tolist() == [known[jobs.applications[a]].restart_s for a in jobs.application]
    assert jobs.restart_s.min() >= 15.0


def test_a_file_may_build_on_another_one(tmp_path: Path):
    (tmp_path / "below.toml").write_text('base = "default"\n[cluster]\nnodes = 4\n[weights]\nmin_eur_per_s = 0.0\n')
    (tmp_path / "top.toml").write_text('base = "below.toml"\n[cluster]\ngpus_per_node = 2\n[arrivals]\nkind = "high"\n')
    scenario = load_scenario(tmp_path / "top.toml")
    assert (scenario.name, scenario.cluster.nodes, scenario.cluster.gpus_per_node) == ("top", 4, 2)
    assert scenario.arrivals.kind == "high"
    assert scenario.weights.min_eur_per_s == 0.0
    assert scenario.restart_s == "measured"
    (tmp_path / "below.toml").write_text('base = "top.toml"\n')
    with refused("base", "below.toml"):
        load_scenario(tmp_path / "top.toml")


B200 = '[[gpu_types]]\nname = "B200"\nmemory_gib = 180\n'


@pytest.mark.parametrize(
    ("text", "field", "allowed"),
    [
        (B200, "gpu_types[0].gpu_power_w", "node_power_w"),
        ('[[gpu_types]]\nname = "B200"\ngpu_power_w = 9', "gpu_types[0].memory_gib", "like"),
        (B200 + "node_base_power_w = 9\nnode_power_w = [3]", "gpu_types[0].node_power_w", "only one way"),
        (B200 + "gpu_power_w = 9\nnode_eur_per_h = [3]", "gpu_types[0].node_eur_per_h", "only one way"),
        (B200 + "node_power_w = []", "gpu_types[0].node_power_w", "1 or more numbers"),
        (B200 + "node_power_w = [3, 4]\ngpus_per_node = 3", "gpu_types[0].node_power_w", "3 numbers"),
        (B200 + "node_power_w = [3, -4]", "gpu_types[0].node_power_w[1]", "> 0"),
        (B200 + "gpu_power_w = 9\nspeed = 2", "gpu_types[0].speed", "1 without"),
        (B200 + 'like = "Z9"', "gpu_types[0].like", "K80"),
        (B200 + "gpu_power_w = 9\nwatts = 2", "gpu_types[0].watts", "no such setting"),
        (2 * (B200 + "gpu_power_w = 9\n"), "gpu_types[1].name", "once"),
        (B200 + "node_eur_per_h = [1]\n[prices]\npue = 1.0\nenergy_price_eur_per_kwh = 0.0", "gpu_types[0].node_eur_per_h", "costs nothing"),  # noqa: E501
        ('[[cluster.pools]]\ngpu_type = "Z9"\nnodes = 1', "cluster.pools[0].gpu_type", "K80"),
        ('[[cluster.pools]]\ngpu_type = "V100"', "cluster.pools[0].nodes", "a value"),
        ('[[cluster.pools]]\ngpu_type = "V100"\nnodes = 1\ngpus_per_node = 9', "cluster.pools[0].gpus_per_node", "at most 8"),  # noqa: E501
        ('[cluster]\nnodes = 3\n[[cluster.pools]]\ngpu_type = "V100"\nnodes = 1', "cluster.nodes", "change the pools"),
        ('[cluster]\ngpus_per_node = 3\n[[cluster.pools]]\ngpu_type = "V100"\nnodes = 1', "cluster.gpus_per_node", "each has its own"),  # noqa: E501
        ("[cluster]\npools = [3]", "cluster.pools[0]", "a table"),
        ('[[applications]]\nname = "a"\nmax_epochs = 3', "applications[0].seconds_per_epoch", "seconds"),
        ('[[applications]]\nname = "a"\nmax_epochs = 3\nseconds = { V100 = { x = 3 } }', "applications[0].seconds.V100", "such as"),  # noqa: E501
        ('[[applications]]\nname = "a"\nmax_epochs = 0\nseconds = { V100 = [3] }', "applications[0].max_epochs", "> 0"),
        ('applications = "published"\n[jobs]\napplications = ["alexnet"]', "jobs.applications[0]", "alexnet-j1"),
        ('restart_s = "soon"', "restart_s", "measured"),
        ('[epochs]\nlibrary = "a.csv"\nmasses = [[1]]', "epochs.library", "one way"),
        ('[epochs]\nlibrary = "a.csv"\nruns = "b.csv"', "epochs.runs", "one way"),
        ("[epochs]\nby_application = true", "epochs.by_application", "library"),
        ('base = "defualt"', "base", "published-high"),
        ('base = "none.toml"', "base", "exists"),
        ("applications = 3", "applications", "published-inhouse"),
        (
            '[[applications]]\nname = "a"\nmax_epochs = 3\nseconds = { A100 = { "1" = 3, "01" = 4 } }',
            "applications[0].seconds.A100",
            "once",
        ),
        ('[[applications]]\nname = "a"\nmax_epochs = 3\nseconds = { A1000 = [3] }', "applications.a: gpu_type", "A100"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_error_that_names_the_field(tmp_path: Path, text: str, field: str, allowed: str):
    (tmp_path / "bad.toml").write_text(text, encoding="utf-8")
    with refused(field, allowed=allowed):
        load_scenario(tmp_path / "bad.toml")


@pytest.mark.parametrize(
    ("file", "old", "new", "field", "allowed"),
    [
        ("apps.csv", "B200,1,1000,10", "B200,1,-3,10", "apps.csv line 2: seconds", "> 0"),
        ("apps.csv", "B200,1,1000,10", "B200,x,1000,10", "apps.csv line 2: gpus", "whole number"),
        ("apps.csv", "small,B200,2", "small,B200,1", "apps.csv line 3: gpus", "once"),
        ("apps.csv", "small,B200,2,600,,,", "small,B200,2,600,11,,", "apps.csv line 3: max_epochs", "10"),
        ("apps.csv", "large,B200,4,900,20", "large,B200,4,900,", "apps.csv line 6: max_epochs", "> 0"),
        ("apps.csv", "restart_s", "restarts", "apps.csv: column", "restart_s"),
        ("apps.csv", "seconds", "time", "apps.csv: column", "seconds_per_epoch"),
        ("apps.csv", "large,B200,4,900,20,100,", "large,B200,4,900,20,100", "apps.csv line 6", "7 values"),
        ("apps.csv", "large,B200,4,900,20,100,", "large,B200,4,900,20,200,", "jobs.applications", "memory fits"),
        ("runs.csv", "small,10,10", "small,11,10", "runs.csv line 3: epochs", "<= max_epochs"),
        ("runs.csv", "max_epochs", "most", "runs.csv: column", "max_epochs"),
        ("runs.csv", "large,1,20", "huge,1,20", "epochs.by_application", "small, huge"),
        ("own.toml", "apps.csv", "none.csv", "applications", "can be read"),
        ("own.toml", "runs.csv", "none.csv", "epochs.runs", "can be read"),
        ("apps.csv", "large,B200", "large,B20", "applications.large: gpu_type", "B200"),
        ("runs.csv", "application,", "source,", "epochs.by_application", "no column application"),
        ("own.toml", '"apps.csv"', '"publishd"', "applications", "published-inhouse"),
    ],
)
def test_a_wrong_table_is_one_error_that_names_line_and_column(own, file, old, new, field, allowed):
    path = own.parent / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        make_instance(load_scenario(own), 0)
    assert caught.value.field.endswith(field)
    assert allowed in caught.value.allowed


def test_histograms_are_the_columns_of_a_library(tmp_path: Path):
    (tmp_path / "mine.csv").write_text("early,late\n3,0\n1,1\n", encoding="utf-8")
    (tmp_path / "mine.toml").write_text('[epochs]\nlibrary = "mine.csv"\n', encoding="utf-8")
    jobs = make_instance(load_scenario(tmp_path / "mine.toml"), 0).jobs
    assert [d.masses.tolist() for d in jobs.distributions] == [[0.75, 0.25], [0.0, 1.0]]
    (tmp_path / "mine.csv").write_text("early,late\n3,0\n1,0\n", encoding="utf-8")
    with refused(f"{tmp_path}/mine.csv: late", [0.0, 0.0]):
        make_instance(load_scenario(tmp_path / "mine.toml"), 0)


def test_a_type_with_a_built_in_name_that_is_like_another_has_the_others_times():
    own = {"name": "H100", "like": "A100", "speed": 3.0}
    scenario = Scenario(gpu_types=[own], cluster={"gpu_types": ["H100", "A100"], "nodes": 2}, jobs={"count": 2})
    seconds = make_instance(scenario, 0).jobs.seconds_per_epoch
    assert seconds[:, :8] * 3.0 == pytest.approx(seconds[:, 8:])
    mine = {"name": "resnet50-imagenet-bs64", "max_epochs": 90, "seconds_per_epoch": {"H100": [100]}}
    measured = make_instance(scenario.replace({"applications": [mine], "restart_s": "measured"}), 0).jobs
    assert measured.seconds_per_epoch[0, 0] == 100.0, "one's own rows win"
    assert set(measured.restart_s.tolist()) == {250.0}, "what is not said is as built in"


def test_histograms_and_pools_of_a_file_replace_those_of_its_base(tmp_path: Path):
    (tmp_path / "runs.csv").write_text("epochs,max_epochs\n\n5,10\n", encoding="utf-8")
    power = "[cluster.overrides.A100]\ngpu_power_w = 111\n"
    (tmp_path / "below.toml").write_text(f'base = "default"\n{power}[epochs]\nlibrary = "published"\n')
    pool = '[[cluster.pools]]\ngpu_type = "A100"\nnodes = 2\n'
    (tmp_path / "top.toml").write_text(f'base = "below.toml"\n{pool}[epochs]\nruns = "runs.csv"\n')
    scenario = load_scenario(tmp_path / "top.toml")
    assert (scenario.cluster.nodes, scenario.cluster.overrides["A100"].gpu_power_w) == (2, 111.0)
    (only,) = make_instance(scenario, 0).jobs.distributions
    assert only.masses[49] == 1.0
    (tmp_path / "runs.csv").write_text("epochs,max_epochs\n\n5,10\n\n5,x\n", encoding="utf-8")
    with refused(f"{tmp_path}/runs.csv line 5: max_epochs", "x"):
        make_instance(scenario, 0)


def test_a_part_of_a_gpu_has_its_part_of_speed_and_power_and_a_job_has_one(tmp_path: Path):
    (tmp_path / "mig.toml").write_text(
        'base = "tiny"\n[[gpu_types]]\nname = "A100-3g.20gb"\npart_of = "A100"\n'
        '[[gpu_types]]\nname = "half"\npart_of = "T4"\npart = 0.5\nspeed = 0.6\n'
        '[[cluster.pools]]\ngpu_type = "A100-3g.20gb"\nnodes = 1\n[[cluster.pools]]\ngpu_type = "A100"\nnodes = 1\n'
        '[[cluster.pools]]\ngpu_type = "half"\nnodes = 1\ngpus_per_node = 4\n'
    )
    scenario = load_scenario(tmp_path / "mig.toml")
    (tmp_path / "again.toml").write_text(scenario_toml(scenario), encoding="utf-8")
    assert load_scenario(tmp_path / "again.toml").gpu_types == scenario.gpu_types
    instance = make_instance(scenario, 0)
    types = {each.name: each for each in instance.gpu_types}
    part, whole, half = types["A100-3g.20gb"], types["A100"], types["half"]
    assert [node.gpus for node in instance.nodes] == [16, 8, 4]
    assert (part.memory_gib, half.memory_gib) == (20.0, 8.0)
    assert 16 * part.idle_gpu_power_w == pytest.approx(8 * whole.idle_gpu_power_w)
    above = (whole.gpu_power_w - whole.idle_gpu_power_w) * 3 / 7
    assert part.gpu_power_w - part.idle_gpu_power_w == pytest.approx(above)
    names = [c.name for c in instance.configurations]
    assert [name for name in names if name.startswith(("A100-3g", "half"))] == ["A100-3g.20gbx1", "halfx1"]
    times = instance.jobs.seconds_per_epoch
    fits = np.isfinite(times[:, names.index("A100-3g.20gbx1")])
    ratio = times[fits][:, names.index("A100-3g.20gbx1")] / times[fits][:, names.index("A100x1")]
    assert ratio == pytest.approx(7 / 3)


@pytest.mark.parametrize(
    ("own", "field", "allowed"),
    [
        ({"name": "A100-3g.20gb", "like": "A100", "speed": 0.43}, "like", 'part_of = "A100"'),
        ({"name": "slice", "part_of": "A100"}, "part", "ng.mgb"),
        ({"name": "slice", "part_of": "A101", "part": 0.5}, "part_of", "built-in"),
        ({"name": "slice", "part_of": "A100", "like": "A100", "part": 0.5}, "part_of", "beside"),
        ({"name": "slice", "memory_gib": 1.0, "gpu_power_w": 9.0, "part": 0.5}, "part", "part_of"),
    ],
)
def test_a_part_that_nothing_says_the_size_of_is_refused(own: dict[str, object], field: str, allowed: str):
    with refused(f"gpu_types[0].{field}", allowed=allowed):
        load_scenario("tiny").replace({"gpu_types": [own]})
