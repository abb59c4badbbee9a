"""The prolog that sets power limits, with a made-up nvidia-smi and squeue."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples/slurm/power_limit_prolog.sh"


def limits(tmp_path: Path, comment: str, **environment: str) -> list[str]:
    """Run it; return what nvidia-smi was asked to set."""
    (tmp_path / "nvidia-smi").write_text(
        '#!/bin/sh\ncase "$*" in *power.default_limit*) echo "300.00, 150.00" ;; *) echo "$*" >> "$LOG" ;; esac\n'
    )
    (tmp_path / "squeue").write_text(
        f'#!/bin/sh\n[ "$*" = "--noheader --jobs=7 --Format=AdminComment:4000" ] && echo "{comment}      "\n'
    )
    (tmp_path / "scontrol").write_text(
        "#!/bin/sh\necho 'JobId=7 AdminComment=a Comment=x AdminComment=gpusched-power=0.9'\n"
    )
    for name in ("nvidia-smi", "squeue", "scontrol"):
        (tmp_path / name).chmod(0o755)
    log = tmp_path / "log"
    log.write_text("")
    usual = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LOG": str(log), "SLURM_JOB_ID": "7"}
    subprocess.run(["/bin/sh", str(SCRIPT)], env=usual | environment, check=True)
    return log.read_text().splitlines()


@pytest.mark.parametrize(
    ("comment", "watts"), [("theirs,gpusched-power=0.7", 210), ("gpusched-power=0.3", 150), ("theirs", None)]
)
def test_the_limit_of_the_comment_is_set_but_none_below_the_least(tmp_path, comment, watts):
    asked = limits(tmp_path, comment, SLURM_JOB_GPUS="0,3", SLURM_SCRIPT_CONTEXT="prolog_slurmd")
    assert asked == ([] if watts is None else [f"-i 0 -pl {watts}", f"-i 3 -pl {watts}"])


def test_the_epilog_takes_it_back_and_jobs_without_gpus_are_left_alone(tmp_path):
    asked = limits(tmp_path, "gpusched-power=0.7", SLURM_JOB_GPUS="1", SLURM_SCRIPT_CONTEXT="epilog_slurmd")
    assert asked == ["-i 1 -pl 300"]
    assert limits(tmp_path, "gpusched-power=0.7", SLURM_SCRIPT_CONTEXT="prolog_slurmd") == []
