"""Arrays with names in other processes: kernels are found on the disk, and Python computes what they do."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import boxes
from boxes import by_hand, new_outer


def in_a_process(folder: Path, **environment: str) -> tuple[float, float, int]:
    """Run `boxes` in a process of its own; give what it prints."""
    path = os.pathsep.join([str(Path(boxes.__file__).parent), *sys.path])
    program = "import boxes; boxes.main()"
    variables = os.environ | {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(folder)} | environment
    done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True, check=True)
    first, second, hits = done.stdout.split()
    return float(first), float(second), int(hits)


def expected() -> tuple[float, float]:
    changed = new_outer(5.0)
    for array, place in ((changed.inner.numbers, 0), (changed.table, (1, 2)), (changed.cube, (1, 2, 3))):
        array[place] += 7
    return by_hand(new_outer()), by_hand(changed)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT is set")
def test_a_second_process_finds_the_kernels_on_the_disk_and_python_computes_the_same(tmp_path):
    assert in_a_process(tmp_path) == (*expected(), 0)
    first, second, hits = in_a_process(tmp_path)
    assert (first, second) == expected()
    assert hits > 0
    assert in_a_process(tmp_path, NUMBA_DISABLE_JIT="1") == (*expected(), 0)
