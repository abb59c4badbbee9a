"""Reports of jobs: as they are written, sent, read, and believed."""

from __future__ import annotations

import http.client
import json
import math
import os
import sys
import types
import urllib.request
from pathlib import Path

import pytest

from gpusched_env.errors import InputError
from gpusched_operations.live import progress
from gpusched_operations.live.progress_reports import ProgressReports, Report


@pytest.fixture
def job(monkeypatch, tmp_path):
    """Be in a job."""
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_RESTART_COUNT", "2")
    monkeypatch.setenv("SLURM_SUBMIT_DIR", str(tmp_path))
    monkeypatch.delenv(progress.VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "_work_folders", {})
    return tmp_path


def test_a_report_is_one_whole_file(job):
    assert progress.report_progress(12)
    reports = ProgressReports()
    report = reports.newest("7", str(job), "root")
    assert report is not None
    assert (report.job, report.restarts, report.epochs) == ("7", 2, 12.0)
    assert [path.name for path in (job / progress.FOLDER).iterdir()] == ["7.json"]
    assert reports.newest("8", str(job), "root") is None


def test_with_chdir_it_is_told_where_the_driver_looks(job, monkeypatch, tmp_path):
    """`squeue` tells the driver the same folder as `scontrol` the job; without Slurm's command it is another one."""
    there, asked = tmp_path / "with spaces", tmp_path / "asked"
    (tmp_path / "bin").mkdir()
    there.mkdir()
    monkeypatch.chdir(there)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert progress.report_progress(1)
    assert ProgressReports().newest("7", str(there), "root") is None
    assert ProgressReports().newest("7", str(job), "root") is not None
    command = tmp_path / "bin/scontrol"
    command.write_text(f"#!/bin/sh\necho \"$@\" >> {asked}\necho '   Command=x WorkDir=y'\necho '   WorkDir={there}'\n")
    command.chmod(0o755)
    for epochs in (2, 3):
        assert progress.report_progress(epochs)
        newest = ProgressReports().newest("7", str(there), "root")
        assert newest is not None
        assert newest.epochs == epochs
    assert asked.read_text() == "show job 7\n"


@pytest.mark.usefixtures("job")
def test_outside_a_job_and_where_it_cannot_be_told_nothing_is_raised(monkeypatch):
    monkeypatch.setenv(progress.VARIABLE, "http://127.0.0.1:9")
    assert not progress.report_progress(1)
    monkeypatch.setenv(progress.VARIABLE, "/proc/none")
    assert not progress.report_progress(1)
    monkeypatch.delenv("SLURM_JOB_ID")
    assert not progress.report_progress(1)


def body(job: str = "7", restarts: int = 2, epochs: object = 1, at_s: object = 0) -> bytes:
    return json.dumps({"job": job, "restarts": restarts, "epochs": epochs, "at_s": at_s}).encode()


def test_the_newest_report_counts_and_only_of_the_job_itself(job, tmp_path):
    progress.report_progress(5)
    (tmp_path / "all").mkdir()
    (tmp_path / "all/7.json").write_bytes(body(restarts=3))
    newest = ProgressReports(tmp_path / "all").newest("7", str(job), "root")
    assert newest is not None
    assert newest.restarts == 3
    path = job / progress.FOLDER / "9.json"
    path.write_bytes((job / progress.FOLDER / "7.json").read_bytes())
    assert ProgressReports().newest("9", str(job), "root") is None  # it is about another job


def test_over_http_only_the_present_run_is_heard_and_a_file_counts_before_it(job):
    reports, restarts = ProgressReports(), {"7": 2}
    reports.restarts_of = restarts.get
    for wrong in (body(restarts=999_999), body(restarts=1), body(job="8")):
        with pytest.raises(InputError):
            reports.post(wrong)
    reports.post(body(restarts=3, epochs=9))  # said before the driver saw that it runs again
    assert reports.newest("7", "", "root") is None
    reports.post(body(epochs=1))
    assert reports.newest("7", "", "root") == Report("7", 2, 1.0, 0.0)
    progress.report_progress(5)
    reports.post(body(epochs=8, at_s=2e9))
    newest = reports.newest("7", str(job), "root")
    assert newest is not None
    assert newest.epochs == 5.0
    restarts["7"] = 3
    assert reports.newest("7", "", "root") == Report("7", 3, 9.0, 0.0)
    reports.forget("7")
    assert reports.newest("7", "", "root") is None


@pytest.mark.parametrize("at_s", [math.inf, -math.inf, math.nan, -1.0])
def test_a_time_that_is_none_is_refused(job, at_s):
    """What a state could not be saved with."""
    (job / progress.FOLDER).mkdir()
    (job / progress.FOLDER / "7.json").write_bytes(body(at_s=at_s))
    with pytest.raises(InputError):
        ProgressReports().newest("7", str(job), "root")
    reports = ProgressReports()
    reports.restarts_of = {"7": 2}.get
    with pytest.raises(InputError):
        reports.post(body(at_s=at_s))


def test_a_clock_that_is_ahead_does_not_count(job):
    """The report is of when it was first read, and stays so."""
    now = [1000.0]
    reports = ProgressReports(clock=lambda: now[0])
    reports.restarts_of = {"7": 2}.get
    (job / progress.FOLDER).mkdir()
    path = job / progress.FOLDER / "7.json"
    path.write_bytes(body(at_s=1000.0 + 30 * 86400.0))
    assert reports.newest("7", str(job), "root") == Report("7", 2, 1.0, 1000.0)
    now[0] = 1100.0
    assert reports.newest("7", str(job), "root") == Report("7", 2, 1.0, 1000.0)
    path.write_bytes(body(at_s=1150.0))  # a little ahead: as clocks are
    assert reports.newest("7", str(job), "root") == Report("7", 2, 1.0, 1150.0)
    reports.post(body(at_s=1e300))
    assert reports.newest("7", "", "root") == Report("7", 2, 1.0, 1100.0)


def test_foreign_files_links_and_endless_ones_are_refused(job):
    folder = job / progress.FOLDER
    folder.mkdir()
    (folder / "1.json").symlink_to("/etc/hostname")
    os.mkfifo(folder / "2.json")
    (folder / "3.json").write_text("x" * 10_000)
    (folder / "4.json").write_text("[" * 3000)
    names = ["1", "2", "3", "4"]
    if os.geteuid() == 0:
        (folder / "5.json").write_text("{}")
        os.chown(folder / "5.json", 12345, 12345)
        names.append("5")
    for name in names:
        with pytest.raises(InputError):
            ProgressReports().newest(name, str(job), "root")


@pytest.mark.parametrize(
    ("epochs", "former", "believed"),
    [
        (3.0, 2.0, True),
        (3.0, None, True),
        (2.0, 2.0, True),
        (1.0, 2.0, False),
        (11.0, None, False),
        (-1.0, None, False),
    ],
)
def test_absurd_reports_are_refused(epochs, former, believed):
    assert (Report("7", 0, epochs, 0.0).why_not(former, 10.0) == "") == believed


def test_no_number_is_refused():
    for epochs in (math.nan, math.inf, "a"):
        with pytest.raises(InputError):
            Report.of(body(epochs=epochs))
    assert Report("7", 0, math.inf, 0.0).why_not(None, 10.0)


class Base:
    """Stands in for the callbacks of both libraries."""


def test_the_callback_of_lightning(job, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightning", types.ModuleType("lightning"))
    module = types.ModuleType("lightning.pytorch")
    module.Callback = Base  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "lightning.pytorch", module)
    callback, trainer = progress.lightning_callback(10.0), types.SimpleNamespace(is_global_zero=True, current_epoch=0)
    callback.on_train_start(trainer, None)
    assert _said(job) == 10.0
    trainer.current_epoch = 4
    callback.on_train_epoch_end(trainer, None)
    assert _said(job) == 15.0
    trainer.is_global_zero, trainer.current_epoch = False, 9
    callback.on_train_epoch_end(trainer, None)
    assert _said(job) == 15.0


def test_the_callback_of_transformers(job, monkeypatch):
    module = types.ModuleType("transformers")
    module.TrainerCallback = Base  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers", module)
    callback, state = progress.trainer_callback(), types.SimpleNamespace(is_world_process_zero=True, epoch=None)
    callback.on_train_begin(None, state, None)
    assert _said(job) == 0.0
    state.epoch = 1.25
    callback.on_log(None, state, None, logs={})
    assert _said(job) == 1.25


def _said(folder: Path) -> float:
    return float(json.loads((folder / progress.FOLDER / "7.json").read_text())["epochs"])


def test_a_training_goes_on_where_what_takes_reports_speaks_no_http(monkeypatch: pytest.MonkeyPatch):
    def no_http(*_: object, **__: object) -> None:
        raise http.client.BadStatusLine("hello")

    monkeypatch.setattr(urllib.request, "urlopen", no_http)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv(progress.VARIABLE, "http://there")
    assert not progress.report_progress(1)
