"""The file of a training run's state: what was written is read back, and nothing else is taken."""

import numpy as np

from gpusched_agents.files.arrays_file import arrays_bytes, read_arrays
from gpusched_agents.training.checkpoint import Checkpoint
from gpusched_env.errors import InputError
from refusals import refused


def test_a_checkpoint_with_any_bit_flipped_is_refused_or_is_the_same(tmp_path):
    path = tmp_path / "checkpoint.npz"
    made = Checkpoint({"a/weights": np.arange(4.0), "b": np.array([1, 2], dtype=np.int64)}, {"steps": 7})
    made.write(path)
    data, refusals = path.read_bytes(), 0
    for place in range(-1, len(data)):
        path.write_bytes(data if place < 0 else data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        try:
            again = Checkpoint.read(path)
        except InputError:
            refusals += 1
            continue
        assert again.facts == made.facts
        for name, array in made.arrays.items():
            np.testing.assert_array_equal(again.arrays[name], array)
    assert refusals > len(data) / 2  # the others are times and attributes of files in the archive


def test_a_checkpoint_with_other_arrays_than_its_checksum_is_of_is_refused(tmp_path):
    path = tmp_path / "checkpoint.npz"
    Checkpoint({"a": np.arange(4.0)}, {"steps": 7}).write(path)
    arrays = read_arrays(path.read_bytes())
    path.write_bytes(arrays_bytes(arrays | {"a": np.arange(1.0, 5.0)}))
    with refused(f"{path}: sha256", allowed="remove it to begin again"):
        Checkpoint.read(path)
