"""Random requests to HiveD's program: where it placed each gang, beside our allocator's answer.

Files: episodes, one JSON document in each line (compressed if they end in `.gz`), with the configuration of the cluster
in `cluster.yaml` beside them. An answer is one request; an episode ends at the first that differs, since from there on
the two have other gangs. The answer agrees if every pod has the same node and the same GPUs, or if both wait, preempt
or refuse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.errors import InputError
from gpusched_reproductions.conform.answer import Answer
from gpusched_reproductions.systems.hived import episodes
from gpusched_reproductions.systems.hived.configuration import cluster_of, read_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

CLUSTER = "cluster.yaml"
EPISODES = "*.jsonl*"


def answers(paths: Sequence[Path]) -> Iterator[Answer]:
    for path in (file for given in paths for file in _files(given)):
        if not (path.parent / CLUSTER).is_file():
            raise InputError("files", str(path), f"episodes with {CLUSTER} beside them")
        cluster = cluster_of(read_cluster(path.parent / CLUSTER))
        for number, episode in enumerate(episodes.read(path)):
            for step in episodes.replay(episode, cluster, number):
                yield Answer(f"{path.name}, {step.case}", step.published, step.ours, step.published == step.ours)


def _files(given: Path) -> list[Path]:
    if given.is_file():
        return [given]
    found = sorted(given.rglob(EPISODES))
    if not found:
        raise InputError("files", str(given), f"a folder with episodes, {EPISODES}")
    return found
