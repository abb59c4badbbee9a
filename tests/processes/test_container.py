"""The command of the container serves, and its health check sees that."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "Containerfile").read_text(encoding="utf-8")


def words(instruction: str) -> list[str]:
    return json.loads(re.findall(rf"^{instruction}.*?(\[.*\])$", TEXT, re.MULTILINE)[0])


def test_its_command_serves_and_its_health_check_sees_that():
    pytest.importorskip("uvicorn", reason="needs the extra `serve`")
    name, *options = words("ENTRYPOINT")
    port = options[options.index("--port") + 1]
    assert name == "gpusched"
    assert f"EXPOSE {port}\n" in TEXT
    here = ["--port", "0", "--workers", "1", "--policies", "edf"]
    process = subprocess.Popen(
        [sys.executable, "-m", "gpusched_experiments", *options, *here], stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        found = re.search(r"http://0\.0\.0\.0:(\d+)", process.stdout.readline())
        assert found
        python, *asked = [part.replace(f":{port}/", f":{found[1]}/") for part in words("HEALTHCHECK")]
        assert python == "python"
        assert subprocess.run([sys.executable, *asked], check=False).returncode == 0
    finally:
        process.kill()
        process.communicate()
    assert subprocess.run([sys.executable, *asked], check=False, stderr=subprocess.DEVNULL).returncode == 1
