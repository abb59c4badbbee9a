"""The file of a training run's state: what was written is read back, and nothing else is taken."""

import numpy as np
import pytest

from gpusched_agents.training.checkpoint import Checkpoint
from gpusched_env.errors import InputError
from refusals import refused


def test_a_checkpoint_with_any_bit_flipped_is_refused(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    made = Checkpoint({"a/weights": np.arange(4.0), "b": np.array([1, 2], dtype=np.int64)}, {"steps": 7})
    made.write(path)
    data = path.read_bytes()
    again = Checkpoint.read(path)
    assert again.facts == made.facts
    for name, array in made.arrays.items():
        np.testing.assert_array_equal(again.arrays[name], array)
    for place in range(len(data) - 48, len(data)):  # the arrays
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with refused(f"{path}: sha256", allowed="remove it to begin again"):
            Checkpoint.read(path)
    for place in range(data.rindex(b"}", 0, len(data) - 48)):  # the header
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(InputError, match=r"checkpoint\.safetensors"):
            Checkpoint.read(path)
