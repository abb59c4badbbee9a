"""Spoilt files: whatever stands in them, readers raise an InputError and nothing else."""

from __future__ import annotations

import copy
import gzip
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpusched_baselines.tuned import load_tuned
from gpusched_env.errors import InputError
from gpusched_env.files import unpack
from gpusched_env.formats.instance_file import instance_json, load_instance
from gpusched_env.formats.run_folder import write_run
from gpusched_env.provenance import provenance
from gpusched_env.workload import load_scenario, read_trace
from gpusched_env.workload.tables.own_applications import read_applications
from gpusched_env.workload.tables.price_file import read_prices
from gpusched_env.workload.traces.seen_jobs import SeenCluster
from gpusched_experiments.report.comparison_folder import Compared, comparison_files
from gpusched_operations.html_report import folder_report, report_html
from gpusched_operations.live.job_rules import JobRules
from gpusched_operations.live.journal import Journal
from gpusched_operations.live.kai_state import kai_cluster
from gpusched_operations.live.kubernetes_objects import objects_of
from gpusched_operations.live.kueue_state import kueue_cluster
from gpusched_operations.live.slurm_state import cluster_of
from gpusched_operations.live.watch_report import about_the_journal, drifts, scenario_of, trace_csv
from gpusched_operations.live.watching import ClusterWatch, watch_on
from played_cluster import PlayedCluster, PlayedJob
from report_pages import costs, ran

DATA = Path(__file__).parent / "live" / "data"
NODES, T = (DATA / "nodes.txt").read_text("utf-8"), 1_800_014_400.0
RULES = {"applications": {"mine": {"seconds_per_epoch": {"V100": [100.0, 60.0]}, "max_epochs": 10}}}
METADATA = {"name": "a", "namespace": "b", "annotations": {"pod-group-name": "a"}}
POD = {"nodeName": "n", "containers": [{"resources": {"requests": {"nvidia.com/gpu": 1}}}]}
KAI = {
    "pods": [{"metadata": METADATA, "spec": POD, "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}}],
    "podGroups": [{"metadata": METADATA, "spec": {"queue": "q"}}],
    "nodes": [{"metadata": {"name": "n"}, "status": {"allocatable": {"nvidia.com/gpu": 4}}}],
    "bindRequests": [{"metadata": METADATA, "spec": {"podName": "a", "selectedNode": "n"}}],
}
BAD = (None, "two", -1, 1e308, 10**30, [], {}, [[1]], {"a": 1}, True, float("nan"), 1.5, "")


def journal_lines(folder: Path) -> list[Any]:
    cluster = PlayedCluster(tuple(PlayedJob(n, T, 1, ((T, T + 60, "v1"),), "gpusched app=mine") for n in (1, 2)), T)

    def ask(_: Any) -> dict[str, Any]:
        return {"jobs": [], "running": 0, "waiting": 0}

    with Journal(folder, clock=lambda: cluster.now_s) as journal:
        watch = ClusterWatch(cluster.read, JobRules.of(RULES), "edf", ask, journal, "gpu",
            clock=lambda: cluster.now_s, ticks=lambda: cluster.steady_s)  # fmt: skip
        watch_on(watch, 30.0, lambda _: None, for_s=120.0, wait=cluster.wait)
    return [json.loads(line) for file in folder.iterdir() for line in file.read_text().splitlines()]


def read_journal(folder: Path, text: str) -> None:
    (folder / "journal-2026-01-01.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in json.loads(text)))
    seen = SeenCluster.of(folder)
    about_the_journal(seen)
    trace_csv(seen)
    drifts(seen)
    scenario_of(seen, folder, JobRules.of(RULES))


def read_as(name: str, read: Callable[[Path], object]) -> Callable[[Path, str], object]:
    """Return what reads a text as the content of a file of this name, by its path."""

    def reading(folder: Path, text: str) -> object:
        (folder / name).write_text(text)
        return read(folder / name)

    return reading


def report_of(path: Path) -> str:
    return report_html(folder_report(path.parent))


def philly() -> list[dict[str, Any]]:
    attempt = {"start_time": "2017-10-09 07:02:55", "end_time": "2017-10-09 08:02:55", "detail": [{"gpus": ["g0"]}]}
    return [{"jobid": "a", "submitted_time": "2017-10-09 07:01:55", "status": "Pass", "attempts": [attempt]}] * 2


READERS: dict[str, Callable[[Path, str], object]] = {
    "journal": read_journal,
    "squeue": lambda _, text: cluster_of(text, NODES, T),
    "nodes": lambda _, text: cluster_of('{"jobs": []}', text, T),
    "kueue": lambda _, text: kueue_cluster(objects_of(text, "--kueue"), T),
    "kai": lambda _, text: kai_cluster(text.encode(), T),
    "rules": lambda _, text: JobRules.of(json.loads(text)),
    "tuned": read_as("tuned.json", load_tuned),
    "instance": read_as("instance.json", load_instance),
    "philly": read_as("cluster_job_log", lambda path: read_trace(path, "philly")),
    "comparison": read_as("results.json", report_of),
    "run": read_as("run.json", report_of),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """Return what gives a whole content of each kind."""
    folder = tmp_path_factory.mktemp("good")
    write_run(ran(), folder / "run")
    runs = tuple(costs(edf=[10.0, 11, 12, 13, 14], sts=[20.0, 22, 24, 26, 28]))
    made = comparison_files([Compared.of(runs, "edf")], "edf", None, {}, provenance("compare", seeds=[0]))
    kueue = [json.loads(json.dumps(each, default=str)) for each in objects_of((DATA / "kueue.yaml").read_text(), "")]
    made_of = {
        "journal": journal_lines(folder / "journal"),
        "squeue": json.loads((DATA / "squeue.json").read_text("utf-8")),
        "nodes": {"nodes": [{"name": "n", "gres": "gpu:v100:4", "state": ["IDLE"], "partitions": ["gpu"]}]},
        "kueue": {"items": kueue},
        "kai": {"rawObjects": KAI},
        "rules": RULES,
        "tuned": {"constants": {"a": 0.5}},
        "instance": json.loads(instance_json(ran().instance)),
        "philly": philly(),
        "comparison": json.loads(made["results.json"]),
        "run": json.loads((folder / "run" / "run.json").read_text()),
    }
    return lambda kind: copy.deepcopy(made_of[kind])


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in below:
        yield (*above, key)
        yield from places(each, (*above, key))


@pytest.mark.parametrize("kind", READERS)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(number=st.integers(0, 10**6), index=st.integers(0, len(BAD)))
def test_a_value_of_another_type_is_at_most_an_input_error(
    kind: str, good: Callable[[str], Any], tmp_path_factory: pytest.TempPathFactory, number: int, index: int
):
    folder, value = tmp_path_factory.mktemp("spoilt"), good(kind)
    if kind == "run":
        write_run(ran(), folder)
    found = list(places(value))
    *above, last = found[number % len(found)]
    inner = value
    for key in above:
        inner = inner[key]
    if index < len(BAD):
        inner[last] = BAD[index]
    else:
        del inner[last]
    with suppress(InputError):
        READERS[kind](folder, json.dumps(value))


def packed(text: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.json", text)
    return made.getvalue()


MIDDLE = (b"", b"[" * 2000, b"9" * 5000, b"\0", b"''", b"-", b"\n", b"x" * 140_000)
KAI_TEXT = json.dumps({"rawObjects": KAI}).encode()
BYTES: dict[str, tuple[Callable[[Path], object], bytes]] = {
    "scenario.toml": (load_scenario, b'base = "tiny"\n[jobs]\ncount = 12\n[prices]\nstart = "2024-03-01T00:00"\n'),
    "rules.toml": (JobRules.load, b'[defaults]\napp = "mine"\n[applications.mine]\nmax_epochs = 10\n'),
    "trace.csv": (read_trace, b"submission_s,duration_s,gpus\n0,60,1\n1,60,2\n"),
    "trace.csv.gz": (read_trace, gzip.compress(b"submission_s,duration_s,gpus\n0,60,1\n1,60,2\n", mtime=0)),
    "journal-1.jsonl.gz": (SeenCluster.of, gzip.compress(b'{"time": 1, "kind": "round", "read": 1}\n', mtime=0)),
    "prices.csv": (
        lambda path: read_prices(str(path)),
        b"time,eur_per_mwh\n2025-10-01T00:00+02:00,10\n2025-10-01T01:00+02:00,20\n",
    ),
    "applications.csv": (
        read_applications,
        b"application,gpu_type,gpus,seconds_per_epoch,max_epochs\na,V100,1,60,10\na,V100,2,40,\n",
    ),
    "kai.gz": (lambda path: kai_cluster(path.read_bytes(), T), gzip.compress(KAI_TEXT, mtime=0)),
    "kai.zip": (lambda path: kai_cluster(path.read_bytes(), T), packed(KAI_TEXT)),
    "kueue.yaml": (lambda path: objects_of(path.read_text(), "--kueue"), b"a: 2026-01-01\nb: [1, !!int '2']\n"),
}


@pytest.mark.parametrize("name", BYTES)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(number=st.integers(0, 10**6), middle=st.sampled_from(MIDDLE) | st.binary(max_size=3), more=st.integers(0, 2))
def test_spoilt_bytes_are_at_most_an_input_error(name: str, tmp_path: Path, number: int, middle: bytes, more: int):
    read, content = BYTES[name]
    first = number % len(content)
    after = content[first + (0, 1, len(content))[more] :]
    (tmp_path / name).write_bytes(content[:first] + middle + after)
    with suppress(InputError, UnicodeDecodeError if name == "kueue.yaml" else InputError):
        read(tmp_path / name)


def test_what_is_unpacked_has_a_limit():
    for content in (gzip.compress(b" " * 1001), packed(b" " * 1001)):
        assert unpack(content, 1001) == b" " * 1001
        with pytest.raises(ValueError, match="more than 1,000 bytes"):
            unpack(content, 1000)


def test_a_text_that_begins_as_a_zip_archive_does_is_none():
    assert unpack(b"PK,id\n1,2\n") == b"PK,id\n1,2\n"


def test_a_damaged_archive_of_any_method_is_a_value_error():
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", method) as archive:
            archive.writestr("x", bytes(range(256)) * 20)
        spoilt = bytearray(packed.getvalue())
        spoilt[45:60] = b"\xff" * 15
        with pytest.raises(ValueError, match=r"\S"):
            unpack(bytes(spoilt))
