"""Trace files that are compressed are told apart and read as those that are not."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from typing import TYPE_CHECKING

import pytest

from gpusched_env import load_scenario, make_instance
from gpusched_env.workload import detect_format, read_trace
from gpusched_env.workload.traces import rows as packed
from refusals import refused

if TYPE_CHECKING:
    from pathlib import Path

JOB = {
    "status": "Pass", "vc": "v", "jobid": "a", "user": "u", "submitted_time": "2017-10-07 01:00:00",
    "attempts": [{"start_time": "2017-10-07 01:00:00", "end_time": "2017-10-07 01:01:00",
                  "detail": [{"ip": "m", "gpus": ["gpu0"]}]}],
}  # fmt: skip
FILES = {
    "philly": json.dumps([JOB], indent=1),
    "sacct": "JobID|User|Submit|Start|End|ElapsedRaw|AllocTRES\n"
    "1|a,b|2024-01-31T12:00:00|2024-01-31T12:00:00|2024-01-31T12:01:00|60|cpu=1,gres/gpu=1\n",
    "pai": "a,worker,1.0,Terminated,1000.0,1060.0,600.0,29.3,100.0,MISC\n",
    "helios": "job_id;gpu_num;submit_time;start_time;end_time;duration\n"
    "1;1;2020-04-01 00:00:00;2020-04-01 00:00:00;2020-04-01 00:01:00;60\n",
    "generic": "\nsubmission_s,duration_s,gpus\n0,60,1\n",
}


def zstd(text: bytes) -> bytes:
    """Make a zstd frame of raw blocks of a byte each: valid, and its text stands nowhere in one piece."""
    frame = b"\x28\xb5\x2f\xfd\xa0" + len(text).to_bytes(4, "little")
    for place in range(len(text)):
        last = place == len(text) - 1
        frame += (last | 1 << 3).to_bytes(3, "little") + text[place : place + 1]
    return frame


@pytest.mark.parametrize("format_name", FILES)
@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd])
@pytest.mark.parametrize("name", ["trace", "trace.gz", "trace.zst"])
def test_every_format_is_told_and_read_in_every_compression_whatever_its_name(name, pack, format_name, tmp_path):
    path = tmp_path / name
    path.write_bytes(pack(FILES[format_name].encode()))
    assert detect_format(path) == format_name
    trace = read_trace(path, format_name)
    assert (trace.duration_s.tolist(), trace.gpus.tolist()) == ([60.0], [1.0])


@pytest.mark.parametrize(("pack", "kind"), [(bz2.compress, "bzip2"), (lzma.compress, "xz")])
def test_other_compressions_are_refused_by_their_names(pack, kind, tmp_path):
    path = tmp_path / "trace.csv"
    path.write_bytes(pack(FILES["generic"].encode()))
    for read in (detect_format, read_trace):
        with refused("trace.csv", f"compressed with {kind}", "gzip or zstd"):
            read(path)


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_a_compressed_file_that_breaks_off_is_one_error(pack, tmp_path):
    path: Path = tmp_path / "cluster_job_log"
    path.write_bytes(pack(FILES["philly"].encode())[:-9])
    with refused("cluster_job_log"):
        read_trace(path, "philly")


def test_a_small_file_that_opens_to_one_huge_cell_is_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(packed, "MOST_OF_LINE", 1 << 12)
    path = tmp_path / "trace.csv.gz"
    rows = "submission_s,duration_s,gpus\n" + "0,60,1\n" * 2_000
    path.write_bytes(gzip.compress(rows.encode()))
    assert len(read_trace(path, "generic").gpus) == 2_000
    for huge in ("x" * 5_000, "x" * 5_000 + "\n0,60,1\n", "0,60,1\n" + "x" * 9_000):
        path.write_bytes(gzip.compress((rows + huge).encode()))
        with refused("trace.csv.gz", "a line that is longer", "lines of 4,096 bytes at most"):
            read_trace(path, "generic")


@pytest.mark.parametrize("encoding", ["rot13", "base64", "no-such"])
def test_what_encodes_no_text_is_no_encoding(encoding):
    with refused("trace.encoding", encoding):
        load_scenario("default").replace({"trace": {"path": "x.csv", "format": "generic", "encoding": encoding}})


def test_half_a_file_is_refused_in_every_encoding(tmp_path):
    path = tmp_path / "trace.csv.gz"
    path.write_bytes(gzip.compress(("submission_s,duration_s,gpus\n" + "0,60,1\n" * 2_000).encode())[:60])
    for encoding in ("utf-8", "cp1252"):
        scenario = load_scenario("default").replace(
            {"trace": {"path": str(path), "format": "generic", "encoding": encoding}, "jobs.count": 1}
        )
        with refused("trace.csv.gz"):
            make_instance(scenario, 0)
