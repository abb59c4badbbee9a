"""What is given to operators is read by the programs that it is for."""

import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("prometheus_client", reason="needs the extra `serve`")
DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))
SYSTEMD, PROMTOOL = shutil.which("systemd-analyze"), shutil.which("promtool")
PROGRAM = "/opt/gpusched/bin/gpusched"


@pytest.mark.skipif(SYSTEMD is None, reason="needs systemd-analyze")
def test_systemd_takes_the_units(tmp_path):
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8").replace(PROGRAM, "/bin/true")
        (tmp_path / unit.name).write_text(text, encoding="utf-8")
    asked = [str(tmp_path / unit.name) for unit in UNITS]
    done = subprocess.run([str(SYSTEMD), "verify", *asked], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(PROMTOOL is None, reason="needs Prometheus")
def test_prometheus_takes_its_files():
    done = subprocess.run(
        [str(PROMTOOL), "check", "config", str(DEPLOY / "prometheus.yml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
