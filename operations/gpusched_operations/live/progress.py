"""A job says how far it is: `report_progress(12)` after 12 epochs, and at its start with the epochs of its checkpoint.

This module needs Python's standard library alone: copy it into a container if the package is not there.

`$GPUSCHED_PROGRESS` says where reports go: `http://host:port` of the driver, or a folder that the driver's machine
sees, too. By default it is the folder `.gpusched-progress` in the working folder of the job, which a cluster shares
anyway: where it was submitted, or what `sbatch --chdir` said. There a report is one small file for each job, written
under a temporary name and renamed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module
from typing import Any, NamedTuple

VARIABLE = "GPUSCHED_PROGRESS"
FOLDER = ".gpusched-progress"
HTTP_S = 5.0
ASK_S = 5.0
_work_folders: dict[str, str] = {}


class JobProgress(NamedTuple):
    """What a job said last.

    Attributes:
        epochs: Epochs done, of all its runs together.
        at_s: When it said so [s], Unix time.
    """

    epochs: float
    at_s: float


class JobHistory(NamedTuple):
    """What a driver saw of a job, as Unix times [s]; None: nothing.

    Attributes:
        submit_s: When it was submitted: Slurm's own time of it moves whenever it is put back into the queue.
        first_start_s: When it first started.
        since_s: Since when it has held what it holds.
        ready_s: From when on it makes progress with it.
        last_nodes: Nodes where it was last ready before what it holds now.
        epochs: Epochs that the model expects of its runs before, if it never reports.
    """

    submit_s: float | None = None
    first_start_s: float | None = None
    since_s: float | None = None
    ready_s: float | None = None
    last_nodes: tuple[str, ...] = ()
    epochs: float = 0.0


def report_progress(epochs: float) -> bool:
    """Tell the driver how many epochs this job has done; a fraction may be told, too.

    A training goes on whether it can be told or not: nothing is raised.

    Args:
        epochs: Epochs done in all runs of this job together, ≥ 0.

    Returns:
        Whether it was told; False outside a job of Slurm.
    """
    job = os.environ.get("SLURM_JOB_ID")
    if not job:
        return False
    report = {
        "job": job,
        "restarts": int(os.environ.get("SLURM_RESTART_COUNT") or 0),
        "epochs": float(epochs),
        "at_s": time.time(),
    }
    body = json.dumps(report).encode()
    try:
        place = os.environ.get(VARIABLE) or os.path.join(_work_folder(job), FOLDER)  # noqa: PTH118 - pathlib takes long to import
        if place.startswith(("http://", "https://")):
            _post(place, body)
        else:
            _write(place, job, body)
    except (OSError, ValueError):
        return False
    return True


def _work_folder(job: str) -> str:
    """Return the working folder of the job, where the driver looks: Slurm is asked where this process is elsewhere."""
    submitted = os.environ.get("SLURM_SUBMIT_DIR") or "."
    try:
        here = os.path.realpath(".")
    except OSError:  # it was deleted
        here = ""
    if job in _work_folders or os.path.realpath(submitted) == here:
        return _work_folders.get(job, submitted)
    import subprocess  # noqa: PLC0415 - it takes long to import

    words = ["scontrol", "show", "job", job]
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=ASK_S, check=False)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return submitted  # as in a container
    for line in done.stdout.splitlines():
        name, _, value = line.strip().partition("=")
        if name == "WorkDir" and value:
            _work_folders[job] = value
    return _work_folders.get(job, submitted)


def _post(url: str, body: bytes) -> None:
    import http.client  # noqa: PLC0415 - it takes long to import
    import urllib.request  # noqa: PLC0415

    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url.rstrip('/')}/progress", body, headers)  # noqa: S310 - http or https
    try:
        with urllib.request.urlopen(request, timeout=HTTP_S) as response:  # noqa: S310
            response.read()
    except http.client.HTTPException as error:
        raise OSError(str(error)) from error


def _write(folder: str, job: str, body: bytes) -> None:
    os.makedirs(folder, exist_ok=True)  # noqa: PTH103
    draft = f"{folder}/.{job}.{os.getpid()}.tmp"
    with open(draft, "wb") as file:  # noqa: PTH123
        file.write(body)
    os.replace(draft, f"{folder}/{job}.json")  # noqa: PTH105


def lightning_callback(first_epoch: float = 0.0) -> Any:
    """Return a callback for PyTorch Lightning's Trainer: `Trainer(callbacks=[lightning_callback()])`.

    Args:
        first_epoch: Epochs that were done before what this Trainer counts.
    """
    try:
        base = import_module("lightning.pytorch").Callback
    except ImportError:
        base = import_module("pytorch_lightning").Callback

    class ReportToScheduler(base):  # type: ignore[misc, valid-type]
        def on_train_start(self, trainer: Any, _module: Any) -> None:
            if trainer.is_global_zero:
                report_progress(first_epoch + trainer.current_epoch)

        def on_train_epoch_end(self, trainer: Any, _module: Any) -> None:
            if trainer.is_global_zero:
                report_progress(first_epoch + trainer.current_epoch + 1)

    return ReportToScheduler()


def trainer_callback(first_epoch: float = 0.0) -> Any:
    """Return a callback for Hugging Face's Trainer: `Trainer(..., callbacks=[trainer_callback()])`.

    Args:
        first_epoch: Epochs that were done before what this Trainer counts.
    """
    base = import_module("transformers").TrainerCallback

    class ReportToScheduler(base):  # type: ignore[misc, valid-type]
        def on_train_begin(self, _arguments: Any, state: Any, _control: Any, **_: Any) -> None:
            if state.is_world_process_zero:
                report_progress(first_epoch + (state.epoch or 0.0))

        def on_log(self, _arguments: Any, state: Any, _control: Any, **_: Any) -> None:
            if state.is_world_process_zero:
                report_progress(first_epoch + (state.epoch or 0.0))

    return ReportToScheduler()


def main(text: str) -> int:
    """Report the epochs of a text, as `gpusched progress 12` does; return the exit code: 2 if it is no number."""
    try:
        epochs = float(text)
    except ValueError:
        sys.stderr.write(f"error: EPOCHS = {text!r}; allowed: a number of epochs\n")
        return 2
    report_progress(epochs)
    return 0


if __name__ == "__main__":
    sys.exit(main("".join(sys.argv[1:2])))
