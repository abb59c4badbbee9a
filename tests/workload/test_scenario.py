from __future__ import annotations

import copy
import json
import pickle
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusched_env.workload import (
    BetaEpochs,
    Cluster,
    Scenario,
    Sharing,
    TraceReplay,
    TwoPointEpochs,
    builtin_scenarios,
    load_scenario,
    make_instance,
    scenario_toml,
)
from refusals import refused

NAMES = list(builtin_scenarios())


def write(folder: Path, text: str, name: str = "mine.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_built_in_scenarios_are_listed_with_default_first_and_bear_their_names():
    there = {Path(file.name).stem for file in files("gpusched_env").joinpath("workload", "scenarios").iterdir()}
    assert ["default", *sorted(there - {"default"})] == NAMES
    assert [s.name for s in builtin_scenarios().values()] == NAMES
    assert all(s.description for s in builtin_scenarios().values())


def test_the_default_scenario_is_ten_nodes_and_a_hundred_jobs():
    scenario = load_scenario("default")
    assert (scenario.cluster.nodes, scenario.jobs.count, scenario.arrivals.kind) == (10, 100, "exponential")
    assert scenario.cluster.gpu_types == ("V100", "A100", "T4")
    assert (scenario.prices.energy_price_eur_per_kwh, scenario.prices.pue) == (0.172, 1.58)


@pytest.mark.parametrize("name", ["high", "low", "mixed"])
def test_variants_of_the_default_differ_from_it_in_their_arrivals(name):
    assert load_scenario(name).replace({"arrivals.kind": "high", "name": "", "description": ""}) == load_scenario(
        "default"
    ).replace({"arrivals": {"kind": "high"}, "name": "", "description": ""})
    assert load_scenario(name).arrivals.kind == name


@pytest.mark.parametrize("name", NAMES)
def test_a_printed_scenario_loads_back_equal(name, tmp_path):
    scenario = load_scenario(name)
    assert load_scenario(write(tmp_path, scenario_toml(scenario))) == scenario


def test_a_scenario_with_every_setting_changed_loads_back_equal(tmp_path):
    scenario = Scenario(
        name='with "quotes" and \\',
        description="two\nlines, ünïcode \x7f 🚀",
        restart_s=30,
        restart_by_application={"lm-wikitext2-bs80": 5, "vgg16-imagenet-global256": 60.5},
        cluster={
            "nodes": 7,
            "gpu_types": ["T4", "A100"],
            "gpus_per_node": 4,
            "node_base_power_w": 1e-7,
            "overrides": {"A100": {"memory_gib": 80}, "T4": {"gpu_power_w": 70.5, "node_base_power_w": 0}},
        },
        prices={"energy_price_eur_per_kwh": 1e20, "pue": 1},
        jobs={"count": 3, "applications": ["lm-wikitext2-bs80"], "gpu_counts": [1, 4], "node_counts": [1, 3]},
        sharing={"fractions": [0.5, 0.2], "max_inflation": [1.5, 4]},
        arrivals={"kind": "poisson", "mean_gap_s": 3.5},
        epochs={"masses": [[1, 2, 0], [3]]},
        due_dates={"slack": 0.5},
        weights={"min_eur_per_s": 0, "max_eur_per_s": 1},
        trace={
            "path": str(tmp_path / "some trace.csv"),
            "columns": {"gpus": "number of GPUs", "due_s": "due"},
            "sort": True,
            "first": 5,
            "gpu_demand": "exact",
            "reference_gpu_type": "K80",
            "load": 0.7,
        },
        compare={"policies": ["sts", "mine"], "seeds": [0, 3, 5], "reference": "mine", "workers": 2},
    )
    assert load_scenario(write(tmp_path, scenario_toml(scenario))) == scenario


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives_in_a_printed_scenario(tmp_path_factory, text):
    scenario = Scenario(description=text)
    path = write(tmp_path_factory.mktemp("text"), scenario_toml(scenario))
    assert load_scenario(path) == scenario


@pytest.mark.parametrize(
    "settings",
    [
        *({"epochs": {"family": name, "library_size": 3}} for name in ("lognormal", "beta", "geometric", "two-point")),
        {"site.cap_kw": 5.0, "site.events": [[1.0, 2.0, 0.5, 0.0]]},
        {"switching.model": "pipelined", "switching.start_s": 0.01},
        {"prices.series": "de-lu-2024", "prices.start": "2024-03-01T00:00", "prices.levy_eur_per_kwh": 0.03},
        {"mixture": [{}, {"settings": {"jobs.count": 3, "due_dates.slack": 0.5}}]},
        {
            "job_classes": [
                {"settings": {"jobs.count": 6}},
                {"begins_s": 7200.0, "settings": {"weights.max_eur_per_s": 1}},
            ]
        },
    ],
    ids=str,
)
def test_a_section_of_every_kind_loads_back_equal(settings, tmp_path):
    scenario = load_scenario("tiny").replace({"name": "mine", **settings})
    assert load_scenario(write(tmp_path, scenario_toml(scenario))) == scenario


def test_an_epochs_section_without_a_family_is_a_histogram():
    assert Scenario(epochs={"library_size": 4}).epochs.family == "histogram"


def test_sections_may_be_given_as_values():
    scenario = Scenario(cluster=Cluster(nodes=4), epochs=BetaEpochs(mean=(0.1, 0.2)))
    assert scenario.cluster.nodes == 4
    assert scenario.epochs.mean == (0.1, 0.2)


def test_a_file_without_a_name_bears_its_files_name_and_its_trace_stands_beside_it(tmp_path):
    scenario = load_scenario(write(tmp_path, '[trace]\npath = "logs/trace.csv"\n', "night.toml"))
    assert scenario.name == "night"
    assert Path(scenario.trace.path) == tmp_path.resolve() / "logs" / "trace.csv"


@pytest.mark.parametrize(("seeds", "text"), [("0-3, 7", "0-3, 7"), ([0, 3, 5], "0,3,5"), (4, "4")])
def test_the_seeds_of_a_comparison_are_a_text_a_list_or_a_number(seeds, text):
    assert Scenario(compare={"seeds": seeds}).compare.seeds == text


def test_what_is_compared_changes_no_instance():
    tiny = load_scenario("tiny")
    other = tiny.replace({"compare.policies": ["sts"], "compare.seeds": "8", "compare.workers": 2})
    assert other != tiny
    assert make_instance(other, 3) == make_instance(tiny, 3)


def test_replace_changes_single_values_and_leaves_the_scenario_as_it_was():
    before = load_scenario("default")
    after = before.replace({"cluster.nodes": 20, "cluster.overrides.T4.memory_gib": 24.0, "restart_s": 5.0})
    assert (after.cluster.nodes, after.cluster.overrides["T4"].memory_gib, after.restart_s) == (20, 24.0, 5.0)
    assert before == load_scenario("default")
    assert before.replace({}) == before


def test_replace_reaches_the_restart_of_one_application_and_the_fractions():
    scenario = Scenario().replace({"restart_by_application.lm-wikitext2-bs5": 4, "sharing.fractions": [0.5]})
    assert scenario.restart_by_application == {"lm-wikitext2-bs5": 4.0}
    assert scenario.sharing.fractions == (0.5,)
    assert scenario.replace({"sharing": Sharing(), "restart_by_application": None}) == Scenario()


def test_replace_takes_whole_sections_and_none_for_the_default():
    scenario = Scenario(cluster={"gpus_per_node": 2})
    assert scenario.replace({"cluster.gpus_per_node": None}).cluster.gpus_per_node is None
    assert scenario.replace({"epochs": TwoPointEpochs()}).epochs == TwoPointEpochs()
    assert scenario.replace({"trace": TraceReplay(path="x.csv")}).trace.path == "x.csv"


def test_replacing_the_family_or_the_kind_of_arrivals_drops_what_only_the_old_one_has():
    scenario = Scenario(epochs={"library_size": 7, "runs": [5, 6]}, arrivals={"kind": "poisson", "lambda_s": 9})
    assert scenario.replace({"epochs.family": "two-point"}).epochs == TwoPointEpochs(library_size=7)
    assert scenario.replace({"epochs.family": "histogram"}) == scenario
    assert scenario.replace({"arrivals.kind": "high"}).arrivals.lambda_s is None
    assert scenario.replace({"arrivals.kind": "exponential"}).arrivals.lambda_s == 9


@pytest.mark.parametrize(("name", "field"), [("cluster.foo",) * 2, ("foo.bar", "foo"), ("restart_s.x", "restart_s")])
def test_replace_refuses_what_is_no_setting(name, field):
    with refused(field):
        Scenario().replace({name: 1})


def test_a_scenario_crosses_process_borders_and_cannot_be_changed():
    scenario = load_scenario("tiny").replace({"cluster.overrides.T4.memory_gib": 24.0})
    assert pickle.loads(pickle.dumps(scenario)) == scenario  # noqa: S301 - our own bytes
    with pytest.raises(ValueError, match="frozen"):
        scenario.restart_s = 3.0


BAD = [
    ('[tenancy]\nkind = "quota"', "tenancy", "one of 'none', 'quota'"),
    ("restart_s = nan", "restart_s", ">= 0"),
    ("restart_s = -1.0", "restart_s", ">= 0"),
    ("restart_s = 2e12", "restart_s", "<= 1e12"),
    ("[restart_by_application]\nresnet = 3", "restart_by_application.resnet", "resnet50-imagenet-bs64"),
    ("[restart_by_application]\nlm-wikitext2-bs5 = -3", "restart_by_application.lm-wikitext2-bs5", ">= 0"),
    ("restart_by_application = 3", "restart_by_application", "a table"),
    ("name = 3", "name", "a text"),
    ("cluster = 3", "cluster", "a table"),
    ("[cluster]\nnodes = 0", "cluster.nodes", "whole number >= 1"),
    ("[cluster]\nnodes = 100_001", "cluster.nodes", "<= 100,000"),
    ("[jobs]\ncount = 9999999999999999999999", "jobs.count", "<= 10,000,000"),
    ("[epochs]\nbins = 10_001", "epochs.bins", "<= 10,000"),
    ("[epochs]\nruns = [1, 1e18]", "epochs.runs", "<= 1,000,000"),
    ("[prices]\npue = 1" + 400 * "0", "prices.pue", ">= 1"),
    ("[cluster]\nnodes = true", "cluster.nodes", "whole number >= 1"),
    ("[cluster]\nnodes = 2.5", "cluster.nodes", "whole number >= 1"),
    ('[cluster]\ngpu_types = "V100"', "cluster.gpu_types", "a list"),
    ('[cluster]\ngpu_types = ["V100", "X100"]', "cluster.gpu_types[1]", "K80, P100, V100, T4, A100"),
    ("[cluster]\ngpu_types = []", "cluster.gpu_types", "one GPU type or more"),
    ('[cluster]\ngpu_types = ["T4", "T4"]', "cluster.gpu_types", "each once"),
    ("[cluster]\ngpus_per_node = 8", "cluster.gpus_per_node", "the maximum of T4"),
    ("[cluster.overrides.H100]\nmemory_gib = 80", "cluster.overrides.H100", "V100, A100, T4"),
    ("[cluster.overrides.K80]\nmemory_gib = 80", "cluster.overrides.K80", "V100, A100, T4"),
    ("[cluster.overrides.T4]\nmemory_gib = -2", "cluster.overrides.T4.memory_gib", "> 0"),
    ("[cluster.overrides.T4]\nmemory = 2", "cluster.overrides.T4.memory", "memory_gib"),
    ("[prices]\nenergy_price_eur_per_kwh = -0.1", "prices.energy_price_eur_per_kwh", ">= 0"),
    ("[prices]\nenergy_price_eur_per_kwh = inf", "prices.energy_price_eur_per_kwh", ">= 0"),
    ("[prices]\npue = 0.9", "prices.pue", ">= 1"),
    ("[prices]\nprice = 0.9", "prices.price", "energy_price_eur_per_kwh, pue"),
    ('[jobs]\napplications = ["resnet"]', "jobs.applications[0]", "resnet50-imagenet-bs64"),
    ("[jobs]\ngpu_counts = [1, 0]", "jobs.gpu_counts[1]", "whole number >= 1"),
    ("[jobs]\ngpu_counts = [2, 2]", "jobs.gpu_counts", "each once"),
    ("[jobs]\nnode_counts = [1, 0]", "jobs.node_counts[1]", "whole number >= 1"),
    ("[jobs]\nnode_counts = [1, 2, 2]", "jobs.node_counts", "each once"),
    ("[jobs]\nnode_counts = [2, 4]", "jobs.node_counts", "1, from which due dates follow"),
    ("[sharing]\nfractions = [1.5]", "sharing.fractions[0]", "< 1"),
    ('[arrivals]\nkind = "hihg"', "arrivals.kind", "'high', 'low', 'mixed'"),
    ('[arrivals]\nkind = "poisson"', "arrivals.mean_gap_s", "a number of seconds with kind = 'poisson'"),
    ('[arrivals]\nkind = "poisson"\nmean_gap_s = 2\nlambda_s = 3', "arrivals.lambda_s", "beside mean_gap_s = 2.0"),
    ('[arrivals]\nkind = "poisson"\nmean_gap_s = 1e20', "arrivals.mean_gap_s", "<= 1e12"),
    ('[epochs]\nfamily = "gauss"', "epochs.family", "'histogram', 'lognormal'"),
    ("[epochs]\nmean = [0.5, 0.2]", "epochs.mean", "[lowest, highest]"),
    ('[epochs]\nfamily = "beta"\nmean = [0.5, 1.0]', "epochs.mean", "> 0 and < 1"),
    ('[epochs]\nfamily = "beta"\nsigma = [0.5, 1.0]', "epochs.sigma", "concentration"),
    ("[epochs]\nmasses = [[1.0, -1.0]]", "epochs.masses[0]", ">= 0"),
    ("[epochs]\nmasses = [[1.0, nan]]", "epochs.masses[0]", ">= 0"),
    ("[epochs]\nmasses = []", "epochs.masses", "one histogram"),
    ("[due_dates]\nslack = 0.0", "due_dates.slack", "> 0"),
    ("[weights]\nmax_eur_per_s = 0.0", "weights.max_eur_per_s", "at least min_eur_per_s"),
    ("[trace]\nfirst = 1", "trace.path", "no default"),
    ('[trace]\npath = "t.csv"\nformat = "json"', "trace.format", "'philly', 'itp'"),
    ('[trace]\npath = "t.csv"\nload = 1.0\ntime_scale = 2.0', "trace.load", "either"),
    ('[trace]\npath = "t.csv"\ncolumns = {start = "x"}', "trace.columns", "submission_s"),
    ('[compare]\npolicies = "edf"', "compare.policies", "a list"),
    ("[compare]\npolicies = []", "compare.policies", "one or more"),
    ('[compare]\npolicies = ["edf", "edf"]', "compare.policies", "each once"),
    ("[compare]\npolicies = [3]", "compare.policies[0]", "a text"),
    ('[compare]\npolicies = ["edf"]\nreference = "sts"', "compare.reference", "one of the policies compared: edf"),
    ('[compare]\nseeds = "5-1"', "compare.seeds", "ranges run upwards"),
    ("[compare]\nseeds = [1, 1]", "compare.seeds", "each once"),
    ("[compare]\nseeds = []", "compare.seeds", "whole numbers >= 0"),
    ("[compare]\nseeds = true", "compare.seeds", "whole numbers >= 0"),
    ("[compare]\nseeds = [0.5]", "compare.seeds", "whole numbers >= 0"),
    ("[compare]\nworkers = 0", "compare.workers", "whole number >= 1"),
    ("[compare]\nout = 'x'", "compare.out", "policies, seeds, reference, gpu_demands, workers"),
    ("colour = 3", "colour", "cluster, prices, site, jobs"),
]


@pytest.mark.parametrize(("text", "field", "allowed"), BAD, ids=[bad[0].replace("\n", " ") for bad in BAD])
def test_a_wrong_file_is_one_error_that_names_field_value_and_what_is_allowed(text, field, allowed, tmp_path):
    with refused(field, allowed=allowed):
        load_scenario(write(tmp_path, text))


def test_a_value_that_is_missing_is_shown_as_none():
    with refused("trace.path", None):
        load_scenario("tiny").replace({"trace.gpu_demand": "exact"})
    with refused("arrivals.mean_gap_s", None):
        load_scenario("high").replace({"arrivals.kind": "exponential"})


def test_a_table_in_the_place_of_a_value_is_named_by_its_settings(tmp_path):
    with refused("tenancy", "a table with kind"):
        load_scenario(write(tmp_path, '[tenancy]\nkind = "quota"'))


def test_the_largest_counts_are_allowed():
    scenario = Scenario(cluster={"nodes": 100_000}, jobs={"count": 10_000_000}, epochs={"bins": 10_000})
    assert (scenario.cluster.nodes, scenario.jobs.count) == (100_000, 10_000_000)


@pytest.mark.parametrize("name", [3, None, ["tiny"], "x" * 5_000 + ".toml", "a\0.toml"])
def test_what_is_no_name_and_no_path_is_refused(name):
    with refused("scenario", name):
        load_scenario(name)


def test_a_missing_file_an_unknown_name_and_broken_toml_are_input_errors(tmp_path):
    with refused("scenario", "nonesuch", r"one of default, burst, .* or a \.toml file"):
        load_scenario("nonesuch")
    with refused("scenario", allowed="that exists"):
        load_scenario(tmp_path / "none.toml")
    with refused("scenario mine", allowed="a file in TOML") as caught:
        load_scenario(write(tmp_path, "name = 'a'\nnodes =\n"))
    assert "line 2" in caught.value.value
    (tmp_path / "latin.toml").write_bytes(b"name = '\xe9'")
    with refused("scenario", allowed="UTF-8"):
        load_scenario(tmp_path / "latin.toml")


def test_the_documentation_names_every_setting():
    docs = Path(__file__).parents[2] / "docs"
    text = (docs / "your-cluster.md").read_text(encoding="utf-8") + (docs / "traces.md").read_text(encoding="utf-8")
    scenario = Scenario(trace=TraceReplay(path="x.csv"))
    sections = {name: getattr(scenario, name) for name in Scenario.model_fields}
    for section, values in sections.items():
        names = [f"{section}.{name}" for name in getattr(type(values), "model_fields", {})] or [section]
        for name in names:
            last = name.rsplit(".")[-1]
            assert any(f"`{form}`" in text for form in (name, last, f"{name}.TYPE")), name


def test_a_scenario_survives_json_and_copying():
    scenario = load_scenario("published-poisson").replace(
        {"epochs.masses": [[1, 2], [3.5]], "trace": TraceReplay(path="x.csv")}
    )
    assert Scenario(**json.loads(scenario.model_dump_json())) == scenario
    assert copy.deepcopy(scenario) == scenario


def test_a_description_does_not_outlive_the_settings_that_it_names(tmp_path):
    """Without a description of its own; that of a scenario with the same settings stays."""
    mine = tmp_path / "mine.toml"
    mine.write_text('base = "default"\n[cluster]\nnodes = 4\ngpu_types = ["T4"]\n[jobs]\ncount = 7\n', encoding="utf-8")
    assert load_scenario(mine).description == "As default, with other settings of: cluster, jobs"
    changed = load_scenario("default").replace({"cluster.nodes": 4}).replace({"jobs.count": 7})
    assert changed.description == load_scenario(mine).description
    assert load_scenario("default").replace({"name": "x"}).description == load_scenario("default").description
    assert load_scenario("default").replace({"jobs.count": 7, "description": "mine"}).description == "mine"
    mine.write_text('base = "default"\ndescription = "mine"\n[jobs]\ncount = 7\n', encoding="utf-8")
    assert load_scenario(mine).description == "mine"
    mine.write_text('base = "default"\n[compare]\nseeds = "0-4"\n', encoding="utf-8")
    assert load_scenario(mine).description == load_scenario("default").description
