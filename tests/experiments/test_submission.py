"""A submitted file from its path to its rank: checked, run, ranked against recorded runs, and none of it half done."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent_folders import single_node_agent
from entries import FIRST_FIT, InThread, deciding, python_submission
from gpusched_baselines import make_policy
from gpusched_env.simulator import simulate
from gpusched_env.workload import Track, load_scenario, make_instance
from gpusched_experiments.cli import submitting
from gpusched_experiments.cli.app import app
from gpusched_experiments.html_report import folder_report
from gpusched_experiments.leaderboard import against, misfits, submission, submission_runs
from gpusched_experiments.leaderboard import submission_runs as checking
from gpusched_experiments.leaderboard.against import check_same_world, read_recorded
from gpusched_experiments.leaderboard.submission import SubmissionPlan, check_names, submit
from gpusched_experiments.leaderboard.submission_runs import Checked, check_submission
from gpusched_experiments.sandbox.process import policy_seed
from gpusched_experiments.sandbox.submitted import USUAL, SandboxLimits, SubmissionError
from refusals import refused

SOURCE = "from gpusched_baselines import make_policy\ndef make():\n    return make_policy('sts')\n"
FORGETS = "import itertools\nCOUNT = itertools.count()\n"


def tiny(name, jobs):
    scenario = load_scenario("tiny").replace({"name": name, "jobs.count": jobs})
    return Track(name=name, scenario=scenario, hard="nothing", weights="none")


TRACKS = (tiny("three", 3), tiny("five", 5))


class Watching:
    def __init__(self, stop_after=10**9):
        self.notes, self.ran, self.stop_after = [], 0, stop_after

    def note(self, text):
        self.notes.append(text)

    def begin(self, experiment, runs, finished):
        self.begun = (runs, finished)

    def finished(self):
        self.ran += 1
        if self.ran == self.stop_after:
            raise KeyboardInterrupt


@pytest.fixture
def in_threads(monkeypatch):
    """Let entries decide in threads, which start at once."""
    monkeypatch.setattr(checking, "Process", InThread)
    monkeypatch.setattr(submission_runs, "Process", InThread)


def submitted(folder, submission, recorded=None, plan=None, watching=None, limits=USUAL):
    plan = plan or SubmissionPlan(TRACKS, (3, 4), policies=("edf", "sts"))
    watching, recorded = watching or Watching(), recorded or read_recorded("none")
    return submit(
        submission, Checked((), {}), plan, recorded, limits, folder, workers=1, watcher=watching, drawing=None
    )  # fmt: skip


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.usefixtures("in_threads")
def test_an_entry_has_the_costs_and_the_rank_that_the_policy_in_it_has(tmp_path):
    outcome = submitted(tmp_path / "out", python_submission(SOURCE, "make"))
    for row in rows(tmp_path / "out/cells.csv"):
        track = next(track for track in TRACKS if track.name == row["track"])
        here = simulate(make_instance(track.scenario, int(row["seed"])), make_policy("sts"), seed=int(row["seed"]))
        assert float(row["total_eur"]) == here.energy_eur + here.tardiness_eur
    by_policy = {row["policy"]: row for row in outcome.table.as_dicts()}
    assert set(by_policy) == {"mine", "edf", "sts"}
    for column in ("first", "mean_rank", "worst_ratio"):
        assert by_policy["mine"][column] == by_policy["sts"][column]
    assert by_policy["mine"]["mean_ratio"].value == by_policy["sts"]["mean_ratio"].value
    facts = json.loads((tmp_path / "out/record.json").read_text())["provenance"]["facts"]
    assert facts["entry"]["sha256"] == python_submission(SOURCE, "make").sha256
    assert (facts["finished"], facts["tracks"], facts["seeds"]) == (True, ["three", "five"], [3, 4])


DRAWS = """for job in rng.permutation(view.waiting):
    for c in rng.permutation(len(view.configurations)):
        if view.tau[job, c] < float('inf') and view.place(int(job), int(c)): break"""


@pytest.mark.usefixtures("in_threads")
def test_an_entry_draws_from_a_generator_that_does_not_tell_the_seed_of_its_workload(tmp_path):
    here: dict = {}
    exec(deciding(DRAWS), here)  # noqa: S102 - it stands above
    submitted(
        tmp_path / "out", python_submission(deciding(DRAWS)), plan=SubmissionPlan(TRACKS[1:], (3,), policies=("edf",))
    )
    result, same_seed = (
        simulate(make_instance(TRACKS[1].scenario, 3), here["POLICY"], seed=seed) for seed in (policy_seed(3), 3)
    )
    (row,) = rows(tmp_path / "out/cells.csv")
    assert float(row["total_eur"]) == result.energy_eur + result.tardiness_eur
    assert float(row["total_eur"]) != same_seed.energy_eur + same_seed.tardiness_eur


@pytest.mark.usefixtures("in_threads")
def test_a_stopped_submission_goes_on_and_another_file_starts_again(tmp_path):
    submission, stopped = python_submission(FIRST_FIT), Watching(stop_after=2)
    with pytest.raises(KeyboardInterrupt):
        submitted(tmp_path / "out", submission, watching=stopped)
    again = Watching()
    submitted(tmp_path / "out", submission, watching=again)
    assert again.begun[0] == 4
    assert again.begun[1] + again.ran == 4
    assert again.begun[1] >= 2
    other = Watching()
    submitted(tmp_path / "out", python_submission(FIRST_FIT + "# changed"), watching=other)
    assert other.begun == (4, 0)


@pytest.mark.usefixtures("in_threads")
def test_recorded_runs_are_not_run_again_and_kept_entries_are_met_too(tmp_path):
    first = submitted(tmp_path / "out", python_submission(FIRST_FIT))
    board = tmp_path / "board"
    kept = board / "entries/fits"
    kept.mkdir(parents=True)
    cells = (first.folder / "cells.csv").read_text().replace(",mine,", ",fits,")
    (kept / "cells.csv").write_text(cells)
    (board / "cells.csv").write_text((first.folder / "others.csv").read_text())
    recorded = read_recorded(str(board))
    assert recorded.policies("three", (3, 4)) == ("edf", "sts", "fits")
    watching, plan = Watching(), SubmissionPlan(TRACKS, (3, 4))
    second = submitted(tmp_path / "again", python_submission(SOURCE, "make"), recorded, plan, watching)
    assert watching.notes == []
    assert {row["policy"] for row in second.table.as_dicts()} == {"edf", "sts", "fits", "mine"}
    check_names(python_submission(FIRST_FIT), plan, recorded, "mine")
    with refused("--name", "fits", "none of the recorded policies has: edf, fits, sts"):
        check_names(replace(python_submission(FIRST_FIT), name="fits"), plan, recorded)
    with refused("--reference", "nobody", "one of the policies: edf, fits, mine, sts"):
        check_names(python_submission(FIRST_FIT), plan, recorded, "nobody")


def write_board(folder, *runs):
    """Write recorded runs: track, row, policy, seed and cost of each."""
    folder.mkdir(parents=True)
    lines = ("x,{},{},{},{},{}\n".format(*run) for run in runs)
    (folder / "cells.csv").write_text("key,track,row,policy,seed,total_eur\n" + "".join(lines))
    return folder


def test_a_kept_entry_can_add_its_own_runs_only(tmp_path):
    board = write_board(tmp_path / "board", ("three", "run", "edf", 3, 9.0), ("three", "bound", "edf", 3, 1.0))
    others = (("three", "run", "edf", 3, 0.0), ("three", "run", "edf", 4, 0.0), ("three", "bound", "mine", 3, 0.0))
    write_board(board / "entries/mine", *others, ("three", "run", "mine", 3, 7.0))
    write_board(board / "entries/edf", ("three", "run", "edf", 3, 0.0), ("three", "run", "edf", 4, 0.0))
    values = read_recorded(str(board)).values
    assert {place[1:]: of["total_eur"] for place, of in values.items()} == {
        ("run", "edf", 3): 9.0, ("bound", "edf", 3): 1.0, ("run", "mine", 3): 7.0,
    }  # fmt: skip


@pytest.mark.usefixtures("in_threads")
def test_all_are_ranked_on_the_same_seeds_and_runs_that_are_missing_are_run(tmp_path):
    """Only the first seed of `sts` and of the kept entry is recorded; the entry cannot be run again here."""
    submission = python_submission(FIRST_FIT)
    first = submitted(tmp_path / "out", submission)
    lines = (first.folder / "others.csv").read_text().splitlines(keepends=True)
    board = tmp_path / "board"
    (board / "entries/fits").mkdir(parents=True)
    (board / "cells.csv").write_text("".join(line for line in lines if ",run,sts,4" not in line))
    lines = (first.folder / "cells.csv").read_text().replace(",mine,", ",fits,").splitlines(keepends=True)
    (board / "entries/fits/cells.csv").write_text("".join(line for line in lines if ",fits,4" not in line))
    watching = Watching()
    second = submitted(
        tmp_path / "again", submission, read_recorded(str(board)), SubmissionPlan(TRACKS, (3, 4)), watching
    )
    assert watching.notes[0].startswith("fits is left out of five: not all of these seeds are recorded")
    ran = [(row["row"], row["policy"], row["seed"]) for row in rows(tmp_path / "again/others.csv")]
    assert ran == [("run", "sts", "4")] * 2
    for name in ("table.csv", "summary.csv"):
        assert (second.folder / name).read_text() == (first.folder / name).read_text()


def test_an_agent_that_cannot_decide_on_a_track_is_not_met_there(tmp_path):
    agent = single_node_agent(tmp_path / "agent")
    apps = ["resnet50-imagenet-global256", "vgg16-imagenet-global256"]
    values = {"cluster.gpu_types": ["A100", "T4"], "cluster.nodes": 4, "jobs.node_counts": [1, 2]}
    many = TRACKS[0].scenario.replace(values | {"name": "many", "jobs.applications": apps})
    tracks = (TRACKS[1], Track(name="many", scenario=many, hard="nothing", weights="none"))
    plan, nothing = SubmissionPlan(tracks, (3,), policies=("edf", agent)), read_recorded("none")
    left_out = submission._left_out(plan, nothing)
    assert left_out == {("many", agent): "it was not made for such workloads"}
    met = [cell.policy for cell in submission._others(plan, nothing, left_out) if dict(cell.labels)["row"] == "run"]
    assert met == ["edf", agent, "edf"]


@pytest.mark.usefixtures("in_threads")
def test_an_entry_decides_on_all_scenarios_of_a_mixture_and_is_told_of_the_right_one(tmp_path):
    """The second has other GPU types; an agent that fits the first alone is left out of the track."""
    apps = ["resnet50-imagenet-global256", "vgg16-imagenet-global256"]
    values = {"cluster.gpu_types": ["A100", "T4"], "cluster.nodes": 4, "jobs.node_counts": [1, 2]}
    both = load_scenario("tiny").replace(
        {"name": "both", "jobs.count": 3, "mixture": [{}, {"settings": values | {"jobs.applications": apps}}]}
    )
    track = Track(name="both", scenario=both, hard="nothing", weights="none")
    entry = python_submission(SOURCE, "make")
    assert check_submission(entry, USUAL, [track]).misfits == {}
    submitted(tmp_path / "out", entry, plan=SubmissionPlan([track], (0, 1), policies=("edf",)))
    costs = {int(row["seed"]): float(row["total_eur"]) for row in rows(tmp_path / "out/cells.csv")
             if row["policy"] == entry.name}  # fmt: skip
    assert costs == {
        seed: pytest.approx(simulate(make_instance(both, seed), make_policy("sts")).total_eur) for seed in (0, 1)
    }
    agent = single_node_agent(tmp_path / "agent")
    assert misfits([track], [agent]) == {("both", agent)}


def test_what_was_recorded_must_be_of_the_same_world(tmp_path):
    track, seed, board = TRACKS[0], 3, tmp_path / "board"
    board.mkdir()
    cost = simulate(make_instance(track.scenario, seed), make_policy("edf"), seed=seed)
    total = cost.energy_eur + cost.tardiness_eur
    line = "key,track,row,policy,seed,total_eur\nx,three,run,edf,3,{}\n"
    (board / "cells.csv").write_text(line.format(total))
    assert "on a seed of 1 tracks" in check_same_world(read_recorded(str(board)), TRACKS)
    (board / "cells.csv").write_text(line.format(1.001 * total))
    with refused("--against", allowed="runs of this version"):
        check_same_world(read_recorded(str(board)), TRACKS)
    (board / "cells.csv").write_text("nothing\n")
    with refused("--against", allowed="a file that gpusched leaderboard wrote"):
        read_recorded(str(board))


def test_another_quick_policy_says_whether_it_is_the_same_world_and_without_one_nothing_does(tmp_path):
    here = simulate(make_instance(TRACKS[0].scenario, 3), make_policy("greedy"), seed=3)
    total = here.energy_eur + here.tardiness_eur
    assert check_same_world(read_recorded("none"), TRACKS) == ""
    same = read_recorded(str(write_board(tmp_path / "same", ("three", "run", "greedy", 3, total))))
    assert "greedy costs here what it did there" in check_same_world(same, TRACKS)
    other = read_recorded(str(write_board(tmp_path / "other", ("three", "run", "greedy", 3, 1.001 * total))))
    with refused("--against", allowed="greedy costs"):
        check_same_world(other, TRACKS)
    none = read_recorded(str(write_board(tmp_path / "none", ("three", "bound", "edf", 3, 1.0))))
    with refused("--against", allowed="of three it has no run of edf"):
        check_same_world(none, TRACKS)


def test_the_published_standings_are_those_of_this_checkout():
    assert read_recorded(None).folder == against.PUBLISHED
    assert "sts-x" in read_recorded(None).policies("busy", (30000,))


PLACE_ALL = """for job in view.waiting:
    for c in ([config] if view.tau[job, config] < float('inf') else []) + list(range(len(view.configurations))):
        if view.tau[job, c] < float('inf') and view.place(int(job), c): break"""


@pytest.mark.usefixtures("in_threads")
def test_a_policy_that_is_not_the_same_when_it_is_run_again_is_found():
    with pytest.raises(SubmissionError, match="decides otherwise when it is run again"):
        check_submission(
            python_submission(deciding(f"config = next(COUNT) % 7 and 1\n{PLACE_ALL}", FORGETS)), USUAL, TRACKS
        )
    assert check_submission(python_submission(FIRST_FIT), USUAL, TRACKS).misfits == {}


@pytest.mark.usefixtures("in_threads")
def test_what_an_entry_keeps_of_other_runs_is_found_at_the_end(tmp_path):
    """The check sees but small runs; this one begins to cheat when it has seen many rounds."""
    before = f"{FORGETS}SEEN = 40\n"
    submission = python_submission(deciding(f"config = 0 if next(COUNT) < SEEN else 2\n{PLACE_ALL}", before))
    (tmp_path / "out").mkdir()
    for name in ("report.html", "summary.csv", "record.json", "figure.svg", "mine.txt"):
        (tmp_path / "out" / name).write_text("of a former command")
    with pytest.raises(SubmissionError, match="keeps something of other runs"):
        submitted(tmp_path / "out", submission, plan=SubmissionPlan(TRACKS[1:], tuple(range(9)), policies=("edf",)))
    assert {each.name for each in (tmp_path / "out").iterdir()} == {"mine.txt", "others.csv"}


@pytest.mark.usefixtures("in_threads")
def test_a_difference_that_the_audit_finds_ends_the_check(monkeypatch):
    monkeypatch.setattr(checking, "audit", lambda _: ["jobs.csv: job 0: energy"])
    with pytest.raises(SubmissionError, match="the audit of a small run found a difference: jobs"):
        check_submission(python_submission(FIRST_FIT), USUAL, TRACKS)


@pytest.mark.usefixtures("in_threads")
def test_an_entry_that_decides_nowhere_is_refused():
    check = "    def check(self, instance):\n        raise ValueError('nowhere')\nPOLICY"
    with refused("--tracks", "three,five", "one that mine can decide on"):
        check_submission(python_submission(FIRST_FIT.replace("POLICY", check)), USUAL, TRACKS)


@pytest.mark.usefixtures("in_threads")
def test_all_runs_have_their_time(tmp_path):
    with pytest.raises(SubmissionError, match="all runs took longer than 1e-09 s"):
        submitted(tmp_path / "out", python_submission(FIRST_FIT), limits=SandboxLimits(all_s=1e-9))


def track_file(folder):
    text = 'base = "tiny"\n[jobs]\ncount = 4\n[track]\nhard = "nothing"\nweights = "none"\ntest = "7-11"\n'
    (folder / "four.toml").write_text(text, encoding="utf-8")
    return str(folder / "four.toml")


@pytest.mark.slow
def test_the_command_checks_runs_and_ranks_a_file(tmp_path, monkeypatch):
    """In locked processes: nothing stands in for them."""
    monkeypatch.setattr(submitting, "drawing_or_note", lambda _: None)
    (tmp_path / "first-fit.py").write_text(FIRST_FIT)
    out = tmp_path / "out"
    options = ["--tracks", track_file(tmp_path), "-p", "edf,sts", "--against", "none", "-w", "1", "-o", str(out)]
    done = CliRunner().invoke(app, ["leaderboard", "--submit", f"{tmp_path}/first-fit.py:FirstFit", *options])
    assert done.exit_code == 0, done.output
    assert re.search(r"first-fit: place \d of 3, \d\.\d+ times the best on 1 track, first on [01]\n$", done.stdout)
    assert "first-fit passed the check" in done.stderr.replace("\n", " ")
    assert {"cells.csv", "others.csv", "record.json", "report.html", "table.md"} <= {
        each.name for each in out.iterdir()
    }
    data = folder_report(out)
    assert (data.marked, len(data.drawings)) == ("first-fit", 1)


@pytest.mark.slow
def test_a_policy_that_fails_is_one_line_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("fails.py").write_text(deciding("import os; os._exit(7)"))
    done = CliRunner().invoke(app, ["leaderboard", "--submit", "fails.py", "--quick", "--tracks", track_file(tmp_path)])
    assert done.exit_code == 1, done.output
    assert done.stderr == "error: fails.py: its process ended by itself (exit code 7)\n"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["fails.py", "four.toml"]


def test_a_quick_submission_has_a_folder_of_its_own(tmp_path, monkeypatch):
    def says_where(*values, **_):
        raise SubmissionError(str(next(value for value in values if isinstance(value, Path))))

    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(FIRST_FIT)
    monkeypatch.setattr(submitting, "check_submission", lambda *_: Checked((), {}))
    monkeypatch.setattr(submitting, "submit", says_where)
    options = ["leaderboard", "--submit", "mine.py", "--against", "none", "--tracks", track_file(tmp_path)]
    ran = [CliRunner().invoke(app, [*options, *more]).stderr for more in ([], ["--quick"], ["--quick", "-o", "here"])]
    assert [said.splitlines()[-1] for said in ran] == [
        f"error: {folder}" for folder in ("results/entries/mine", "results/entries-quick/mine", "here")
    ]


def test_bad_options_are_one_line_before_anything_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(FIRST_FIT)
    for options, words in (
        (["--submit", "nothing.py"], "an agent's folder"),
        (["--submit", "mine.py", "--name", "sts"], "a name that no policy of the project has"),
        (["--submit", "mine.py", "--memory-gib", "0.1"], "from 2 to 1,024 GiB"),
        (["--submit", "mine.py", "--against", "nowhere"], "--against"),
        (["--submit", "mine.py", "--against", "none", "-r", "nobody"], "--reference = 'nobody'"),
        (["--name", "mine"], "--name = 'mine'; allowed: nothing without --submit"),
        (["--against", "none"], "--against = 'none'; allowed: nothing without --submit"),
        (["--run-s", "60"], "--run-s = 60.0; allowed: nothing without --submit"),
    ):
        done = CliRunner().invoke(app, ["leaderboard", *options])
        assert done.exit_code == 2, done.output
        assert done.stderr.startswith("error: ")
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
    assert [each.name for each in tmp_path.iterdir()] == ["mine.py"]
