import csv
import inspect
import io
import json
import shutil

import pytest

from commands import gpusched, succeeds
from gpusched_agents.any_policy import make_any_policy
from gpusched_env import simulate
from gpusched_env.audit import audit
from gpusched_env.formats import read_run
from gpusched_env.rendering import MissingExtraError
from gpusched_env.workload import load_scenario, make_instance
from gpusched_env.workload.traces import replay
from gpusched_experiments.cli import comparison_run
from gpusched_experiments.report import compare, evaluation
from gpusched_experiments.report.comparison_folder import ComparisonFolder
from refusals import refused

FIGURES = {f"{name}.{form}" for name in ("costs", "gantt") for form in ("svg", "pdf")}
FILES = {"results.json", "runs.csv", "table.md", "scenario.toml", "report.html", "cells.csv"}

THREE = (
    "compare", "-p", "fifo,edf,greedy", "-s", "tiny", "--seeds", "0-1,5", "--jobs", 6, "--set", "prices.pue=1.25",
    "--workers", 1, "--out",
)  # fmt: skip


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    out = tmp_path_factory.mktemp("compare") / "results"
    return out, succeeds(*THREE, out)


def test_a_comparison_ends_in_a_table_and_the_paths_of_its_files(compared):
    out, done = compared
    assert {path.name for path in out.iterdir()} == FILES | {"runs"}
    for name in ("fifo", "edf", "greedy", "reference", "saving vs edf"):
        assert name in done.stdout
    for name in FILES:
        assert f"wrote {out / name}" in done.stdout


def test_the_results_hold_every_run_the_scenario_and_where_they_come_from(compared):
    out, _ = compared
    results = json.loads((out / "results.json").read_text())
    assert [(run["seed"], run["policy"]) for run in results["runs"]] == [
        (seed, policy) for seed in (0, 1, 5) for policy in ("fifo", "edf", "greedy")
    ]
    assert {run["jobs"] for run in results["runs"]} == {6}
    facts = results["provenance"]["facts"]
    assert facts["scenario"]["prices"]["pue"] == 1.25
    assert (facts["policies"], facts["seeds"], facts["workers"]) == (["fifo", "edf", "greedy"], [0, 1, 5], 1)
    assert facts["reference"] == "edf"
    assert results["reference"] == "edf"
    assert len(list(csv.DictReader(io.StringIO((out / "runs.csv").read_text())))) == 9
    assert (out / "table.md").read_text().startswith("| policy |")


def test_a_track_is_compared_on_its_test_seeds(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text('base = "tiny"\n[track]\nhard = "nothing"\nweights = "none"\ntest = "3-4"\n')
    succeeds("compare", "--track", path, "-p", "edf", "-w", 1, "--out", tmp_path / "out")
    assert json.loads((tmp_path / "out/results.json").read_text())["seeds"] == [3, 4]
    assert load_scenario(tmp_path / "out/scenario.toml").compare.seeds == "3-4"


def test_the_scenario_that_was_compared_can_be_run_again(compared):
    out, _ = compared
    again = load_scenario(out / "scenario.toml")
    compare = {"policies": ["fifo", "edf", "greedy"], "seeds": "0-1,5", "workers": 1}
    values = {"jobs.count": 6, "prices.pue": 1.25} | {f"compare.{name}": value for name, value in compare.items()}
    assert again == load_scenario("tiny").replace(values)


def test_a_former_comparison_is_replaced_and_nothing_else_is(tmp_path):
    arguments = ("compare", "-p", "edf", "-s", "tiny", "--seeds", "0", "--workers", 1, "--out")
    assert gpusched(*arguments, tmp_path / "a").exit_code == 0
    assert gpusched(*arguments, tmp_path / "a").exit_code == 0
    (tmp_path / "a" / "mine.txt").write_text("precious")
    done = gpusched(*arguments, tmp_path / "a")
    assert done.exit_code == 2
    assert "mine.txt" in done.stderr
    assert (tmp_path / "a" / "mine.txt").read_text() == "precious"


def test_without_edf_the_first_policy_is_the_reference_and_a_run_whose_record_is_gone_is_recorded_again(tmp_path):
    succeeds("compare", "-p", "greedy,fifo", "-s", "tiny", "--seeds", "0", "-w", 1, "--out", tmp_path / "a")
    assert json.loads((tmp_path / "a" / "results.json").read_text())["reference"] == "greedy"
    arguments = ("compare", "-s", "tiny", "--seeds", "0,1", "-w", 1, "--out", tmp_path / "a", "-p", "edf")
    assert gpusched(*arguments).exit_code == 0
    shutil.rmtree(tmp_path / "a" / "runs")
    assert gpusched(*arguments).exit_code == 0
    assert read_run(tmp_path / "a" / "runs" / "edf").facts["seed"] == 0


def test_pictures_are_drawn_in_the_forms_that_are_asked_for_and_go_with_the_next_comparison(tmp_path):
    arguments = "compare", "-p", "edf", "-s", "tiny", "--seeds", "0", "-w", 1, "--out", tmp_path / "a"
    succeeds(*arguments, "--pictures", "svg, PDF")
    assert {path.name for path in (tmp_path / "a").iterdir()} == FILES | FIGURES | {"runs"}
    assert gpusched(*arguments).exit_code == 0
    assert {path.name for path in (tmp_path / "a").iterdir()} == FILES | {"runs"}


def test_without_matplotlib_or_of_another_form_pictures_are_an_error_before_anything_is_run(tmp_path, monkeypatch):
    done = gpusched("compare", "-s", "tiny", "--pictures", "svg,gif")
    assert (done.exit_code, "--pictures = 'svg,gif'" in done.stderr) == (2, True)

    def no_module(_):
        raise MissingExtraError("matplotlib", "plot", "charts")

    monkeypatch.setattr(comparison_run, "import_module", no_module)
    arguments = "compare", "-p", "edf", "-s", "tiny", "--seeds", "0", "-w", 1, "--out", tmp_path / "a"
    done = gpusched(*arguments, "--pictures", "svg")
    assert (done.exit_code, "charts need matplotlib" in done.stderr) == (2, True)
    assert not (tmp_path / "a").exists()
    assert gpusched(*arguments).exit_code == 0


def test_the_runs_of_the_first_seed_are_recorded_and_audit_clean(compared):
    out, _ = compared
    results = json.loads((out / "results.json").read_text())
    assert results["recorded"] == {name: name for name in ("fifo", "edf", "greedy")}
    for policy, folder in results["recorded"].items():
        run = read_run(out / "runs" / folder)
        (same,) = [each for each in results["runs"] if (each["policy"], each["seed"]) == (policy, 0)]
        assert (run.policy, run.facts["total_eur"], run.facts["seed"]) == (policy, same["total_eur"], 0)
        assert not audit(out / "runs" / folder)


def test_a_comparison_that_was_stopped_goes_on_and_ends_as_if_it_had_not_been(compared, tmp_path, monkeypatch):
    out, _ = compared
    whole = json.loads((out / "results.json").read_text())
    arguments = (*THREE, tmp_path / "a")
    ran = []

    def stopping(instance, policy, **others):
        if len(ran) == 4:
            raise KeyboardInterrupt
        ran.append((instance.seed, policy.name))
        return simulate(instance, policy, **others)

    monkeypatch.setattr(evaluation, "simulate", stopping)
    assert gpusched(*arguments).exit_code == 130
    assert {path.name for path in (tmp_path / "a").iterdir()} == {"cells.csv", "runs", "scenario.toml"}
    first = list(ran)

    def spied(instance, policy, **others):
        ran.append((instance.seed, policy.name))
        return simulate(instance, policy, **others)

    monkeypatch.setattr(evaluation, "simulate", spied)
    done = succeeds(*arguments)
    assert "4 of 9 runs are finished already" in done.stderr
    assert len(ran) == len(set(ran)) == 9
    assert ran[:4] == first
    again = json.loads((tmp_path / "a" / "results.json").read_text())
    for results in (whole, again):
        for each in (*results["runs"], *results["policies"]):
            del each["decision_s_per_round"]
            each.pop("decision_s", None)
    assert (again["runs"], again["policies"]) == (whole["runs"], whole["policies"])


def test_other_policies_in_the_same_folder_run_only_what_is_new_and_no_run_is_lost(tmp_path):
    arguments = ("compare", "-s", "tiny", "--seeds", "0", "-w", 1, "--out", tmp_path / "a", "-p")
    assert gpusched(*arguments, "edf,fifo").exit_code == 0
    done = succeeds(*arguments, "edf,greedy")
    assert "1 of 2 runs are finished already" in done.stderr
    assert {path.name for path in (tmp_path / "a" / "runs").iterdir()} == {"edf", "fifo", "greedy"}
    shown = json.loads((tmp_path / "a" / "results.json").read_text())
    assert {row["policy"] for row in shown["policies"]} == {"edf", "greedy"}
    assert "2 of 2 runs are finished already" in succeeds(*arguments, "edf,fifo").stderr


def test_runs_of_another_workload_are_never_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = ("--seeds", "0", "-w", 1, "-p", "edf")
    assert gpusched("compare", "-s", "tiny", *own, "--out", "a").exit_code == 0
    before = (tmp_path / "a/cells.csv").read_bytes()
    for other, words in {("-s", "burst"): "holds runs of tiny (", ("-s", "tiny", "--jobs", 3): "jobs.count"}.items():
        done = gpusched("compare", *other, *own, "--out", "a")
        assert (done.exit_code, "another folder (--out)" in done.stderr, words in done.stderr) == (2, True, True)
    instance = make_instance(load_scenario("tiny"), 0)
    with refused("path", "a", "runs of tiny"):
        compare("edf", instance, 1).write("a")
    assert (tmp_path / "a/cells.csv").read_bytes() == before
    assert gpusched("compare", "-s", "tiny", *own, "--jobs", 3, "--set", "prices.pue=1.1").exit_code == 0
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["compare-tiny-jobs-3-prices.pue-1.1"]


OWN = """
class Rule:
    name, preemption = "own", False
    def decide(self, view, rng):
        for job in view.waiting:
            for config in range(view.tau.shape[1]):
                if view.tau[job, config] < 1e300 and view.place(int(job), config):
                    break
"""


def test_a_policy_of_ones_own_is_compared_and_written_as_any_other_from_the_command_line_and_python(tmp_path):
    (tmp_path / "my_rule.py").write_text(OWN)
    rule = f"{tmp_path / 'my_rule.py'}:Rule"
    arguments = ("compare", "-s", "tiny", "--seeds", "0,1", "-w", 1, "-p", f"edf,{rule}", "--out", tmp_path / "a")
    assert " own " in succeeds(*arguments).stdout
    assert "4 of 4 runs are finished already" in succeeds(*arguments).stderr
    compared = compare(["edf", make_any_policy(rule)], "tiny", [0, 1], reference="edf")
    assert compared.write(tmp_path / "b") == tmp_path / "b/report.html"
    assert {path.name for path in (tmp_path / "b").iterdir()} == FILES | {"runs"}
    assert {path.name for path in (tmp_path / "b/runs").iterdir()} == {"edf", "own"}
    tables = [(tmp_path / name / "table.md").read_text() for name in "ab"]
    assert tables[0].split("\n\n")[:2] == tables[1].split("\n\n")[:2]  # but for times
    compare(["edf", rule], "tiny", [0, 1], reference="edf").write(tmp_path / "a")
    assert "4 of 4 runs are finished already" in succeeds(*arguments).stderr
    (tmp_path / "my_rule.py").write_text(OWN.replace("range(view", "reversed(range(view").replace("[1]):", "[1])):"))
    assert "2 of 4 runs are finished already" in succeeds(*arguments).stderr
    done = gpusched("compare", "-s", tmp_path / "a/scenario.toml", "--out", tmp_path / "c")
    assert (done.exit_code, "code would run" in done.stderr) == (2, True)


def of_tiny(seed):
    return make_instance(load_scenario("tiny"), seed)


def test_other_seeds_of_the_same_function_go_into_its_folder(tmp_path, monkeypatch):
    for seed in (0, 1):
        compare("edf", of_tiny, [seed]).write(tmp_path / "a")
    assert len(ComparisonFolder(tmp_path / "a").runs) == 2
    for other in (lambda seed: of_tiny(seed), lambda seed, jobs=10: of_tiny(seed)):  # noqa: ARG005, PLW0108 - others
        with refused("path", str(tmp_path / "a"), "runs of another workload"):
            compare("edf", other, [2]).write(tmp_path / "a")
    monkeypatch.setattr(inspect, "getsource", lambda _: "def of_tiny(seed): ...")
    with refused("path", str(tmp_path / "a"), "runs of another workload"):
        compare("edf", of_tiny, [2]).write(tmp_path / "a")


@pytest.mark.parametrize(
    ("form", "begin"), [("csv", "policy,energy_eur"), ("md", "### Costs"), ("tex", "\\begin"), ("html", "<")]
)
def test_the_tables_are_printed_in_other_formats_and_nothing_else_is(compared, form, begin):
    out, _ = compared
    done = succeeds(*THREE, out, "--format", form)
    assert done.stdout.startswith(begin)
    assert "wrote" not in done.stdout


def test_two_rules_of_gpu_demand_are_one_text_in_json_and_in_csv(tmp_path):
    arguments = traced(tmp_path)
    document = json.loads(gpusched(*arguments, "--format", "json").stdout)
    assert [each["gpu_demand"] for each in document["comparisons"]] == ["elastic", "exact"]
    assert "Due dates are modelled" in document["comparisons"][0]["depends_on"][1]
    assert len(document["comparisons"][0]["tables"]) == 2
    rows = list(csv.DictReader(io.StringIO(gpusched(*arguments, "--format", "csv").stdout)))
    assert [(row["gpu_demand"], row["policy"]) for row in rows] == [("elastic", "edf"), ("exact", "edf")]
    assert float(rows[0]["energy_kwh"]) > 0.0
    assert "- Due dates are modelled" in gpusched(*arguments, "--format", "md").stdout


def test_rented_nodes_have_no_kilowatt_hours(tmp_path):
    scenario = tmp_path / "rented.toml"
    scenario.write_text(
        'base = "tiny"\n[[gpu_types]]\nname = "RENT"\nlike = "A100"\ngpus_per_node = 2\nnode_eur_per_h = [10, 20]\n'
        '[[cluster.pools]]\ngpu_type = "RENT"\nnodes = 3\n[prices]\nco2_g_per_kwh = 400\n'
    )
    done = succeeds("compare", "-s", scenario, "-p", "edf", "--seeds", "0", "-w", 1, "--out", tmp_path / "a")
    assert "kWh are not known" in done.stdout
    (run,) = json.loads((tmp_path / "a" / "results.json").read_text())["runs"]
    assert (run["energy_kwh"], run["co2_kg"]) == (None, None)
    assert "kWh are not known" in (tmp_path / "a" / "report.html").read_text()


ONE = ("compare", "-s", "tiny", "--seeds", "0", "-w", 1, "-p", "edf", "--out")


def test_what_a_killed_command_left_half_written_is_no_stranger_and_neither_is_a_page_of_a_recorded_run(tmp_path):
    assert gpusched(*ONE, tmp_path / "a").exit_code == 0
    (tmp_path / "a" / ".results.json.0123456789ab.tmp").write_text("{")
    draft = tmp_path / "a" / "runs" / ".edf.0123456789ab.tmp"
    draft.mkdir()
    (draft / ".intervals.csv.ba9876543210.tmp").write_text("job")
    succeeds(*ONE, tmp_path / "a")
    assert [path.name for path in (tmp_path / "a" / "runs").iterdir()] == ["edf"]
    assert not list((tmp_path / "a").glob(".*"))
    assert gpusched(*ONE, tmp_path / "a").exit_code == 0
    assert gpusched("report", tmp_path / "a" / "runs" / "edf").exit_code == 0
    assert gpusched(*ONE, tmp_path / "a").exit_code == 0


def test_runs_and_scenarios_of_the_user_are_not_a_comparison(tmp_path):
    assert gpusched("simulate", "-s", "tiny", "-p", "greedy", "--out", tmp_path / "a/runs/mine").exit_code == 0
    assert gpusched(*ONE, tmp_path / "a").exit_code == 2
    assert gpusched(*ONE, tmp_path / "b").exit_code == 0
    shutil.copytree(tmp_path / "a/runs/mine", tmp_path / "b/runs/mine")
    done = gpusched(*ONE, tmp_path / "b")
    assert (done.exit_code, "runs/mine" in done.stderr) == (2, True)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "scenario.toml").write_text('base = "tiny"\n')
    assert gpusched(*ONE, tmp_path / "c").exit_code == 2
    assert (tmp_path / "c" / "scenario.toml").exists()


def test_two_commands_at_once_do_not_share_a_folder(tmp_path):
    with ComparisonFolder(tmp_path / "a").taken():
        done = gpusched(*ONE, tmp_path / "a")
    assert (done.exit_code, "no other comparison runs now" in done.stderr) == (2, True)
    assert gpusched(*ONE, tmp_path / "a").exit_code == 0


def test_policies_whose_names_are_alike_are_recorded_apart(tmp_path):
    folder = ComparisonFolder(tmp_path)
    names = [folder.recorded(name).name for name in ("edf", "agent:a_1", "agent:a-1", "agent:" + "x" * 500, "..")]
    assert names[0] == "edf"
    assert len(set(names)) == 5
    assert all(len(name) < 100 and not name.startswith(".") for name in names)


def test_emissions_are_said_where_it_is_said_what_a_kilowatt_hour_emits(compared, tmp_path):
    _, done = compared
    assert "CO₂" not in done.stdout
    arguments = ("compare", "-s", "tiny", "--seeds", "0", "-w", 1, "-p", "edf", "--out", tmp_path / "a")
    done = gpusched(*arguments, "--set", "prices.co2_g_per_kwh=500")
    assert "kg CO₂" in done.stdout
    (run,) = json.loads((tmp_path / "a" / "results.json").read_text())["runs"]
    assert run["co2_kg"] == pytest.approx(0.5 * run["energy_kwh"])
    assert run["energy_kwh"] == pytest.approx(run["energy_eur"] / 0.172)


def traced(tmp_path):
    trace = tmp_path / "trace.csv"
    rows = [f"{60 * i},{600 + i},{1 + i % 2}" for i in range(8)]
    trace.write_text("\n".join(["submission_s,duration_s,gpus", *rows]) + "\n")
    replay = ("compare", "-p", "edf", "--trace", trace, "--trace-format", "generic", "--jobs", 5, "--nodes", 2)
    return (*replay, "--seeds", "0", "-w", 1, "--out", tmp_path / "a")


def test_a_trace_is_compared_under_two_rules_of_gpu_demand_and_says_what_is_modelled(tmp_path):
    done = succeeds(*traced(tmp_path))
    for words in ("Costs, GPU demand: elastic", "Costs, GPU demand: exact", "Due dates are modelled"):
        assert words in done.stdout
    assert "non-clairv." not in done.stdout
    results = json.loads((tmp_path / "a" / "results.json").read_text())
    assert (results["gpu_demand"], [each["gpu_demand"] for each in results["more"]]) == ("elastic", ["exact"])
    assert results["runs"][0]["jobs"] == 5
    assert results["provenance"]["facts"]["scenario"]["cluster"]["nodes"] == 2
    assert results["runs"][0]["energy_eur"] != results["more"][0]["runs"][0]["energy_eur"]
    page = (tmp_path / "a" / "report.html").read_text()
    assert "GPU demand: exact" in page
    assert "Due dates are modelled" in page


def test_one_rule_of_gpu_demand_can_be_asked_for_and_comes_back_from_the_scenario(tmp_path):
    assert gpusched(*traced(tmp_path), "--gpu-demand", "at-most").exit_code == 0
    results = json.loads((tmp_path / "a" / "results.json").read_text())
    assert (results["gpu_demand"], results["more"]) == ("at-most", [])
    assert load_scenario(tmp_path / "a" / "scenario.toml").compare.gpu_demands == ("at-most",)
    assert gpusched(*traced(tmp_path), "--gpu-demand", "both").exit_code == 2
    assert gpusched("compare", "-s", "tiny", "--gpu-demand", "exact").exit_code == 2


def test_a_trace_is_read_once_however_many_runs_there_are(tmp_path, monkeypatch):
    read = []

    def spied(scenario):
        read.append(scenario)
        return replayed(scenario)

    replayed = replay.replayed_trace
    monkeypatch.setattr(replay, "replayed_trace", spied)
    trace = tmp_path / "trace.csv"
    trace.write_text("submission_s,duration_s,gpus\n" + "".join(f"{60 * i},600,1\n" for i in range(4)))
    out = ("-w", 1, "--out", tmp_path / "a")
    succeeds("compare", "-p", "edf,fifo", "--trace", trace, "--nodes", 2, "--seeds", "0-2", *out)
    assert len(read) == 1


def test_settings_of_the_replay_reach_the_trace(tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text("when,duration_s,gpus\n" + "".join(f"{60 * i},600,1\n" for i in range(4)))
    arguments = ("simulate", "-p", "edf", "--trace", trace)
    assert gpusched(*arguments).exit_code == 2
    done = succeeds(*arguments, "--set", "trace.columns.submission_s=when", "--set", "trace.first=1")
    assert "3 jobs" in done.stdout


def test_values_that_are_set_may_be_words_numbers_and_lists(tmp_path):
    succeeds(
        "compare", "-p", "edf", "-s", "tiny", "--seeds", "0", "-w", 1, "--out", tmp_path / "a", "--set",
        "arrivals.kind=low", "--set", 'cluster.gpu_types=["T4", "V100"]', "--set", "prices.pue=2", "--set", "name=mine",
    )  # fmt: skip
    made = load_scenario(tmp_path / "a" / "scenario.toml")
    assert (made.name, made.arrivals.kind, made.cluster.gpu_types) == ("mine", "low", ("T4", "V100"))
    assert made.prices.pue == 2.0
