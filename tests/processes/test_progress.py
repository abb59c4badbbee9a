"""Reports of jobs over HTTP, and of a job that has nothing but the module."""

import json
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from gpusched_operations.live import progress, progress_reports
from gpusched_operations.live.progress_reports import MOST_BYTES, ProgressReports, ProgressServer
from waiting import eventually


@pytest.fixture
def job(monkeypatch, tmp_path):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_RESTART_COUNT", "2")
    monkeypatch.setenv("SLURM_SUBMIT_DIR", str(tmp_path))
    monkeypatch.delenv(progress.VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "_work_folders", {})
    return tmp_path


@pytest.mark.usefixtures("job")
def test_over_http_and_metrics(monkeypatch):
    reports = ProgressReports()
    server = ProgressServer(reports, {"7": 2}.get, metrics=lambda: b"gpusched_rounds 3\n")
    url = f"http://127.0.0.1:{server.port}"
    try:
        monkeypatch.setenv(progress.VARIABLE, url)
        assert progress.report_progress(3.5)
        newest = reports.newest("7", "", "root")
        assert newest is not None
        assert newest.epochs == 3.5
        with urllib.request.urlopen(f"{url}/metrics") as answer:  # noqa: S310
            assert answer.read() == b"gpusched_rounds 3\n"
        monkeypatch.setenv("SLURM_JOB_ID", "8")  # nobody's
        assert not progress.report_progress(1)
        for body in (b"{}", b"x" * (MOST_BYTES + 1), b'{"job": "7", "restarts": 0, "epochs": "a", "at_s": 0}'):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"{url}/progress", body)  # noqa: S310
            assert refused.value.code in (413, 422)
            refused.value.close()
    finally:
        server.close()
    assert reports.newest("8", "", "root") is None


@pytest.mark.usefixtures("job")
def test_connections_are_few_and_end(monkeypatch):
    """Even where every byte comes in time."""
    monkeypatch.setattr(progress_reports, "MOST_CONNECTIONS", 2)
    monkeypatch.setattr(progress_reports, "RECEIVE_S", 0.3)
    server = ProgressServer(ProgressReports(), {"7": 2}.get)
    monkeypatch.setenv(progress.VARIABLE, f"http://127.0.0.1:{server.port}")
    try:
        slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(2)]
        for each in slow:
            each.sendall(b"POST /progress HTTP/1.1\r\n")
        assert not progress.report_progress(1)
        for each in slow:
            eventually(lambda each=each: _is_closed(each), every_s=0.0)
            each.close()
        eventually(lambda: progress.report_progress(1), every_s=0.0)
    finally:
        server.close()


def _is_closed(connection: socket.socket) -> bool:
    connection.settimeout(0.05)
    try:
        connection.sendall(b"x")
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_the_module_needs_nothing_else(job):
    done = subprocess.run(
        [sys.executable, "-I", "-S", progress.__file__, "4"], cwd=job, check=True, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("", "")
    assert json.loads((job / progress.FOLDER / "7.json").read_text())["epochs"] == 4.0
    code = subprocess.run([sys.executable, progress.__file__, "x"], check=False, capture_output=True).returncode
    assert code == 2
