"""What is shown of systems: bands, what is kept from one command to the next, and the page."""

import json
import math
import re
from dataclasses import replace

from gpusched_experiments.report.chart import Chart, Panel, series
from gpusched_experiments.report.estimate import Estimate
from gpusched_reproductions.systems.checks import Check, Measured, Part
from gpusched_reproductions.systems.validation import (
    ALL,
    SYSTEMS,
    PartResult,
    parts_of,
    stored,
    summary_table,
    validate_systems,
)
from refusals import refused

CHECKS = (
    Check.around("latency [ms]", 43.0, 43.45, 1.0, "its log"),
    Check("share late", 0.5, high=0.1, kind="fitted"),
    Check("ratio", math.nan, low=1.0, kind="prediction"),
)


class Listener:
    """Counts what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.runs = 0

    def note(self, text: str) -> None:
        self.notes.append(text)

    def start(self, text: str, runs: int, finished: int) -> None:
        assert (text, finished <= runs) == ("systems", True)

    def finished(self) -> None:
        self.runs += 1


class Figures:
    """Samples a text."""

    def chart_files(self, chart: Chart, name: str = "figure") -> dict[str, bytes]:
        return {f"{name}.svg": chart.title.encode()}


def run(quick: bool) -> Measured:
    panel = Panel("", "", "", (series("a", [(1.0, Estimate(2.0, None, 1))]),))
    return Measured(CHECKS[:1] if quick else CHECKS, Chart("drawn", ((panel,),)))


PART = Part("pipeswitch", "made-up", "A part of a test", run)


def test_a_figure_is_met_if_it_lies_in_its_band():
    assert [check.met for check in CHECKS] == [True, False, False]
    assert Check("x", 1.0, 1.0, 1.0).met
    assert Check.within("x", 98.0, 100.0, 0.02).met
    assert not Check.within("x", 97.9, 100.0, 0.02).met
    with refused("check.low", 2.0):
        Check("x", 1.0, 2.0, 1.0)


def test_a_prediction_has_a_band_and_a_kind_is_one_of_four():
    assert [check.kind for check in CHECKS] == ["prediction", "fitted", "prediction"]
    assert Check("x", 1.0).kind == "own formula"
    with refused("check.kind", "guess", "prediction, fitted, input, own formula"):
        Check("x", 1.0, kind="guess")
    with refused("check.low and check.high"):
        Check("x", 1.0, published=1.0, kind="prediction")


def test_a_part_runs_once_and_again_if_its_settings_change(tmp_path):
    for quick, runs in ((False, 1), (False, 0), (True, 1), (False, 1)):
        listener = Listener()
        outcome = validate_systems([PART], tmp_path, quick=quick, workers=1, watcher=listener, drawing=Figures())
        assert listener.runs == runs
    assert outcome.table.texts()[0][:5] == ["pipeswitch", "made-up", "A part of a test", "1 of 2", "1"]
    assert outcome.table.notes == ("Predictions in their bands, all parts: 1 of 2.",)
    page = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert "| latency [ms] | prediction | 43.45 | 43 | 42.45 to 44.45 | yes | its log |" in page
    assert "| share late | fitted |  | 0.5 | ≤ 0.1 | **no** |  |" in page
    assert "| ratio | prediction |  | n/a | ≥ 1 | **no** |  |" in page
    assert "pipeswitch-made-up.svg" in page
    assert re.findall(r"^- (\w+): how fast memory that is not pinned", page, re.MULTILINE) == ["pipeswitch"]
    assert (tmp_path / "pipeswitch-made-up.svg").read_bytes() == b"drawn"


def test_parts_without_predictions_have_no_sum_of_them():
    assert summary_table([PartResult(PART, CHECKS[1:2], 1.0)]).notes == ()


def test_a_quick_run_has_no_bands_and_says_so(tmp_path):
    outcome = validate_systems([PART], tmp_path, quick=True, workers=1, watcher=Listener())
    assert outcome.table.texts()[0][3] == "no bands"
    assert "their figures have no bands" in outcome.table.notes[0]
    page = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert "| latency [ms] | prediction | 43.45 | 43 | its log |" in page
    assert "their figures have no bands" in page


def test_what_is_stored_reads_back_and_says_how_it_was_made(tmp_path):
    validate_systems([PART], tmp_path, quick=False, workers=1, watcher=Listener())
    again = stored(tmp_path, PART, quick=False)
    assert [check.met for check in again.checks] == [True, False, False]
    assert again.checks[:2] == CHECKS[:2]
    assert math.isnan(again.checks[2].ours)
    document = json.loads((tmp_path / "pipeswitch-made-up.json").read_text(encoding="utf-8"))
    assert {"command", "packages", "facts"} <= document["provenance"].keys()
    (tmp_path / "pipeswitch-made-up.json").write_text("{", encoding="utf-8")
    assert stored(tmp_path, PART, quick=False) is None


def test_a_part_whose_data_is_not_there_is_left_out_and_said_to_be(tmp_path):
    listener = Listener()
    validate_systems([replace(PART, needs=tmp_path / "none")], tmp_path, quick=True, workers=1, watcher=listener)
    assert listener.runs == 0
    assert "without pipeswitch-made-up" in listener.notes[0]


def test_every_part_has_a_name_of_its_own_and_a_system_that_is_known():
    names = [(part.system, part.name) for part in parts_of(ALL)]
    assert len(set(names)) == len(names)
    assert {system for system, _ in names} <= set(SYSTEMS)
    with refused("system", "slurm", "one of pipeswitch"):
        parts_of("slurm")
